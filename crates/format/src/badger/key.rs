//! Keys as Badger stores them: the user's key and, behind it, the time of its transaction.

use std::ops::{Bound, RangeBounds};

/// Bytes of the time behind a key.
const TIME_BYTES: usize = 8;

/// Keys that Badger keeps for itself begin with this.
pub(super) const INTERNAL: &[u8] = b"!badger!";

/// The user's key and its version. Newer versions of a key sort first, because what is stored is the
/// complement of the time.
pub(super) fn split(stored: &[u8]) -> Option<(&[u8], u64)> {
    let (user, time) = stored.split_last_chunk::<TIME_BYTES>()?;
    Some((user, !u64::from_be_bytes(*time)))
}

/// The user's key, for keys that were checked to have a time.
pub(super) fn user(stored: &[u8]) -> &[u8] {
    split(stored).map_or(stored, |(user, _)| user)
}

/// Whether the second of two stored keys belongs behind the first.
pub(super) fn is_ascending(first: &[u8], second: &[u8]) -> bool {
    match (first.split_last_chunk::<TIME_BYTES>(), second.split_last_chunk::<TIME_BYTES>()) {
        (Some(first), Some(second)) => first < second,
        _ => false,
    }
}

/// A range of user keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyRange {
    start: Vec<u8>,
    end: Option<Vec<u8>>,
}

impl KeyRange {
    /// All keys.
    pub fn all() -> Self {
        Self { start: Vec::new(), end: None }
    }

    /// The keys that begin with `prefix`.
    pub fn prefix(prefix: &[u8]) -> Self {
        let mut end = prefix.to_vec();
        // The next prefix of the same length or less; after 0xff… there is none.
        while end.pop_if(|last| *last == u8::MAX).is_some() {}
        let end = end.split_last().map(|(last, rest)| [rest, &[last + 1]].concat());
        Self { start: prefix.to_vec(), end }
    }

    /// The keys within bounds.
    pub fn within(bounds: impl RangeBounds<Vec<u8>>) -> Self {
        let next = |key: &Vec<u8>| [key, &[0][..]].concat();
        let start = match bounds.start_bound() {
            Bound::Included(key) => key.clone(),
            Bound::Excluded(key) => next(key),
            Bound::Unbounded => Vec::new(),
        };
        let end = match bounds.end_bound() {
            Bound::Included(key) => Some(next(key)),
            Bound::Excluded(key) => Some(key.clone()),
            Bound::Unbounded => None,
        };
        Self { start, end }
    }

    /// The first key that may be in it.
    pub fn start(&self) -> &[u8] {
        &self.start
    }

    /// The first key behind it; `None` if it has no end.
    pub fn end(&self) -> Option<&[u8]> {
        self.end.as_deref()
    }

    /// Whether `key` and all keys after it lie behind it.
    pub(super) fn is_before(&self, key: &[u8]) -> bool {
        self.end.as_deref().is_some_and(|end| end <= key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_ends_before_the_next_one() {
        let end = |prefix: &[u8]| KeyRange::prefix(prefix).end;
        assert_eq!(end(b"ab"), Some(b"ac".to_vec()));
        assert_eq!(end(&[1, 0xff, 0xff]), Some(vec![2]));
        assert_eq!(end(&[0xff, 0xff]), None);
        assert_eq!(KeyRange::prefix(b""), KeyRange::all());
    }

    #[test]
    fn bounds_include_and_exclude_their_keys() {
        let range = KeyRange::within(vec![1]..=vec![2]);
        assert_eq!((range.start(), range.end()), (&[1][..], Some(&[2, 0][..])));
        let range = KeyRange::within((Bound::Excluded(vec![1]), Bound::Excluded(vec![2])));
        assert_eq!((range.start(), range.end()), (&[1, 0][..], Some(&[2][..])));
        assert_eq!(KeyRange::within(..), KeyRange::all());
    }
}
