//! What a conversion will do: which movement each array takes and why, in which packs.

use std::fmt;
use std::sync::Arc;

use chunkyard_array::{Cast, Grid, Region};
use chunkyard_format::{ArrayNode, ChunkCodecs, Dataset, Edges, Format, Node, Pack, Source};
use chunkyard_store::{Error, Result};
use serde_json::{Value, json};

use super::budget::Fetching;
use super::pack_shape::{ALIGNED_BYTES_MAX, grow};
use super::relabel::{Relabel, relabels};
use super::wishes::{ArrayWish, Wishes};

/// Decoded bytes of a pack, unless the target's own packs are larger.
const PACK_BYTES: u64 = 64 << 20;
/// Chunks of a pack, unless the target's own packs have more: each costs memory until its pack is
/// noted, however few its bytes are.
const PACK_CHUNKS: u64 = 64 << 10;
/// Decoded bytes of a tile, unless a single target chunk is larger: small enough that a core's
/// cache holds a part of it, and still many chunks.
const TILE_BYTES: u64 = 16 << 20;

/// How an array moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Movement {
    /// Bytes verbatim.
    Copy,
    /// Label blocks with another compression or other labels, without decoding their voxels.
    Rewrite,
    /// Chunk by chunk, decoded and encoded.
    Transcode,
    /// n chunks to m.
    Regrid,
}

impl fmt::Display for Movement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Copy => "copy",
            Self::Rewrite => "rewrite",
            Self::Transcode => "transcode",
            Self::Regrid => "regrid",
        })
    }
}

/// What happens to one array.
#[derive(Debug, Clone)]
pub struct ArrayPlan {
    /// Path in the source.
    pub source: Arc<str>,
    /// Path in the target.
    pub target: Arc<str>,
    /// How it moves.
    pub movement: Movement,
    /// Why it moves this way.
    pub why: String,
    /// The array as it is.
    pub from: Arc<ArrayNode>,
    /// The array as it will be.
    pub to: Arc<ArrayNode>,
    /// Grid of the packs over the target array.
    pub packs: Grid,
    /// Shape of a tile.
    pub tile: Vec<u64>,
    /// The same where memory is short: chunks of the source are not kept whole.
    pub(super) small_tile: Vec<u64>,
    /// Bytes of the elements that move.
    pub bytes: u64,
    /// Where the target's first element is in the source.
    pub(super) offset: Vec<u64>,
    pub(super) cast: Option<Cast>,
    /// What becomes of labels, before a cast.
    pub(super) relabel: Option<Relabel>,
    /// Whether the target stores all chunks, even ones that hold only the fill value.
    pub every: bool,
    /// Whether the source's elements are in memory already.
    pub(super) from_memory: bool,
}

/// What a conversion does.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Array by array, in the order of their paths in the target.
    pub arrays: Vec<ArrayPlan>,
    /// The dataset that comes out.
    pub dataset: Dataset,
    /// Name of the conversion: the same source, wishes and format give the same name.
    pub name: String,
    pub(super) description: String,
}

impl Plan {
    /// Plans to bring the wished part of a source into a format. `name` is for an array at the
    /// root, which has none, where the target needs one. Reads the mapping of a segmentation whose bodies
    /// are wished for.
    pub async fn new(
        source: &Arc<dyn Source>,
        wishes: &Wishes,
        format: &dyn Format,
        name: &str,
    ) -> Result<Self> {
        let relabels = relabels(source, wishes).await?;
        let source = &**source;
        let wanted = wishes.apply(source, name)?;
        let dataset = format.express(wanted.dataset)?;
        let pack_bytes = wishes.pack_bytes.unwrap_or(PACK_BYTES);
        let mut arrays = Vec::with_capacity(wanted.arrays.len());
        for (target, from) in wanted.arrays {
            let to = dataset.array(&target)?.clone();
            let source_node = source.dataset().array(&from.source)?.clone();
            let from_memory = source.is_memory(&from.source);
            let nodes = (source_node, to);
            let relabel = relabels.get(&from.source).cloned();
            let planned =
                ArrayPlan::new(&target, from, relabel, nodes, format, from_memory, pack_bytes);
            arrays.push(planned.map_err(|error| Error::for_array(&target, error))?);
        }
        let description = describe(source, &dataset, &arrays, format)?;
        let name = format!(
            "{:08x}{:08x}",
            crc32c::crc32c(description.as_bytes()),
            crc32c::crc32c_append(!0, description.as_bytes())
        );
        Ok(Self { arrays, dataset, name, description })
    }

