//! Identifiers and file names in a repository.

use chunkyard_store::{Result, Uid};

/// A fresh random identifier, 26 characters.
pub(super) fn fresh() -> Result<String> {
    Ok(Uid::fresh()?.to_string())
}

/// Whether `name` may be used as an identifier or file name in a repository we read:
/// `[A-Za-z0-9._-]{1,128}`.
pub(super) fn is_name(name: &str) -> bool {
    (1..=128).contains(&name.len())
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-'))
        && name != "."
        && name != ".."
}

/// Whether `name` may stand as a file name in metadata: an identifier, with at most one `/`
/// between a fan-out directory and the rest.
pub(super) fn is_file_name(name: &str) -> bool {
    match name.split_once('/') {
        Some((directory, file)) => is_name(directory) && is_name(file),
        None => is_name(name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fresh_identifier_is_a_name() {
        assert!(is_name(&fresh().unwrap()));
    }

    #[test]
    fn names_that_could_leave_the_directory_are_refused() {
        for bad in ["", ".", "..", "a/b/c", "../x", "/x", "x/", "a b", "a\0", "ü"] {
            assert!(!is_file_name(bad), "{bad:?}");
        }
        assert!(is_file_name("3f/3f9c") && is_file_name("A.b_c-9"));
    }
}
