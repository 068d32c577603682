//! The parts of a pack that hold anything, as few boxes.
//!
//! Where chunks are stored sparsely, a pack is mostly empty. The stored chunks are covered by boxes
//! of whole target chunks that share no chunk and are about half full at least: the work is
//! proportional to the stored chunks, and neighbours still move together.

use chunkyard_array::Region;

/// Boxes of whole chunks that hold all given boxes and little else. `chunk` is the shape of the
/// target's chunks; the given boxes are whole chunks too, except at the end of the array.
pub(super) fn cover(boxes: Vec<Region>, chunk: &[u64]) -> Vec<Region> {
    let mut covering = Vec::new();
    // Depth first and the lower half first, so that the order is always the same.
    let mut pending = vec![boxes];
    while let Some(boxes) = pending.pop() {
        let Some(hull) = hull(&boxes) else { continue };
        let filled = boxes.iter().fold(0u64, |sum, it| sum.saturating_add(it.num_elements()));
        let (axis, middle) = halved(&hull, chunk);
        if boxes.len() == 1 || filled.saturating_mul(2) >= hull.num_elements() {
            covering.push(hull);
            continue;
        }
        let Some(middle) = middle else {
            covering.push(hull);
            continue;
        };
        let half = |from: u64, to: u64| {
            let (mut origin, mut shape) = (hull.origin().to_vec(), hull.shape().to_vec());
            (origin[axis], shape[axis]) = (from, to.saturating_sub(from));
            let half = Region::new(origin, shape).ok();
            let mut parts: Vec<Region> =
                boxes.iter().filter_map(|it| it.intersect(half.as_ref()?)).collect();
            parts.dedup();
            parts
        };
        let (start, end) = (hull.origin()[axis], hull.origin()[axis] + hull.shape()[axis]);
        let (lower, upper) = (half(start, middle), half(middle, end));
        pending.push(upper);
        pending.push(lower);
    }
    covering
}

/// The smallest box that holds all.
fn hull(boxes: &[Region]) -> Option<Region> {
    let mut origin = boxes.first()?.origin().to_vec();
    let mut end = boxes.first()?.end();
    for it in boxes {
        for (axis, (start, stop)) in it.origin().iter().zip(it.end()).enumerate() {
            origin[axis] = origin[axis].min(*start);
            end[axis] = end[axis].max(stop);
        }
    }
    let shape: Vec<u64> = origin.iter().zip(end).map(|(start, end)| end - start).collect();
    Region::new(origin, shape).ok()
}

/// The axis along which a box has most chunks, and the chunk edge nearest to its middle; none if
/// the box is one chunk.
fn halved(hull: &Region, chunk: &[u64]) -> (usize, Option<u64>) {
    let chunks = |axis: usize| {
        let (start, extent) = (hull.origin()[axis], chunk[axis].max(1));
        (start + hull.shape()[axis]).div_ceil(extent) - start / extent
    };
    let Some(axis) = (0..hull.rank()).max_by_key(|&axis| chunks(axis)) else { return (0, None) };
    let extent = chunk[axis].max(1);
    let middle = (hull.origin()[axis] / extent + chunks(axis) / 2).saturating_mul(extent);
    (axis, (chunks(axis) > 1).then_some(middle))
}

#[cfg(test)]
mod tests {
    use chunkyard_array::Grid;
    use proptest::prelude::*;

    use super::*;

    fn region(origin: &[u64], shape: &[u64]) -> Region {
        Region::new(origin, shape).unwrap()
    }

    #[test]
    fn what_is_far_apart_is_covered_apart_and_neighbours_together() {
        let far = 1 << 40;
        let boxes = vec![region(&[0], &[4]), region(&[4], &[4]), region(&[far], &[4])];
        assert_eq!(cover(boxes, &[4]), [region(&[0], &[8]), region(&[far], &[4])]);
        assert_eq!(cover(vec![], &[4]), []);
        assert_eq!(cover(vec![region(&[], &[])], &[]), [region(&[], &[])]);
    }

    proptest! {
        #[test]
        fn a_cover_holds_all_shares_nothing_and_is_half_full(
            chunk in prop::collection::vec(1u64..4, 2),
            cells in prop::collection::btree_set((0u64..40, 0u64..40), 1..30),
        ) {
            let grid = Grid::new(&[101, 99], &chunk).unwrap();
            let whole = Region::whole(&[101, 99]);
            let cells: Vec<_> = cells
                .into_iter()
                .map(|(y, x)| vec![y, x])
                .filter(|index| grid.contains(index))
                .collect();
            let boxes: Vec<Region> = cells.iter().map(|at| grid.clipped_region(at)).collect();
            let covering = cover(boxes.clone(), &chunk);
            let mut seen = std::collections::BTreeSet::new();
            for piece in &covering {
                prop_assert!(whole.contains(piece));
                for chunk in grid.chunks_in(piece) {
                    prop_assert!(piece.contains(&grid.clipped_region(&chunk)), "not whole chunks");
                    prop_assert!(seen.insert(chunk), "a chunk in two boxes");
                }
            }
            prop_assert!(cells.iter().all(|cell| seen.contains(cell)));
            let elements = |all: &[Region]| all.iter().map(Region::num_elements).sum::<u64>();
            prop_assert!(elements(&covering) <= 2 * elements(&boxes));
        }
    }
}
