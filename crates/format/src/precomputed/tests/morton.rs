use proptest::prelude::*;

use super::*;

#[test]
fn codes_are_those_of_neuroglancer() {
    let morton = Morton::new([10, 4, 2]).unwrap();
    assert_eq!(morton.num_bits(), 7);
    for (chunk, code) in [
        ([0, 0, 0], 0),
        ([1, 0, 0], 1),
        ([0, 1, 0], 2),
        ([0, 0, 1], 4),
        ([2, 0, 1], 12),
        ([2, 3, 0], 26),
        ([5, 2, 0], 49),
        ([4, 3, 1], 54),
        ([9, 2, 1], 85),
        ([9, 3, 1], 87),
    ] {
        assert_eq!(morton.encode(chunk), code, "{chunk:?}");
        assert_eq!(morton.decode(code), Some(chunk));
    }
    let morton = Morton::new(MALE_CNS).unwrap();
    assert_eq!(morton.num_bits(), 34);
    assert_eq!(morton.encode([224, 192, 704]), 553_418_752);
    assert_eq!(morton.encode([1470, 1223, 2102]), 11_834_938_362);
}

#[test]
fn an_extent_that_is_a_power_of_two_takes_no_extra_bit() {
    for (extent, bits) in [(0, 0), (1, 0), (2, 1), (3, 2), (4, 2), (5, 3), (8, 3), (9, 4)] {
        assert_eq!(Morton::new([extent, 1, 1]).unwrap().num_bits(), bits, "{extent}");
    }
}

#[test]
fn codes_of_no_chunk_are_told() {
    let morton = Morton::new([10, 4, 2]).unwrap();
    // x = 15, and a bit above all of the grid's.
    assert_eq!(morton.decode(0b111_1001), None);
    assert_eq!(morton.decode(1 << 7), None);
    assert_eq!(morton.decode(u64::MAX), None);
}

#[test]
fn a_grid_that_needs_more_than_64_bits_is_refused() {
    let widest = Morton::new([1 << 22, 1 << 21, 1 << 21]).unwrap();
    let last = [(1 << 22) - 1, (1 << 21) - 1, (1 << 21) - 1];
    assert_eq!(widest.encode(last), u64::MAX);
    assert_eq!(widest.decode(u64::MAX), Some(last));
    let error = Morton::new([(1 << 22) + 1, 1 << 21, 1 << 21]).unwrap_err();
    assert_eq!(error.kind(), chunkyard_store::ErrorKind::Unsupported);
    assert!(error.to_string().contains("65 bits"), "{error}");
}

#[test]
fn a_walk_over_a_corner_of_a_vast_grid_costs_the_corner() {
    let morton = Morton::new([1 << 21; 3]).unwrap();
    let far = (1 << 21) - 2;
    let found: Vec<_> = morton.walk([far; 3], [u64::MAX; 3]).collect();
    assert_eq!(found.len(), 8);
    assert_eq!(found.last().unwrap().0, (1 << 63) - 1);
    assert_eq!(morton.walk([5, 5, 5], [5, 9, 9]).count(), 0);
}

proptest! {
    #[test]
    fn a_walk_gives_the_chunks_of_a_box_in_the_order_of_their_codes(
        grid in [1u64..12, 1u64..12, 1u64..12],
        start in [0u64..12, 0u64..12, 0u64..12],
        extent in [0u64..12, 0u64..12, 0u64..12],
    ) {
        let morton = Morton::new(grid).unwrap();
        let end = [0, 1, 2].map(|axis: usize| start[axis] + extent[axis]);
        let mut expected = Vec::new();
        for x in start[0]..end[0].min(grid[0]) {
            for y in start[1]..end[1].min(grid[1]) {
                for z in start[2]..end[2].min(grid[2]) {
                    expected.push((morton.encode([x, y, z]), [x, y, z]));
                }
            }
        }
        expected.sort_unstable();
        prop_assert_eq!(morton.walk(start, end).collect::<Vec<_>>(), expected);
    }
}
