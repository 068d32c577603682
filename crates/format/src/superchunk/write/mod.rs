//! What is being written to a dataset, and the commit that makes it count.
//!
//! ```text
//!  begin.rs      lock others out, or claim.rs; find the end of each column; temporary.rs and what dead writers left
//!     │
//!  append.rs     rows at the end ─▶ encode.rs, partial_chunk.rs   full chunks, while more rows arrive
//!  change.rs     other bytes for chunks that count ─▶ journal.rs  as often as it takes
//!     │
//!  chunk_files.rs   chunks ─▶ files, which do not count yet
//!     │
//!  commit.rs     everything durable, then meta/sizes: one step that every reader sees
//!
//!  trim.rs       meta/sizes first, then the files behind the end
//!  attributes.rs attributes, and the compression that a trial found best
//! ```
//!
//! [`Writing`] is owned by the task that holds the handle's lock. Files and objects are written by
//! [`Access`]; what a commit consists of is in [`Committed`]. Readers of the handle learn of all this through
//! [`Current`] alone, which only a writer changes.

pub(crate) mod append;
mod attributes;
pub(crate) mod begin;
mod change;
pub(crate) mod chunk_files;
pub(crate) mod claim;
mod commit;
pub(crate) mod encode;
pub(crate) mod journal;
mod partial_chunk;
mod temporary;
mod trim;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use chunkyard_store::{Error, Lock, Noun, Result, Version};

use self::encode::Rows;
use super::access::Access;
use super::committed::{Committed, Current, Waiting};
use super::read::directory;

/// What a handle has written and not committed, and what it knows about the end of the dataset.
#[derive(Debug)]
pub(crate) struct Writing {
    pub(crate) access: Arc<Access>,
    /// What readers of this handle see.
    pub(crate) current: Arc<Current>,
    /// Keeps other writers out.
    pub(crate) lock: Option<Lock>,
    /// What is being written, once the end of each column is known.
    pub(crate) columns: Option<Vec<ColumnWriting>>,
    /// Files that are written and not durable.
    dirty: BTreeSet<String>,
    /// `meta/sizes` as this handle last read or wrote it.
    sizes_seen: Option<Bytes>,
    /// The state of the files at the end of each column at this handle's last commit.
    end_etags: Vec<Option<String>>,
    /// Whether rows were added or changed since the last commit.
    changed: bool,
    /// Whether a journal is written: its chunks count already, so there is no way back.
    journal: bool,
    /// Whether this handle has just claimed, which moves the generation.
    claimed: bool,
}

/// What is being written to one column.
#[derive(Debug)]
pub(crate) struct ColumnWriting {
    /// Rows behind the last encoded chunk.
    rows: Arc<Mutex<Rows>>,
    /// Encoded chunks that are in no file.
    pending: Vec<Bytes>,
    /// New versions of chunks that are in a file, encoded.
    changed: BTreeMap<u64, Bytes>,
    /// Whether rows that count have changed in a chunk that was not full at the last commit: then no chunk goes
    /// to a file before the commit, since it would replace those rows.
    held: bool,
    /// The number of full encoded chunks, including those that wait for a file.
    full: u64,
    /// Encoded bytes of full chunks, counted as in [`Committed::cbytes`].
    cbytes: i64,
    /// The file of the last committed tail.
    tail: Option<u64>,
    /// The number and the encoded bytes of the chunk in the last committed tail: the next tail begins with its
    /// rows.
    tail_chunk: Option<(u64, Bytes)>,
    /// The versions of the objects that this writer may replace.
    versions: BTreeMap<u64, Version>,
}

impl Writing {
    pub(crate) fn new(access: Arc<Access>, current: Arc<Current>) -> Self {
        Self {
            access,
            current,
            lock: None,
            columns: None,
            dirty: BTreeSet::new(),
            sizes_seen: None,
            end_etags: Vec::new(),
            changed: false,
            journal: false,
            claimed: false,
        }
    }

    /// The last commit that this handle has made or seen.
    pub(crate) fn committed(&self) -> Arc<Committed> {
        self.current.committed()
    }

    /// Looks at the store again, and shows readers what is there.
    pub(crate) async fn reread(&self) -> Result<()> {
        let store = &self.access.store;
        let Some(found) = directory::read(store).await? else {
            let name = store.url().to_owned();
            return Err(Error::NotFound { what: Noun::BlzDataset, name });
        };
        let remotes = self.committed().files.roots.remotes.clone();
        self.current.replace(Committed::new(&self.access, &remotes, found));
        Ok(())
    }

    /// Whether nothing is under way.
    pub(crate) fn is_idle(&self) -> bool {
        !self.changed
    }

    /// What is being written to a column.
    fn column(&mut self, at: usize) -> Option<&mut ColumnWriting> {
        self.columns.as_mut()?.get_mut(at)
    }

    /// Forgets everything that is not committed, and lets others write.
    pub(crate) fn reset(&mut self) {
        *self = Self::new(self.access.clone(), self.current.clone());
    }

    /// The same, and readers of this handle no longer see it either.
    pub(crate) fn abandon(&mut self) {
        self.reset();
        self.current.discard();
    }
}

impl ColumnWriting {
    /// Lets encoded chunks wait for a file.
    fn add_chunks(&mut self, encoded: Vec<Bytes>) {
        self.full += encoded.len() as u64;
        self.cbytes += encoded.iter().map(|chunk| chunk.len() as i64).sum::<i64>();
        self.pending.extend(encoded);
    }

    /// What readers of the handle see of it.
    fn waiting(&self) -> Waiting {
        Waiting {
            first: self.full - self.pending.len() as u64,
            chunks: self.pending.clone(),
            changed: self.changed.clone(),
            rows: Some(self.rows.clone()),
        }
    }
}
