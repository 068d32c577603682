use std::collections::HashSet;

use proptest::prelude::*;

use super::{Axis, Cells, Points, Selection};
use crate::{ChunkIndex, Grid, Output, Region};

/// Along one axis: extent, chunk, and the positions selected.
#[derive(Clone, Debug)]
struct Along {
    extent: u64,
    chunk: u64,
    axis: Axis,
    positions: Vec<u64>,
}

fn along() -> impl Strategy<Value = Along> {
    (1u64..9, 1u64..5).prop_flat_map(|(extent, chunk)| {
        let range = (0..extent, 1u64..5, 0u64..9).prop_map(move |(start, step, count)| {
            let count = count.min((extent - start).div_ceil(step));
            let positions = (0..count).map(|at| start + at * step).collect();
            (Axis::range(start, step, count).unwrap(), positions)
        });
        let list = prop::collection::vec(0..extent, 0..9)
            .prop_map(|positions| (Axis::list(positions.clone()), positions));
        prop_oneof![range, list].prop_map(move |(axis, positions)| Along {
            extent,
            chunk,
            axis,
            positions,
        })
    })
}

fn grid_of(axes: &[Along]) -> Grid {
    let (shape, chunk): (Vec<u64>, Vec<u64>) =
        axes.iter().map(|axis| (axis.extent, axis.chunk)).unzip();
    Grid::new(&shape, &chunk).unwrap()
}

/// All combinations of positions, in row-major order.
fn combinations(axes: &[Along]) -> Vec<Vec<u64>> {
    axes.iter().fold(vec![Vec::new()], |known, axis| {
        let longer =
            |index: Vec<u64>| axis.positions.iter().map(move |&at| [&index[..], &[at]].concat());
        known.into_iter().flat_map(longer).collect()
    })
}

fn ravel(index: &[u64], shape: &[u64]) -> usize {
    index.iter().zip(shape).fold(0, |number, (&at, &extent)| number * extent + at) as usize
}

/// Distinct elements, and chunks of them with a padding value of its own.
fn array_of(grid: &Grid, item_size: usize) -> Vec<u8> {
    let len = Region::whole(grid.array_shape()).num_bytes(item_size).unwrap();
    (0..len).map(|at| (at * 31 + at / 255) as u8).collect()
}

fn chunk_of(array: &[u8], grid: &Grid, index: &[u64], item_size: usize) -> Vec<u8> {
    let shape = grid.chunk_shape();
    let mut chunk = vec![0xDD; Region::whole(shape).num_bytes(item_size).unwrap()];
    let inside = grid.clipped_region(index);
    let origin = vec![0; shape.len()];
    crate::copy_region(array, grid.array_shape(), &inside, &mut chunk, shape, &origin, item_size)
        .unwrap();
    chunk
}

/// Reads by cells, in one go per chunk and again piece by piece, as shards are read.
fn read(grid: &Grid, item_size: usize, cells: impl Fn() -> Cells, pieces: bool) -> Vec<u8> {
    let array = array_of(grid, item_size);
    let shape = cells().shape().to_vec();
    let bytes = Region::whole(&shape).num_bytes(item_size).unwrap();
    let mut output = Output::new(vec![0xEE; bytes], &shape, item_size).unwrap();
    let mut seen: HashSet<ChunkIndex> = HashSet::new();
    for (index, mut view) in output.views_of(cells()).unwrap() {
        assert!(seen.insert(index.clone()), "each chunk comes once");
        let chunk = chunk_of(&array, grid, &index, item_size);
        if !pieces {
            view.write_from(&chunk, grid.chunk_shape()).unwrap();
            continue;
        }
        let inner = Grid::new(grid.chunk_shape(), &vec![2; grid.rank()]).unwrap();
        let whole = Region::whole(grid.chunk_shape());
        for cell in inner.chunks_in(&whole) {
            let place = inner.clipped_region(&cell);
            let mut piece = vec![0; place.num_bytes(item_size).unwrap()];
            let origin = vec![0; grid.rank()];
            let (from, to) = (grid.chunk_shape(), place.shape());
            crate::copy_region(&chunk, from, &place, &mut piece, to, &origin, item_size).unwrap();
            // A piece with nothing wanted is not even offered.
            if view.footprint().wants(&place) {
                view.write_box(&piece, &place).unwrap();
            }
        }
    }
    output.into_memory().unwrap()
}

