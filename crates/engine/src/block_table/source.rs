//! A directory of block tables as arrays: the volume that the shards make, with labels and with supervoxels.
//!
//! ```text
//!  spec.json                          the volume: scales, grids, which blocks share a shard
//!  blocks_s0/shard=000041f9.parquet   the blocks of a shard
//!
//!  /labels/s0, /supervoxels/s0        the arrays
//! ```
//!
//! A shard is read a row group at a time, and only where a block that is asked for may be, by the statistics of `morton`. What a
//! table says is compared with what it must be: shard, scale, position, completeness, checksum, the block itself.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::ops::RangeInclusive;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use bytes::Bytes;
use chunkyard_array::codec::label_block;
use chunkyard_array::{ArraySpec, Attributes, ChunkIndex, Grid, GroupSpec, Region};
use chunkyard_format::precomputed::{Info, Scale, ShardBoxes, ShardGrid};
use chunkyard_format::{
    ArrayNode, Axis, ChunkStream, Dataset, Edges, Locate, Multiscale, Node, Occupied, Resolution,
    Source, Space,
};
use chunkyard_repo::{END_BYTES, ForeignEnd, ForeignParquet};
use chunkyard_store::{ChunkRef, Error, Fetcher, Noun, Request, Result, Store, cpu};
use futures::{StreamExt, stream};
use parquet::file::statistics::Statistics;
use rayon::prelude::*;
use serde::Deserialize;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::LABELS_KEY;
use super::group::{Column, Expected, Group, Row, block, corrupt};

/// The volume that the shards of a table make.
const SPEC: &str = "spec.json";
/// What a worker writes when all shards are there, and what an export writes then.
const COMPLETE: &str = "table.json";
const EXPORTED: &str = "export.log.json";
/// Bytes of such files at most.
const DOCUMENT_BYTES_MAX: u64 = 16 << 20;
/// Bytes of a row group at most, in the file and in memory.
const GROUP_BYTES_MAX: u64 = 64 << 20;
/// Bytes of row groups that are kept.
const KEPT_BYTES_MAX: usize = 96 << 20;
/// Footers that are kept.
const FOOTERS_MAX: usize = 64;
/// Chunks that are given at a time.
const CHUNKS_AT_ONCE: usize = 32;

/// A directory of block tables.
#[derive(Debug)]
pub struct TableSource {
    store: Store,
    info: Info,
    dataset: Dataset,
    scales: Vec<TableScale>,
    fetcher: Fetcher,
    identity: String,
    cautions: Vec<String>,
    footers: Mutex<HashMap<(usize, u64), Arc<Footer>>>,
    groups: Mutex<VecDeque<KeptGroup>>,
}

/// A row group with its scale, shard and number.
type KeptGroup = ((usize, u64, usize), Arc<Group>);

/// The tables of a scale.
#[derive(Debug)]
struct TableScale {
    number: usize,
    scale: Scale,
    size: [u32; 3],
    boxes: ShardBoxes,
    /// Bytes and path of the table of each shard.
    shards: BTreeMap<u64, (u64, String)>,
}

/// The footer of the table of a shard.
#[derive(Debug)]
struct Footer {
    file: ForeignParquet,
    /// The blocks that each row group may have.
    blocks: Vec<Option<RangeInclusive<u64>>>,
    stripped: Option<bool>,
}

/// What is known of a complete table.
#[derive(Debug, Deserialize)]
struct Complete {
    /// Shards of each scale.
    shards: BTreeMap<usize, u64>,
}

