//! An open container.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use bytes::Bytes;
use chunkyard_array::{ChunkIndex, Grid};
use chunkyard_store::{
    Block, BlockCodec, ChunkRef, Error, Fetcher, Kind, Noun, Result, Store, TEMP_PREFIX, Uid,
    block_codec,
};

use super::array::{ContainerArray, Models};
use super::model::DType;
use crate::container::layers::file_names::Names;
use crate::container::layers::footer_reader::Windows;
use crate::container::layers::stack::{Id, Ignored, Search, Stack};
use crate::container::mapping::chunks;
use crate::container::write::changes::{Changes, Description, PendingChunk};
use crate::container::write::draft::{Draft, Identity};
use crate::container::write::publish;
use crate::{Locate, Place, Writers};

/// Windows of large footers that are kept in memory.
const WINDOW_BYTES_MAX: u64 = 16 << 20;

/// Unpacked blocks of several chunks that are kept in memory.
const BLOCK_BYTES_MAX: u64 = 256 << 20;

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
    fn search(&self) -> Search {
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
    pub(crate) inner: Arc<Inner>,
}

#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) store: Store,
    pub(crate) names: Names,
    pub(crate) options: ContainerOptions,
    pub(crate) windows: Windows,
    pub(crate) writers: Writers,
    pub(crate) models: Models,
    fetcher: Fetcher,
    state: Mutex<State>,
}

#[derive(Debug)]
pub(crate) struct State {
    /// The state in the store.
    pub(crate) stack: Arc<Stack>,
    /// The changes that are being flushed.
    pub(crate) frozen: Option<Arc<Changes>>,
    /// Their layer, if it may exist and that could not be found out.
    pub(crate) unknown_layer: Option<(u64, Id)>,
    /// The changes that are not.
    pub(crate) pending: Changes,
}

/// An array according to the layers in the store and the changes since.
#[derive(Debug, Clone)]
pub(crate) enum Known {
    /// Its description.
    Array(Arc<Description>),
    /// It was deleted, and the deletion is not flushed.
    Deleted,
}

impl Container {
    /// Opens the container at a place.
    pub async fn open(place: &Place, options: ContainerOptions) -> Result<Self> {
        let search = options.search();
        Self::open_by(place, options, search).await
    }

    /// Opens it without its newest layer, if that is damaged.
    pub(crate) async fn open_past_damage(place: &Place, options: ContainerOptions) -> Result<Self> {
        let search = Search { past_damage: true, ..options.search() };
        Self::open_by(place, options, search).await
    }