    /// The plan of an array, by its path in the target.
    pub(super) fn array(&self, target: &str) -> Option<&ArrayPlan> {
        let at = self.arrays.binary_search_by(|array| (*array.target).cmp(target)).ok()?;
        self.arrays.get(at)
    }

    /// The checksum that records continue, so that only the same plan can read them.
    pub(super) fn seed(&self) -> u32 {
        crc32c::crc32c(self.description.as_bytes())
    }

    /// All bytes that move.
    pub fn bytes(&self) -> u64 {
        self.arrays.iter().fold(0, |sum, array| sum.saturating_add(array.bytes))
    }

    /// The number of possible packs: empty ones are not visited, unless the target stores all
    /// chunks.
    pub fn packs(&self) -> u64 {
        let packs = self.arrays.iter().map(|array| array.packs.num_chunks());
        packs.fold(0, u64::saturating_add)
    }
}

impl ArrayPlan {
    fn new(
        target: &str,
        wanted: ArrayWish,
        relabel: Option<Relabel>,
        (from, to): (Arc<ArrayNode>, Arc<ArrayNode>),
        format: &dyn Format,
        from_memory: bool,
        pack_bytes: u64,
    ) -> Result<Self> {
        let (source_grid, target_grid) = (from.grid()?, to.grid()?);
        let offset = wanted.region.origin().to_vec();
        let (movement, why) = choose(&from, &to, &wanted, relabel.is_some())?;
        let item_size = to.item_bytes();
        let shape = target_grid.array_shape();
        let grain = format.grain(&to)?;
        let chunk = target_grid.chunk_shape();
        // Where nothing is decoded, nothing is gained by whole chunks of the source.
        let whole = if from_memory { chunk } else { source_grid.chunk_shape() };
        let chunk_bytes = Region::whole(chunk).num_elements().saturating_mul(item_size);
        let many = chunk_bytes.saturating_mul(PACK_CHUNKS);
        let aligned = ALIGNED_BYTES_MAX.min(many.saturating_mul(4));
        let pack = grow(&grain, whole, shape, item_size, pack_bytes.min(many), aligned);
        let tile = grow(chunk, whole, &pack, item_size, TILE_BYTES, ALIGNED_BYTES_MAX);
        let small_tile = grow(chunk, chunk, &pack, item_size, TILE_BYTES, 0);
        Ok(Self {
            source: wanted.source.into(),
            target: target.into(),
            movement,
            why,
            packs: Grid::new(shape, &pack)?,
            tile,
            small_tile,
            bytes: to.logical_bytes(),
            offset,
            cast: wanted.cast,
            relabel,
            every: format.stores_every_chunk(),
            from_memory,
            from,
            to,
        })
    }

    /// The pack of a number, if there is one.
    pub fn pack(&self, number: u64) -> Option<Pack> {
        let region = self.packs.clipped_region(&self.packs.index_of(number)?);
        Some(Pack { array: self.target.clone(), number, region })
    }

    /// The most chunks that a pack has.
    pub(super) fn chunks_of_pack(&self) -> u64 {
        let chunk = self.to.spec.chunk_shape().unwrap_or_default();
        let counts = self.packs.chunk_shape().iter().zip(chunk);
        counts.map(|(pack, chunk)| pack.div_ceil((*chunk).max(1))).fold(1, u64::saturating_mul)
    }

    /// The tile that is decoded at a time.
    pub(super) fn tile(&self, fetching: Fetching) -> &[u64] {
        match fetching {
            Fetching::Whole => &self.tile,
            Fetching::Batches => &self.small_tile,
        }
    }

    /// The extents of the source chunks that a tile can touch, together.
    pub(super) fn touched_by_tile(&self, fetching: Fetching) -> Vec<u64> {
        let chunk = self.from.spec.chunk_shape().unwrap_or_default();
        let axes = self.tile(fetching).iter().zip(chunk).zip(&self.offset);
        axes.map(|((&tile, &chunk), offset)| {
            let aligned = tile.is_multiple_of(chunk) && offset.is_multiple_of(chunk);
            tile.saturating_add(if aligned { 0 } else { 2 * (chunk - 1) })
        })
        .collect()
    }

    /// Bytes of the elements of a pack.
    pub(super) fn pack_bytes(&self, pack: &Pack) -> u64 {
        pack.region.num_elements().saturating_mul(self.to.item_bytes())
    }

    /// Where a region of the target is in the source.
    pub(super) fn in_source(&self, region: &Region) -> Result<Region> {
        let origin = region.origin().iter().zip(&self.offset).map(|(a, b)| a + b);
        Ok(Region::new(origin.collect::<Vec<_>>(), region.shape())?)
    }

