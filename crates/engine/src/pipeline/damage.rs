//! Chunks of the source that cannot be read, where the caller asked to go on without them.

use std::sync::{Mutex, PoisonError};

use chunkyard_array::ChunkIndex;
use chunkyard_store::{Error, ErrorKind, Result};
use serde::Serialize;

/// A chunk that was left out: the target has the fill value there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Damaged {
    /// Path of the array in the source.
    pub array: String,
    /// The chunk.
    pub chunk: ChunkIndex,
    /// What is wrong with it.
    pub error: String,
}

/// The chunks that were left out so far.
#[derive(Debug, Default)]
pub(super) struct Damage(Mutex<Vec<Damaged>>);

impl Damage {
    /// All of them, in order.
    pub(super) fn list(&self) -> Vec<Damaged> {
        let mut list = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        list.sort_by(|a, b| (&a.array, &a.chunk).cmp(&(&b.array, &b.chunk)));
        list.dedup();
        list
    }

    /// Whether an error means that one chunk is damaged or gone, and others may be sound.
    pub(super) fn explains(error: &Error) -> bool {
        matches!(error.kind(), ErrorKind::Corrupt | ErrorKind::NotFound)
    }

    fn note(&self, array: &str, chunk: &[u64], error: &Error) {
        let damaged =
            Damaged { array: array.to_owned(), chunk: chunk.to_vec(), error: error.to_string() };
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(damaged);
    }
}

/// What a chunk became; nothing, if it is damaged and damage is to be left out.
pub(super) fn or_leave_out<T>(
    damage: Option<&Damage>,
    array: &str,
    chunk: &[u64],
    made: Result<Option<T>>,
) -> Result<Option<T>> {
    match (made, damage) {
        (Err(error), Some(damage)) if Damage::explains(&error) => {
            damage.note(array, chunk, &error);
            Ok(None)
        }
        (made, _) => made,
    }
}