    async fn open_by(place: &Place, options: ContainerOptions, search: Search) -> Result<Self> {
        let (store, names) = files_at(place)?;
        let windows = Windows::new(WINDOW_BYTES_MAX, |_, window| window.len());
        let stack = Stack::open(&store, &names, search, &windows).await?;
        Self::new(store, names, options, windows, stack)
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

    fn new(
        store: Store,
        names: Names,
        options: ContainerOptions,
        windows: Windows,
        stack: Stack,
    ) -> Result<Self> {
        let fetcher = Fetcher::within(&store).with_block_cache(BLOCK_BYTES_MAX);
        let state = State {
            stack: Arc::new(stack),
            frozen: None,
            unknown_layer: None,
            pending: Changes::default(),
        };
        let (writers, state) = (Writers::default(), Mutex::new(state));
        Ok(Self {
            inner: Arc::new(Inner {
                store,
                names,
                options,
                windows,
                writers,
                models: Models::default(),
                fetcher,
                state,
            }),
        })
    }

    /// Its URL.
    pub fn url(&self) -> String {
        self.inner.store.object_url(&self.inner.names.base())
    }

    /// The names of all arrays, sorted.
    pub async fn names(&self) -> Result<Vec<String>> {
        let (stack, changes) = {
            let state = self.inner.state();
            let changes = state.changes();
            let changes: Vec<(String, bool)> = changes
                .flat_map(|pending| &pending.arrays)
                .map(|(name, change)| (name.clone(), change.described.is_some()))
                .collect();
            (state.stack.clone(), changes)
        };
        let stored = match stack.names().await {
            Err(error) => return Err(self.inner.explain(error).await),
            stored => stored?,
        };
        let mut names: std::collections::BTreeSet<String> = stored.into_iter().collect();
        for (name, there) in changes {
            match there {
                true => names.insert(name),
                false => names.remove(&name),
            };
        }
        Ok(names.into_iter().collect())
    }

    /// The description of an array.
    pub async fn describe(&self, name: &str) -> Result<Arc<Description>> {
        match self.inner.describe(name).await {
            Err(error) => Err(self.inner.explain(error).await),
            described => described?.ok_or_else(|| no_array(name)),
        }
    }

    /// An array as it is now, for reading and writing.
    pub async fn array(&self, name: &str) -> Result<ContainerArray> {
        ContainerArray::new(self, self.describe(name).await?)
    }

    /// The bytes of a chunk as they are stored, unpacked; `None` if it was never written.
    pub async fn read_chunk(&self, name: &str, index: &[u64]) -> Result<Option<Bytes>> {
        self.describe(name).await?;
        let index = index.to_vec();
        let inner: &Inner = &self.inner;
        let fetched = async {
            let mut located = inner.stored(name, std::slice::from_ref(&index)).await?;
            match located.pop().flatten() {
                None => Ok(None),
                Some(reference) => Ok(inner.fetcher.fetch(&[&reference]).await?.pop().flatten()),
            }
        };
        match fetched.await {
            Err(error) => Err(inner.explain(error).await),
            fetched => fetched,
        }
    }

    /// Files that are named like layers of it and do not count, a torn newest layer among them.
    pub fn ignored(&self) -> Vec<Ignored> {
        self.inner.state().stack.ignored.clone()
    }

    /// Whether there are changes that are not flushed.
    pub fn is_changed(&self) -> bool {
        self.inner.state().changes().any(|pending| !pending.is_empty())
    }
}

impl State {
    /// Changes that are not in the store, newest first.
    pub(crate) fn changes(&self) -> impl Iterator<Item = &Changes> {
        [&self.pending].into_iter().chain(self.frozen.as_deref())
    }

    /// An array according to the changes, if they touch it.
    pub(crate) fn known(&self, name: &str) -> Option<Known> {
        let change = self.changes().find_map(|pending| pending.arrays.get(name))?;
        Some(change.described.clone().map_or(Known::Deleted, Known::Array))
    }

    /// The change of a chunk, if any; and whether the store counts if there is none.
    fn chunk(&self, name: &str, index: &ChunkIndex) -> (Option<PendingChunk>, bool) {
        for pending in self.changes() {
            if let Some(change) = pending.arrays.get(name) {
                if let Some(chunk) = change.chunks.get(index) {
                    return (Some(chunk.clone()), false);
                }
                if change.fresh {
                    return (None, false);
                }
            }
        }
        (None, true)
    }
}

impl Inner {
    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn search(&self) -> Search {
        self.options.search()
    }

    /// The description of an array, if it exists.
    pub(crate) async fn describe(&self, name: &str) -> Result<Option<Arc<Description>>> {
        let stack = {
            let state = self.state();
            match state.known(name) {
                Some(Known::Array(described)) => return Ok(Some(described)),
                Some(Known::Deleted) => return Ok(None),
                None => state.stack.clone(),
            }
        };
        Ok(stack.array(name).await?.map(|array| array.described.clone()))
    }

    /// Where chunks are, by the indices of the container, and as it stores them.
    pub(crate) async fn stored(
        &self,
        array: &str,
        chunks: &[ChunkIndex],
    ) -> Result<Vec<Option<ChunkRef>>> {
        let (stack, waiting): (_, Vec<_>) = {
            let state = self.state();
            let waiting = chunks.iter().map(|index| state.chunk(array, index)).collect();
            (state.stack.clone(), waiting)
        };
        let below = match waiting.iter().any(|(_, below)| *below) {
            true => stack.array(array).await?,
            false => None,
        };
        let mut references = Vec::with_capacity(chunks.len());
        for (index, (waiting, falls_through)) in chunks.iter().zip(waiting) {
            references.push(match (waiting, &below) {
                (Some(waiting), _) => reference_of(waiting)?,
                (None, Some(below)) if falls_through => below.reference(index).await?,
                (None, _) => None,
            });
        }
        Ok(references)
    }
}

#[async_trait]
impl Locate for Inner {
    fn fetcher(&self) -> &Fetcher {
        &self.fetcher
    }

