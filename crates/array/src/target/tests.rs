use proptest::prelude::*;

use super::{Output, OutputMemory, View};
use crate::{Buffer, Grid, Region};

/// Bytes held inline: they move with the value, which must not matter.
struct Inline([u8; 4]);

impl OutputMemory for Inline {
    fn as_mut_slice(&mut self) -> &mut [u8] {
        &mut self.0
    }
}

fn is_sent_and_owned<T: Send + 'static>() {}

#[test]
fn views_are_sent_to_threads_without_a_scope() {
    is_sent_and_owned::<View>();
    let grid = Grid::new(&[64, 48], &[16, 16]).unwrap();
    let region = Region::whole(&[64, 48]);
    let memory = Buffer::zeroed(64 * 48).unwrap();
    let mut output = Output::new(memory, region.shape(), 1).unwrap();
    let threads: Vec<_> = output
        .views(&grid, &region)
        .unwrap()
        .map(|(index, mut view)| {
            std::thread::spawn(move || {
                let value = (index[0] * 3 + index[1]) as u8;
                view.write_from(&[value; 256], &[16, 16]).unwrap();
            })
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    let memory = output.into_memory().unwrap();
    for (i, &byte) in memory.iter().enumerate() {
        assert_eq!(usize::from(byte), i / 48 / 16 * 3 + i % 48 / 16);
    }
}

#[test]
fn views_can_be_taken_once_and_must_be_dropped_before_the_memory_returns() {
    let grid = Grid::new(&[4], &[2]).unwrap();
    let region = Region::whole(&[4]);
    let mut output = Output::new(Inline([0; 4]), &[4], 1).unwrap();
    let mut views = output.views(&grid, &region).unwrap();
    assert!(output.views(&grid, &region).is_err());
    let (_, mut view) = views.next().unwrap();
    view.whole_chunk_mut().unwrap().copy_from_slice(&[1, 2]);
    drop(views);
    drop(view);
    assert_eq!(output.into_memory().unwrap().0, [1, 2, 0, 0]);

    let mut output = Output::new(vec![0; 4], &[4], 1).unwrap();
    let views = output.views(&grid, &region).unwrap();
    assert!(output.into_memory().is_err());
    let (_, mut orphan) = views.last().unwrap();
    orphan.fill(&[9]).unwrap();
}

#[test]
fn outputs_that_do_not_fit_are_refused() {
    assert!(Output::new(vec![0; 7], &[2, 2], 2).is_err());
    let grid = Grid::new(&[4, 4], &[2, 2]).unwrap();
    let mut output = Output::new(vec![0; 8], &[2, 2], 2).unwrap();
    assert!(output.views(&grid, &Region::whole(&[4, 4])).is_err(), "another shape");
    assert!(output.views(&grid, &Region::new([3, 3], [2, 2]).unwrap()).is_err(), "outside");
    let (_, mut view) =
        output.views(&grid, &Region::new([1, 1], [2, 2]).unwrap()).unwrap().next().unwrap();
    assert!(view.write_from(&[0; 7], &[2, 2]).is_err(), "wrong length");
    assert!(view.write_from(&[0; 8], &[4]).is_err(), "wrong rank");
    assert!(view.write_from(&[0; 2], &[1, 1]).is_ok(), "a box with nothing wanted");
    assert!(view.fill(&[0]).is_err(), "wrong element");
}

#[test]
fn only_whole_and_contiguous_chunks_are_lent_as_slices() {
    let grid = Grid::new(&[4, 4], &[2, 4]).unwrap();
    let contiguous = |region: Region| {
        let memory = vec![0; region.num_bytes(1).unwrap()];
        let mut output = Output::new(memory, region.shape(), 1).unwrap();
        let views = output.views(&grid, &region).unwrap();
        views.map(|(_, mut view)| view.whole_chunk_mut().map(|s| s.len())).collect::<Vec<_>>()
    };
    assert_eq!(contiguous(Region::whole(&[4, 4])), [Some(8), Some(8)]);
    assert_eq!(contiguous(Region::new([1, 1], [2, 2]).unwrap()), [None, None]);
    let columns = Grid::new(&[4, 4], &[4, 2]).unwrap();
    let mut output = Output::new(vec![0; 16], &[4, 4], 1).unwrap();
    let mut views = output.views(&columns, &Region::whole(&[4, 4])).unwrap();
    assert!(views.next().unwrap().1.whole_chunk_mut().is_none());
}

proptest! {
    #[test]
    fn a_region_read_chunk_by_chunk_is_the_region(
        dimensions in prop::collection::vec((1u64..8, 1u64..4, 0u64..8, 0u64..8), 0..4),
        item_size in prop::sample::select(vec![1usize, 2, 3, 8]),
    ) {
        let array_shape: Vec<u64> = dimensions.iter().map(|d| d.0).collect();
        let chunk_shape: Vec<u64> = dimensions.iter().map(|d| d.1).collect();
        let origin: Vec<u64> = dimensions.iter().map(|d| d.2.min(d.0)).collect();
        let shape: Vec<u64> = dimensions.iter().map(|d| d.3.min(d.0 - d.2.min(d.0))).collect();
        let grid = Grid::new(&array_shape, &chunk_shape).unwrap();
        let region = Region::new(origin, shape.clone()).unwrap();

        let whole = Region::whole(&array_shape);
        let len = whole.num_bytes(item_size).unwrap();
        let array: Vec<u8> = (0..len).map(|i| (i * 5 + i / 253) as u8).collect();
        let mut expected = vec![0; region.num_bytes(item_size).unwrap()];
        let zero = vec![0; shape.len()];
        crate::copy_region(&array, &array_shape, &region, &mut expected, &shape, &zero, item_size)
            .unwrap();

        let mut output = Output::new(vec![0xEE; expected.len()], &shape, item_size).unwrap();
        for (index, mut view) in output.views(&grid, &region).unwrap() {
            let clipped = grid.clipped_region(&index);
            let mut chunk = vec![0; Region::whole(&chunk_shape).num_bytes(item_size).unwrap()];
            crate::copy_region(
                &array, &array_shape, &clipped, &mut chunk, &chunk_shape, &zero, item_size,
            ).unwrap();
            view.write_from(&chunk, &chunk_shape).unwrap();
        }
        prop_assert_eq!(output.into_memory().unwrap(), expected);
    }
}

#[test]
fn the_wanted_blocks_are_those_with_a_wanted_byte() {
    let (shape, item_size) = ([6, 5, 7], 4);
    let grid = Grid::new(&shape, &shape).unwrap();
    for text in ["0:6,0:5,0:7", "2:4,1:3,3:4", "5:6,4:5,6:7", "0:6,2:3,0:1", "1:5,0:5,0:7"] {
        let region = Region::parse(text, &shape).unwrap();
        let memory = vec![0; region.num_bytes(item_size).unwrap()];
        let mut output = Output::new(memory, region.shape(), item_size).unwrap();
        let (_, view) = output.views(&grid, &region).unwrap().next().unwrap();
        for block_bytes in [1, 3, 4, 28, 100, 139, 140, 839, 840, 10_000] {
            let mut expected: Vec<usize> = Vec::new();
            for element in 0..shape.iter().product::<u64>() {
                let index = [element / 35, element / 7 % 5, element % 7];
                let inside = Region::new(index, [1, 1, 1]).unwrap();
                if region.contains(&inside) {
                    let start = element as usize * item_size;
                    expected.extend(start / block_bytes..=(start + item_size - 1) / block_bytes);
                }
            }
            expected.dedup();
            assert_eq!(view.blocks_wanted(block_bytes).unwrap(), expected, "{text} {block_bytes}");
        }
    }
}
