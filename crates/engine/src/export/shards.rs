//! The shards of a scale that hold anything, listed without a look into any chunk.
//!
//! A scale may have room for 10⁹ chunks and store ten. The source lists where chunks are stored, and a shard is noted with the
//! first few of them; a shard with more is visited as a whole. So memory and time follow the shards that hold anything, and
//! neither follows the grid.

use std::collections::HashMap;
use std::sync::Arc;

use chunkyard_array::{Grid, Region};
use chunkyard_format::precomputed::ShardBoxes;
use chunkyard_format::{Occupied, Source};
use chunkyard_store::{Error, Result};
use futures::TryStreamExt;
use serde::{Deserialize, Serialize};

use super::geometry::{Frame, Level};

/// Chunks of a shard that are noted one by one; a shard with more is visited as a whole.
const NOTED_MAX: usize = 64;
/// Chunks of all shards together that are noted one by one.
const NOTES_MAX: usize = 1 << 21;
/// Chunks of a cell that are noted one by one.
const CELL_MAX: u64 = 1 << 12;

/// A shard that holds anything, for [`Exporter::run_shard`](super::Exporter::run_shard) in this process or another one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shard {
    /// The scale.
    pub scale: usize,
    /// Its number.
    pub number: u64,
    /// The numbers of the chunks that may be stored, ascending; all of the shard if none is named.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub chunks: Vec<u64>,
    /// About how many chunks are stored.
    pub weight: u64,
}

/// The shards of a scale.
#[derive(Debug)]
pub struct Shards {
    scale: usize,
    boxes: ShardBoxes,
    which: Which,
    /// Stored chunks that lie outside of the exported volume.
    pub outside: u64,
}

#[derive(Debug)]
enum Which {
    /// All that hold chunks from a first one up to before a last one.
    All([u64; 3], [u64; 3]),
    /// These, by number.
    Noted(Vec<(u64, Noted)>),
}

/// What is stored in a shard.
#[derive(Debug, Default)]
struct Noted {
    /// Cells that were listed.
    seen: u64,
    chunks: Vec<u64>,
    whole: bool,
}

impl Shards {
    /// No shards: of a scale without voxels.
    pub(super) fn none(scale: usize, boxes: &ShardBoxes) -> Self {
        Self { scale, boxes: boxes.clone(), which: Which::Noted(Vec::new()), outside: 0 }
    }

    /// Lists the shards that a level of a source reaches into. `sparse` says that what is not stored is label 0.
    pub(super) async fn list(
        scale: usize,
        source: &Arc<dyn Source>,
        level: &Level,
        frame: &Frame,
        boxes: &ShardBoxes,
        sparse: bool,
    ) -> Result<Self> {
        let lie = Lie { level, frame, grid: grid_of(frame) };
        let whole = Region::whole(source.dataset().array(&level.path)?.spec.shape());
        let occupied = match sparse {
            true => source.occupied(&level.path)?,
            false => Occupied::All,
        };
        let (which, outside) = match occupied {
            Occupied::All => {
                let outside = lie.count_outside(source, &whole).await?;
                let which = match lie.chunks(&whole) {
                    Some((first, end)) => Which::All(first, end),
                    None => Which::Noted(Vec::new()),
                };
                (which, outside)
            }
            Occupied::Cells { grid, mut cells } => {
                let chunks = source.dataset().array(&level.path)?.grid()?;
                let single = grid.chunk_shape() == chunks.chunk_shape();
                let (mut notes, mut outside) = (Notes::new(boxes), 0);
                while let Some(cell) = cells.try_next().await? {
                    let region = grid.clipped_region(&cell);
                    match lie.chunks(&region) {
                        Some((first, end)) => {
                            notes.add(first, end)?;
                            if !single && !lie.holds(&region) {
                                outside += lie.count_outside(source, &region).await?;
                            }
                        }
                        None if single => outside += 1,
                        None => outside += lie.count_outside(source, &region).await?,
                    }
                }
                (Which::Noted(notes.finish()), outside)
            }
        };
        Ok(Self { scale, boxes: boxes.clone(), which, outside })
    }