    async fn locate(&self, array: &str, chunks: &[ChunkIndex]) -> Result<Vec<Option<ChunkRef>>> {
        match self.locate_each(array, chunks).await {
            Err(error) => Err(self.explain(error).await),
            located => located,
        }
    }

    async fn explain(&self, error: Error) -> Error {
        let changed = matches!(
            &error,
            Error::VirtualSourceChanged { .. } | Error::NotFound { what: Noun::Object, .. }
        );
        match changed {
            true => Error::Conflict {
                message: format!(
                    "{} was compacted or replaced since it was opened ({error}); open it again",
                    self.names.base()
                ),
                conflicts: Vec::new(),
            },
            false => error,
        }
    }
}

impl Inner {
    async fn locate_each(
        &self,
        array: &str,
        chunks: &[ChunkIndex],
    ) -> Result<Vec<Option<ChunkRef>>> {
        let described = self.describe(array).await?.ok_or_else(|| no_array(array))?;
        let chunks: Vec<ChunkIndex> =
            chunks.iter().map(|index| chunks::trimmed(&described, index)).collect();
        let mut references = self.stored(array, &chunks).await?;
        if let DType::List { .. } = described.meta.dtype {
            for (index, reference) in chunks.iter().zip(&mut references) {
                let found = reference.take();
                *reference = chunks::for_model(&self.fetcher, &described, index, found).await?;
            }
        }
        Ok(references)
    }
}

fn reference_of(waiting: PendingChunk) -> Result<Option<ChunkRef>> {
    Ok(match waiting {
        PendingChunk::Fill => None,
        PendingChunk::Plain { bytes, .. } => Some(ChunkRef::Inline(bytes)),
        PendingChunk::Packed { bytes, len, codec, .. } => {
            let mut plain = vec![0; usize::try_from(len).unwrap_or(usize::MAX)];
            block_codec(&codec)?.unpack(&bytes, &mut plain)?;
            Some(ChunkRef::Inline(plain.into()))
        }
        PendingChunk::Spilled { path, range, len, codec, .. } => {
            let block =
                Block { path, range, guard: None, crc32c: None, codec, len, owner: u64::MAX };
            Some(ChunkRef::Slice { within: 0..block.len, block: Arc::new(block) })
        }
    })
}

/// The store that a container is in, and the names of its files there.
pub(crate) fn files_at(place: &Place) -> Result<(Store, Names)> {
    let (store, name) = place.object().ok_or_else(|| {
        Error::invalid(format!("{}: a container is a file in a folder", place.url()))
    })?;
    Ok((store.clone(), Names::new(name)?))
}

/// Refuses a place where there is a container, or a file that would be taken for a layer of one.
pub(crate) async fn refuse_occupied(store: &Store, names: &Names) -> Result<()> {
    let found = store.list_dir("").await?;
    let taken = |path: &String| *path == names.base() || names.number(path).is_some();
    let dirs = found.dirs.iter().find(|path| taken(path));
    match found.objects.iter().map(|meta| &meta.path).find(|path| taken(path)).or(dirs) {
        None => Ok(()),
        Some(path) => Err(exists(store, path)),
    }
}

fn exists(store: &Store, path: &str) -> Error {
    Error::AlreadyExists { what: Noun::ContainerFile, name: store.object_url(path) }
}

pub(crate) fn no_array(name: &str) -> Error {
    Error::NotFound { what: Noun::Array, name: name.to_owned() }
}

/// A name for a temporary file: in a directory, beside its place, where it leaves no
/// folder behind.
pub(crate) fn temporary_path(store: &Store, names: &Names) -> Result<String> {
    let id = Uid::fresh()?;
    Ok(match store.kind() {
        Kind::Local => format!("{TEMP_PREFIX}{id}"),
        _ => format!("{}/{id}", names.work()),
    })
}

/// An identity that no other layer has.
pub(crate) fn fresh_id() -> Result<Id> {
    Ok(*Uid::fresh()?.as_bytes())
}

/// The grid of an array's chunks.
pub(crate) fn grid_of(described: &Description) -> Result<Grid> {
    let meta = &described.meta;
    let shape: Vec<u64> = meta.shape.iter().map(|&extent| extent.into()).collect();
    let chunks: Vec<u64> = meta.chunk_shape.iter().map(|&extent| extent.max(1).into()).collect();
    Ok(Grid::new(&shape, &chunks)?)
}