/// Writes by cells into chunks: returns the array afterwards, and checks that covered chunks really
/// are.
fn write(grid: &Grid, item_size: usize, cells: Cells, given: &[u8]) -> Vec<u8> {
    let mut array = array_of(grid, item_size);
    let shape = cells.shape().to_vec();
    let origin = vec![0; grid.rank()];
    for (index, footprint) in cells {
        let inside = grid.clipped_region(&index);
        let mut chunk = match footprint.covers(inside.shape()) {
            true => vec![0xAB; Region::whole(grid.chunk_shape()).num_bytes(item_size).unwrap()],
            false => chunk_of(&array, grid, &index, item_size),
        };
        footprint.scatter(given, &shape, &mut chunk, item_size).unwrap();
        let part = Region::new(origin.clone(), inside.shape()).unwrap();
        let target = inside.origin();
        let (from, to) = (grid.chunk_shape(), grid.array_shape());
        crate::copy_region(&chunk, from, &part, &mut array, to, target, item_size).unwrap();
    }
    array
}

fn expect_read(grid: &Grid, item_size: usize, indices: &[Vec<u64>]) -> Vec<u8> {
    let array = array_of(grid, item_size);
    let at = |index: &Vec<u64>| ravel(index, grid.array_shape()) * item_size;
    indices.iter().flat_map(|index| &array[at(index)..at(index) + item_size]).copied().collect()
}

fn expect_written(grid: &Grid, item_size: usize, indices: &[Vec<u64>], given: &[u8]) -> Vec<u8> {
    let mut array = array_of(grid, item_size);
    for (index, value) in indices.iter().zip(given.chunks(item_size)) {
        let at = ravel(index, grid.array_shape()) * item_size;
        array[at..at + item_size].copy_from_slice(value);
    }
    array
}

fn noise(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at * 101 + at / 7) as u8).collect()
}

/// Reading and writing by cells gives the same as one element after the other.
fn agrees(grid: &Grid, item_size: usize, cells: impl Fn() -> Cells, indices: &[Vec<u64>]) {
    for pieces in [false, true] {
        let found = read(grid, item_size, &cells, pieces);
        assert_eq!(found, expect_read(grid, item_size, indices));
    }
    let given = noise(indices.len() * item_size);
    assert_eq!(
        write(grid, item_size, cells(), &given),
        expect_written(grid, item_size, indices, &given)
    );
}

const ITEM_SIZES: [usize; 7] = [1, 2, 3, 4, 8, 16, 24];

proptest! {
    #[test]
    fn selections_do_what_element_by_element_does(
        axes in prop::collection::vec(along(), 0..4),
        item_size in prop::sample::select(&ITEM_SIZES[..]),
    ) {
        let grid = grid_of(&axes);
        let selection = Selection::new(axes.iter().map(|along| along.axis.clone()).collect());
        let indices = combinations(&axes);
        let cells = || selection.cells(&grid).unwrap();
        agrees(&grid, item_size, cells, &indices);
        let partial = |(index, footprint): (ChunkIndex, super::Footprint)| {
            !footprint.covers(grid.clipped_region(&index).shape())
        };
        prop_assert!(selection.cuts_chunks(&grid) || !cells().any(partial));
    }

    #[test]
    fn points_do_what_element_by_element_does(
        axes in prop::collection::vec((1u64..9, 1u64..5), 1..4),
        seeds in prop::collection::vec(0u64..1_000_000, 0..40),
        item_size in prop::sample::select(&ITEM_SIZES[..]),
    ) {
        let (shape, chunk): (Vec<u64>, Vec<u64>) = axes.into_iter().unzip();
        let grid = Grid::new(&shape, &chunk).unwrap();
        let coordinates: Vec<Vec<u64>> = shape
            .iter()
            .enumerate()
            .map(|(axis, extent)| seeds.iter().map(|seed| (seed >> (axis * 4)) % extent).collect())
            .collect();
        let indices: Vec<Vec<u64>> = (0..seeds.len())
            .map(|point| coordinates.iter().map(|axis| axis[point]).collect())
            .collect();
        let points = Points::new(coordinates).unwrap();
        agrees(&grid, item_size, || points.cells(&grid).unwrap(), &indices);
    }
}

#[test]
fn evenly_spaced_lists_become_ranges() {
    assert_eq!(Axis::list(vec![3, 5, 7]), Axis::range(3, 2, 3).unwrap());
    assert_eq!(Axis::list(vec![4]), Axis::index(4));
    assert_eq!(Axis::list(Vec::new()).len(), 0);
    assert_ne!(Axis::list(vec![3, 3]), Axis::range(3, 1, 2).unwrap());
    assert_eq!(Axis::list(vec![7, 5, 3]).len(), 3);
}

#[test]
fn impossible_ranges_are_refused() {
    assert!(Axis::range(0, 0, 1).is_err(), "no step");
    assert!(Axis::range(u64::MAX, 1, 1).is_err(), "no end");
    assert!(Axis::range(1, u64::MAX / 2, 4).is_err(), "overflow");
}

