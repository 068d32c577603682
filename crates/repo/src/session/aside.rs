//! Keys that fit nothing yet.
//!
//! A program that copies a Zarr store key by key may write a chunk before its array's metadata. A
//! session keeps such keys in memory until their array arrives. A commit fails while any is left,
//! because a repository has no place for bytes that belong to nothing.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Bound;

use bytes::Bytes;
use chunkyard_store::{Error, Result};

use super::{Access, Session};

/// Bound on all waiting bytes together.
const ASIDE_BYTES_MAX: u64 = 256 << 20;
/// The cost of a key beyond its bytes, so that empty ones are bounded too.
const KEY_BYTES: u64 = 128;
/// How many keys an error names.
const NAMED_MAX: usize = 5;

/// The keys of a session that fit nothing yet.
#[derive(Debug, Default)]
pub(super) struct Aside {
    keys: BTreeMap<String, Waiting>,
    cost: u64,
}

/// A key that fits nothing yet.
#[derive(Debug, Clone)]
pub(crate) struct Waiting {
    pub(crate) bytes: Bytes,
    pub(crate) why: Why,
}

/// Why a key has no place in a repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Why {
    /// No array has such a chunk.
    NoArray,
    /// The array exists, but has no such chunk.
    Array(String),
    /// A chunk of zero bytes.
    Empty,
    /// A metadata document that does not parse, or does not fit where it is.
    Document(String),
    /// A key of Zarr version 2.
    Version2,
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoArray => f.write_str("belongs to no array"),
            Self::Array(why) => write!(f, "belongs to no chunk of its array: {why}"),
            Self::Empty => f.write_str("belongs to no array: a chunk has at least one byte"),
            Self::Document(why) => write!(f, "is no document of a node: {why}"),
            Self::Version2 => f.write_str(
                "belongs to no array: a repository keeps Zarr v3; `chunkyard convert` reads \
                 version 2",
            ),
        }
    }
}

impl Aside {
    fn insert(&mut self, key: &str, waiting: Waiting) -> Result<()> {
        let before = self.keys.get(key).map_or(0, |old| cost(key, &old.bytes));
        let after = self.cost - before + cost(key, &waiting.bytes);
        if after > ASIDE_BYTES_MAX {
            return Err(Error::Invalid {
                what: format!(
                    "{key}: more than {} MiB of keys wait for the metadata they belong to; write \
                     zarr.json before the chunks",
                    ASIDE_BYTES_MAX >> 20
                ),
            });
        }
        self.cost = after;
        self.keys.insert(key.to_owned(), waiting);
        Ok(())
    }

    fn remove(&mut self, key: &str) -> bool {
        let Some((key, old)) = self.keys.remove_entry(key) else { return false };
        self.cost -= cost(&key, &old.bytes);
        true
    }

    fn below(&self, prefix: &str) -> impl Iterator<Item = (&String, &Waiting)> {
        self.keys
            .range::<str, _>((Bound::Included(prefix), Bound::Unbounded))
            .take_while(move |(key, _)| key.starts_with(prefix))
    }

    /// Refuses what cannot be done while keys wait.
    pub(super) fn refuse(&self, doing: &str) -> Result<()> {
        if self.keys.is_empty() {
            return Ok(());
        }
        let named = self.keys.iter().take(NAMED_MAX);
        let named: Vec<_> = named.map(|(key, waiting)| format!("{key} {}", waiting.why)).collect();
        let more = match self.keys.len().saturating_sub(NAMED_MAX) {
            0 => String::new(),
            more => format!("; and {more} more"),
        };
        Err(Error::Invalid { what: format!("cannot {doing}: {}{more}", named.join("; ")) })
    }
}

fn cost(key: &str, bytes: &Bytes) -> u64 {
    KEY_BYTES + key.len() as u64 + bytes.len() as u64
}

impl Session {
    /// The bytes of a waiting key.
    pub(crate) fn aside(&self, key: &str) -> Option<Bytes> {
        self.work().aside.keys.get(key).map(|waiting| waiting.bytes.clone())
    }

    /// Whether no key waits, which is nearly always true.
    pub(crate) fn has_none_aside(&self) -> bool {
        self.work().aside.keys.is_empty()
    }

    /// The waiting keys that begin with a prefix, in order.
    pub(crate) fn aside_below(&self, prefix: &str) -> Vec<(String, Waiting)> {
        let work = self.work();
        work.aside.below(prefix).map(|(key, waiting)| (key.clone(), waiting.clone())).collect()
    }

    /// Keeps a key until it fits. A fork refuses at once: its hierarchy does not change any more.
    pub(crate) fn put_aside(&self, key: &str, bytes: Bytes, why: Why) -> Result<()> {
        if matches!(self.access, Access::Fork { .. }) {
            return Err(Error::Invalid { what: format!("{key} {why}") });
        }
        self.require_writable()?.aside.insert(key, Waiting { bytes, why })
    }

    /// Forgets a waiting key; returns whether there was one.
    pub(crate) fn drop_aside(&self, key: &str) -> Result<bool> {
        let mut work = self.require_writable()?;
        Ok(work.aside.remove(key))
    }

    /// Forgets all waiting keys that begin with a prefix.
    pub(crate) fn drop_aside_below(&self, prefix: &str) -> Result<()> {
        let mut work = self.require_writable()?;
        let doomed: Vec<_> = work.aside.below(prefix).map(|(key, _)| key.clone()).collect();
        for key in doomed {
            work.aside.remove(&key);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waiting(len: usize) -> Waiting {
        Waiting { bytes: Bytes::from(vec![0; len]), why: Why::NoArray }
    }

    #[test]
    fn waiting_keys_are_bounded_and_a_removed_key_makes_room() {
        let mut aside = Aside::default();
        let half = (ASIDE_BYTES_MAX / 2) as usize;
        aside.insert("a", waiting(half)).unwrap();
        aside.insert("a", waiting(half)).unwrap();
        let error = aside.insert("b", waiting(half)).unwrap_err().to_string();
        assert!(error.contains("zarr.json"), "{error}");
        assert!(!aside.remove("b") && aside.remove("a"));
        aside.insert("b", waiting(half)).unwrap();
        aside.remove("b");
        assert_eq!(aside.cost, 0);
    }

    #[test]
    fn a_refusal_names_a_few_and_counts_the_rest() {
        let mut aside = Aside::default();
        aside.refuse("commit").unwrap();
        for n in 0..7 {
            aside.insert(&format!("k{n}"), waiting(1)).unwrap();
        }
        let error = aside.refuse("commit").unwrap_err().to_string();
        assert!(error.contains("cannot commit: k0 belongs to no array"), "{error}");
        assert!(error.ends_with("and 2 more"), "{error}");
    }

    #[test]
    fn a_prefix_matches_names_and_not_only_folders() {
        let mut aside = Aside::default();
        for key in ["a", "a/b", "ab", "b"] {
            aside.insert(key, waiting(1)).unwrap();
        }
        let below = |prefix| aside.below(prefix).map(|(key, _)| key.as_str()).collect::<Vec<_>>();
        assert_eq!(below("a"), ["a", "a/b", "ab"]);
        assert_eq!(below("a/"), ["a/b"]);
        assert_eq!(below("").len(), 4);
    }
}
