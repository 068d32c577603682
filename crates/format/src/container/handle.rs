//! An open container.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use bytes::Bytes;
use chunkyard_array::ChunkIndex;
use chunkyard_store::{BlockCodec, ChunkRef, Error, Fetcher, Kind, Noun, Result, block_codec};

use super::array::{ContainerArray, Models};
use super::mapping::chunks;
use super::model::DType;
use crate::container::layers::files::{
    Files, exists, files_at, fresh_id, refuse_occupied, temporary_path,
};
use crate::container::layers::stack::{Id, Ignored, Search};
use crate::container::read::committed::Committed;
use crate::container::write::changes::Description;
use crate::container::write::draft::{Draft, Identity};
use crate::container::write::publish;
use crate::container::write::uncommitted::{ChangedArray, ChangedChunk, Uncommitted};
use crate::{Locate, Place, Writers};

/// How a container is opened or created.
#[derive(Debug, Clone)]
pub struct ContainerOptions {
    /// Open it as it was when this layer was the newest.
    pub as_of: Option<u64>,
    /// Refuse to open it if the newest layer cannot be read. Writers must set this.
    pub strict: bool,
    /// Accept layers of other programs that name another base: the container was renamed.
    pub renamed: bool,
    /// How new blocks are packed.
    pub codec: Arc<dyn BlockCodec>,
    /// Small chunks share blocks of about this many bytes.
    pub block_bytes: u64,
    /// Changes that wait in memory; beyond that they wait in a temporary file.
    pub pending_bytes_max: u64,
}

impl Default for ContainerOptions {
    /// The newest layer, zstd at level 3, blocks of 1 MiB, 256 MiB of changes in memory.
    fn default() -> Self {
        #[expect(clippy::expect_used, reason = "zstd is built in")]
        let codec = block_codec("zstd").expect("zstd is built in");
        Self {
            as_of: None,
            strict: false,
            renamed: false,
            codec,
            block_bytes: 1 << 20,
            pending_bytes_max: 256 << 20,
        }
    }
}

impl ContainerOptions {
    pub(crate) fn search(&self) -> Search {
        let Self { as_of, strict, renamed, .. } = *self;
        Search { as_of, strict, renamed, past_damage: false }
    }
}

/// Many arrays in one file and its overlays. Cheap to clone.
///
/// Reading takes no lock. Changes wait until [`Container::flush`], which makes all of them visible
/// in one step, as one more layer.
#[derive(Debug, Clone)]
pub struct Container {
    pub(crate) open: Arc<OpenContainer>,
}

/// An open container, shared by all its handles: what is committed, with what is being written on top.
#[derive(Debug)]
pub(crate) struct OpenContainer {
    pub(crate) files: Arc<Files>,
    pub(crate) options: ContainerOptions,
    pub(crate) writers: Writers,
    pub(crate) models: Models,
    state: Mutex<State>,
}

/// The two halves of an open container. They change together, when a flush ends.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) committed: Committed,
    pub(crate) uncommitted: Uncommitted,
}

impl Container {
    /// Opens the container at a place.
    pub async fn open(place: &Place, options: ContainerOptions) -> Result<Self> {
        let files = Files::at(place)?;
        let committed = Committed::open(&files, options.search()).await?;
        let state = State { committed, uncommitted: Uncommitted::default() };
        let (writers, models) = (Writers::default(), Models::default());
        let open = OpenContainer { files, options, writers, models, state: Mutex::new(state) };
        Ok(Self { open: Arc::new(open) })
    }

    /// Creates an empty container. Refuses if there is one, or a file that would be taken for a
    /// layer of it.
    pub async fn create(place: &Place, options: ContainerOptions) -> Result<Self> {
        let (store, names) = files_at(place)?;
        if store.kind() == Kind::ReadOnly {
            return Err(Error::unsupported(format!("writing to {}, a web server", store.url())));
        }
        refuse_occupied(&store, &names).await?;
        let layer = fresh_id()?;
        let identity = Identity {
            container: fresh_id()?,
            layer,
            parent: Id::default(),
            sequence: 0,
            absorbed: Vec::new(),
            overlay_index: 0,
            base_file_hint: String::new(),
        };
        let temporary = temporary_path(&store, &names)?;
        let draft =
            Draft::new(&store, temporary.clone(), options.codec.clone(), options.block_bytes);
        let finished = draft.finish(&identity, &[]).await?;
        match publish::create(&store, &names, 0, layer, finished, &temporary).await {
            Err(Error::Conflict { .. }) => return Err(exists(&store, &names.base())),
            other => other?,
        }
        Self::open(place, options).await
    }

    /// Its URL.
    pub fn url(&self) -> String {
        self.open.files.store.object_url(&self.open.files.names.base())
    }

