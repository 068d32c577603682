//! Which packs hold anything: a stored chunk reaches into them.
//!
//! An array may have room for 10¹² chunks and store ten. The source lists its stored chunks, and
//! each cell of that list is noted with every pack that it reaches into, so that other packs are
//! never visited. The notes are bounded: when there are too many, only notes of the first packs are
//! kept, and the list is read again for the packs after them. Where most of the grid is stored, or
//! where a list costs more than a look, no notes are kept, and all packs are visited in order.

use std::ops::Range;
use std::sync::Arc;

use chunkyard_array::{ChunkIndex, Grid, Region};
use chunkyard_format::{Occupied, Pack, Source};
use chunkyard_store::{Error, Limits, Result};
use futures::TryStreamExt;

use super::pieces::cover;
use super::plan::ArrayPlan;

#[cfg(test)]
mod tests;

/// The share of the memory limit that notes may take.
const SHARE: usize = 32;
/// Notes that are kept at least.
const NOTES_MIN: usize = 1 << 12;
/// Asking for each of this few chunks is no worse than a list.
const FEW_CELLS: u64 = 256;
/// The most chunks that are tried one by one if they cannot be listed.
const UNLISTED_MAX: u64 = 1 << 30;

/// A stored cell in a pack. Notes sort in the order in which packs are visited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Note {
    pack: u64,
    /// The side it belongs to.
    side: u32,
    /// Its number among the cells that the pack touches; `WHOLE` for most of them.
    cell: u64,
}

/// Most cells of a pack.
const WHOLE: u64 = u64::MAX;

/// How many notes may be kept within limits.
pub(super) fn notes_max(limits: &Limits) -> usize {
    (limits.bytes_in_flight / SHARE / size_of::<Note>()).max(NOTES_MIN)
}

/// A source whose stored chunks count.
#[derive(Debug, Clone)]
pub(super) struct Side {
    pub(super) source: Arc<dyn Source>,
    pub(super) path: Arc<str>,
    /// Where the target's first element is in it.
    pub(super) offset: Vec<u64>,
}

/// Some packs of an array, in their order.
#[derive(Debug, Clone)]
pub(super) struct Slice {
    plan: Arc<ArrayPlan>,
    which: Which,
}

#[derive(Debug, Clone)]
enum Which {
    /// All with these numbers.
    All(Range<u64>),
    /// The packs that have notes, sorted.
    Noted { notes: Arc<[Note]>, sides: Arc<[Cells]> },
}

/// A pack that is worth a visit.
#[derive(Debug, Clone)]
pub(super) struct Visit {
    pub(super) pack: Pack,
    /// The boxes in it that hold anything: whole target chunks, none in two of them.
    pub(super) pieces: Vec<Region>,
}

/// Lists the stored chunks of an array, slice by slice.
#[derive(Debug, Clone)]
pub(super) struct Scan {
    plan: Arc<ArrayPlan>,
    sides: Vec<Side>,
    notes_max: usize,
    /// The first pack of the next slice; `None` after the last.
    next: Option<u64>,
}

impl Scan {
    /// A scan of the chunks that the source of a plan and other sides store.
    pub(super) fn new(plan: &Arc<ArrayPlan>, sides: Vec<Side>, notes_max: usize) -> Self {
        Self { plan: plan.clone(), sides, notes_max: notes_max.max(1), next: Some(0) }
    }

    /// The source of a plan as a side.
    pub(super) fn source_of(plan: &ArrayPlan, source: &Arc<dyn Source>) -> Side {
        Side { source: source.clone(), path: plan.source.clone(), offset: plan.offset.clone() }
    }

    /// Whether there is another slice.
    pub(super) fn goes_on(&self) -> bool {
        self.next.is_some()
    }

