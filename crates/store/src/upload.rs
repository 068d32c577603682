//! Objects written piece by piece.

use std::fmt;

use async_trait::async_trait;
use bytes::Bytes;

use crate::error::Result;

/// An object that is being written in bounded memory, however large it gets. Readers see nothing of
/// it, or the object that it replaces, until [`Upload::finish`]; then all of it, in one step.
///
/// Dropping it aborts it, as well as possible. After an error, or when the future of a call is
/// dropped before its end, nothing more can be written: how much arrived is unknown.
#[async_trait]
pub trait Upload: fmt::Debug + Send {
    /// Appends buffers, back to back. Returns when they, or enough of the earlier ones, are on
    /// their way, which bounds the memory.
    async fn write(&mut self, bytes: Vec<Bytes>) -> Result<()>;

    /// Overwrites bytes that were written through this upload, for data known only at the end that
    /// belongs at the front, such as an index; a range beyond what was written is
    /// [`Error::Invalid`](crate::Error::Invalid). File systems only: an object store has sent the
    /// front already, and says [`Error::Unsupported`](crate::Error::Unsupported).
    async fn patch(&mut self, position: u64, bytes: Bytes) -> Result<()>;

    /// Makes the object visible. It is durable after [`Backend::sync`](super::Backend::sync), like
    /// one that was put.
    async fn finish(self: Box<Self>) -> Result<()>;

    /// Removes what was written, as well as possible.
    async fn abort(self: Box<Self>);
}

/// Whether an upload can go on.
#[derive(Debug, Default)]
pub(super) struct Soundness {
    spoilt: bool,
}

impl Soundness {
    /// Begins a step, which counts as failed until it is [done](Soundness::done).
    pub(super) fn begin(&mut self, path: &str) -> Result<()> {
        if std::mem::replace(&mut self.spoilt, true) {
            let why = "an earlier part of it was not written";
            return Err(crate::Error::store("write", path, why));
        }
        Ok(())
    }

    pub(super) fn done(&mut self) {
        self.spoilt = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_that_did_not_end_well_is_the_last() {
        let mut soundness = Soundness::default();
        soundness.begin("a").unwrap();
        soundness.done();
        soundness.begin("a").unwrap();
        assert!(soundness.begin("a").is_err());
    }
}