    /// The names of all arrays, sorted.
    pub async fn names(&self) -> Result<Vec<String>> {
        let (committed, changed) = {
            let state = self.open.state();
            (state.committed.clone(), state.uncommitted.names())
        };
        let stored = committed.stack.names().await;
        let stored = stored.map_err(|error| self.open.files.explain(error))?;
        let mut names: BTreeSet<String> = stored.into_iter().collect();
        for (name, exists) in changed {
            match exists {
                true => names.insert(name),
                false => names.remove(&name),
            };
        }
        Ok(names.into_iter().collect())
    }

    /// The description of an array.
    pub async fn describe(&self, name: &str) -> Result<Arc<Description>> {
        let described = self.open.describe(name).await;
        let described = described.map_err(|error| self.open.files.explain(error))?;
        described.ok_or_else(|| no_array(name))
    }

    /// An array as it is now, for reading and writing.
    pub async fn array(&self, name: &str) -> Result<ContainerArray> {
        ContainerArray::new(self, self.describe(name).await?)
    }

    /// The bytes of a chunk as they are stored, unpacked; `None` if it was never written.
    pub async fn read_chunk(&self, name: &str, index: &[u64]) -> Result<Option<Bytes>> {
        self.describe(name).await?;
        let index = index.to_vec();
        let fetched = async {
            let mut located = self.open.stored(name, std::slice::from_ref(&index)).await?;
            match located.pop().flatten() {
                None => Ok(None),
                Some(reference) => {
                    Ok(self.open.files.fetcher.fetch(&[&reference]).await?.pop().flatten())
                }
            }
        };
        fetched.await.map_err(|error| self.open.files.explain(error))
    }

    /// Files that are named like layers of it and do not count, a torn newest layer among them.
    pub fn ignored(&self) -> Vec<Ignored> {
        self.open.committed().stack.ignored.clone()
    }

    /// Whether there are changes that are not flushed.
    pub fn is_changed(&self) -> bool {
        !self.open.state().uncommitted.is_empty()
    }
}

impl OpenContainer {
    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is committed, as far as this container has seen.
    pub(crate) fn committed(&self) -> Committed {
        self.state().committed.clone()
    }

    pub(crate) fn search(&self) -> Search {
        self.options.search()
    }

    /// The description of an array, if it exists.
    pub(crate) async fn describe(&self, name: &str) -> Result<Option<Arc<Description>>> {
        let committed = {
            let state = self.state();
            match state.uncommitted.array(name) {
                Some(ChangedArray::Described(described)) => return Ok(Some(described)),
                Some(ChangedArray::Deleted) => return Ok(None),
                None => state.committed.clone(),
            }
        };
        committed.describe(name).await
    }

    /// Where chunks are, by the indices of the container, and as it stores them.
    pub(crate) async fn stored(
        &self,
        array: &str,
        chunks: &[ChunkIndex],
    ) -> Result<Vec<Option<ChunkRef>>> {
        let (committed, changed): (_, Vec<_>) = {
            let state = self.state();
            let changed = chunks.iter().map(|index| state.uncommitted.chunk(array, index));
            (state.committed.clone(), changed.collect())
        };
        let below = match changed.iter().any(|chunk| matches!(chunk, ChangedChunk::Unchanged)) {
            true => committed.stack.array(array).await?,
            false => None,
        };
        let mut references = Vec::with_capacity(chunks.len());
        for (index, chunk) in chunks.iter().zip(changed) {
            references.push(match (chunk, &below) {
                (ChangedChunk::Written(chunk), _) => chunk.reference()?,
                (ChangedChunk::Unchanged, Some(below)) => below.reference(index).await?,
                (ChangedChunk::Unchanged, None) | (ChangedChunk::Absent, _) => None,
            });
        }
        Ok(references)
    }

    async fn locate_each(
        &self,
        array: &str,
        indices: &[ChunkIndex],
    ) -> Result<Vec<Option<ChunkRef>>> {
        let described = self.describe(array).await?.ok_or_else(|| no_array(array))?;
        let indices: Vec<ChunkIndex> =
            indices.iter().map(|index| chunks::trimmed(&described, index)).collect();
        let mut references = self.stored(array, &indices).await?;
        if let DType::List { .. } = described.meta.dtype {
            for (index, reference) in indices.iter().zip(&mut references) {
                let found = reference.take();
                let fetcher = &self.files.fetcher;
                *reference = chunks::for_model(fetcher, &described, index, found).await?;
            }
        }
        Ok(references)
    }
}

#[async_trait]
impl Locate for OpenContainer {
    fn fetcher(&self) -> &Fetcher {
        &self.files.fetcher
    }

    async fn locate(&self, array: &str, chunks: &[ChunkIndex]) -> Result<Vec<Option<ChunkRef>>> {
        let located = self.locate_each(array, chunks).await;
        located.map_err(|error| self.files.explain(error))
    }

    async fn explain(&self, error: Error) -> Error {
        self.files.explain(error)
    }
}

pub(crate) fn no_array(name: &str) -> Error {
    Error::NotFound { what: Noun::Array, name: name.to_owned() }
}
