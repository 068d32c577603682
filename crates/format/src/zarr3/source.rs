//! Where the chunks of plain Zarr are.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use async_trait::async_trait;
use chunkyard_array::{ChunkIndex, ChunkKeys, Grid, Region, ShardEntries, ShardIndex};
use chunkyard_store::{
    ByteCache, ChunkRef, Error, Fetcher, Guard, Links, Meta, Noun, Result, Store,
};
use futures::stream::{self, BoxStream};
use futures::{StreamExt, TryStreamExt, future};

use super::{hierarchy, prefix_of};
use crate::{ArrayNode, ChunkStream, Dataset, Locate, Occupied, Source, in_chunk};

/// Bound of the cache of shard indices, in bytes.
const INDEX_CACHE_BYTES_MAX: u64 = 64 << 20;

/// A Zarr hierarchy, open for reading.
#[derive(Debug)]
pub struct Zarr3Source {
    store: Store,
    dataset: Dataset,
    object_names: BTreeMap<String, Arc<ObjectNames>>,
    fetcher: Fetcher,
    identity: String,
    indices: ByteCache<Arc<str>, Arc<OpenShard>>,
}

/// Where the objects of one array are.
#[derive(Debug)]
pub(super) struct ObjectNames {
    prefix: String,
    keys: ChunkKeys,
    pub(super) sharded: Option<Sharded>,
}

/// Where the objects of all arrays are, by path.
pub(super) fn object_names_of(dataset: &Dataset) -> Result<BTreeMap<String, Arc<ObjectNames>>> {
    let arrays = dataset.arrays();
    arrays
        .map(|(path, node)| Ok((path.to_owned(), Arc::new(ObjectNames::new(path, node)?))))
        .collect()
}

/// How to find chunks in shards.
#[derive(Debug)]
pub(super) struct Sharded {
    pub(super) index: ShardIndex,
    /// Number of chunks of a shard, per dimension.
    per_shard: Vec<u64>,
    /// The grid of shards.
    pub(super) shards: Grid,
}

/// The index of a shard, and the object it belongs to.
#[derive(Debug)]
struct OpenShard {
    path: Arc<str>,
    guard: Option<Guard>,
    entries: ShardEntries,
    index_bytes: u64,
}

impl Zarr3Source {
    /// Opens the hierarchy at the root of a store.
    pub async fn open(store: Store) -> Result<Self> {
        let read = hierarchy::read(&store).await?;
        let identity = format!("{} {:08x}", store.url(), read.checksum);
        Self::of(store, read.dataset, identity)
    }

    /// A hierarchy whose metadata is known.
    pub(super) fn of(store: Store, dataset: Dataset, identity: String) -> Result<Self> {
        let object_names = object_names_of(&dataset)?;
        let fetcher = Fetcher::within(&store);
        let weigh = |_: &Arc<str>, shard: &Arc<OpenShard>| shard.index_bytes as usize + 128;
        let indices = ByteCache::new(INDEX_CACHE_BYTES_MAX, weigh);
        Ok(Self { store, dataset, object_names, fetcher, identity, indices })
    }

    fn names(&self, array: &str) -> Result<&Arc<ObjectNames>> {
        let missing = || Error::NotFound { what: Noun::Array, name: array.to_owned() };
        self.object_names.get(array).ok_or_else(missing)
    }

    /// Drops the cached index of an object that was written anew.
    pub(super) fn forget_shard(&self, path: &str) {
        self.indices.remove(&path.into());
    }

    /// The index of a shard; `None` if there is no shard. Read once, then kept.
    async fn shard(
        &self,
        names: &ObjectNames,
        sharded: &Sharded,
        shard: &[u64],
    ) -> Result<Option<Arc<OpenShard>>> {
        let path: Arc<str> = names.path(shard).into();
        if let Some(known) = self.indices.get(&path) {
            return Ok(Some(known));
        }
        let meta = match self.store.head(&path).await {
            Ok(meta) => meta,
            Err(Error::NotFound { .. }) => return Ok(None),
            Err(error) => return Err(error),
        };
        Ok(Some(self.open_shard(sharded, path, &meta).await?))
    }

    async fn open_shard(
        &self,
        sharded: &Sharded,
        path: Arc<str>,
        meta: &Meta,
    ) -> Result<Arc<OpenShard>> {
        let damaged = |error| in_shard(&path, error);
        let range = sharded.index.range(meta.size).map_err(damaged)?;
        let guard = Guard::of(meta);
        let bytes =
            self.store.get_ranges(&path, std::slice::from_ref(&range), guard.as_ref()).await?;
        let bytes = bytes.into_iter().next().unwrap_or_default();
        let entries = sharded.index.decode(&bytes, meta.size).map_err(damaged)?;
        let open = Arc::new(OpenShard {
            path: path.clone(),
            guard,
            entries,
            index_bytes: sharded.index.encoded_bytes(),
        });
        self.indices.insert(path, open.clone());
        Ok(open)
    }

