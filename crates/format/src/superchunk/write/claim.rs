//! An object store has no locks. So a writer claims the dataset in `meta/sizes`; from then on, a writer that
//! claimed earlier cannot commit.
//!
//! ```text
//!  claim ─▶ look at the objects ─▶ does the claim stand? ─▶ replace them, if unchanged ─▶ meta/sizes
//! ```
//!
//! `docs/design/010-superchunk.md` says what would be lost without each of these. Each put is a step of
//! [`chunkyard_store::atomic`]. One whose outcome is unknown may still land; [`Unsettled`] remembers it, so that
//! this handle does not take it for a put of another writer.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use chunkyard_store::atomic::{Content, Outcome, SameBytes, Step};
use chunkyard_store::{Error, Object, Result, Store, Uid, Version};
use serde_json::json;

use super::Writing;
use crate::superchunk::access::Access;
use crate::superchunk::committed::Committed;
use crate::superchunk::meta::Sizes;
use crate::superchunk::protocol::Protocol;
use crate::superchunk::read::directory::{SIZES, get};
use crate::superchunk::read::files::Files;
use crate::superchunk::read::locate::may_be_moving;

/// How often a claim is tried.
const CLAIMS: usize = 8;
/// How often a writer looks at objects that another one is replacing.
const LOOKS: usize = 8;
/// The key in `meta/sizes` that names the writer, on an object store.
pub(crate) const WRITER: &str = "writer";

impl Writing {
    /// On an object store: claims, and looks at the objects. A writer with an earlier claim may still replace
    /// an object meanwhile.
    pub(crate) async fn claim_and_find_ends(&mut self) -> Result<()> {
        self.claim().await?;
        for _ in 1..LOOKS {
            match self.find_ends().await {
                Err(error) if may_be_moving(&error) => {
                    self.refuse_lost_claim().await?;
                    let committed = self.committed();
                    let files = Files::new(committed.files.roots.clone());
                    self.current.commit(Committed { files, ..(*committed).clone() });
                }
                other => {
                    self.claimed = true;
                    return other;
                }
            }
        }
        self.find_ends().await
    }

    /// On an object store: refuses if another writer has claimed since. The objects that this handle has seen
    /// may be from that writer, and must not be replaced.
    pub(crate) async fn refuse_lost_claim(&self) -> Result<()> {
        match self.claim_stands().await? {
            true => Ok(()),
            false => Err(lost(self.access.store.url())),
        }
    }

    async fn claim_stands(&self) -> Result<bool> {
        let store = &self.access.store;
        let is_same = store.head(SIZES).await?.etag == self.committed().version.etag;
        Ok(is_same || self.access.unsettled.landed(store, SIZES).await?.is_some())
    }

    /// On an object store: tells a damaged file from one that another writer is replacing.
    pub(crate) async fn explain_loss(&self, error: Error) -> Error {
        if self.access.protocol == Protocol::Locked || !may_be_moving(&error) {
            return error;
        }
        if !self.claim_stands().await.unwrap_or(true) {
            return lost(self.access.store.url());
        }
        // A writer with an earlier claim may still replace objects, in vain.
        let columns = self.committed().columns.clone();
        for (mine, column) in self.columns.iter().flatten().zip(columns.iter()) {
            for (file, version) in &mine.versions {
                let path = column.file(self.access.style, *file);
                let there = self.access.store.head(&path).await;
                if there.is_ok_and(|there| there.etag != version.etag) {
                    return lost(self.access.store.url());
                }
            }
        }
        error
    }

    /// On an object store: names this writer in `meta/sizes`. From then on, earlier writers cannot
    /// commit.
    async fn claim(&self) -> Result<()> {
        for _ in 0..CLAIMS {
            self.reread().await?;
            let committed = self.committed();
            let mut sizes = committed.sizes.clone();
            sizes.generation = Some(sizes.generation.unwrap_or(0) + 1);
            sizes.other.insert(WRITER.to_owned(), json!(Uid::fresh()?.to_string()));
            let bytes = sizes.render().into();
            match self.access.put_if(SIZES, &bytes, Some(&committed.version)).await? {
                Outcome::Done(version) => {
                    self.current.commit(Committed { sizes, version, ..(*committed).clone() });
                    return Ok(());
                }
                Outcome::Lost => {}
                // It says nothing about rows, so it does not matter whether it lands.
                Outcome::Unknown(error) => return Err(error),
            }
        }
        Err(lost(self.access.store.url()))
    }
}

