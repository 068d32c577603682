//! Where the chunks of a volume are.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use chunkyard_array::{ChunkIndex, Grid, Region};
use chunkyard_store::{ChunkRef, Error, Fetcher, Guard, Kind, Links, Meta, Noun, Result, Store};
use futures::stream::{self, StreamExt, TryStreamExt};

use super::axes::Axes;
use super::codecs;
use super::info::{Info, Scale};
use super::morton::Morton;
use super::shard_grid::{ShardBoxes, ShardGrid};
use super::shard_reader::ShardReader;
use super::volume::{self, Volume};
use super::{INFO, INFO_BYTES_MAX, chunk_files};
use crate::{ArrayNode, ChunkStream, Dataset, Locate, Node, Occupied, Source};

/// How the names of files end that a writer compressed, and what we make of each.
const GZIP_ENDING: &str = ".gz";
const OTHER_ENDINGS: [&str; 4] = [".br", ".zstd", ".bz2", ".xz"];

/// A precomputed volume, open for reading.
#[derive(Debug)]
pub struct PrecomputedSource {
    store: Store,
    info: Info,
    dataset: Dataset,
    scales: BTreeMap<String, Arc<OpenScale>>,
    fetcher: Fetcher,
    shards: ShardReader,
    identity: String,
}

/// One scale, and how its array lies in it.
#[derive(Debug)]
pub(super) struct OpenScale {
    scale: Scale,
    axes: Axes,
    num_channels: u64,
    /// Where its files begin: `8_8_8/`.
    folder: String,
    morton: Morton,
    sharded: Option<ShardGrid>,
    boxes: Option<ShardBoxes>,
    /// How the names of chunk files end.
    ending: &'static str,
}

impl OpenScale {
    pub(super) fn new(path: &str, scale: &Scale, axes: &Axes, num_channels: u64) -> Result<Self> {
        let sharded = ShardGrid::of(scale)?;
        Ok(Self {
            scale: scale.clone(),
            axes: axes.clone(),
            num_channels,
            folder: format!("{}/", path.trim_start_matches('/')),
            morton: Morton::new(scale.grid())?,
            boxes: sharded.as_ref().and_then(|grid| grid.boxes().ok()),
            sharded,
            ending: "",
        })
    }

    pub(super) fn sharded(&self) -> Option<&ShardGrid> {
        self.sharded.as_ref()
    }

    /// The object of a shard.
    pub(super) fn shard_path(&self, grid: &ShardGrid, shard: u64) -> String {
        format!("{}{}", self.folder, grid.sharding().file_name(shard))
    }

    /// The object of a chunk, where each is one.
    pub(super) fn chunk_path(&self, index: &[u64]) -> String {
        let name = chunk_files::name(&self.scale, self.chunk(index));
        format!("{}{name}{}", self.folder, self.ending)
    }

    /// A chunk by its index in the array.
    pub(super) fn chunk(&self, index: &[u64]) -> [u64; 3] {
        self.axes.xyz(index, 0)
    }

    /// The index in the array of a chunk, or of any box.
    fn index(&self, chunk: [u64; 3]) -> ChunkIndex {
        self.axes.arrange(chunk, 0)
    }

    /// The chunk of a file; an error where it is compressed otherwise than the others.
    fn chunk_of(&self, path: &str) -> Result<Option<[u64; 3]>> {
        let Some(name) = path.strip_prefix(&self.folder) else { return Ok(None) };
        let (bare, ending) = match name.strip_suffix(GZIP_ENDING) {
            Some(bare) => (bare, GZIP_ENDING),
            None => (name, ""),
        };
        let chunk = chunk_files::parse(&self.scale, bare);
        if chunk.is_some() && ending != self.ending {
            let of = |ending: &str| if ending.is_empty() { "plain" } else { "compressed (.gz)" };
            return Err(Error::unsupported(format!(
                "{path}, which is {}, beside files that are {}",
                of(ending),
                of(self.ending)
            )));
        }
        Ok(chunk)
    }
}

impl PrecomputedSource {
    /// Opens the volume at the root of a store.
    pub async fn open(store: Store) -> Result<Self> {
        let meta = store.head(INFO).await?;
        if meta.size > INFO_BYTES_MAX {
            return Err(Error::Corrupt {
                file: INFO.to_owned(),
                what: "info".to_owned(),
                expected: format!("at most {INFO_BYTES_MAX} bytes"),
                found: format!("{} bytes", meta.size),
            });
        }
        let bytes = store.get(INFO).await?.bytes;
        let identity = format!("{} {:08x}", store.url(), crc32c::crc32c(&bytes));
        let info = Info::parse(INFO, &bytes)?;
        let mut source = Self::of(store, info, identity)?;
        source.look_for_endings().await?;
        Ok(source)
    }