impl TableSource {
    /// Opens the tables at the root of a store.
    pub async fn open(store: Store) -> Result<Self> {
        let spec = match document(&store, SPEC).await? {
            Some(bytes) => bytes,
            None => {
                return Err(Error::NotFound {
                    what: Noun::Dataset,
                    name: format!(
                        "{} ({SPEC} says which volume the tables are of)",
                        store.object_url(SPEC)
                    ),
                });
            }
        };
        let info = Info::parse(SPEC, &spec)?;
        let complete = match document(&store, COMPLETE).await? {
            Some(bytes) => Some(serde_json::from_slice::<Complete>(&bytes).map_err(|error| {
                corrupt(COMPLETE, "document", "the number of shards of each scale", error)
            })?),
            None => None,
        };
        let mut state = Sha256::new();
        state.update(&spec);
        let mut scales = Vec::with_capacity(info.scales.len());
        for (number, scale) in info.scales.iter().enumerate() {
            let own = TableScale::open(&store, number, scale, &mut state).await?;
            let expected = complete.as_ref().and_then(|complete| complete.shards.get(&number));
            let found = own.shards.len() as u64;
            if let Some(expected) = expected.filter(|expected| **expected != found) {
                let what = format!("tables of scale {number}");
                return Err(corrupt(&store.object_url(COMPLETE), &what, expected, found));
            }
            scales.push(own);
        }
        let mut cautions = Vec::new();
        if complete.is_none() && document(&store, EXPORTED).await?.is_none() {
            cautions.push(format!(
                "{}: neither {COMPLETE} nor {EXPORTED} says that all shards are there; a shard that is not reads as label 0",
                store.url()
            ));
        }
        let state: String =
            state.finalize().iter().take(16).map(|byte| format!("{byte:02x}")).collect();
        let identity = format!("{} {state}", store.url());
        let (dataset, fetcher) = (dataset(&info)?, Fetcher::within(&store));
        let (footers, groups) = Default::default();
        Ok(Self { store, info, dataset, scales, fetcher, identity, cautions, footers, groups })
    }

    /// The volume that the shards make.
    pub fn info(&self) -> &Info {
        &self.info
    }

