//! A repository as one format among others: a version of it is a source, a commit to it a sink.
//!
//! This is only what converting needs. Branches, history and conflicts have their own interface,
//! [`Repository`] and [`Session`](super::Session).

mod editor;
mod member;
mod sink;
mod source;

use std::sync::Arc;

use async_trait::async_trait;

pub use self::sink::RepoSink;
pub use self::source::RepoSource;
use chunkyard_format::{
    CreateOptions, Dataset, Edit, EditOptions, Editor, Format, Node, OpenOptions, PackSink, Place,
    Probe, Sink, Source, Ticket, Versions, in_zarr3,
};
use chunkyard_store::{Error, Kind, Result};

use super::Repository;
use super::swap::{CLAIMS, claim_generation};

/// A versioned repository.
#[derive(Debug, Clone, Copy)]
pub struct RepoFormat;

#[async_trait]
impl Format for RepoFormat {
    fn name(&self) -> &'static str {
        "repo"
    }

    fn extensions(&self) -> &'static [&'static str] {
        &["repo"]
    }

    fn versions(&self) -> Versions {
        Versions::Commits
    }

    fn names_every_array(&self) -> bool {
        true
    }

    async fn probe(&self, place: &Place) -> Result<Probe> {
        let directory = place.directory();
        match directory.head("state.json").await {
            Ok(_) => return Ok(Probe::Yes("it has state.json".into())),
            Err(Error::NotFound { .. }) => {}
            Err(error) => return Err(error),
        }
        // A directory whose state file is lost still has claims, from which it is read and repaired.
        if directory.kind() == Kind::Local {
            let found = directory.list_dir(CLAIMS).await?.objects;
            if found.iter().any(|meta| claim_generation(&meta.path).is_some()) {
                return Ok(Probe::Yes(format!("it has no state.json, but {CLAIMS}/")));
            }
        }
        Ok(Probe::No("no state.json".into()))
    }

    async fn open(&self, place: &Place, options: &OpenOptions) -> Result<Arc<dyn Source>> {
        let repo = Repository::open_in(place.directory().clone(), options.into()).await?;
        let version = options.version.clone().unwrap_or(super::Version::Default);
        let session = repo.readonly_session(&version).await?;
        Ok(Arc::new(RepoSource::new(session).await?))
    }

    fn express(&self, mut dataset: Dataset) -> Result<Dataset> {
        if matches!(dataset.nodes.get("/"), Some(Node::Array(_))) {
            return Err(Error::invalid("the root of a repository is a group; name the array"));
        }
        for path in dataset.nodes.keys() {
            super::normalise_path(path)?;
        }
        // A repository packs chunks by itself, so that each can change alone.
        for node in dataset.nodes.values_mut() {
            if let Node::Array(array) = node
                && array.sharding.is_some()
            {
                Arc::make_mut(array).sharding = None;
            }
        }
        in_zarr3(dataset.with_padded_edges()?)
    }

    async fn create(
        &self,
        place: &Place,
        dataset: Dataset,
        options: CreateOptions,
    ) -> Result<Box<dyn Sink>> {
        Ok(Box::new(RepoSink::create(place, dataset, options).await?))
    }

    async fn join(
        &self,
        place: &Place,
        dataset: &Dataset,
        ticket: &Ticket,
    ) -> Result<Box<dyn PackSink>> {
        Ok(Box::new(member::Member::join(place, dataset, ticket).await?))
    }

    fn edits(&self) -> &'static [Edit] {
        Edit::ALL
    }

    async fn edit(&self, place: &Place, options: &EditOptions) -> Result<Arc<dyn Editor>> {
        Ok(Arc::new(editor::RepoEditor::open(place, options).await?))
    }
}

impl From<&OpenOptions> for super::OpenOptions {
    fn from(options: &OpenOptions) -> Self {
        Self { store: options.store.clone(), allowed: options.allowed.clone(), ..Self::default() }
    }
}
