//! Data in one piece, cut into chunks.
//!
//! A dataset that is stored in one piece can be read as chunks that happen to be neighbours. They must
//! be equal and need no padding, since a reference can only point at stored bytes.

use std::cmp::Ordering;

/// A slab has at least this many bytes where the shape allows it …
const SLAB_BYTES_MIN: u64 = 1 << 20;
/// … and at most this many.
const SLAB_BYTES_MAX: u64 = 16 << 20;
/// Slabs smaller than this are worse than one large chunk …
const SLAB_BYTES_TINY: u64 = 64 << 10;
/// … unless that chunk is larger than this.
const WHOLE_BYTES_MAX: u64 = 1 << 30;

/// The shape of the slabs that a dataset in one piece is cut into: all of the last axes, some of one
/// axis, and a single step of each axis before it, so that the slabs are equal and none is padded.
pub(super) fn slab_shape(shape: &[u64], element_bytes: u64) -> Result<Vec<u64>, String> {
    let whole: Vec<u64> = shape.iter().map(|&extent| extent.max(1)).collect();
    let bytes_from = |axis: usize| {
        let extents = whole.get(axis..).unwrap_or_default();
        extents.iter().try_fold(element_bytes, |bytes, &extent| bytes.checked_mul(extent))
    };
    let total = bytes_from(0).ok_or("more bytes than can be counted")?;
    if total <= SLAB_BYTES_MAX {
        return Ok(whole);
    }
    // The first axis whose single step is small enough.
    for axis in 0..whole.len() {
        let step = bytes_from(axis + 1).unwrap_or(u64::MAX);
        if step > SLAB_BYTES_MAX {
            continue;
        }
        let extent = whole.get(axis).copied().unwrap_or(1);
        let steps = best_divisor(extent, step);
        if steps * step < SLAB_BYTES_TINY && total <= WHOLE_BYTES_MAX {
            return Ok(whole);
        }
        if steps * step < SLAB_BYTES_TINY {
            return Err(format!("{total} bytes in one piece that cannot be cut evenly"));
        }
        let slab = whole.iter().enumerate().map(|(at, &extent)| match at.cmp(&axis) {
            Ordering::Less => 1,
            Ordering::Equal => steps,
            Ordering::Greater => extent,
        });
        return Ok(slab.collect());
    }
    Ok(whole)
}

/// The smallest divisor of `extent` that makes slabs of at least the smallest size, or the largest
/// that does not exceed the largest.
fn best_divisor(extent: u64, step_bytes: u64) -> u64 {
    let step_bytes = step_bytes.max(1);
    let (wanted, most) = (SLAB_BYTES_MIN.div_ceil(step_bytes), SLAB_BYTES_MAX / step_bytes);
    let mut best = 1;
    for candidate in 1..=most.min(extent) {
        if extent.is_multiple_of(candidate) {
            best = candidate;
            if candidate >= wanted {
                break;
            }
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_in_one_piece_is_cut_where_it_divides() {
        assert_eq!(slab_shape(&[10, 10], 8), Ok(vec![10, 10]));
        assert_eq!(slab_shape(&[], 8), Ok(vec![]));
        assert_eq!(slab_shape(&[0, 5], 8), Ok(vec![1, 5]));
        // 8 KiB rows: 128 of them are 1 MiB.
        assert_eq!(slab_shape(&[4096, 1024], 8), Ok(vec![128, 1024]));
        // Rows of 64 MiB are cut themselves.
        assert_eq!(slab_shape(&[3, 8192, 1024], 8), Ok(vec![1, 128, 1024]));
        // A prime number of rows of 100 KiB: one each.
        assert_eq!(slab_shape(&[10_007, 12_800], 8), Ok(vec![1, 12_800]));
        // A prime number of numbers: all in one, unless that is too many.
        assert_eq!(slab_shape(&[10_000_019], 8), Ok(vec![10_000_019]));
        assert!(slab_shape(&[1_000_000_007], 8).is_err());
        assert!(slab_shape(&[u64::MAX, u64::MAX], 8).is_err());
    }
}
