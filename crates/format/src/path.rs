//! Paths of nodes.

use chunkyard_store::{Error, Result};

/// Normalises a user's path: absolute, without a trailing `/`; refuses empty, `.` and `..`
/// segments, the name of Zarr's documents and control characters.
///
/// Zarr v3 §"Node names" reserves names that begin with `__`. xarray gives them to arrays all the same
/// (`__xarray_dataarray_variable__`), so they are kept.
pub fn normalise_path(path: &str) -> Result<String> {
    let trimmed = path.trim_matches('/');
    if trimmed.is_empty() {
        return Ok("/".into());
    }
    let unsound = |segment: &str| {
        segment.is_empty()
            || segment == "."
            || segment == ".."
            || segment == "zarr.json"
            || segment.chars().any(char::is_control)
    };
    if let Some(segment) = trimmed.split('/').find(|segment| unsound(segment)) {
        return Err(Error::Invalid {
            what: format!(
                "node path {path:?}: the segment {segment:?} is not allowed (empty, `.`, `..`, \
                 `zarr.json` and control characters are not)"
            ),
        });
    }
    Ok(format!("/{trimmed}"))
}

/// The path of the group that holds a node; `None` for the root.
pub fn parent_path(path: &str) -> Option<&str> {
    match path.rfind('/')? {
        0 if path == "/" => None,
        0 => Some("/"),
        at => path.get(..at),
    }
}

/// Whether `path` is `group` or lies below it.
pub fn is_within(path: &str, group: &str) -> bool {
    group == "/"
        || path == group
        || path.strip_prefix(group).is_some_and(|rest| rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_normalised_or_refused() {
        for (path, expected) in
            [("", "/"), ("/", "/"), ("a", "/a"), ("/a/b/", "/a/b"), ("__x", "/__x")]
        {
            assert_eq!(normalise_path(path).unwrap(), expected);
        }
        for bad in ["a//b", "a/./b", "../a", "a/zarr.json", "a\n"] {
            assert!(normalise_path(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn parents_and_descent() {
        assert_eq!(parent_path("/"), None);
        assert_eq!(parent_path("/a"), Some("/"));
        assert_eq!(parent_path("/a/b"), Some("/a"));
        assert!(is_within("/a/b", "/a") && is_within("/a", "/a") && is_within("/x", "/"));
        assert!(!is_within("/ab", "/a"));
    }
}