    /// How many there are.
    pub fn count(&self) -> u64 {
        match &self.which {
            Which::Noted(noted) => noted.len() as u64,
            Which::All(first, end) => {
                let cell = self.boxes.cell();
                let cells = |axis: usize| end[axis].div_ceil(cell[axis]) - first[axis] / cell[axis];
                (0..3).map(cells).fold(1, u64::saturating_mul)
            }
        }
    }

    /// About how many chunks are stored in all of them.
    pub fn weight(&self) -> u64 {
        match &self.which {
            Which::Noted(noted) => {
                noted.iter().map(|(_, noted)| noted.seen).fold(0, u64::saturating_add)
            }
            Which::All(first, end) => {
                (0..3).map(|axis| end[axis] - first[axis]).fold(1, u64::saturating_mul)
            }
        }
    }

    /// The shards, made one by one.
    pub fn iter(&self) -> Box<dyn Iterator<Item = Shard> + Send + '_> {
        let scale = self.scale;
        match &self.which {
            Which::All(first, end) => {
                let shards = self.boxes.shards_within(*first, *end);
                Box::new(shards.map(move |(number, _)| {
                    let weight = self.boxes.num_chunks(number);
                    Shard { scale, number, chunks: Vec::new(), weight }
                }))
            }
            Which::Noted(noted) => Box::new(noted.iter().map(move |(number, noted)| {
                let chunks = if noted.whole { Vec::new() } else { noted.chunks.clone() };
                Shard { scale, number: *number, chunks, weight: noted.seen }
            })),
        }
    }
}

/// The chunks of the export that a shard asks for, in the order of z, then y, then x.
pub(super) fn in_zyx(
    boxes: &ShardBoxes,
    shard: &Shard,
) -> Box<dyn Iterator<Item = [u64; 3]> + Send> {
    if shard.chunks.is_empty() {
        let (first, end) = boxes.bounds(shard.number).unwrap_or_default();
        let [xs, ys, zs] = [0, 1, 2].map(|axis| first[axis]..end[axis]);
        return Box::new(zs.flat_map(move |z| {
            let xs = xs.clone();
            ys.clone().flat_map(move |y| xs.clone().map(move |x| [x, y, z]))
        }));
    }
    let mut chunks: Vec<[u64; 3]> = in_order(boxes, shard).map(|(_, at)| at).collect();
    chunks.sort_unstable_by_key(|[x, y, z]| [*z, *y, *x]);
    Box::new(chunks.into_iter())
}

/// The chunks that a shard asks for, with their numbers, in the order of these.
pub(super) fn in_order(
    boxes: &ShardBoxes,
    shard: &Shard,
) -> Box<dyn Iterator<Item = (u64, [u64; 3])> + Send> {
    let boxes = boxes.clone();
    let morton = boxes.morton().clone();
    if shard.chunks.is_empty() {
        let all: Vec<(u64, [u64; 3])> = boxes.chunks(shard.number).collect();
        return Box::new(all.into_iter());
    }
    let number = shard.number;
    let named = shard.chunks.clone().into_iter();
    let inside = named.filter_map(move |code| Some((code, morton.decode(code)?)));
    Box::new(inside.filter(move |(_, at)| boxes.shard_of(*at) == number))
}

/// How a level lies in the grid of the export.
struct Lie<'a> {
    level: &'a Level,
    frame: &'a Frame,
    grid: [u64; 3],
}

fn grid_of(frame: &Frame) -> [u64; 3] {
    std::array::from_fn(|axis| frame.size[axis].div_ceil(frame.chunk[axis].max(1)))
}

