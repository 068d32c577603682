//! The tip of a branch among all that can change, for commits that the engine's own editor has no
//! options for: a commit may replace the tip, and says what it wrote.

use std::sync::{Arc, OnceLock};

use async_trait::async_trait;
use chunkyard_array::{ArraySpec, Attributes};
use chunkyard_engine::format::{Committed, Editor, Node, Reader, Writer};
use chunkyard_engine::repo::{CommitOptions, Rebase, Repository, Session, Snapshot, Version};
use chunkyard_engine::{Error, Result};

use crate::args::{ChangeArgs, branch_or_default};
use crate::printable::brief;
use crate::units::{count, short, size};

/// The message of a commit that the caller has none for.
const MESSAGE: &str = "change";

/// A session on a branch, and how it commits.
#[derive(Debug)]
pub(crate) struct Tip {
    session: Arc<Session>,
    rebase: bool,
    amend: bool,
    committed: OnceLock<Arc<Snapshot>>,
}

impl Tip {
    /// The tip of the named branch, or of the default one.
    pub(crate) async fn open(
        repo: &Repository,
        branch: Option<&str>,
        args: &ChangeArgs,
    ) -> anyhow::Result<Self> {
        let branch = branch_or_default(repo, branch).await?;
        let session = repo.writable_session(&branch).await?;
        let ChangeArgs { rebase, amend, .. } = *args;
        Ok(Self { session, rebase, amend, committed: OnceLock::new() })
    }

    /// The changes so far.
    pub(crate) fn session(&self) -> &Session {
        &self.session
    }

    /// The snapshot that was committed.
    pub(crate) fn committed(&self) -> Option<&Snapshot> {
        self.committed.get().map(|snapshot| &**snapshot)
    }

    /// What the commit did, for people.
    pub(crate) fn describe(&self, snapshot: &Snapshot) -> String {
        let summary = &snapshot.summary;
        let mut changed = Vec::new();
        if summary.refs_added > 0 {
            changed.push(format!("{} set", count(summary.refs_added, "chunk")));
        }
        if summary.refs_removed > 0 {
            changed.push(format!("{} removed", count(summary.refs_removed, "chunk")));
        }
        changed.push(format!("{} written", size(summary.bytes_written)));
        format!(
            "committed {} on {}: {} ({})",
            short(&snapshot.snapshot_id),
            self.session.branch().unwrap_or_default(),
            brief(&snapshot.message),
            changed.join(", ")
        )
    }
}

#[async_trait]
impl Editor for Tip {
    async fn node(&self, path: &str) -> Result<Option<Node>> {
        self.session.described(path).await
    }

    async fn reader(&self, path: &str) -> Result<Reader> {
        Ok(self.session.array(path).await?.reader().clone())
    }

    async fn writer(&self, path: &str) -> Result<Writer> {
        Ok(self.session.array(path).await?.writer().clone())
    }

    async fn create_array(&self, path: &str, spec: &ArraySpec) -> Result<()> {
        self.session.create_array(path, spec.clone()).await.map(drop)
    }

    async fn create_group(&self, path: &str, attributes: Attributes) -> Result<()> {
        self.session.create_group(path, attributes).map(drop)
    }

    async fn resize(&self, path: &str, shape: &[u64]) -> Result<()> {
        self.session.resize(path, shape).await
    }

    async fn set_attributes(&self, path: &str, attributes: Attributes) -> Result<()> {
        self.session.set_attributes(path, attributes)
    }

    async fn remove(&self, path: &str) -> Result<()> {
        self.session.delete(path)
    }

    /// Commits, once.
    async fn commit(&self, message: Option<&str>) -> Result<Committed> {
        let options = CommitOptions {
            rebase: self.rebase.then(Rebase::default),
            amend: self.amend,
            ..CommitOptions::message(message.unwrap_or(MESSAGE))
        };
        let snapshot = self.session.commit(options).await?;
        let version = Some(Version::Snapshot(snapshot.snapshot_id.clone()));
        match self.committed.set(snapshot) {
            Ok(()) => Ok(Committed { version, cautions: Vec::new() }),
            Err(_) => Err(Error::invalid("the session is committed")),
        }
    }

    /// Dropping the session drops its changes.
    async fn discard(&self) -> Result<()> {
        Ok(())
    }
}
