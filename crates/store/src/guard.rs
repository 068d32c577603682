//! Whether an object is still the one that a reference was made to.

use super::backend::Meta;
use crate::error::{Error, Result};

/// What must be true of an object so that recorded ranges in it still have their meaning.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Guard {
    /// The etag it must have.
    pub etag: Option<String>,
    /// The last time it may have been written, in milliseconds since 1970.
    pub not_newer_than_ms: Option<i64>,
}

impl Guard {
    /// A guard for the state that was seen; `None` if the store reports nothing to tell states
    /// apart.
    pub fn of(meta: &Meta) -> Option<Self> {
        match &meta.etag {
            Some(etag) => Some(Self { etag: Some(etag.clone()), not_newer_than_ms: None }),
            None if meta.modified_ms > 0 => {
                Some(Self { etag: None, not_newer_than_ms: Some(meta.modified_ms) })
            }
            None => None,
        }
    }

    /// Fails with [`Error::VirtualSourceChanged`] unless `meta` satisfies this guard. An object
    /// about which the store says too little fails it.
    pub fn check(&self, url: &str, meta: &Meta) -> Result<()> {
        let changed = |expected: String, found: String| {
            Err(Error::VirtualSourceChanged { url: url.to_owned(), expected, found })
        };
        if let Some(expected) = &self.etag {
            // Some clients record the quotes of the HTTP header, some do not.
            let bare = |etag: &str| etag.trim_matches('"').to_owned();
            match &meta.etag {
                Some(found) if bare(found) == bare(expected) => {}
                Some(found) => return changed(format!("etag {expected}"), format!("etag {found}")),
                None => return changed(format!("etag {expected}"), "no etag".to_owned()),
            }
        }
        if let Some(latest) = self.not_newer_than_ms {
            let expected = || format!("not written after {latest} ms");
            if meta.modified_ms == 0 {
                return changed(expected(), "no time of writing".to_owned());
            }
            if meta.modified_ms > latest {
                return changed(expected(), format!("written at {} ms", meta.modified_ms));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meta(etag: Option<&str>, modified_ms: i64) -> Meta {
        let etag = etag.map(str::to_owned);
        Meta { path: "a".into(), size: 1, modified_ms, etag, version: None }
    }

    #[test]
    fn the_same_etag_passes_with_or_without_quotes() {
        let guard = Guard { etag: Some("x".into()), not_newer_than_ms: None };
        assert!(guard.check("a", &meta(Some("\"x\""), 5)).is_ok());
        assert!(guard.check("a", &meta(Some("y"), 5)).is_err());
    }

    #[test]
    fn a_later_write_is_a_change() {
        let guard = Guard { etag: None, not_newer_than_ms: Some(5) };
        assert!(guard.check("a", &meta(None, 5)).is_ok());
        assert!(guard.check("a", &meta(None, 6)).is_err());
    }

    #[test]
    fn a_store_that_says_too_little_fails_the_guard() {
        let etag = Guard { etag: Some("x".into()), not_newer_than_ms: None };
        assert!(etag.check("a", &meta(None, 5)).is_err());
        let time = Guard { etag: None, not_newer_than_ms: Some(5) };
        assert!(time.check("a", &meta(None, 0)).is_err());
    }
}
