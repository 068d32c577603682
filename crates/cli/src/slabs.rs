//! Cutting a region into slabs, which move one at a time when an array is larger than memory.

use chunkyard_array::{Region, Result};

/// Slabs are at least this large, if the region is.
pub(crate) const SLAB_BYTES: u64 = 64 << 20;

/// Cuts `region` along `axis` into slabs of at least `bytes_min` that end where chunks end, so that
/// no two slabs touch the same chunk.
pub(crate) fn cut(
    region: &Region,
    chunk_shape: &[u64],
    axis: usize,
    item_size: usize,
    bytes_min: u64,
) -> Result<Vec<Region>> {
    let (Some(&start), Some(&extent), Some(&chunk)) =
        (region.origin().get(axis), region.shape().get(axis), chunk_shape.get(axis))
    else {
        return Ok(vec![region.clone()]);
    };
    if region.is_empty() || chunk == 0 {
        return Ok(vec![region.clone()]);
    }
    let row_bytes = (region.num_elements() / extent).saturating_mul(item_size as u64).max(1);
    let rows = bytes_min.div_ceil(row_bytes).next_multiple_of(chunk);
    let end = start + extent;
    let mut slabs = Vec::new();
    let mut from = start;
    while from < end {
        let to = ((from / chunk) * chunk).saturating_add(rows).min(end);
        let (mut origin, mut shape) = (region.origin().to_vec(), region.shape().to_vec());
        if let (Some(origin), Some(shape)) = (origin.get_mut(axis), shape.get_mut(axis)) {
            (*origin, *shape) = (from, to - from);
        }
        slabs.push(Region::new(origin, shape)?);
        from = to;
    }
    Ok(slabs)
}

/// The axis along which elements can be moved in pieces: the slowest one longer than one element,
/// which is the first in C order and the last in Fortran order.
pub(crate) fn slow_axis(shape: &[u64], fortran: bool) -> usize {
    let long = |&extent: &u64| extent != 1;
    let axis = if fortran { shape.iter().rposition(long) } else { shape.iter().position(long) };
    axis.unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slabs_cover_the_region_and_meet_at_chunk_edges() {
        let region = Region::new([3, 0], [94, 10]).unwrap();
        let slabs = cut(&region, &[10, 10], 0, 1, 250).unwrap();
        let bounds: Vec<_> = slabs.iter().map(ToString::to_string).collect();
        assert_eq!(bounds, ["3:30,0:10", "30:60,0:10", "60:90,0:10", "90:97,0:10"]);
        let along_last = cut(&region, &[10, 4], 1, 1, 1).unwrap();
        assert_eq!(along_last.len(), 3);
        assert_eq!(along_last[2].to_string(), "3:97,8:10");
    }

    #[test]
    fn small_empty_and_scalar_regions_are_one_slab() {
        for region in [Region::whole(&[]), Region::whole(&[0, 5]), Region::whole(&[4, 5])] {
            let chunks = vec![2; region.rank()];
            assert_eq!(cut(&region, &chunks, 0, 8, SLAB_BYTES).unwrap(), [region]);
        }
    }

    #[test]
    fn axes_of_one_element_are_not_slow() {
        assert_eq!(slow_axis(&[1, 7, 3, 1], false), 1);
        assert_eq!(slow_axis(&[1, 7, 3, 1], true), 2);
        assert_eq!(slow_axis(&[1, 1], true), 0);
    }
}