    /// The group with labels, or that with supervoxels.
    pub fn group(supervoxels: bool) -> &'static str {
        if supervoxels { "/supervoxels" } else { "/labels" }
    }

    /// The tables and the column of an array.
    fn array(&self, array: &str) -> Result<(&TableScale, Column)> {
        let columns = [(Column::Labels, false), (Column::Supervoxels, true)];
        columns
            .into_iter()
            .find_map(|(column, supervoxels)| {
                let number = array.strip_prefix(Self::group(supervoxels))?.strip_prefix("/s")?;
                let number: usize = number.parse().ok()?;
                Some((self.scales.get(number)?, column))
            })
            .ok_or_else(|| Error::NotFound { what: Noun::Array, name: array.to_owned() })
    }

    /// The footer of the table of a shard.
    async fn footer(&self, scale: &TableScale, shard: u64) -> Result<Option<Arc<Footer>>> {
        let Some((size, path)) = scale.shards.get(&shard) else { return Ok(None) };
        let key = (scale.number, shard);
        let lock = || self.footers.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = lock().get(&key) {
            return Ok(Some(known.clone()));
        }
        let footer = Arc::new(Footer::read(&self.store, path, *size).await?);
        // A table in the place of another one would be a shard without blocks.
        for block in
            footer.blocks.iter().flatten().flat_map(|blocks| [blocks.start(), blocks.end()])
        {
            if scale.boxes.shard_of_number(*block) != shard {
                let expected = format!("blocks of shard {shard}");
                return Err(corrupt(path, "morton in the footer", expected, block));
            }
        }
        let mut kept = lock();
        if kept.len() >= FOOTERS_MAX {
            kept.clear();
        }
        kept.insert(key, footer.clone());
        Ok(Some(footer))
    }

    /// A row group of the table of a shard.
    async fn row_group(
        &self,
        scale: &TableScale,
        shard: u64,
        footer: &Arc<Footer>,
        number: usize,
    ) -> Result<Arc<Group>> {
        let key = (scale.number, shard, number);
        let lock = || self.groups.lock().unwrap_or_else(PoisonError::into_inner);
        {
            let mut kept = lock();
            if let Some(at) = kept.iter().position(|(known, _)| *known == key)
                && let Some(found) = kept.remove(at)
            {
                let group = found.1.clone();
                kept.push_back(found);
                return Ok(group);
            }
        }
        let group = Arc::new(footer.group(&self.store, scale, shard, number).await?);
        let mut kept = lock();
        kept.push_back((key, group.clone()));
        while kept.len() > 1
            && kept.iter().map(|(_, group)| group.bytes).sum::<usize>() > KEPT_BYTES_MAX
        {
            kept.pop_front();
        }
        Ok(group)
    }

    /// The blocks of a shard with some numbers, which ascend.
    async fn blocks(
        &self,
        scale: &TableScale,
        column: Column,
        shard: u64,
        wanted: &[(u64, [u64; 3])],
    ) -> Result<Vec<Option<Bytes>>> {
        let Some(footer) = self.footer(scale, shard).await? else {
            return Ok(vec![None; wanted.len()]);
        };
        let within = |morton: u64| {
            let blocks = footer.blocks.iter().enumerate();
            let holds = |blocks: &Option<RangeInclusive<u64>>| {
                blocks.as_ref().is_some_and(|blocks| blocks.contains(&morton))
            };
            blocks.filter(move |(_, blocks)| holds(blocks)).map(|(number, _)| number).collect()
        };
        let places: Vec<(Vec<usize>, u64, [u64; 3])> =
            wanted.iter().map(|(morton, at)| (within(*morton), *morton, *at)).collect();
        let mut found = Vec::with_capacity(wanted.len());
        // Blocks of the same row groups are taken together, so that few groups are in hand.
        for run in places.chunk_by(|one, next| one.0 == next.0) {
            let numbers = run.first().map(|(numbers, ..)| numbers.clone()).unwrap_or_default();
            let mut groups = Vec::with_capacity(numbers.len());
            for number in numbers {
                groups.push(self.row_group(scale, shard, &footer, number).await?);
            }
            let asked: Vec<(u64, Expected)> = run
                .iter()
                .map(|(_, morton, at)| {
                    let origin = scale.origin(*at);
                    (*morton, Expected { origin, size: scale.size, stripped: footer.stripped })
                })
                .collect();
            let file = footer.file.file().clone();
            let blocks = cpu(move || {
                let one = |(morton, expected): (u64, Expected)| {
                    let mut rows: Vec<Row<'_>> =
                        groups.iter().flat_map(|group| group.rows(morton)).collect();
                    if rows.is_empty() {
                        return Ok(None);
                    }
                    rows.sort_by_key(|row| row.part().part);
                    let place = format!("{file}, block {morton}");
                    block(&place, &rows, &expected, column).map(|block| Some(Bytes::from(block)))
                };
                asked.into_par_iter().map(one).collect::<Result<Vec<Option<Bytes>>>>()
            })
            .await??;
            found.extend(blocks);
        }
        Ok(found)
    }

    /// All blocks of a shard that hold elements of a region, a few at a time.
    async fn shard_chunks(
        &self,
        scale: &TableScale,
        column: Column,
        shard: u64,
        grid: &Grid,
        within: &Region,
    ) -> Result<Vec<Result<(ChunkIndex, ChunkRef)>>> {
        let Some(footer) = self.footer(scale, shard).await? else { return Ok(Vec::new()) };
        let mut wanted = Vec::new();
        for number in 0..footer.blocks.len() {
            let group = self.row_group(scale, shard, &footer, number).await?;
            for morton in group.blocks() {
                let at = scale.boxes.morton().decode(morton);
                let at = at.filter(|at| scale.boxes.shard_of(*at) == shard);
                let Some(at) = at else {
                    let expected = format!("a chunk of shard {shard}");
                    return Err(corrupt(footer.file.file(), "morton of a row", expected, morton));
                };
                if grid.clipped_region(&index_of(at)).intersect(within).is_some() {
                    wanted.push((morton, at));
                }
            }
        }
        wanted.sort_unstable();
        wanted.dedup();
        let blocks = self.blocks(scale, column, shard, &wanted).await?;
        let found = wanted.into_iter().zip(blocks);
        Ok(found
            .filter_map(|((_, at), block)| Some(Ok((index_of(at), ChunkRef::Inline(block?)))))
            .collect())
    }
}