    /// Whether the target is a whole array whose elements are in memory already.
    pub(super) fn is_memory_whole(&self) -> bool {
        self.from_memory && self.from.spec.shape() == self.to.spec.shape()
    }
}

/// Which movement, and why.
fn choose(
    from: &ArrayNode,
    to: &ArrayNode,
    wanted: &ArrayWish,
    relabelled: bool,
) -> Result<(Movement, String)> {
    let (source, target) = (from.grid()?, to.grid()?);
    let chunk = source.chunk_shape();
    if chunk != target.chunk_shape() {
        let why = format!("chunks {} become {}", shape(chunk), shape(target.chunk_shape()));
        return Ok((Movement::Regrid, why));
    }
    let aligned = |at: u64, axis: usize| at.is_multiple_of(chunk[axis]);
    let origin = wanted.region.origin();
    if origin.iter().enumerate().any(|(axis, &at)| !aligned(at, axis)) {
        return Ok((Movement::Regrid, "the region begins inside a chunk".to_owned()));
    }
    let ends = wanted.region.end();
    let extents = source.array_shape();
    if ends.iter().enumerate().any(|(axis, &at)| !aligned(at, axis) && at != extents[axis]) {
        return Ok((Movement::Regrid, "the region ends inside a chunk".to_owned()));
    }
    if from.edges != to.edges && !clips(from, to, wanted)? {
        let from = if from.edges == Edges::Clipped { "clipped" } else { "padded" };
        return Ok((Movement::Regrid, format!("chunks at the edges are {from} in the source")));
    }
    if let Some(cast) = &wanted.cast {
        let why = format!("{} becomes {}", cast.source(), cast.target());
        return Ok((Movement::Transcode, why));
    }
    let blocks =
        |node: &ArrayNode| Ok::<_, Error>(ChunkCodecs::new(node)?.whole().has_label_blocks());
    if relabelled {
        let movement = match blocks(from)? && blocks(to)? {
            true => Movement::Rewrite,
            false => Movement::Transcode,
        };
        return Ok((movement, "supervoxels become bodies".to_owned()));
    }
    if from.spec.same_encoding(&to.spec) {
        let why = "chunks are the same in source and target".to_owned();
        return Ok((Movement::Copy, why));
    }
    let names = |node: &ArrayNode| {
        let codecs = &node.spec.metadata().codecs;
        codecs.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
    };
    let why = format!("codecs {} become {}", names(from), names(to));
    // Codecs that this program does not know cannot be label blocks, and fail where they are used.
    let same = from.spec.dtype()? == to.spec.dtype()?;
    match same && blocks(from).unwrap_or(false) && blocks(to).unwrap_or(false) {
        true => Ok((Movement::Rewrite, why)),
        false => Ok((Movement::Transcode, why)),
    }
}

/// Whether padded label blocks become clipped chunks without a look at the voxels.
fn clips(from: &ArrayNode, to: &ArrayNode, wanted: &ArrayWish) -> Result<bool> {
    if (from.edges, to.edges) != (Edges::Padded, Edges::Clipped) || wanted.cast.is_some() {
        return Ok(false);
    }
    // Codecs that this program does not know fail where they are used.
    let Ok(source) = ChunkCodecs::new(from) else { return Ok(false) };
    Ok(source.whole().has_label_blocks() && ChunkCodecs::new(to)?.whole().clips_label_blocks())
}

fn shape(extents: &[u64]) -> String {
    let extents: Vec<_> = extents.iter().map(ToString::to_string).collect();
    extents.join("×")
}

/// Everything that determines the result, as text. Only a plan with the same text may resume the
/// work.
fn describe(
    source: &dyn Source,
    dataset: &Dataset,
    arrays: &[ArrayPlan],
    format: &dyn Format,
) -> Result<String> {
    let mut nodes = serde_json::Map::new();
    for (path, node) in &dataset.nodes {
        let document = match node {
            Node::Group(group) => group.render(),
            Node::Array(array) => array.packed_spec()?.render(),
        };
        let document = String::from_utf8_lossy(&document).into_owned();
        nodes.insert(path.clone(), Value::String(document));
    }
    let arrays: Vec<Value> = arrays
        .iter()
        .map(|array| {
            json!({
                "source": *array.source,
                "target": *array.target,
                "offset": array.offset,
                "pack": array.packs.chunk_shape(),
                "bodies": array.relabel.is_some(),
            })
        })
        .collect();
    let whole = json!({
        "version": 1,
        "source": source.identity(),
        "format": format.name(),
        "arrays": arrays,
        "nodes": nodes,
    });
    Ok(whole.to_string())
}