    /// The next slice, or `None` after the last.
    pub(super) async fn next(&mut self) -> Result<Option<Slice>> {
        let Some(first) = self.next.take() else { return Ok(None) };
        let all = first..self.plan.packs.num_chunks();
        let mut which = Which::All(all);
        if !self.plan.every {
            match self.noted(first).await {
                Ok(Some(found)) => which = found,
                Ok(None) => {}
                Err(error) => self.may_go_through_all(error)?,
            }
        }
        Ok(Some(Slice { plan: self.plan.clone(), which }))
    }

    /// The notes of the packs from this one on; `None` if they are not worth having.
    async fn noted(&mut self, first: u64) -> Result<Option<Which>> {
        let mut listed = Vec::with_capacity(self.sides.len());
        for side in &self.sides {
            let Occupied::Cells { grid, cells } = side.source.occupied(&side.path)? else {
                return Ok(None);
            };
            listed.push((Cells::new(&self.plan, grid, &side.offset)?, cells));
        }
        let counts = listed.iter().map(|(map, _)| map.grid.num_chunks_in(&map.wanted));
        let total = counts.fold(0, u64::saturating_add);
        if first == 0 && total <= FEW_CELLS {
            return Ok(None);
        }
        let mut notes = Notes { first, end: None, all: Vec::new(), max: self.notes_max };
        let (mut sides, mut seen) = (Vec::new(), 0u64);
        for (number, (map, mut cells)) in (0..).zip(listed) {
            while let Some(cell) = cells.try_next().await? {
                let Some(region) = map.in_target(&cell) else { continue };
                seen += 1;
                if first == 0 && seen.saturating_mul(2) >= total {
                    return Ok(None);
                }
                for index in self.plan.packs.chunks_in(&region) {
                    let (pack, at) = map.note(&self.plan, &index, &cell)?;
                    notes.add(Note { pack, side: number, cell: at }, &self.plan);
                }
            }
            sides.push(map);
        }
        notes.shrink(&self.plan);
        // Reading the list again and again must not cost more than trying every chunk.
        let slices = seen / self.notes_max as u64 + 1;
        if first == 0 && notes.end.is_some() && slices.saturating_mul(seen) >= total {
            return Ok(None);
        }
        self.next = notes.end;
        Ok(Some(Which::Noted { notes: notes.all.into(), sides: sides.into() }))
    }

    /// Whether an array whose chunks cannot be listed is small enough to try every chunk.
    fn may_go_through_all(&self, error: Error) -> Result<()> {
        let chunks = self.plan.from.grid()?.num_chunks();
        match error {
            _ if chunks <= UNLISTED_MAX => Ok(()),
            Error::Unsupported { what } => Err(Error::unsupported(format!(
                "{}: it has room for {chunks} chunks, and those that are stored cannot be listed \
                 ({what}); convert a region of it",
                self.plan.source
            ))),
            other => Err(other),
        }
    }
}

/// Notes of the first packs, as many as fit.
#[derive(Debug)]
struct Notes {
    first: u64,
    /// Packs from here on did not fit.
    end: Option<u64>,
    all: Vec<Note>,
    max: usize,
}

impl Notes {
    fn add(&mut self, note: Note, plan: &ArrayPlan) {
        if note.pack < self.first || self.end.is_some_and(|end| note.pack >= end) {
            return;
        }
        self.all.push(note);
        if self.all.len() >= self.max.saturating_mul(2) {
            self.shrink(plan);
        }
    }

    /// Sorts, and drops notes that do not fit.
    fn shrink(&mut self, plan: &ArrayPlan) {
        self.all.sort_unstable();
        self.all.dedup();
        if self.all.len() <= self.max {
            return;
        }
        // A pack with many notes is visited as a whole.
        let many = (self.max / 2).max(1);
        let mut kept: Vec<Note> = Vec::with_capacity(self.max);
        for notes in self.all.chunk_by(|a, b| a.pack == b.pack) {
            let crowded = notes.len() > many || notes.iter().any(|note| note.cell == WHOLE);
            match notes.first() {
                Some(first) if crowded || is_mostly(plan, first.pack, notes.len() as u64) => {
                    kept.push(Note { cell: WHOLE, ..*first });
                }
                _ => kept.extend(notes),
            }
        }
        if let Some(over) = kept.get(self.max) {
            let end = over.pack;
            self.end = Some(end);
            kept.retain(|note| note.pack < end);
        }
        self.all = kept;
    }
}

