//! Chunk tables: a million entries in one go, or one entry among a million.
//!
//! An entry holds the chunk's place and a `Vec` of its coord, whose content is elsewhere: writers put
//! all coords of a table back to back before it. If so they are read together, otherwise one by one.

use std::cmp::Ordering;
use std::ops::Range;

use super::super::archive::{Stop, Table, View, bytes, corrupt};
use super::{CHUNK_LEN, RANK_MAX};
use crate::container::model::{ChunkAddress, ChunkEntry};

/// [`CHUNK_LEN`] as a size in memory.
const ENTRY: usize = 32;

/// Gaps of up to this many bytes between coords are read through.
const SLACK: u64 = 4096;

/// The entries of these numbers. Coords of another rank are refused.
pub fn chunks(
    view: &dyn View,
    chunks: &Table,
    rank: usize,
    range: Range<u64>,
) -> Result<Vec<ChunkEntry>, Stop> {
    let mut entries = Vec::new();
    chunk_flat(view, chunks, rank, range, &mut |coord, address| {
        entries.push(ChunkEntry { coord: coord.to_vec(), address });
    })?;
    Ok(entries)
}

/// The same, without a `Vec` for each. `each` is called only after all bytes are here and checked, so
/// never if this returns an error.
pub fn chunk_flat(
    view: &dyn View,
    chunks: &Table,
    rank: usize,
    range: Range<u64>,
    each: &mut dyn FnMut(&[u32], ChunkAddress),
) -> Result<(), Stop> {
    let place = chunks.items(range, CHUNK_LEN, "chunks")?;
    if rank > RANK_MAX {
        return Err(corrupt(place.start, format!("at most {RANK_MAX} dimensions"), "more"));
    }
    let table = bytes(view, place.start, place.end - place.start)?;
    let (entries, _) = table.as_chunks::<ENTRY>();
    let Some(span) = span(entries, place.start, rank, view.len())? else {
        entries.iter().for_each(|entry| each(&[], Fields::of(entry).address));
        return Ok(());
    };
    let dense = entries.len() as u64 * 4 * rank as u64;
    if span.end - span.start > 2 * dense + SLACK {
        return scattered(view, entries, place.start, rank, each);
    }
    let coords = bytes(view, span.start, span.end - span.start)?;
    let mut coord = [0; RANK_MAX];
    let Some(coord) = coord.get_mut(..rank) else { return Ok(()) };
    for (entry, at) in entries.iter().zip(positions(place.start)) {
        let fields = Fields::of(entry);
        let start = at.wrapping_add_signed(fields.distance).wrapping_sub(span.start);
        let found = usize::try_from(start).ok().and_then(|start| coords.get(start..));
        let (numbers, _) = found.unwrap_or_default().as_chunks::<4>();
        coord.iter_mut().zip(numbers).for_each(|(c, number)| *c = u32::from_le_bytes(*number));
        each(coord, fields.address);
    }
    Ok(())
}

/// Reads scattered coords one by one.
fn scattered(
    view: &dyn View,
    entries: &[[u8; ENTRY]],
    start: u64,
    rank: usize,
    each: &mut dyn FnMut(&[u32], ChunkAddress),
) -> Result<(), Stop> {
    let mut flat: Vec<u32> = Vec::with_capacity(entries.len() * rank);
    for (entry, at) in entries.iter().zip(positions(start)) {
        let coord = coord_of(view, at, &Fields::of(entry), rank)?;
        flat.extend(coord.as_chunks::<4>().0.iter().map(|number| u32::from_le_bytes(*number)));
    }
    for (entry, coord) in entries.iter().zip(flat.chunks_exact(rank)) {
        each(coord, Fields::of(entry).address);
    }
    Ok(())
}

/// The byte range that holds all coords; checks that each lies in the archive and has that rank.
/// `None` if there are none.
fn span(
    entries: &[[u8; ENTRY]],
    start: u64,
    rank: usize,
    archive_len: u64,
) -> Result<Option<Range<u64>>, Stop> {
    let (mut low, mut high) = (u64::MAX, 0);
    for (entry, at) in entries.iter().zip(positions(start)) {
        let place = Fields::of(entry).coord(at, rank, archive_len)?;
        (low, high) = (low.min(place.start), high.max(place.end));
    }
    Ok((rank > 0 && !entries.is_empty()).then_some(low..high))
}

