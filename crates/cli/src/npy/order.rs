//! Undoing the orders a `.npy` file may have: of bytes within elements, and of elements.

/// Reverses the bytes of each group of `unit`.
pub(crate) fn swap_bytes(bytes: &mut [u8], unit: usize) {
    if unit > 1 {
        for item in bytes.chunks_exact_mut(unit) {
            item.reverse();
        }
    }
}

/// How many bytes are one number of a data type: half an element if it is complex, four bytes if it
/// is text, one if order has no meaning.
pub(crate) fn swap_unit(descr: &str, item_size: usize) -> usize {
    match descr.trim_start_matches(['<', '>', '=', '|']).chars().next() {
        Some('c') => item_size / 2,
        Some('U') => 4,
        Some('V' | 'S' | 'b') => 1,
        _ => item_size,
    }
}

/// Rewrites elements from Fortran order to C order. `shape` is the shape of the array.
pub(super) fn to_c_order(source: &[u8], shape: &[u64], item_size: usize) -> Vec<u8> {
    let extents: Vec<usize> = shape.iter().map(|&n| usize::try_from(n).unwrap_or(0)).collect();
    // How far apart neighbours along each axis lie in the source.
    let strides: Vec<usize> = extents
        .iter()
        .scan(item_size, |stride, &extent| {
            let own = *stride;
            *stride = stride.saturating_mul(extent);
            Some(own)
        })
        .collect();
    let mut target = Vec::with_capacity(source.len());
    let mut index = vec![0usize; extents.len()];
    let mut offset = 0;
    while target.len() < source.len() {
        let Some(item) = source.get(offset..offset + item_size) else { break };
        target.extend_from_slice(item);
        // The next element in C order: the last axis first, carrying to the left.
        for axis in (0..extents.len()).rev() {
            let (Some(position), Some(&extent), Some(&stride)) =
                (index.get_mut(axis), extents.get(axis), strides.get(axis))
            else {
                break;
            };
            *position += 1;
            offset += stride;
            if *position < extent {
                break;
            }
            offset -= stride * extent;
            *position = 0;
        }
    }
    target
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fortran_order_becomes_c_order() {
        // [[1, 2, 3], [4, 5, 6]], column by column.
        assert_eq!(to_c_order(&[1, 4, 2, 5, 3, 6], &[2, 3], 1), [1, 2, 3, 4, 5, 6]);
        let wide = [1, 1, 4, 4, 2, 2, 5, 5, 3, 3, 6, 6];
        assert_eq!(to_c_order(&wide, &[2, 3], 2), [1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6]);
        let cube = [0, 4, 2, 6, 1, 5, 3, 7];
        assert_eq!(to_c_order(&cube, &[2, 2, 2], 1), [0, 1, 2, 3, 4, 5, 6, 7]);
        assert!(to_c_order(&[], &[0, 3], 8).is_empty());
        assert_eq!(to_c_order(&[9], &[], 1), [9]);
    }

    #[test]
    fn bytes_are_swapped_within_numbers() {
        assert_eq!(swap_unit(">c16", 16), 8);
        assert_eq!(swap_unit(">U3", 12), 4);
        assert_eq!(swap_unit(">M8[ns]", 8), 8);
        assert_eq!(swap_unit("|V5", 5), 1);
        let mut bytes = [1, 2, 3, 4];
        swap_bytes(&mut bytes, 2);
        assert_eq!(bytes, [2, 1, 4, 3]);
    }
}