/// Whether this many cells, as chunks of the source, are about half of a pack.
fn is_mostly(plan: &ArrayPlan, pack: u64, cells: u64) -> bool {
    let Some(pack) = plan.pack(pack) else { return false };
    let (Ok(grid), Ok(region)) = (plan.from.grid(), plan.in_source(&pack.region)) else {
        return false;
    };
    cells.saturating_mul(2) >= grid.num_chunks_in(&region)
}

/// The cells of a side, as they lie over the packs.
#[derive(Debug, Clone)]
struct Cells {
    grid: Grid,
    offset: Vec<u64>,
    /// The wanted part of the side.
    wanted: Region,
}

impl Cells {
    fn new(plan: &ArrayPlan, grid: Grid, offset: &[u64]) -> Result<Self> {
        let wanted = Region::new(offset, plan.packs.array_shape())?;
        Ok(Self { grid, offset: offset.to_vec(), wanted })
    }

    /// Where a cell is in the target; `None` if no part of it is wanted.
    fn in_target(&self, cell: &[u64]) -> Option<Region> {
        let wanted = self.grid.clipped_region(cell).intersect(&self.wanted)?;
        wanted.relative_to(&self.offset).ok()
    }

    /// The cells that a pack touches.
    fn of_pack(&self, region: &Region) -> Option<Region> {
        let origin = region.origin().iter().zip(&self.offset).map(|(at, by)| at + by);
        let there = Region::new(origin.collect::<Vec<_>>(), region.shape()).ok()?;
        self.grid.cells_in(&there)
    }

    /// The number of a pack, and of a cell among the cells that the pack touches.
    fn note(&self, plan: &ArrayPlan, pack: &[u64], cell: &[u64]) -> Result<(u64, u64)> {
        let found = || {
            let number = plan.packs.number_of(pack)?;
            let cells = self.of_pack(&plan.packs.clipped_region(pack))?;
            let mut at = 0u64;
            for ((&cell, &first), &count) in cell.iter().zip(cells.origin()).zip(cells.shape()) {
                at = at.checked_mul(count)?.checked_add(cell.checked_sub(first)?)?;
            }
            Some((number, at)).filter(|(_, at)| *at < WHOLE)
        };
        found().ok_or_else(|| {
            Error::unsupported(format!(
                "{}: an array of more than 2^64 packs; convert a region of it",
                plan.source
            ))
        })
    }

    /// The chunks of the target that a noted cell of a pack reaches into.
    fn reached(&self, plan: &ArrayPlan, pack: &Region, number: u64) -> Option<Region> {
        let cells = self.of_pack(pack)?;
        let (mut rest, mut index) = (number, vec![0; cells.rank()]);
        for (axis, (&first, &count)) in cells.origin().iter().zip(cells.shape()).enumerate().rev() {
            index[axis] = first + rest.checked_rem(count)?;
            rest = rest.checked_div(count)?;
        }
        let region = self.in_target(&index)?.intersect(pack)?;
        let chunks = plan.to.grid().ok()?;
        let touched = chunks.cells_in(&region)?;
        let first: ChunkIndex = touched.origin().to_vec();
        let last: ChunkIndex = touched.end().iter().map(|end| end.saturating_sub(1)).collect();
        let (from, to) = (chunks.clipped_region(&first), chunks.clipped_region(&last));
        let ends = to.end();
        let shape = from.origin().iter().zip(ends).map(|(start, end)| end.saturating_sub(*start));
        Region::new(from.origin(), shape.collect::<Vec<_>>()).ok()?.intersect(pack)
    }

    /// How many cells a pack touches.
    fn count(&self, pack: &Region) -> u64 {
        self.of_pack(pack).map_or(0, |cells| cells.num_elements())
    }
}

