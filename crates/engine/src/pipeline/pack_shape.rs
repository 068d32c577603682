//! The sizes of the boxes that work is cut into.
//!
//! Two boxes matter. A *pack* is written, recorded and resumed as a whole; a *tile* is decoded at a
//! time. Both are made of whole target chunks. Where affordable they are made of whole source
//! chunks too, so that no chunk is fetched and decoded for two boxes.

/// A box may get this large to hold whole chunks of the source: decoding a chunk twice costs more
/// than memory.
pub(super) const ALIGNED_BYTES_MAX: u64 = 128 << 20;

/// Grows `unit` to a box of about `bytes_max`: first to multiples of the source's chunks, while it has
/// no more than `aligned_max`, then along the axes, the last first, since neighbours there are
/// neighbours in most stores.
pub(super) fn grow(
    unit: &[u64],
    source_chunk: &[u64],
    shape: &[u64],
    item_size: u64,
    bytes_max: u64,
    aligned_max: u64,
) -> Vec<u64> {
    let bytes = |extents: &[u64]| {
        extents.iter().fold(item_size.max(1), |bytes, &extent| bytes.saturating_mul(extent))
    };
    // The extent need not exceed the array's, but must stay a multiple of the unit.
    let limit = |axis: usize| {
        let (extent, unit) = (shape.get(axis).copied().unwrap_or(1), unit[axis].max(1));
        extent.div_ceil(unit).max(1).saturating_mul(unit)
    };
    let mut grown: Vec<u64> = unit.iter().map(|&extent| extent.max(1)).collect();
    for axis in 0..grown.len() {
        let common = least_common_multiple(grown[axis], source_chunk[axis].max(1));
        let mut wider = grown.clone();
        wider[axis] = common.min(limit(axis));
        if bytes(&wider) <= bytes_max.max(aligned_max) {
            grown = wider;
        }
    }
    for axis in (0..grown.len()).rev() {
        let room = bytes_max / bytes(&grown).max(1);
        let times = room.min(limit(axis).div_ceil(grown[axis])).max(1);
        grown[axis] = grown[axis].saturating_mul(times).min(limit(axis));
    }
    grown
}

fn least_common_multiple(a: u64, b: u64) -> u64 {
    let (mut x, mut y) = (a, b);
    while y != 0 {
        (x, y) = (y, x % y);
    }
    (a / x.max(1)).saturating_mul(b)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grow(
        unit: &[u64],
        source_chunk: &[u64],
        shape: &[u64],
        item_size: u64,
        bytes_max: u64,
    ) -> Vec<u64> {
        super::grow(unit, source_chunk, shape, item_size, bytes_max, ALIGNED_BYTES_MAX)
    }

    #[test]
    fn a_box_holds_whole_chunks_of_both_grids_if_it_may() {
        let shape = [512, 512, 512];
        assert_eq!(grow(&[128, 128, 32], &[64, 64, 64], &shape, 8, 8 << 20), [128, 128, 64]);
        assert_eq!(grow(&[128, 128, 32], &[64, 64, 64], &shape, 8, 64 << 20), [128, 128, 512]);
        assert_eq!(grow(&[128, 128, 32], &[64, 64, 64], &shape, 8, 1), [128, 128, 64]);
        let huge = [512, 512, 510];
        assert_eq!(grow(&[128, 128, 32], &huge, &shape, 8, 1), [512, 512, 32]);
    }

    #[test]
    fn a_box_ends_where_the_array_does() {
        assert_eq!(grow(&[10], &[7], &[25], 1, 1 << 30), [30]);
        assert_eq!(grow(&[100], &[7], &[25], 1, 1 << 30), [100]);
        assert_eq!(grow(&[], &[], &[], 8, 1), [0; 0]);
        assert_eq!(grow(&[4, 4], &[4, 4], &[0, 9], 8, 1 << 20), [4, 12]);
        assert_eq!(grow(&[u64::MAX], &[3], &[5], 8, 1 << 20), [u64::MAX]);
    }
}
