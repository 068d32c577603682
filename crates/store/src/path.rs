//! Paths inside a store, which often come out of files and are therefore hostile.

use crate::error::{Error, Result};

/// Checks that `path` names an object inside the store and nothing outside it: relative, separated
/// by single slashes, without `.` and `..`, without control characters.
pub fn check_path(path: &str) -> Result<()> {
    let wrong = if path.is_empty() {
        "it is empty"
    } else if path.starts_with('/') {
        "it is absolute"
    } else if path.split('/').any(str::is_empty) {
        "it has an empty segment"
    } else if path.split('/').any(|segment| segment == "." || segment == "..") {
        "it has a segment . or .."
    } else if path.chars().any(char::is_control) {
        "it has a control character"
    } else {
        return Ok(());
    };
    Err(Error::invalid(format!("{path:?} is no path in a store: {wrong}")))
}

/// Checks a directory, for which `""` is the root and one trailing slash is allowed; gives it
/// without that slash.
pub(super) fn check_dir(path: &str) -> Result<&str> {
    let path = path.strip_suffix('/').unwrap_or(path);
    if !path.is_empty() {
        check_path(path)?;
    }
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ordinary_paths_pass() {
        for path in ["a", "a/b", "c/0/0", ".tmp/x", "..a/b..", "ä/ö 1%2F", "a\\b"] {
            assert!(check_path(path).is_ok(), "{path}");
        }
    }

    #[test]
    fn hostile_paths_are_refused() {
        for path in ["", "/", "/etc/passwd", "..", "a/../b", "a/..", "./a", "a//b", "a/", "a\0b"] {
            assert!(matches!(check_path(path), Err(Error::Invalid { .. })), "{path:?}");
        }
    }

    #[test]
    fn a_directory_may_be_the_root_or_end_with_a_slash() {
        assert_eq!(check_dir("").unwrap(), "");
        assert_eq!(check_dir("a/b/").unwrap(), "a/b");
        assert!(check_dir("../a").is_err());
        assert!(check_dir("a//").is_err());
    }
}