impl Slice {
    /// All packs of an array.
    pub(super) fn all(plan: &Arc<ArrayPlan>) -> Self {
        Self { plan: plan.clone(), which: Which::All(0..plan.packs.num_chunks()) }
    }

    /// The packs, made one by one.
    pub(super) fn visits(&self) -> impl Iterator<Item = Visit> + Send + use<> {
        let (plan, which) = (self.plan.clone(), self.which.clone());
        let (all, noted) = match which {
            Which::All(numbers) => (Some(numbers), None),
            Which::Noted { notes, sides } => (None, Some((notes, sides))),
        };
        let whole = {
            let plan = plan.clone();
            all.into_iter().flatten().filter_map(move |number| {
                let pack = plan.pack(number)?;
                Some(Visit { pieces: vec![pack.region.clone()], pack })
            })
        };
        let noted = noted.into_iter().flat_map(move |(notes, sides)| {
            let plan = plan.clone();
            let mut at = 0;
            std::iter::from_fn(move || {
                let rest = notes.get(at..)?;
                let of_pack = rest.chunk_by(|a, b| a.pack == b.pack).next()?;
                at += of_pack.len();
                visit(&plan, &sides, of_pack)
            })
        });
        whole.chain(noted)
    }

    /// The numbers of the packs.
    pub(super) fn numbers(&self) -> impl Iterator<Item = u64> + '_ {
        let (all, noted) = match &self.which {
            Which::All(numbers) => (numbers.clone(), &[][..]),
            Which::Noted { notes, .. } => (0..0, &notes[..]),
        };
        let noted = noted.chunk_by(|a, b| a.pack == b.pack).filter_map(|notes| notes.first());
        all.chain(noted.map(|note| note.pack))
    }

    /// How many packs there are, and the bytes of their elements.
    pub(super) fn extent(&self) -> (u64, u64) {
        match &self.which {
            Which::All(numbers) if numbers.start == 0 => (numbers.end, self.plan.bytes),
            _ => self.numbers().filter_map(|number| self.plan.pack(number)).fold(
                (0, 0u64),
                |(packs, bytes), pack| {
                    (packs + 1, bytes.saturating_add(self.plan.pack_bytes(&pack)))
                },
            ),
        }
    }

    /// Whether these are all packs of the array from the first one on, stored or not.
    pub(super) fn is_all(&self) -> bool {
        matches!(&self.which, Which::All(_))
    }

    /// How many notes it keeps.
    pub(super) fn weight(&self) -> usize {
        match &self.which {
            Which::All(_) => 0,
            Which::Noted { notes, .. } => notes.len(),
        }
    }

    /// The plan of the array.
    pub(super) fn plan(&self) -> &Arc<ArrayPlan> {
        &self.plan
    }
}

/// The visit that results from the notes of a pack.
fn visit(plan: &ArrayPlan, sides: &[Cells], notes: &[Note]) -> Option<Visit> {
    let pack = plan.pack(notes.first()?.pack)?;
    let crowded = |(number, side): (usize, &Cells)| {
        let of_side = notes.iter().filter(|note| note.side as usize == number).count() as u64;
        of_side.saturating_mul(2) >= side.count(&pack.region).max(1)
    };
    let whole = notes.iter().any(|note| note.cell == WHOLE);
    if whole || sides.iter().enumerate().any(crowded) {
        return Some(Visit { pieces: vec![pack.region.clone()], pack });
    }
    let chunk = plan.to.spec.chunk_shape()?;
    let mut boxes: Vec<Region> = notes
        .iter()
        .filter_map(|note| {
            let side = sides.get(note.side as usize)?;
            side.reached(plan, &pack.region, note.cell)
        })
        .collect();
    boxes.sort_by(|a, b| (a.origin(), a.shape()).cmp(&(b.origin(), b.shape())));
    boxes.dedup();
    Some(Visit { pieces: cover(boxes, chunk), pack })
}
