//! What is kept between requests: opened labelmaps, the newest used ones.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use chunkyard_engine::format::dvid::DvidStore;

/// Lists of labelmaps that are kept.
const LISTS: usize = 256;
/// Served places whose format is known, and stores of DVID that stay open. There are as many as are configured.
const PLACES: usize = 4096;

/// What the handlers here keep.
#[derive(Debug)]
pub(crate) struct Kept {
    /// Open stores of DVID, by the name of the place.
    pub(super) stores: Recent<String, DvidStore>,
    /// Whether a place is a store of DVID.
    pub(super) formats: Recent<String, bool>,
    /// The labelmaps of a place at a snapshot.
    pub(super) labelmaps: Recent<(String, String), Vec<String>>,
}

impl Default for Kept {
    fn default() -> Self {
        Self {
            stores: Recent::new(PLACES),
            formats: Recent::new(PLACES),
            labelmaps: Recent::new(LISTS),
        }
    }
}

/// The values that were used last, by key.
#[derive(Debug)]
pub(crate) struct Recent<K, V> {
    room: usize,
    values: Mutex<VecDeque<(K, Arc<V>)>>,
}

impl<K: PartialEq, V> Recent<K, V> {
    /// Room for so many.
    pub(crate) fn new(room: usize) -> Self {
        Self { room, values: Mutex::default() }
    }

    /// A value that is kept.
    pub(crate) fn get(&self, key: &K) -> Option<Arc<V>> {
        let mut values = self.values.lock().unwrap_or_else(PoisonError::into_inner);
        let at = values.iter().position(|(known, _)| known == key)?;
        let found = values.remove(at)?;
        let value = found.1.clone();
        values.push_front(found);
        Some(value)
    }

    /// Keeps a value, and gives up the one that was not used for longest. If another request was faster, its value is
    /// the one.
    pub(crate) fn put(&self, key: K, value: V) -> Arc<V> {
        let mut values = self.values.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, known)) = values.iter().find(|(known, _)| *known == key) {
            return known.clone();
        }
        let value = Arc::new(value);
        values.push_front((key, value.clone()));
        values.truncate(self.room);
        value
    }
}
