//! Chunks in the two orders that shards want, made one by one.
//!
//! A cell is a box of chunks whose numbers agree in all bits but the lowest few. A shard is a cell, and what is stored in it is
//! a list of smaller ones; however many chunks these have, walking them takes the memory of the list.

use std::ops::Range;
use std::sync::Arc;

use chunkyard_format::precomputed::{Morton, Scale, ShardBoxes};

use super::shards::Shard;

/// Chunks from a first one up to before a last one, along each axis.
pub(super) type Bounds = ([u64; 3], [u64; 3]);

/// The cells of a grid.
#[derive(Debug)]
pub(super) struct Cells {
    morton: Morton,
    /// Bits of a number that do not choose the shard.
    within: u32,
    /// Chunks of a cell along each axis, by how many bits are open.
    extents: Vec<[u64; 3]>,
    /// What the array reaches into; the rest of the grid has nothing.
    reach: Bounds,
}

impl Cells {
    /// The cells of a sharded scale, as far as an array reaches.
    pub(super) fn new(scale: &Scale, boxes: &ShardBoxes, reach: Bounds) -> Self {
        let morton = boxes.morton().clone();
        let bits = scale.sharding.map_or(0, |it| it.preshift_bits + it.minishard_bits);
        let mut extents: Vec<[u64; 3]> = vec![[1; 3]];
        for bit in 0..morton.num_bits() {
            // A number with this bit alone is a chunk of the grid, one step along one axis.
            let step = morton.decode(1 << bit).unwrap_or_default();
            let mut extent = extents.last().copied().unwrap_or([1; 3]);
            for (extent, step) in extent.iter_mut().zip(step) {
                *extent = if step > 0 { extent.saturating_mul(2) } else { *extent };
            }
            extents.push(extent);
        }
        Self { within: bits.min(morton.num_bits()), morton, extents, reach }
    }

    /// The numbers of chunks.
    pub(super) fn morton(&self) -> &Morton {
        &self.morton
    }

    /// Bits of a number that do not choose the shard.
    pub(super) fn within(&self) -> u32 {
        self.within
    }

    /// The cells with `low` open bits that reach into a box, in the order of their numbers.
    pub(super) fn covering(
        self: &Arc<Self>,
        low: u32,
        bounds: Bounds,
    ) -> impl Iterator<Item = (u64, [u64; 3])> + Send + use<> {
        self.walk(vec![(0, self.morton.num_bits())], low, bounds)
    }

    /// The chunks that a shard asks for, with their numbers, in the order of these.
    pub(super) fn in_order(
        self: &Arc<Self>,
        shard: &Shard,
    ) -> impl Iterator<Item = (u64, [u64; 3])> + Send + use<> {
        let mut cells = self.of(shard);
        cells.reverse();
        self.walk(cells, 0, self.reach)
    }

    /// The chunks that a shard asks for, in the order of z, then y, then x.
    pub(super) fn in_zyx(
        self: &Arc<Self>,
        shard: &Shard,
    ) -> impl Iterator<Item = [u64; 3]> + Send + use<> {
        let cells = self.of(shard).into_iter().filter_map(|cell| self.bounds(cell));
        let mut cells: Vec<Bounds> = cells.collect();
        // All have the same extent, and begin at multiples of it: they lie in layers, and in rows of these.
        cells.sort_unstable_by_key(|([x, y, z], _)| [*z, *y, *x]);
        let layers = runs(&cells, 0..cells.len(), 2);
        let cells: Arc<[Bounds]> = cells.into();
        layers.into_iter().flat_map(move |layer| {
            let cells = cells.clone();
            along(&cells, &layer, 2).flat_map(move |z| {
                let cells = cells.clone();
                runs(&cells, layer.clone(), 1).into_iter().flat_map(move |row| {
                    let cells = cells.clone();
                    along(&cells, &row, 1).flat_map(move |y| {
                        let cells = cells.clone();
                        row.clone().flat_map(move |cell| {
                            along(&cells, &(cell..cell + 1), 0).map(move |x| [x, y, z])
                        })
                    })
                })
            })
        })
    }