/// The index in an array of a chunk.
fn index_of([x, y, z]: [u64; 3]) -> ChunkIndex {
    vec![z, y, x]
}

impl TableScale {
    async fn open(store: &Store, number: usize, scale: &Scale, state: &mut Sha256) -> Result<Self> {
        let in_scale = |error| Error::for_array(&format!("{SPEC}: scales[{number}]"), error);
        let size = scale.chunk_size().map(|edge| u32::try_from(edge).unwrap_or(u32::MAX));
        label_block::encoded_bytes_max(size).map_err(|error| in_scale(error.into()))?;
        let grid = ShardGrid::of(scale).map_err(in_scale)?;
        let grid = grid.ok_or_else(|| in_scale(Error::invalid("there is no `sharding`")))?;
        let boxes = grid.boxes().map_err(in_scale)?;
        let folder = format!("blocks_s{number}/");
        let mut shards = BTreeMap::new();
        let listed = match store.list_dir(&folder).await {
            Ok(listed) => listed.objects,
            Err(Error::NotFound { .. }) => Vec::new(),
            Err(error) => return Err(error),
        };
        for meta in listed {
            let name = meta.path.rsplit('/').next().unwrap_or_default();
            let Some(shard) = shard_of(name) else { continue };
            if boxes.origin(shard).is_none() {
                let expected = format!("shards of a grid of {:?} chunks", scale.grid());
                return Err(corrupt(&meta.path, "number of a shard", expected, shard));
            }
            let line =
                format!("{} {} {:?} {}\n", meta.path, meta.size, meta.etag, meta.modified_ms);
            state.update(line);
            if shards.insert(shard, (meta.size, meta.path.clone())).is_some() {
                return Err(corrupt(&meta.path, "tables of a shard", 1, 2));
            }
        }
        Ok(Self { number, scale: scale.clone(), size, boxes, shards })
    }

    /// The first voxel of a chunk.
    fn origin(&self, at: [u64; 3]) -> [i64; 3] {
        let chunk = self.scale.chunk_size();
        std::array::from_fn(|axis| {
            let steps = i64::try_from(at[axis].saturating_mul(chunk[axis])).unwrap_or(i64::MAX);
            self.scale.voxel_offset[axis].saturating_add(steps)
        })
    }

    /// The number of a chunk of the grid.
    fn chunk(&self, index: &[u64]) -> Option<(u64, [u64; 3])> {
        let &[z, y, x] = index else { return None };
        let morton = self.boxes.morton();
        morton.contains([x, y, z]).then(|| (morton.encode([x, y, z]), [x, y, z]))
    }
}

/// The shard whose table has a name.
fn shard_of(name: &str) -> Option<u64> {
    let digits = name.strip_prefix("shard=")?.strip_suffix(".parquet")?;
    let hexadecimal = digits.bytes().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'));
    u64::from_str_radix(digits, 16).ok().filter(|_| hexadecimal && digits.len() >= 8)
}

impl Footer {
    async fn read(store: &Store, path: &str, size: u64) -> Result<Self> {
        let mut bytes = END_BYTES;
        let file = loop {
            let end = store.get_range(path, size.saturating_sub(bytes)..size).await?;
            match ForeignParquet::open(path, &end, size)? {
                ForeignEnd::Open(file) => break file,
                ForeignEnd::Needs(more) => bytes = more,
            }
        };
        let stripped = match file.key_value(LABELS_KEY) {
            None => None,
            Some("inside") => Some(false),
            Some("apart") => Some(true),
            Some(other) => return Err(corrupt(path, LABELS_KEY, "inside or apart", other)),
        };
        let mut blocks = Vec::with_capacity(file.row_groups().len());
        for (number, group) in file.row_groups().iter().enumerate() {
            let bytes = |sum: i64| u64::try_from(sum).unwrap_or(u64::MAX);
            let most = bytes(group.compressed_size()).max(bytes(group.total_byte_size()));
            if most > GROUP_BYTES_MAX {
                return Err(Error::unsupported(format!(
                    "{path}: row group {number} of {most} bytes; write row groups of {GROUP_BYTES_MAX} bytes at most"
                )));
            }
            let column =
                group.columns().iter().find(|column| column.column_path().string() == "morton");
            let range = match column.and_then(|column| column.statistics()) {
                _ if group.num_rows() == 0 => None,
                Some(Statistics::Int64(values)) => {
                    // The column is of unsigned numbers, which the file format keeps as signed ones.
                    let (low, high) = (values.min_opt(), values.max_opt());
                    low.zip(high).map(|(low, high)| low.cast_unsigned()..=high.cast_unsigned())
                }
                _ => None,
            };
            if range.is_none() && group.num_rows() != 0 {
                return Err(Error::unsupported(format!(
                    "{path}: row group {number} without statistics of morton, by which blocks are found"
                )));
            }
            blocks.push(range);
        }
        Ok(Self { file, blocks, stripped })
    }