    /// A volume whose metadata is known.
    pub(super) fn of(store: Store, info: Info, identity: String) -> Result<Self> {
        let volume::Read { dataset, arrays } = volume::read(&info)?;
        let mut scales = BTreeMap::new();
        for (path, (number, axes)) in arrays {
            let Some(scale) = info.scales.get(number) else { continue };
            let open = OpenScale::new(&path, scale, &axes, info.num_channels)?;
            scales.insert(path, Arc::new(open));
        }
        let (fetcher, shards) = (Fetcher::within(&store), ShardReader::new(store.clone()));
        Ok(Self { store, info, dataset, scales, fetcher, shards, identity })
    }

    /// A volume being written.
    pub(super) fn written(store: Store, volume: &Volume) -> Result<Self> {
        Self::of(store, volume.info.clone(), String::new())
    }

    /// What the volume says of itself.
    pub fn info(&self) -> &Info {
        &self.info
    }

    /// Finds out whether a writer has compressed chunk files, which only their names tell. One name is enough.
    async fn look_for_endings(&mut self) -> Result<()> {
        if self.store.kind() == Kind::ReadOnly {
            // Nothing can be listed. A web server that has compressed files sends them as they were before.
            return Ok(());
        }
        for (path, scale) in &mut self.scales {
            if scale.sharded.is_some() {
                continue;
            }
            let mut objects = self.store.list_links(&scale.folder, Links::Follow).await?;
            let Some(first) = objects.try_next().await? else { continue };
            if let Some(ending) = OTHER_ENDINGS.iter().find(|end| first.path.ends_with(**end)) {
                return Err(Error::unsupported(format!(
                    "{}: chunk files compressed as {ending}",
                    first.path
                )));
            }
            if !first.path.ends_with(GZIP_ENDING) {
                continue;
            }
            if let Some(scale) = Arc::get_mut(scale) {
                scale.ending = GZIP_ENDING;
            }
            if let Some(Node::Array(node)) = self.dataset.nodes.get_mut(path) {
                let mut chain = node.spec.codecs_json();
                chain.push(codecs::gzip_codec());
                let spec = node.spec.with_codecs(chain)?;
                *node = Arc::new(ArrayNode { spec, ..(**node).clone() });
            }
        }
        Ok(())
    }

    fn scale(&self, array: &str) -> Result<&Arc<OpenScale>> {
        let missing = || Error::NotFound { what: Noun::Array, name: array.to_owned() };
        self.scales.get(array).ok_or_else(missing)
    }

    /// The chunks in an object of a scale that hold wanted elements.
    async fn in_object<'a>(
        &'a self,
        scale: &'a OpenScale,
        grid: &Grid,
        within: &Region,
        meta: Meta,
    ) -> Result<ChunkStream<'a>> {
        let touches = |chunk: &[u64]| grid.clipped_region(chunk).intersect(within).is_some();
        let Some(sharded) = &scale.sharded else {
            let found = scale.chunk_of(&meta.path)?.map(|chunk| scale.index(chunk));
            let found = found.filter(|index| touches(index)).map(|index| {
                let path: Arc<str> = meta.path.as_str().into();
                let (range, guard) = (0..meta.size, Guard::of(&meta));
                Ok((index, ChunkRef::Object { path, range, guard, check: None }))
            });
            return Ok(stream::iter(found).boxed());
        };
        let shard = meta.path.strip_prefix(&scale.folder);
        let shard = shard.and_then(|name| sharded.sharding().parse_file_name(name));
        let Some(shard) = shard else { return Ok(stream::empty().boxed()) };
        let mut found = Vec::new();
        for (id, place) in self.shards.all(sharded.sharding(), &meta).await? {
            let chunk = scale.morton.decode(id);
            let Some(chunk) = chunk.filter(|_| sharded.sharding().slot(id).shard == shard) else {
                found.push(Err(Error::Corrupt {
                    file: meta.path.clone(),
                    what: "index".to_owned(),
                    expected: format!(
                        "chunks of shard {shard} of a grid of {:?}",
                        scale.scale.grid()
                    ),
                    found: format!("chunk {id}"),
                }));
                continue;
            };
            let index = scale.index(chunk);
            if touches(&index) {
                found.push(Ok((index, place)));
            }
        }
        Ok(stream::iter(found).boxed())
    }
}

#[async_trait]
impl Locate for PrecomputedSource {
    fn fetcher(&self) -> &Fetcher {
        &self.fetcher
    }

