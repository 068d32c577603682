//! The shards of a scale that hold anything, listed without a look into any chunk.
//!
//! A scale may have room for 10⁹ chunks and store ten. The source lists where chunks are stored, and each shard is noted with
//! them. Where the notes become too many, chunks that lie near each other are noted as one cell, then as a larger one, so memory
//! is bounded and follows what is stored; time follows it but for the holes in cells, and neither follows the grid.

use std::collections::HashMap;
use std::sync::Arc;

use chunkyard_array::{Grid, Region};
use chunkyard_format::precomputed::ShardBoxes;
use chunkyard_format::{Occupied, Source};
use chunkyard_store::Result;
use futures::TryStreamExt;
use serde::{Deserialize, Serialize};

use super::cells::{Bounds, Cells};
use super::geometry::{Frame, Level};

/// Cells of all shards together that are noted.
const NOTES_MAX: usize = 1 << 21;
/// Cells that are noted of one cell of the source.
const CELL_MAX: u64 = 1 << 12;

/// A shard that holds anything, for [`Exporter::run_shard`](super::Exporter::run_shard) in this process or another one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shard {
    /// The scale.
    pub scale: usize,
    /// Its number.
    pub number: u64,
    /// The numbers of the chunks that may be stored, without their lowest bits, ascending; all of the shard if none is named.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub chunks: Vec<u64>,
    /// How many of the lowest bits are left out.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub low: u32,
    /// About how many chunks are stored.
    pub weight: u64,
}

fn is_zero(bits: &u32) -> bool {
    *bits == 0
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
    /// Chunks that were listed.
    seen: u64,
    /// Numbers of chunks without their lowest bits.
    cells: Vec<u64>,
    /// How many bits are left out.
    low: u32,
    /// Whether all of it is visited, and no cell is noted.
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
        cells_of: &Arc<Cells>,
        sparse: bool,
    ) -> Result<Self> {
        let lie = Lie::new(level, frame);
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
                let (mut notes, mut outside) = (Notes::new(boxes, cells_of), 0);
                while let Some(cell) = cells.try_next().await? {
                    let region = grid.clipped_region(&cell);
                    match lie.chunks(&region) {
                        Some((first, end)) => {
                            notes.add(first, end);
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
                    Shard { scale, number, chunks: Vec::new(), low: 0, weight }
                }))
            }
            Which::Noted(noted) => Box::new(noted.iter().map(move |(number, noted)| Shard {
                scale,
                number: *number,
                chunks: noted.cells.clone(),
                low: noted.low,
                weight: noted.seen,
            })),
        }
    }
}

/// How a level lies in the grid of the export.
pub(super) struct Lie<'a> {
    level: &'a Level,
    frame: &'a Frame,
    grid: [u64; 3],
}

fn grid_of(frame: &Frame) -> [u64; 3] {
    std::array::from_fn(|axis| frame.size[axis].div_ceil(frame.chunk[axis].max(1)))
}

impl<'a> Lie<'a> {
    pub(super) fn new(level: &'a Level, frame: &'a Frame) -> Self {
        Self { level, frame, grid: grid_of(frame) }
    }

    /// Where voxels of the source begin and end in the exported volume, counted from its first voxel.
    fn voxels(&self, region: &Region) -> Option<[(i128, i128); 3]> {
        let end = region.end();
        let mut bounds = [(0, 0); 3];
        for (axis, bound) in bounds.iter_mut().enumerate() {
            let factor = i128::from(self.level.factor[axis].max(1));
            let origin = i128::from(self.level.origin[axis]);
            let at = |voxel: u64| (origin + i128::from(voxel) + factor - 1).div_euclid(factor);
            let offset = i128::from(self.frame.offset[axis]);
            let low = at(*region.origin().get(self.level.axes[axis])?) - offset;
            let high = at(*end.get(self.level.axes[axis])?) - offset;
            *bound = (low, high);
        }
        Some(bounds)
    }

    /// The first chunk of the export that holds voxels of a region, and the one behind the last; `None` if none does.
    pub(super) fn chunks(&self, region: &Region) -> Option<Bounds> {
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
    cells: &'a Arc<Cells>,
    shards: HashMap<u64, Noted>,
    /// Cells that are noted, how many may be, and how many of a shard.
    total: usize,
    total_max: usize,
    most: usize,
}

impl<'a> Notes<'a> {
    fn new(boxes: &'a ShardBoxes, cells: &'a Arc<Cells>) -> Self {
        let (total, total_max, most) = (0, NOTES_MAX, NOTES_MAX);
        Self { boxes, cells, shards: HashMap::new(), total, total_max, most }
    }

    /// Notes the chunks from `first` up to before `end`.
    fn add(&mut self, first: [u64; 3], end: [u64; 3]) {
        let count = (0..3).map(|axis| end[axis] - first[axis]).fold(1, u64::saturating_mul);
        // A cell of the source that is large is noted as larger cells.
        let low = u64::BITS - (count.saturating_sub(1) / CELL_MAX).leading_zeros();
        let low = low.min(self.cells.within());
        for (code, at) in self.cells.covering(low, (first, end)) {
            let number = self.boxes.shard_of(at);
            let noted = self.shards.entry(number).or_default();
            noted.seen = noted.seen.saturating_add(1 << low.min(63));
            if low > 0 {
                noted.seen = noted.seen.min(self.boxes.num_chunks(number));
            }
            if noted.whole {
                continue;
            }
            self.total -= noted.cells.len();
            noted.coarsen(low);
            let cell = code.checked_shr(noted.low).unwrap_or(0);
            if noted.cells.last() != Some(&cell) {
                noted.cells.push(cell);
            }
            noted.keep(self.most, self.cells.within());
            self.total += noted.cells.len();
            while self.total > self.total_max {
                self.shrink();
            }
        }
    }

    /// Keeps fewer cells of each shard.
    fn shrink(&mut self) {
        self.most /= 2;
        self.total = 0;
        for noted in self.shards.values_mut() {
            noted.keep(self.most, self.cells.within());
            self.total += noted.cells.len();
        }
    }

    fn finish(self) -> Vec<(u64, Noted)> {
        let mut shards: Vec<(u64, Noted)> = self.shards.into_iter().collect();
        shards.sort_unstable_by_key(|(number, _)| *number);
        for (number, noted) in &mut shards {
            noted.cells.sort_unstable();
            noted.cells.dedup();
            // A shard that is full needs no list.
            if noted.low == 0 && noted.cells.len() as u64 == self.boxes.num_chunks(*number) {
                noted.visit_all();
            }
        }
        shards
    }
}

impl Noted {
    /// Has cells of at least so many open bits.
    fn coarsen(&mut self, low: u32) {
        if low <= self.low {
            return;
        }
        let more = low - self.low;
        self.cells.iter_mut().for_each(|cell| *cell = cell.checked_shr(more).unwrap_or(0));
        self.cells.dedup();
        self.low = low;
    }

    /// Keeps no more cells than `most`; where there are more, half of them at most, so that this is seldom done.
    fn keep(&mut self, most: usize, within: u32) {
        if self.cells.len() <= most {
            return;
        }
        self.cells.sort_unstable();
        self.cells.dedup();
        while self.cells.len() > most / 2 && self.low < within {
            self.coarsen(self.low + 1);
        }
        if self.low >= within {
            self.visit_all();
        }
        self.cells.shrink_to_fit();
    }

    fn visit_all(&mut self) {
        (self.whole, self.low, self.cells) = (true, 0, Vec::new());
    }
}