    async fn locate_in_shards(
        &self,
        names: &ObjectNames,
        sharded: &Sharded,
        chunks: &[ChunkIndex],
    ) -> Result<Vec<Option<ChunkRef>>> {
        let mut wanted: HashMap<ChunkIndex, Option<Arc<OpenShard>>> = HashMap::new();
        for chunk in chunks {
            wanted.entry(sharded.shard_of(chunk)).or_default();
        }
        let shards: Vec<ChunkIndex> = wanted.keys().cloned().collect();
        let mut opened = stream::iter(shards)
            .map(|shard| async move {
                let open = self.shard(names, sharded, &shard).await?;
                Ok::<_, Error>((shard, open))
            })
            .buffer_unordered(self.store.limits().requests.max(1));
        while let Some((shard, open)) = opened.try_next().await? {
            wanted.insert(shard, open);
        }
        chunks
            .iter()
            .map(|chunk| match wanted.get(&sharded.shard_of(chunk)) {
                Some(Some(open)) => open.locate(&sharded.cell_of(chunk)),
                _ => Ok(None),
            })
            .collect()
    }
}

impl ObjectNames {
    pub(super) fn new(path: &str, node: &ArrayNode) -> Result<Self> {
        let keys = ChunkKeys::new(&node.packed_spec()?)?;
        let sharded = node.sharding.as_ref().map(|sharding| {
            let grid = node.grid()?;
            let shards = Grid::new(grid.array_shape(), &sharding.shard_shape)?;
            let counts = sharding.shard_shape.iter().zip(grid.chunk_shape());
            let per_shard = counts.map(|(shard, chunk)| shard / (*chunk).max(1)).collect();
            let index = ShardIndex::new(sharding, grid.chunk_shape())?;
            Ok::<_, Error>(Sharded { index, per_shard, shards })
        });
        Ok(Self { prefix: prefix_of(path), keys, sharded: sharded.transpose()? })
    }

    /// The object of a chunk, or of a shard.
    pub(super) fn path(&self, index: &[u64]) -> String {
        format!("{}{}", self.prefix, self.keys.key(index))
    }

    /// The index of the chunk, or shard, in an object.
    pub(super) fn parse(&self, path: &str) -> Option<ChunkIndex> {
        self.keys.parse(path.strip_prefix(&self.prefix)?)
    }

    /// Whether an object is a chunk, or a shard, of an array with this grid of chunks.
    pub(super) fn has(&self, path: &str, grid: &Grid) -> bool {
        let grid = self.sharded.as_ref().map_or(grid, |sharded| &sharded.shards);
        self.parse(path).is_some_and(|index| grid.contains(&index))
    }
}

impl Sharded {
    /// The shard that holds a chunk.
    pub(super) fn shard_of(&self, chunk: &[u64]) -> ChunkIndex {
        chunk.iter().zip(&self.per_shard).map(|(index, n)| index / (*n).max(1)).collect()
    }

    /// The place of a chunk in its shard.
    pub(super) fn cell_of(&self, chunk: &[u64]) -> ChunkIndex {
        chunk.iter().zip(&self.per_shard).map(|(index, n)| index % (*n).max(1)).collect()
    }

    /// The chunks of a shard that lie in the array's grid, each with its place in the shard.
    fn chunks_of<'a>(
        &'a self,
        shard: &'a [u64],
        grid: &'a Grid,
    ) -> impl Iterator<Item = (ChunkIndex, ChunkIndex)> + 'a {
        let region = self.shards.clipped_region(shard);
        grid.chunks_in(&region).map(|chunk| {
            let cell = self.cell_of(&chunk);
            (chunk, cell)
        })
    }
}

impl OpenShard {
    fn locate(&self, cell: &[u64]) -> Result<Option<ChunkRef>> {
        let range = self.entries.get(cell).map_err(|error| in_shard(&self.path, error))?;
        Ok(range.map(|range| ChunkRef::Object {
            path: self.path.clone(),
            range,
            guard: self.guard.clone(),
            check: None,
        }))
    }
}

#[async_trait]
impl Locate for Zarr3Source {
    fn fetcher(&self) -> &Fetcher {
        &self.fetcher
    }