    async fn locate(&self, array: &str, chunks: &[ChunkIndex]) -> Result<Vec<Option<ChunkRef>>> {
        let scale = self.scale(array)?;
        let Some(sharded) = &scale.sharded else {
            let whole =
                |chunk: &ChunkIndex| Some(ChunkRef::Whole { path: scale.chunk_path(chunk).into() });
            return Ok(chunks.iter().map(whole).collect());
        };
        let slots: Vec<_> = chunks.iter().map(|chunk| sharded.slot(scale.chunk(chunk))).collect();
        self.shards.locate(&scale.folder, sharded.sharding(), &slots).await
    }
}

impl Source for PrecomputedSource {
    fn dataset(&self) -> &Dataset {
        &self.dataset
    }

    fn identity(&self) -> String {
        self.identity.clone()
    }

    fn chunks<'a>(&'a self, array: &'a str, within: &'a Region) -> ChunkStream<'a> {
        let listing = async move {
            let scale = self.scale(array)?;
            let grid = self.dataset.array(array)?.grid()?;
            let objects = self.store.list_links(&scale.folder, Links::Follow).await?;
            Ok::<_, Error>(objects.then(move |meta| {
                let grid = grid.clone();
                async move {
                    let found = match meta {
                        Ok(meta) => self.in_object(scale, &grid, within, meta).await,
                        Err(error) => Err(error),
                    };
                    // Damage is an error in its place, and the rest follows.
                    found.unwrap_or_else(|error| stream::iter([Err(error)]).boxed())
                }
            }))
        };
        stream::once(listing)
            .map(|listed| match listed {
                Ok(found) => found.flatten().boxed(),
                Err(error) => stream::iter([Err(error)]).boxed(),
            })
            .flatten()
            .boxed()
    }

    fn occupied(&self, array: &str) -> Result<Occupied<'_>> {
        let scale = self.scale(array)?;
        let chunks = self.dataset.array(array)?.grid()?;
        if self.store.kind() == Kind::ReadOnly {
            return Ok(Occupied::All);
        }
        let grid = match (&scale.sharded, &scale.boxes) {
            (None, _) => chunks,
            (Some(_), Some(boxes)) => {
                let mut shape = scale.scale.chunk_size();
                for (extent, cell) in shape.iter_mut().zip(boxes.cell()) {
                    *extent = extent.saturating_mul(cell.max(1));
                }
                let shape = scale.axes.arrange(shape, scale.num_channels);
                Grid::new(chunks.array_shape(), &shape)?
            }
            // A shard has chunks from everywhere, so its index must be read.
            (Some(_), None) => return Ok(self.occupied_by_index(scale, chunks)),
        };
        let listing = async move {
            let objects = self.store.list_links(&scale.folder, Links::Follow).await?;
            Ok::<_, Error>(objects.try_filter_map(move |meta| async move { scale.cell_of(&meta) }))
        };
        Ok(Occupied::Cells { grid, cells: stream::once(listing).try_flatten().boxed() })
    }

    fn codecs_elsewhere(&self, array: &str) -> Option<String> {
        let codecs = self.dataset.array(array).ok()?.spec.codecs_json();
        let plain = codecs.iter().all(|codec| matches!(codecs::name(codec), "bytes" | "transpose"));
        (!plain).then(|| "zstd:3".to_owned())
    }
}

impl OpenScale {
    /// The cell of what an object holds: a chunk, or a shard that is a box.
    fn cell_of(&self, meta: &Meta) -> Result<Option<ChunkIndex>> {
        let (Some(sharded), Some(boxes)) = (&self.sharded, &self.boxes) else {
            return Ok(self.chunk_of(&meta.path)?.map(|chunk| self.index(chunk)));
        };
        let name = meta.path.strip_prefix(&self.folder);
        let shard = name.and_then(|name| sharded.sharding().parse_file_name(name));
        let Some(mut cell) = shard.and_then(|shard| boxes.origin(shard)) else { return Ok(None) };
        cell.iter_mut().zip(boxes.cell()).for_each(|(at, extent)| *at /= extent.max(1));
        Ok(Some(self.index(cell)))
    }
}

impl PrecomputedSource {
    fn occupied_by_index<'a>(&'a self, scale: &'a OpenScale, grid: Grid) -> Occupied<'a> {
        let whole = grid.clone();
        let listing = async move {
            let objects = self.store.list_links(&scale.folder, Links::Follow).await?;
            Ok::<_, Error>(objects.and_then(move |meta| {
                let whole = whole.clone();
                async move {
                    let within = Region::whole(whole.array_shape());
                    let found = self.in_object(scale, &whole, &within, meta).await?;
                    Ok(found.map_ok(|(index, _)| index))
                }
            }))
        };
        let cells = stream::once(listing).try_flatten().try_flatten().boxed();
        Occupied::Cells { grid, cells }
    }
}
