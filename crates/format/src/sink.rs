//! Writing: packs in, one commit at the end.

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use chunkyard_array::{ChunkIndex, Region};
use chunkyard_store::{self, Error, Result, Store};
use serde::{Deserialize, Serialize};

use super::source::Source;

/// The object of a [journal](Sink::journal) that says which work it records. Without it the other
/// objects count for nothing.
pub const JOURNAL_PLAN: &str = "plan";

/// Bytes of a pack that wait in memory at most if it is not written as it comes, unless its sink
/// says otherwise.
pub const HELD_BYTES_MAX: u64 = 64 << 20;

/// How something is created.
#[derive(Debug, Clone, Default)]
pub struct CreateOptions {
    /// How its store is opened.
    pub store: chunkyard_store::Options,
    /// Replace the existing dataset, at the moment the new one is complete and not before.
    pub overwrite: bool,
    /// Names the work, so that interrupted work is found again by the same name. Empty: work that
    /// is never resumed.
    pub plan: String,
    /// Forget the work of an earlier attempt by the same name.
    pub restart: bool,
    /// Keep what members of an earlier attempt have written and the sink has not taken over yet: their receipts are
    /// still to come.
    pub keep_attempts: bool,
    /// The message of the commit, for formats that keep versions.
    pub message: Option<String>,
    /// The branch to commit to, for formats that keep versions.
    pub branch: Option<String>,
}

/// A box of elements whose chunks are written together: the unit of work, of resume and of
/// distribution.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pack {
    /// Path of the array.
    pub array: Arc<str>,
    /// Number of the pack in the plan of its array.
    pub number: u64,
    /// Its elements, clipped to the array: a box of whole [`grain`](super::Format::grain)s.
    pub region: Region,
}

/// What a sink needs to know of a complete pack to adopt it again, perhaps in another process.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Receipt {
    /// Chunks that are stored.
    pub chunks: u64,
    /// Their encoded bytes.
    pub bytes: u64,
    /// The format's own content.
    pub body: Bytes,
}

/// What [`Sink::finish`] made visible.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Published {
    /// Id of the snapshot, for formats that keep versions.
    pub snapshot: Option<String>,
}

/// The data that a worker needs to [join](super::Format::join) a [`Sink`] of another process and
/// write packs for it. Its content is up to the format. Holds no secrets.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Ticket(pub serde_json::Value);

/// Takes packs: a [`Sink`], or a member of one, which may be in another process.
///
/// Members never lock and never finish. Whatever happens to a member, and however many of them
/// write the same pack at the same time, only packs whose receipts the sink [accepts](Sink::accept)
/// count.
#[async_trait]
pub trait PackSink: std::fmt::Debug + Send + Sync {
    /// Begins a pack. Packs may be written at the same time, and again after a failure.
    async fn open_pack(&self, pack: &Pack) -> Result<Box<dyn PackWriter>>;

    /// Bytes of a pack that may wait in memory until it is complete.
    fn held_bytes_max(&self) -> u64 {
        HELD_BYTES_MAX
    }

    /// Makes complete packs durable. Only then may their receipts be written down or sent.
    async fn sync(&self, receipts: &[Receipt]) -> Result<()>;
}

/// A dataset being written. Nothing is visible before [`Sink::finish`].
#[async_trait]
pub trait Sink: PackSink {
    /// Takes over a pack that an earlier attempt completed; `false` where it is not there any more
    /// and must be written again.
    async fn adopt(&self, pack: &Pack, receipt: &Receipt) -> Result<bool>;

    /// Lets others write packs of this work, once its [journal](Sink::journal) says which work it
    /// is.
    async fn ticket(&self) -> Result<Ticket> {
        Err(Error::unsupported("writing this format by several workers"))
    }

    /// Takes over a pack that a member completed, durably. Returns the receipt that the sink itself
    /// would have written. A pack must not be accepted twice.
    async fn accept(&self, pack: &Pack, receipt: Receipt) -> Result<Receipt> {
        drop(receipt);
        Err(Error::unsupported(format!("taking over {} from a worker", pack.array)))
    }

    /// Where the receipts of an attempt are kept until it is finished: a place that belongs to this
    /// work alone.
    fn journal(&self) -> &Store;

    /// The data written so far, to be read back before it is visible.
    async fn written(&self) -> Result<Arc<dyn Source>>;

    /// Makes all of it durable, then visible: the commit. Also forgets the journal.
    async fn finish(self: Box<Self>) -> Result<Published>;
}

/// A pack being filled.
#[async_trait]
pub trait PackWriter: Send {
    /// Adds encoded chunks, in any order, each once. Chunks that are never pushed hold the fill
    /// value only.
    async fn push(&mut self, chunks: Vec<(ChunkIndex, Bytes)>) -> Result<()>;

    /// Completes the pack.
    async fn close(self: Box<Self>) -> Result<Receipt>;
}
