//! A branch of a repository among all that can change: a session, and a commit at the end.

use std::sync::Arc;

use async_trait::async_trait;
use chunkyard_array::{ArraySpec, Attributes};
use chunkyard_format::{Committed, EditOptions, Editor, Node, Place, Reader, Version, Writer};
use chunkyard_store::{Error, Noun, Result};
use tokio::sync::Mutex;

use crate::{Array, CommitOptions, Rebase, Repository, Session};

/// The message of a commit that the caller has none for.
const MESSAGE: &str = "change";

/// Changes a branch of a repository.
#[derive(Debug)]
pub(super) struct RepoEditor {
    repo: Repository,
    branch: String,
    rebase: bool,
    /// The changes so far; the next change after a commit begins a new session.
    session: Mutex<Option<Arc<Session>>>,
}

impl RepoEditor {
    pub(super) async fn open(place: &Place, options: &EditOptions) -> Result<Self> {
        options.refuse_version()?;
        let (store, open) = (place.directory().clone(), crate::OpenOptions::from(&options.open));
        let repo = match Repository::open_in(store.clone(), open.clone()).await {
            Err(Error::NotFound { what: Noun::Repository, .. }) if options.create => {
                let default_branch = options.branch.clone().unwrap_or_default();
                let create = crate::CreateOptions { default_branch, ..Default::default() };
                Repository::create_in(store, open, create).await?
            }
            opened => opened?,
        };
        let branch = match &options.branch {
            Some(branch) => branch.clone(),
            None => repo.state().await?.default_branch.clone(),
        };
        // Refuses a branch that is not there before anything is done for it.
        let session = Mutex::new(Some(repo.writable_session(&branch).await?));
        Ok(Self { repo, branch, rebase: options.rebase, session })
    }

    async fn session(&self) -> Result<Arc<Session>> {
        let mut current = self.session.lock().await;
        if let Some(session) = &*current {
            return Ok(session.clone());
        }
        let session = self.repo.writable_session(&self.branch).await?;
        *current = Some(session.clone());
        Ok(session)
    }

    async fn open_array(&self, path: &str) -> Result<Array> {
        self.session().await?.array(path).await
    }
}

#[async_trait]
impl Editor for RepoEditor {
    async fn node(&self, path: &str) -> Result<Option<Node>> {
        self.session().await?.described(path).await
    }

    async fn reader(&self, path: &str) -> Result<Reader> {
        Ok(self.open_array(path).await?.reader().clone())
    }

    async fn writer(&self, path: &str) -> Result<Writer> {
        Ok(self.open_array(path).await?.writer().clone())
    }

    async fn create_array(&self, path: &str, spec: &ArraySpec) -> Result<()> {
        self.session().await?.create_array(path, spec.clone()).await.map(drop)
    }

    async fn create_group(&self, path: &str, attributes: Attributes) -> Result<()> {
        self.session().await?.create_group(path, attributes).map(drop)
    }

    async fn resize(&self, path: &str, shape: &[u64]) -> Result<()> {
        self.session().await?.resize(path, shape).await
    }

    async fn set_attributes(&self, path: &str, attributes: Attributes) -> Result<()> {
        self.session().await?.set_attributes(path, attributes)
    }

    async fn remove(&self, path: &str) -> Result<()> {
        self.session().await?.delete(path)
    }

    async fn commit(&self, message: Option<&str>) -> Result<Committed> {
        let mut current = self.session.lock().await;
        let Some(session) = current.as_ref().filter(|session| session.is_changed()) else {
            return Ok(Committed::default());
        };
        let rebase = self.rebase.then(Rebase::default);
        let message = CommitOptions::message(message.unwrap_or(MESSAGE));
        let snapshot = session.commit(CommitOptions { rebase, ..message }).await?;
        *current = None;
        let version = Some(Version::Snapshot(snapshot.snapshot_id.clone()));
        Ok(Committed { version, cautions: Vec::new() })
    }

    async fn discard(&self) -> Result<()> {
        *self.session.lock().await = None;
        Ok(())
    }
}