    async fn group(
        self: &Arc<Self>,
        store: &Store,
        scale: &TableScale,
        shard: u64,
        number: usize,
    ) -> Result<Group> {
        let ranges = self.file.ranges(number);
        let path: Arc<str> = self.file.file().clone();
        let requests: Vec<Request> = ranges
            .iter()
            .map(|range| Request { path: path.clone(), range: range.clone(), guard: None })
            .collect();
        let pieces = store.fetch(&requests, store.limits()).await?;
        let pieces: Vec<(u64, Bytes)> =
            ranges.iter().map(|range| range.start).zip(pieces).collect();
        let at = (u8::try_from(scale.number).unwrap_or(u8::MAX), shard);
        let own = self.clone();
        cpu(move || {
            let batches = own.file.decode(number, pieces)?;
            let blocks = own.blocks.get(number).and_then(Option::as_ref);
            Group::new(own.file.file(), at, blocks, &batches)
        })
        .await?
    }
}

#[async_trait]
impl Locate for TableSource {
    async fn locate(&self, array: &str, chunks: &[ChunkIndex]) -> Result<Vec<Option<ChunkRef>>> {
        let (scale, column) = self.array(array)?;
        let mut wanted: BTreeMap<u64, Vec<(u64, [u64; 3], usize)>> = BTreeMap::new();
        for (position, index) in chunks.iter().enumerate() {
            let Some((morton, at)) = scale.chunk(index) else { continue };
            wanted.entry(scale.boxes.shard_of(at)).or_default().push((morton, at, position));
        }
        let mut found = vec![None; chunks.len()];
        for (shard, mut blocks) in wanted {
            blocks.sort_unstable();
            let asked: Vec<(u64, [u64; 3])> =
                blocks.iter().map(|(morton, at, _)| (*morton, *at)).collect();
            let given = self.blocks(scale, column, shard, &asked).await?;
            for ((.., position), block) in blocks.into_iter().zip(given) {
                if let Some(slot) = found.get_mut(position) {
                    *slot = block.map(ChunkRef::Inline);
                }
            }
        }
        Ok(found)
    }

    fn fetcher(&self) -> &Fetcher {
        &self.fetcher
    }
}

impl Source for TableSource {
    fn dataset(&self) -> &Dataset {
        &self.dataset
    }

    fn identity(&self) -> String {
        self.identity.clone()
    }