    /// Whether a shard asks for a chunk.
    pub(super) fn asks_for(&self, shard: &Shard, at: [u64; 3]) -> bool {
        let (first, end) = self.reach;
        if !(0..3).all(|axis| (first[axis]..end[axis]).contains(&at[axis])) {
            return false;
        }
        let code = self.morton.encode(at);
        let own = code.checked_shr(self.within).unwrap_or(0) == shard.number;
        let cell = code.checked_shr(shard.low).unwrap_or(0);
        own && (shard.chunks.is_empty() || shard.chunks.binary_search(&cell).is_ok())
    }

    /// The cells of a shard: their lowest numbers, and how many bits are open.
    fn of(&self, shard: &Shard) -> Vec<(u64, u32)> {
        if shard.chunks.is_empty() {
            return vec![(shard.number.checked_shl(self.within).unwrap_or(0), self.within)];
        }
        let low = shard.low.min(self.within);
        let lowest = |cell: &u64| cell.checked_shl(low).unwrap_or(0);
        let inside = |code: &u64| code.checked_shr(self.within).unwrap_or(0) == shard.number;
        shard.chunks.iter().map(lowest).filter(inside).map(|code| (code, low)).collect()
    }

    /// The part of a cell that the array reaches into.
    fn bounds(&self, (code, open): (u64, u32)) -> Option<Bounds> {
        let corner = self.morton.decode(code)?;
        let extent = self.extents.get(open as usize)?;
        let (mut first, mut end) = (corner, corner);
        for axis in 0..3 {
            first[axis] = corner[axis].max(self.reach.0[axis]);
            end[axis] = corner[axis].saturating_add(extent[axis]).min(self.reach.1[axis]);
        }
        (0..3).all(|axis| first[axis] < end[axis]).then_some((first, end))
    }

    /// The cells with `low` open bits in larger ones, the last of which comes first.
    fn walk(
        self: &Arc<Self>,
        mut ahead: Vec<(u64, u32)>,
        low: u32,
        (first, end): Bounds,
    ) -> impl Iterator<Item = (u64, [u64; 3])> + Send + use<> {
        let own = self.clone();
        std::iter::from_fn(move || {
            while let Some((code, open)) = ahead.pop() {
                // A cell whose lowest corner is not in the grid has no chunk of it.
                let Some(corner) = own.morton.decode(code) else { continue };
                let extent = own.extents.get(open as usize).copied().unwrap_or([1; 3]);
                let meets = |axis: usize| {
                    corner[axis] < end[axis]
                        && corner[axis].saturating_add(extent[axis]) > first[axis]
                };
                if !(0..3).all(meets) {
                    continue;
                }
                if open <= low {
                    return Some((code, corner));
                }
                ahead.push((code | 1 << (open - 1), open - 1));
                ahead.push((code, open - 1));
            }
            None
        })
    }
}

/// Runs of cells that begin at the same place along an axis, of cells that are sorted so.
fn runs(cells: &[Bounds], within: Range<usize>, axis: usize) -> Vec<Range<usize>> {
    let mut from = within.start;
    let run = |run: &[Bounds]| {
        let start = from;
        from += run.len();
        start..from
    };
    let same = |a: &Bounds, b: &Bounds| a.0[axis] == b.0[axis];
    cells.get(within).unwrap_or_default().chunk_by(same).map(run).collect()
}

/// The chunks along an axis of cells that begin and end at the same places there.
fn along(cells: &[Bounds], run: &Range<usize>, axis: usize) -> Range<u64> {
    cells.get(run.start).map_or(0..0, |(first, end)| first[axis]..end[axis])
}

#[cfg(test)]
mod tests {
    use chunkyard_format::precomputed::{ShardGrid, Sharding};
    use serde_json::json;

    use super::*;

    fn cells(grid: [u64; 3], within: u32, reach: Bounds) -> (Arc<Cells>, ShardBoxes) {
        let size = grid.map(|chunks| chunks * 64);
        let info = json!({
            "@type": "neuroglancer_multiscale_volume", "type": "segmentation", "data_type": "uint64", "num_channels": 1,
            "scales": [{
                "key": "s", "size": size, "voxel_offset": [0, 0, 0], "resolution": [8, 8, 8],
                "chunk_sizes": [[64, 64, 64]], "encoding": "raw", "sharding": {
                    "@type": "neuroglancer_uint64_sharded_v1", "hash": "identity", "preshift_bits": within,
                    "minishard_bits": 0, "shard_bits": 64 - within,
                    "minishard_index_encoding": "raw", "data_encoding": "raw"
                }
            }]
        });
        let text = info.to_string();
        let info = chunkyard_format::precomputed::Info::parse("info", text.as_bytes()).unwrap();
        let scale = &info.scales[0];
        let sharding: Sharding = scale.sharding.unwrap();
        let boxes = ShardGrid::new(grid, sharding).unwrap().boxes().unwrap();
        (Arc::new(Cells::new(scale, &boxes, reach)), boxes)
    }