#[test]
fn positions_outside_the_array_are_named() {
    let grid = Grid::new(&[4, 10], &[2, 3]).unwrap();
    let beyond = Selection::new(vec![Axis::index(3), Axis::list(vec![9, 2, 12])]);
    let error = beyond.cells(&grid).unwrap_err().to_string();
    assert!(error.contains("index 12 is out of bounds for axis 1 with size 10"), "{error}");
    let points = Points::new(vec![vec![0, 4], vec![0, 0]]).unwrap();
    let error = points.cells(&grid).unwrap_err().to_string();
    assert!(error.contains("index 4 is out of bounds for axis 0 with size 4"), "{error}");
    assert!(Selection::new(vec![Axis::index(0)]).cells(&grid).is_err(), "another rank");
    assert!(Points::new(vec![vec![0], vec![0, 0]]).is_err(), "uneven");
}

#[test]
fn cells_of_an_endless_array_come_one_by_one() {
    let grid = Grid::new(&[1 << 62, 1 << 62], &[1, 7]).unwrap();
    let far = Axis::range(3, 1 << 40, 1 << 20).unwrap();
    let selection = Selection::new(vec![far, Axis::range(0, 1 << 59, 8).unwrap()]);
    let found: Vec<ChunkIndex> =
        selection.cells(&grid).unwrap().take(9).map(|(index, _)| index).collect();
    assert_eq!(found[0], [3, 0]);
    assert_eq!(found[1], [3, (1 << 59) / 7]);
    assert_eq!(found[8], [3 + (1 << 40), 0]);
}

#[test]
fn an_array_without_axes_has_one_element() {
    let grid = Grid::new(&[], &[]).unwrap();
    let cells = || Selection::new(Vec::new()).cells(&grid).unwrap();
    assert_eq!(read(&grid, 4, cells, false), array_of(&grid, 4));
    let points = || Points::new(Vec::new()).unwrap().cells(&grid).unwrap();
    assert_eq!(read(&grid, 4, points, false), array_of(&grid, 4));
    assert!(cells().next().unwrap().1.is_whole_chunk());
}

#[test]
fn an_output_of_another_shape_is_refused() {
    let grid = Grid::new(&[4], &[2]).unwrap();
    let mut output = Output::new(vec![0; 3], &[3], 1).unwrap();
    let selection = Selection::new(vec![Axis::range(0, 2, 2).unwrap()]);
    assert!(output.views_of(selection.cells(&grid).unwrap()).is_err());
}

#[test]
fn one_element_is_set_wherever_it_is_selected() {
    let grid = Grid::new(&[5], &[5]).unwrap();
    let selection = Selection::new(vec![Axis::list(vec![4, 1, 4])]);
    let (_, footprint) = selection.cells(&grid).unwrap().next().unwrap();
    let mut chunk = vec![0; 10];
    footprint.scatter_one(&[7, 8], &[3], &mut chunk).unwrap();
    assert_eq!(chunk, [0, 0, 7, 8, 0, 0, 0, 0, 7, 8]);
    assert!(footprint.scatter_one(&[7], &[3], &mut chunk).is_err(), "another size");
}

#[test]
fn a_box_that_is_no_part_of_the_chunk_does_no_harm() {
    let grid = Grid::new(&[4, 4], &[4, 4]).unwrap();
    let points = Points::new(vec![vec![3, 1], vec![2, 1]]).unwrap();
    let combined = Selection::new(vec![Axis::list(vec![3, 1]), Axis::range(1, 2, 2).unwrap()]);
    for cells in [points.cells(&grid).unwrap(), combined.cells(&grid).unwrap()] {
        let shape = cells.shape().to_vec();
        let bytes = Region::whole(&shape).num_bytes(1).unwrap();
        let mut output = Output::new(vec![7; bytes], &shape, 1).unwrap();
        let (_, mut view) = output.views_of(cells).unwrap().next().unwrap();
        // Moved, beyond, of another rank, and larger than memory.
        view.write_box(&[1; 16], &Region::new([1, 0], [4, 4]).unwrap()).unwrap();
        view.write_box(&[1; 16], &Region::new([4, 4], [4, 4]).unwrap()).unwrap();
        assert!(view.write_box(&[1; 4], &Region::whole(&[4])).is_err());
        // For axes only the wanted part counts; points are numbered within the box.
        let huge = view.fill_box(&[1], &Region::whole(&[1 << 40, 1 << 40]));
        assert_eq!(huge.is_ok(), shape.len() == 2);
        drop(view);
        let found = output.into_memory().unwrap();
        assert!(found.contains(&1), "the moved box was written");
    }
}
