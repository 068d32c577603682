//! What is kept between requests: labelmaps that were used last, the memory of large answers, and the queues of edits.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use chunkyard_engine::format::dvid::DvidStore;
use chunkyard_engine::repo::Session;
use chunkyard_engine::{Error, Result};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::segmentation::Segmentation;

/// Bytes of a unit of memory, and how many of the largest answers there is room for.
const UNIT: usize = 64 << 10;
const ANSWERS: usize = 4;
/// Labelmaps that stay open, each with at most 20 MB of mapping; of a store of DVID with all of it.
const OPENED: usize = 8;
/// Snapshots that are kept.
const SNAPSHOTS: usize = 64;
/// Lists of labelmaps that are kept.
const LISTS: usize = 256;
/// Served places whose format is known, and stores of DVID that stay open. There are as many as are configured.
const PLACES: usize = 4096;

/// What the handlers here keep.
#[derive(Debug)]
pub(crate) struct Kept {
    /// Memory of answers that are made as a whole, in units.
    room: Arc<Semaphore>,
    units: u32,
    /// Edits wait for each other, branch by branch.
    queues: Mutex<HashMap<(String, String), Arc<Semaphore>>>,
    /// Open stores of DVID, by the name of the place.
    pub(super) stores: Recent<String, DvidStore>,
    /// Whether a place is a store of DVID.
    pub(super) formats: Recent<String, bool>,
    /// Snapshots that were named by their whole id, by place and id: a version that never changes is not looked up again.
    pub(super) snapshots: Recent<(String, String), Arc<Session>>,
    /// The labelmaps of a place at a snapshot.
    pub(super) labelmaps: Recent<(String, String), Vec<String>>,
    /// Open labelmaps, by place, version and path.
    pub(super) opened: Recent<(String, String, String), Segmentation>,
}

impl Kept {
    /// Nothing yet; `answer_bytes_max` is what one answer may take.
    pub(crate) fn new(answer_bytes_max: usize) -> Self {
        let units = answer_bytes_max.div_ceil(UNIT).saturating_mul(ANSWERS).max(1);
        let units = u32::try_from(units).unwrap_or(u32::MAX);
        Self {
            room: Arc::new(Semaphore::new((units as usize).min(Semaphore::MAX_PERMITS))),
            units,
            queues: Mutex::default(),
            stores: Recent::new(PLACES),
            formats: Recent::new(PLACES),
            snapshots: Recent::new(SNAPSHOTS),
            labelmaps: Recent::new(LISTS),
            opened: Recent::new(OPENED),
        }
    }

    /// Waits until there is room for an answer that is made as a whole, and holds it until the permit is dropped.
    pub(super) async fn room(&self, bytes: u64) -> Result<OwnedSemaphorePermit> {
        let units = u32::try_from(bytes.div_ceil(UNIT as u64)).unwrap_or(u32::MAX);
        let permit = self.room.clone().acquire_many_owned(units.min(self.units)).await;
        permit.map_err(|error| Error::invalid(error.to_string()))
    }

    /// The queue of edits of a branch: a semaphore of one permit.
    pub(super) fn queue(&self, place: &str, branch: &str) -> Arc<Semaphore> {
        let mut queues = self.queues.lock().unwrap_or_else(PoisonError::into_inner);
        // An empty queue is made anew when it is needed.
        queues.retain(|_, queue| Arc::strong_count(queue) > 1);
        let key = (place.to_owned(), branch.to_owned());
        queues.entry(key).or_insert_with(|| Arc::new(Semaphore::new(1))).clone()
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