    fn shard(number: u64, chunks: Vec<u64>, low: u32) -> Shard {
        Shard { scale: 0, number, chunks, low, weight: 1 }
    }

    #[test]
    fn both_orders_have_the_chunks_of_a_shard_that_the_array_reaches() {
        for grid in [[5, 3, 7], [1, 9, 2], [8, 8, 8], [33, 1, 1]] {
            for within in [0, 2, 3, 5, 9] {
                for reach in [([0; 3], grid), ([1, 0, 0], [4, 2, 5]), ([0; 3], [1, 1, 1])] {
                    let (cells, boxes) = cells(grid, within, reach);
                    for (number, _) in boxes.shards() {
                        let whole = shard(number, Vec::new(), 0);
                        let (first, end) = boxes.bounds(number).unwrap();
                        let inside = |at: &[u64; 3]| {
                            (0..3).all(|axis| {
                                let least = first[axis].max(reach.0[axis]);
                                (least..end[axis].min(reach.1[axis])).contains(&at[axis])
                            })
                        };
                        let expected: Vec<(u64, [u64; 3])> =
                            boxes.chunks(number).filter(|(_, at)| inside(at)).collect();
                        let found: Vec<_> = cells.in_order(&whole).collect();
                        assert_eq!(found, expected, "{grid:?} {within} {reach:?}");
                        let mut sorted: Vec<_> = expected.iter().map(|(_, at)| *at).collect();
                        sorted.sort_by_key(|[x, y, z]| [*z, *y, *x]);
                        assert_eq!(cells.in_zyx(&whole).collect::<Vec<_>>(), sorted);
                        // Some cells of it, of any size.
                        for low in 0..=cells.within() {
                            let mut some: Vec<u64> =
                                expected.iter().map(|(code, _)| code >> low).step_by(3).collect();
                            some.dedup();
                            if some.is_empty() {
                                continue;
                            }
                            let part = shard(number, some.clone(), low);
                            let asked = |code: &u64| some.contains(&(code >> low));
                            let codes: Vec<u64> =
                                expected.iter().map(|(code, _)| *code).filter(asked).collect();
                            let found: Vec<u64> =
                                cells.in_order(&part).map(|(code, _)| code).collect();
                            assert_eq!(found, codes);
                            let mut zyx: Vec<_> = cells.in_zyx(&part).collect();
                            assert!(zyx.is_sorted_by_key(|[x, y, z]| [*z, *y, *x]));
                            zyx.sort_by_key(|at| cells.morton().encode(*at));
                            let codes_zyx: Vec<u64> =
                                zyx.iter().map(|at| cells.morton().encode(*at)).collect();
                            assert_eq!(codes_zyx, codes);
                            for (code, at) in &expected {
                                assert_eq!(cells.asks_for(&part, *at), asked(code));
                            }
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn the_first_chunks_of_a_shard_without_end_come_at_once() {
        let grid = [1 << 20; 3];
        let (cells, _) = cells(grid, 60, ([0; 3], grid));
        let whole = shard(0, Vec::new(), 0);
        assert_eq!(cells.in_zyx(&whole).nth(1 << 20), Some([0, 1, 0]));
        assert_eq!(cells.in_order(&whole).nth(9).map(|(code, _)| code), Some(9));
        // An array in a corner of the grid costs its own chunks alone.
        let (cells, _) = cells_in_corner(grid);
        assert_eq!(cells.in_order(&whole).count(), 27);
        assert_eq!(cells.in_zyx(&whole).count(), 27);
    }

    fn cells_in_corner(grid: [u64; 3]) -> (Arc<Cells>, ShardBoxes) {
        let last = grid.map(|grid| grid - 3);
        cells(grid, 60, (last, grid))
    }
}