impl Lie<'_> {
    /// Where voxels of the source begin and end in the exported volume, counted from its first voxel.
    fn voxels(&self, region: &Region) -> Option<[(i128, i128); 3]> {
        let end = region.end();
        let mut bounds = [(0, 0); 3];
        for (axis, bound) in bounds.iter_mut().enumerate() {
            let factor = i128::from(self.level.factor[axis].max(1));
            let origin = i128::from(self.level.origin[axis]);
            let at = |voxel: u64| (origin + i128::from(voxel) + factor - 1).div_euclid(factor);
            let offset = i128::from(self.frame.offset[axis]);
            let low = at(*region.origin().get(2 - axis)?) - offset;
            let high = at(*end.get(2 - axis)?) - offset;
            *bound = (low, high);
        }
        Some(bounds)
    }

    /// The first chunk of the export that holds voxels of a region, and the one behind the last; `None` if none does.
    fn chunks(&self, region: &Region) -> Option<([u64; 3], [u64; 3])> {
        let (mut first, mut end) = ([0; 3], [0; 3]);
        for (axis, (low, high)) in self.voxels(region)?.into_iter().enumerate() {
            let low = low.max(0);
            let high = high.min(i128::from(self.frame.size[axis]));
            if low >= high {
                return None;
            }
            let chunk = i128::from(self.frame.chunk[axis].max(1));
            first[axis] = u64::try_from(low / chunk).ok()?;
            end[axis] = u64::try_from((high - 1) / chunk + 1).ok()?.min(self.grid[axis]);
        }
        Some((first, end))
    }

    /// Whether all of a region lies in the exported volume, or in the chunks at its edge.
    fn holds(&self, region: &Region) -> bool {
        let padded = |axis: usize| i128::from(self.grid[axis]) * i128::from(self.frame.chunk[axis]);
        self.voxels(region).is_some_and(|bounds| {
            bounds.iter().enumerate().all(|(axis, (low, high))| *low >= 0 && *high <= padded(axis))
        })
    }

    /// Stored chunks of a region that lie outside of the volume.
    async fn count_outside(&self, source: &Arc<dyn Source>, region: &Region) -> Result<u64> {
        if self.holds(region) {
            return Ok(0);
        }
        let grid: Grid = source.dataset().array(&self.level.path)?.grid()?;
        let (mut chunks, mut outside) = (source.chunks(&self.level.path, region), 0);
        while let Some((index, _)) = chunks.try_next().await? {
            outside += u64::from(self.chunks(&grid.clipped_region(&index)).is_none());
        }
        Ok(outside)
    }
}

/// Notes of shards, as many as fit.
struct Notes<'a> {
    boxes: &'a ShardBoxes,
    shards: HashMap<u64, Noted>,
    /// Chunks that are noted one by one, and how many of a shard may be.
    total: usize,
    most: usize,
}

impl<'a> Notes<'a> {
    fn new(boxes: &'a ShardBoxes) -> Self {
        Self { boxes, shards: HashMap::new(), total: 0, most: NOTED_MAX }
    }

    /// Notes the chunks from `first` up to before `end`.
    fn add(&mut self, first: [u64; 3], end: [u64; 3]) -> Result<()> {
        let count = (0..3).map(|axis| end[axis] - first[axis]).fold(1, u64::saturating_mul);
        if count > CELL_MAX {
            for (shard, _) in self.boxes.shards_within(first, end) {
                let noted = self.shards.entry(shard).or_default();
                (noted.whole, noted.seen) = (true, self.boxes.num_chunks(shard));
                self.total -= std::mem::take(&mut noted.chunks).len();
            }
            return Ok(());
        }
        let morton = self.boxes.morton();
        for (code, at) in morton.walk(first, end) {
            let noted = self.shards.entry(self.boxes.shard_of(at)).or_default();
            noted.seen += 1;
            if noted.whole || noted.chunks.last() == Some(&code) {
                continue;
            }
            noted.chunks.push(code);
            self.total += 1;
            if noted.chunks.len() > self.most {
                noted.whole = true;
                self.total -= std::mem::take(&mut noted.chunks).len();
            }
        }
        while self.total > NOTES_MAX {
            self.shrink()?;
        }
        Ok(())
    }

    /// Keeps fewer chunks of each shard.
    fn shrink(&mut self) -> Result<()> {
        if self.most == 0 {
            return Err(Error::unsupported(
                "more shards than fit into memory; export a smaller volume",
            ));
        }
        self.most /= 2;
        self.total = 0;
        for noted in self.shards.values_mut() {
            if noted.chunks.len() > self.most {
                noted.whole = true;
                noted.chunks = Vec::new();
            }
            self.total += noted.chunks.len();
        }
        Ok(())
    }

    fn finish(self) -> Vec<(u64, Noted)> {
        let mut shards: Vec<(u64, Noted)> = self.shards.into_iter().collect();
        shards.sort_unstable_by_key(|(number, _)| *number);
        for (_, noted) in &mut shards {
            noted.chunks.sort_unstable();
            noted.chunks.dedup();
        }
        shards
    }
}