    fn chunks<'a>(&'a self, array: &'a str, within: &'a Region) -> ChunkStream<'a> {
        let opened = self
            .array(array)
            .and_then(|(scale, column)| Ok((scale, column, self.dataset.array(array)?.grid()?)));
        let (scale, column, grid) = match opened {
            Ok(opened) => opened,
            Err(error) => return stream::once(async { Err(error) }).boxed(),
        };
        stream::iter(scale.shards.keys().copied())
            .then(move |shard| {
                let grid = grid.clone();
                async move {
                    let found = self.shard_chunks(scale, column, shard, &grid, within).await;
                    stream::iter(found.unwrap_or_else(|error| vec![Err(error)]))
                }
            })
            .flatten()
            .boxed()
    }

    fn occupied(&self, array: &str) -> Result<Occupied<'_>> {
        let (scale, _) = self.array(array)?;
        let chunks = self.dataset.array(array)?.grid()?;
        let mut shape = scale.scale.chunk_size();
        for (extent, cell) in shape.iter_mut().zip(scale.boxes.cell()) {
            *extent = extent.saturating_mul(cell.max(1));
        }
        let grid = Grid::new(chunks.array_shape(), &index_of(shape))?;
        let cells = scale.shards.keys().filter_map(|shard| {
            let mut cell = scale.boxes.origin(*shard)?;
            cell.iter_mut().zip(scale.boxes.cell()).for_each(|(at, extent)| *at /= extent.max(1));
            Some(Ok(index_of(cell)))
        });
        Ok(Occupied::Cells { grid, cells: stream::iter(cells).boxed() })
    }

    fn located_max(&self) -> usize {
        CHUNKS_AT_ONCE
    }

    fn codecs_elsewhere(&self, _array: &str) -> Option<String> {
        Some("zstd:3".to_owned())
    }

    fn cautions(&self) -> Vec<String> {
        self.cautions.clone()
    }
}

/// A small file; `None` if there is none.
async fn document(store: &Store, path: &str) -> Result<Option<Bytes>> {
    let size = match store.head(path).await {
        Ok(meta) => meta.size,
        Err(Error::NotFound { .. }) => return Ok(None),
        Err(error) => return Err(error),
    };
    if size > DOCUMENT_BYTES_MAX {
        let expected = format!("{DOCUMENT_BYTES_MAX} bytes at most");
        return Err(corrupt(path, "document", expected, size));
    }
    Ok(Some(store.get(path).await?.bytes))
}

/// The arrays of a volume.
fn dataset(info: &Info) -> Result<Dataset> {
    let mut dataset = Dataset::default();
    dataset.insert("/", Node::Group(GroupSpec::new(Attributes::new())));
    for supervoxels in [false, true] {
        let group = TableSource::group(supervoxels);
        let mut levels = Vec::with_capacity(info.scales.len());
        for (number, scale) in info.scales.iter().enumerate() {
            let path = format!("{group}/s{number}");
            let spec = array(scale).map_err(|error| Error::for_array(&path, error))?;
            let node = ArrayNode { spec, sharding: None, edges: Edges::Padded };
            dataset.insert(path.clone(), Node::Array(Arc::new(node)));
            let place = |axis: usize| scale.voxel_offset[axis] as f64 * scale.resolution[axis];
            let resolution = [2, 1, 0].map(|axis: usize| scale.resolution[axis]);
            levels.push(Resolution {
                path,
                scale: Some(resolution.to_vec()),
                translation: Some([2, 1, 0].map(place).to_vec()),
            });
        }
        let axes = ["z", "y", "x"].map(|name| axis(name, None)).to_vec();
        let pyramid =
            Multiscale { group: group.to_owned(), name: None, version: None, axes, levels };
        let attributes: Value = json!({"ome": pyramid.render()?});
        let attributes = attributes.as_object().cloned().unwrap_or_default();
        dataset.insert(group, Node::Group(GroupSpec::new(attributes)));
    }
    Ok(dataset)
}

fn axis(name: &str, scale: Option<f64>) -> Axis {
    let (name, kind, unit) = (name.to_owned(), "space".to_owned(), "nanometer".to_owned());
    Axis { name: Some(name), kind: Some(kind), unit: Some(unit), scale }
}

fn array(scale: &Scale) -> Result<ArraySpec> {
    let codecs = vec![json!({"name": label_block::NAME})];
    let spec = ArraySpec::builder(&index_of(scale.size), &index_of(scale.chunk_size()), "uint64")
        .fill_value(0)
        .codecs(codecs)
        .build()?;
    let axes = [("z", 2), ("y", 1), ("x", 0)];
    let space = Space {
        axes: axes.map(|(name, at)| axis(name, Some(scale.resolution[at]))).to_vec(),
        translation: None,
        origin: Some([2, 1, 0].map(|axis: usize| scale.voxel_offset[axis]).to_vec()),
    };
    space.render(&spec)
}