impl Committed {
    /// On an object store: the commit of all rows of this handle. If an earlier commit of this handle has
    /// landed late, this one follows it.
    pub(crate) async fn swap_rows(&self, len: u64, cbytes: Vec<i64>) -> Result<Self> {
        let (access, mut base) = (&self.access, self.clone());
        loop {
            let sizes = base.sizes_for(len, &cbytes);
            if let Some(version) = access.swap_sizes(&sizes, &base.version).await? {
                return Ok(Self { sizes, cbytes, version, ..base });
            }
            match access.unsettled.landed(&access.store, SIZES).await? {
                Some(late) => {
                    base.sizes = Sizes::parse(SIZES, &late.bytes)?;
                    base.version = Version::from(&late.meta);
                }
                None => return Err(lost(access.store.url())),
            }
        }
    }
}

impl Access {
    /// Replaces `meta/sizes` if it is still the expected version; `None` if it is not.
    pub(crate) async fn swap_sizes(
        &self,
        sizes: &Sizes,
        expected: &Version,
    ) -> Result<Option<Version>> {
        let bytes = Bytes::from(sizes.render());
        let outcome = self.put_if(SIZES, &bytes, Some(expected)).await?;
        if matches!(outcome, Outcome::Unknown(_)) {
            self.unsettled.remember(SIZES, bytes);
        }
        outcome.known(|| format!("replacing {SIZES} of {}", self.store.url()))
    }

    /// Puts an object, unless another writer has put it since this writer looked. It does not count before
    /// `meta/sizes` says so: if its outcome is unknown, nothing has changed for readers.
    pub(crate) async fn put_object(
        &self,
        path: &str,
        parts: Vec<Bytes>,
        expected: Option<&Version>,
    ) -> Result<Version> {
        let bytes: Bytes = parts.concat().into();
        let mut expected = expected.cloned();
        loop {
            match self.put_if(path, &bytes, expected.as_ref()).await? {
                Outcome::Done(version) => return Ok(version),
                Outcome::Lost => match self.unsettled.landed(&self.store, path).await? {
                    Some(late) => expected = Some(Version::from(&late.meta)),
                    None => return Err(lost(self.store.url())),
                },
                Outcome::Unknown(error) => {
                    self.unsettled.remember(path, bytes);
                    return Err(error);
                }
            }
        }
    }

    /// Creates an object, or replaces the expected version.
    async fn put_if(
        &self,
        path: &str,
        bytes: &Bytes,
        expected: Option<&Version>,
    ) -> Result<Outcome<Version>> {
        let step =
            Step::new(&self.store, path, SameBytes { store: &self.store, path, expected, bytes });
        let content = Content::Parts(vec![bytes.clone()]);
        let outcome = match expected {
            None => step.create(content, "").await?,
            Some(expected) => step.replace(content, expected, "").await?,
        };
        if matches!(outcome, Outcome::Done(_)) {
            self.unsettled.forget(path);
        }
        Ok(outcome)
    }
}

/// Puts of this handle whose outcome is unknown, by path. Once a later put to the same path is done, they
/// cannot land any more.
#[derive(Debug, Default)]
pub(crate) struct Unsettled(Mutex<BTreeMap<String, Vec<Bytes>>>);

impl Unsettled {
    fn puts(&self) -> MutexGuard<'_, BTreeMap<String, Vec<Bytes>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn remember(&self, path: &str, bytes: Bytes) {
        self.puts().entry(path.to_owned()).or_default().push(bytes);
    }

    fn forget(&self, path: &str) {
        self.puts().remove(path);
    }

    /// Whether the outcome of a commit is unknown.
    pub(crate) fn has_commit(&self) -> bool {
        self.puts().contains_key(SIZES)
    }

    /// The object at a path, if it is one of these puts.
    async fn landed(&self, store: &Store, path: &str) -> Result<Option<Object>> {
        let Some(sent) = self.puts().get(path).cloned() else { return Ok(None) };
        let there = get(store, path).await?;
        Ok(there.filter(|there| sent.contains(&there.bytes)))
    }
}

/// The error when another writer has claimed or committed.
pub(crate) fn lost(url: &str) -> Error {
    Error::Conflict {
        message: format!(
            "another writer has written to {url} meanwhile; rows that this writer has not committed are \
             dropped"
        ),
        conflicts: Vec::new(),
    }
}