    async fn locate(&self, array: &str, chunks: &[ChunkIndex]) -> Result<Vec<Option<ChunkRef>>> {
        let names = self.names(array)?;
        if let Some(sharded) = &names.sharded {
            return self.locate_in_shards(names, sharded, chunks).await;
        }
        let whole = |chunk: &ChunkIndex| Some(ChunkRef::Whole { path: names.path(chunk).into() });
        Ok(chunks.iter().map(whole).collect())
    }
}

impl Source for Zarr3Source {
    fn dataset(&self) -> &Dataset {
        &self.dataset
    }

    fn identity(&self) -> String {
        self.identity.clone()
    }

    fn chunks<'a>(&'a self, array: &'a str, within: &'a Region) -> ChunkStream<'a> {
        let listing = async move {
            let names = self.names(array)?;
            let grid = self.dataset.array(array)?.grid()?;
            let objects = self.store.list_links(&names.prefix, Links::Follow).await?;
            Ok::<_, Error>(objects.map(move |meta| {
                let found = self.in_object(names, &grid, within, meta?);
                Ok::<_, Error>(stream::once(found).try_flatten())
            }))
        };
        stream::once(listing).try_flatten().try_flatten().boxed()
    }

    fn occupied(&self, array: &str) -> Result<Occupied<'_>> {
        let names = self.names(array)?;
        let grid = match &names.sharded {
            Some(sharded) => sharded.shards.clone(),
            None => self.dataset.array(array)?.grid()?,
        };
        let within = grid.clone();
        let listing = async move {
            let objects = self.store.list_links(&names.prefix, Links::Follow).await?;
            Ok::<_, Error>(objects.try_filter_map(move |meta| {
                let found = names.parse(&meta.path).filter(|index| within.contains(index));
                future::ready(Ok(found))
            }))
        };
        Ok(Occupied::Cells { grid, cells: stream::once(listing).try_flatten().boxed() })
    }

    fn strays(&self) -> BoxStream<'_, Result<Meta>> {
        let listing = async move {
            let objects = self.store.list_links("", Links::Skip).await?;
            Ok::<_, Error>(objects.try_filter(|meta| future::ready(!self.owns(&meta.path))))
        };
        stream::once(listing).try_flatten().boxed()
    }
}

impl Zarr3Source {
    /// Whether an object is metadata of a node, or a chunk of an array.
    fn owns(&self, path: &str) -> bool {
        let mut folder = path;
        while let Some((above, name)) = folder.rsplit_once('/').or(Some(("", folder))) {
            let node = format!("/{above}");
            if folder == path
                && hierarchy::is_metadata(name)
                && self.dataset.nodes.contains_key(&node)
            {
                return true;
            }
            if let (Some(names), Ok(array)) =
                (self.object_names.get(&node), self.dataset.array(&node))
            {
                return array.grid().is_ok_and(|grid| names.has(path, &grid));
            }
            if above.is_empty() {
                break;
            }
            folder = above;
        }
        false
    }

    /// The chunks in an object of an array, if it holds any wanted ones.
    fn in_object<'a>(
        &'a self,
        names: &'a Arc<ObjectNames>,
        grid: &Grid,
        within: &'a Region,
        meta: Meta,
    ) -> impl Future<Output = Result<ChunkStream<'a>>> + use<'a> {
        let grid = grid.clone();
        async move {
            let Some(index) = names.parse(&meta.path) else { return Ok(stream::empty().boxed()) };
            let touches = |chunk: &[u64]| grid.clipped_region(chunk).intersect(within).is_some();
            let path: Arc<str> = meta.path.as_str().into();
            let mut found = Vec::new();
            match &names.sharded {
                None if grid.contains(&index) && touches(&index) => {
                    let (range, guard) = (0..meta.size, Guard::of(&meta));
                    found.push(Ok((index, ChunkRef::Object { path, range, guard, check: None })));
                }
                Some(sharded) if sharded.shards.contains(&index) => {
                    let open = self.open_shard(sharded, path, &meta).await?;
                    for (chunk, cell) in sharded.chunks_of(&index, &grid) {
                        if touches(&chunk) {
                            let located = open.locate(&cell).transpose();
                            found.extend(located.map(|located| Ok((chunk, located?))));
                        }
                    }
                }
                _ => {}
            }
            Ok(stream::iter(found).boxed())
        }
    }
}

/// Names the shard in an error of the array model.
fn in_shard(path: &str, error: chunkyard_array::Error) -> Error {
    match error {
        chunkyard_array::Error::Corrupt { what, expected, found, .. } => {
            let what = if what == "chunk" { "index of the shard".to_owned() } else { what };
            Error::Corrupt { file: path.to_owned(), what, expected, found }
        }
        other => in_chunk(path, &[], other),
    }
}
