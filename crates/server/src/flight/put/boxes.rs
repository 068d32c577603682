//! Boxes that are written into an array.

use std::sync::Arc;

use arrow_array::RecordBatch;
use chunkyard_array::Region;
use chunkyard_engine::repo::{Array, CommitOptions, Repository, Session};
use chunkyard_engine::{Error, Result};

use super::Target;
use super::columns::{binaries, cell, list, lists};

/// An array of a session that is committed in the end.
pub(super) struct Boxes {
    session: Arc<Session>,
    array: Array,
    item_bytes: usize,
    message: String,
    written: bool,
}

impl Boxes {
    pub(super) async fn open(repository: &Repository, target: Target) -> Result<Self> {
        let session = repository.writable_session(&target.branch).await?;
        let array = session.array(&target.path).await?;
        let item_bytes = array.reader().item_size()?;
        Ok(Self { session, array, item_bytes, message: target.message, written: false })
    }

    pub(super) async fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        let whole = Region::whole(self.array.spec().shape());
        let (origins, shapes) = (lists(batch, "origin")?, lists(batch, "shape")?);
        let data = binaries(batch, "data")?;
        for row in 0..batch.num_rows() {
            let (origin, shape) = (list(origins, row)?, list(shapes, row)?);
            let refused = |why: String| {
                Err(Error::invalid(format!("the box at {origin:?} of {shape:?} elements: {why}")))
            };
            let Ok(one) = Region::new(origin.clone(), shape.clone()) else {
                return refused("it is none".to_owned());
            };
            if one.rank() != whole.rank() || !whole.contains(&one) {
                return refused(format!("the array has {:?}", whole.shape()));
            }
            let (bytes, expected) = (cell(data, row), one.num_bytes(self.item_bytes)?);
            if bytes.len() != expected {
                return refused(format!("it has {} bytes, not {expected}", bytes.len()));
            }
            if !one.is_empty() {
                self.array.write_region(&one, bytes).await?;
                self.written = true;
            }
        }
        Ok(())
    }

    pub(super) async fn finish(self) -> Result<String> {
        if !self.written {
            return Ok(self.session.snapshot().snapshot_id.clone());
        }
        let snapshot = self.session.commit(CommitOptions::message(self.message)).await?;
        Ok(snapshot.snapshot_id.clone())
    }
}