/// Positions of the entries of a table.
fn positions(start: u64) -> impl Iterator<Item = u64> {
    (0..).map(move |number: u64| start + number * CHUNK_LEN)
}

/// An entry without the content of its coord.
struct Fields {
    distance: i64,
    rank: u64,
    address: ChunkAddress,
}

impl Fields {
    fn of(entry: &[u8; ENTRY]) -> Self {
        let (words, _) = entry.as_chunks::<4>();
        let word = |at: usize| words.get(at).copied().map_or(0, u32::from_le_bytes);
        let double = |at: usize| u64::from(word(at)) | u64::from(word(at + 1)) << 32;
        Self {
            distance: double(0).cast_signed(),
            rank: double(2),
            address: ChunkAddress { block: word(4), offset: word(5), size: word(6) },
        }
    }

    /// Where the coord of an entry at a position is.
    fn coord(&self, at: u64, rank: usize, archive_len: u64) -> Result<Range<u64>, Stop> {
        if self.rank != rank as u64 {
            let found = self.rank.to_string();
            return Err(corrupt(at, format!("a chunk of {rank} dimensions"), found));
        }
        let start = at.checked_add_signed(self.distance);
        let place = start.and_then(|start| Some(start..start.checked_add(4 * self.rank)?));
        place.filter(|place| place.end <= archive_len).ok_or_else(|| {
            let found = format!("a pointer by {} bytes", self.distance);
            corrupt(at, "a chunk whose coord is in the archive", found)
        })
    }
}

fn coord_of(view: &dyn View, at: u64, fields: &Fields, rank: usize) -> Result<bytes::Bytes, Stop> {
    let place = fields.coord(at, rank, view.len())?;
    bytes(view, place.start, place.end - place.start)
}

/// Finds the chunk of a coord in a table whose coords ascend, row-major.
///
/// Looks at `guess` first: the chunk is there if none before it is missing. Then it looks ever farther
/// away, and halves the rest once it has gone past: in a table that lacks little, all entries it looks
/// at are close together. In a table that does not ascend it may miss the chunk, no worse.
pub fn find_chunk(
    view: &dyn View,
    chunks: &Table,
    coord: &[u32],
    guess: u64,
) -> Result<Option<ChunkAddress>, Stop> {
    let (mut low, mut high) = (0, chunks.len);
    let (mut probe, mut step, mut way) = (guess.min(high.saturating_sub(1)), 1u64, None);
    while low < high {
        let (order, address) = compare(view, chunks, probe, coord)?;
        match order {
            Ordering::Equal => return Ok(Some(address)),
            Ordering::Less => low = probe + 1,
            Ordering::Greater => high = probe,
        }
        probe = match (order, *way.get_or_insert(order)) {
            (Ordering::Less, Ordering::Less) => low.saturating_add(step - 1),
            (Ordering::Greater, Ordering::Greater) => high.saturating_sub(step),
            _ => low + (high - low) / 2,
        };
        probe = probe.clamp(low, high.saturating_sub(1).max(low));
        step = step.saturating_mul(2);
    }
    Ok(None)
}

/// How the coord of an entry compares to another.
fn compare(
    view: &dyn View,
    chunks: &Table,
    number: u64,
    coord: &[u32],
) -> Result<(Ordering, ChunkAddress), Stop> {
    let at = chunks.item(number, CHUNK_LEN, "chunk")?;
    let entry = bytes(view, at, CHUNK_LEN)?;
    let Some(entry) = entry.first_chunk::<ENTRY>() else {
        return Err(corrupt(at, "an entry", "less"));
    };
    let fields = Fields::of(entry);
    let found = coord_of(view, at, &fields, coord.len())?;
    let found = found.as_chunks::<4>().0.iter().map(|number| u32::from_le_bytes(*number));
    Ok((found.cmp(coord.iter().copied()), fields.address))
}
