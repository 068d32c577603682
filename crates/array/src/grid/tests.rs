use proptest::prelude::*;

use super::Grid;
use crate::Region;

#[test]
fn edge_chunks_are_padded_and_clipped_on_request() {
    let grid = Grid::new(&[10, 7], &[4, 7]).unwrap();
    assert_eq!(grid.grid_shape(), [3, 1]);
    assert_eq!(grid.num_chunks(), 3);
    assert_eq!(grid.chunk_region(&[2, 0]).to_string(), "8:12,0:7");
    assert_eq!(grid.clipped_region(&[2, 0]).to_string(), "8:10,0:7");
    assert!(grid.contains(&[2, 0]) && !grid.contains(&[3, 0]) && !grid.contains(&[0]));
}

#[test]
fn an_array_of_rank_zero_has_one_chunk() {
    let grid = Grid::new(&[], &[]).unwrap();
    let chunks: Vec<_> = grid.chunks_in(&Region::whole(&[])).collect();
    assert_eq!(chunks, [Vec::<u64>::new()]);
    assert_eq!(grid.num_chunks(), 1);
}

#[test]
fn an_empty_array_has_no_chunks() {
    let grid = Grid::new(&[0, 5], &[2, 2]).unwrap();
    assert_eq!(grid.num_chunks(), 0);
    assert_eq!(grid.chunks_in(&Region::whole(&[0, 5])).count(), 0);
}

#[test]
fn impossible_grids_are_refused() {
    assert!(Grid::new(&[4], &[0]).is_err());
    assert!(Grid::new(&[4], &[2, 2]).is_err());
    assert!(Grid::new(&[u64::MAX], &[u64::MAX - 1]).is_err());
}

#[test]
fn indices_outside_the_grid_do_not_panic() {
    let grid = Grid::new(&[10, 7], &[4, 7]).unwrap();
    for index in [&[u64::MAX, u64::MAX][..], &[], &[1, 2, 3], &[99]] {
        let (whole, clipped) = (grid.chunk_region(index), grid.clipped_region(index));
        assert_eq!((whole.rank(), clipped.rank()), (2, 2));
        assert!(Region::whole(&[10, 7]).contains(&clipped));
    }
}

#[test]
fn chunks_of_an_immense_array_are_listed_lazily() {
    let grid = Grid::new(&[1 << 40, 1 << 20], &[1, 1]).unwrap();
    let region = Region::whole(grid.array_shape());
    assert_eq!(grid.num_chunks_in(&region), 1 << 60);
    assert_eq!(grid.chunks_in(&region).nth(2), Some(vec![0, 2]));
}

#[test]
fn numbers_of_chunks_count_the_last_axis_fastest() {
    let grid = Grid::new(&[7, 9, 2], &[4, 4, 1]).unwrap();
    for (expected, at) in grid.chunks_in(&Region::whole(&[7, 9, 2])).enumerate() {
        assert_eq!(grid.number_of(&at), Some(expected as u64));
        assert_eq!(grid.index_of(expected as u64), Some(at));
    }
    assert_eq!(grid.number_of(&[2, 0, 0]), None);
    assert_eq!(grid.number_of(&[0, 0]), None);
    assert_eq!(grid.index_of(grid.num_chunks()), None);
    let scalar = Grid::new(&[], &[]).unwrap();
    assert_eq!((scalar.number_of(&[]), scalar.index_of(0)), (Some(0), Some(vec![])));
    assert_eq!(Grid::new(&[0, 4], &[2, 2]).unwrap().index_of(0), None);
    let immense = Grid::new(&[1 << 60, 1 << 60], &[1, 1]).unwrap();
    assert_eq!(immense.number_of(&[1 << 59, 0]), None);
}

proptest! {
    #[test]
    fn chunks_of_a_region_are_those_with_an_element_in_it(
        dimensions in prop::collection::vec((0u64..9, 1u64..5, 0u64..9, 0u64..9), 1..4)
    ) {
        let array: Vec<u64> = dimensions.iter().map(|d| d.0).collect();
        let chunk: Vec<u64> = dimensions.iter().map(|d| d.1).collect();
        let origin: Vec<u64> = dimensions.iter().map(|d| d.2).collect();
        let shape: Vec<u64> = dimensions.iter().map(|d| d.3).collect();
        let grid = Grid::new(&array, &chunk).unwrap();
        let region = Region::new(origin, shape).unwrap();

        let every = grid.chunks_in(&Region::whole(&array)).collect::<Vec<_>>();
        prop_assert!(every.is_sorted());
        prop_assert_eq!(every.len() as u64, grid.num_chunks());
        let expected: Vec<_> = every
            .into_iter()
            .filter(|index| grid.clipped_region(index).intersect(&region).is_some())
            .collect();
        prop_assert_eq!(grid.num_chunks_in(&region), expected.len() as u64);
        prop_assert_eq!(grid.chunks_in(&region).collect::<Vec<_>>(), expected);
    }
}

#[test]
fn guessed_chunks_are_about_a_mebibyte() {
    assert_eq!(super::guess_chunks(&[1000, 1000], 8), [250, 500]);
    assert_eq!(super::guess_chunks(&[10, 10], 8), [10, 10]);
    assert_eq!(super::guess_chunks(&[0], 8), [1]);
    assert_eq!(super::guess_chunks(&[], 8), [0; 0]);
    assert_eq!(super::guess_chunks(&[1, 1], 4 << 20), [1, 1]);
}
