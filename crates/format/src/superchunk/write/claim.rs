//! An object store has no locks. So a writer claims the dataset in `meta/sizes`; from then on, a writer that
//! claimed earlier cannot commit.
//!
//! ```text
//!  claim ─▶ look at the objects ─▶ does the claim stand? ─▶ replace them, if unchanged ─▶ meta/sizes
//! ```
//!
//! `docs/design/010-superchunk.md` says what would be lost without each of these.

use bytes::Bytes;
use chunkyard_store::{Error, Kind, Replaced, Result, Uid, Version};
use serde_json::json;

use super::Writing;
use crate::superchunk::access::Access;
use crate::superchunk::committed::Committed;
use crate::superchunk::meta::Sizes;
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
        let there = self.access.store.head(SIZES).await?;
        Ok(there.etag == self.committed().version.etag)
    }

    /// On an object store: tells a damaged file from one that another writer is replacing.
    pub(crate) async fn explain_loss(&self, error: Error) -> Error {
        if self.access.store.kind() == Kind::Local || !may_be_moving(&error) {
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
            if let Some(version) = self.access.swap_sizes(&sizes, &committed.version).await? {
                self.current.commit(Committed { sizes, version, ..(*committed).clone() });
                return Ok(());
            }
        }
        Err(lost(self.access.store.url()))
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
        match self.store.replace(SIZES, bytes.clone(), expected).await {
            Ok(Replaced::Done(version)) => Ok(Some(version)),
            // If the new bytes are ours, only the reply was lost.
            Ok(Replaced::Lost) => self.ours(&bytes).await,
            Err(error) if chunkyard_store::is_refusal(&error) => Err(error),
            Err(error) => match self.ours(&bytes).await {
                Ok(Some(version)) => Ok(Some(version)),
                Ok(None) => Err(error),
                Err(source) => Err(Error::OutcomeUnknown {
                    what: format!("replacing {SIZES} ({error})"),
                    source: Box::new(source),
                }),
            },
        }
    }

    async fn ours(&self, bytes: &Bytes) -> Result<Option<Version>> {
        let there = get(&self.store, SIZES).await?;
        Ok(there.filter(|there| there.bytes == *bytes).map(|there| Version::from(&there.meta)))
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
