use proptest::prelude::*;

use super::{contiguous_bytes, copy_region, fill_region};
use crate::Region;

/// Byte offsets of the items of `region` in an array of `shape`, in row-major order.
fn offsets(shape: &[u64], region: &Region, item_size: usize) -> Vec<usize> {
    let mut indices = vec![Vec::new()];
    for (&start, &extent) in region.origin().iter().zip(region.shape()) {
        indices = indices
            .into_iter()
            .flat_map(|index: Vec<u64>| {
                (start..start + extent).map(move |i| [&index[..], &[i]].concat())
            })
            .collect();
    }
    let ravel = |index: Vec<u64>| index.iter().zip(shape).fold(0, |at, (&i, &n)| at * n + i);
    indices.into_iter().map(|index| ravel(index) as usize * item_size).collect()
}

fn bytes_of(shape: &[u64], item_size: usize) -> usize {
    shape.iter().product::<u64>() as usize * item_size
}

#[derive(Debug)]
struct Case {
    source_shape: Vec<u64>,
    source_region: Region,
    target_shape: Vec<u64>,
    target_region: Region,
    item_size: usize,
}

fn case() -> impl Strategy<Value = Case> {
    let dimension = (0u64..4, 0u64..3, 0u64..3, 0u64..3, 0u64..3);
    let item_size = prop::sample::select(vec![1usize, 2, 3, 4, 8, 16, 24]);
    (prop::collection::vec(dimension, 0..5), item_size).prop_map(|(dimensions, item_size)| {
        let pick = |f: fn(&(u64, u64, u64, u64, u64)) -> u64| dimensions.iter().map(f).collect();
        let shape: Vec<u64> = pick(|d| d.0);
        let source_origin: Vec<u64> = pick(|d| d.1);
        let target_origin: Vec<u64> = pick(|d| d.3);
        Case {
            source_shape: pick(|d| d.1 + d.0 + d.2),
            source_region: Region::new(source_origin, shape.clone()).unwrap(),
            target_shape: pick(|d| d.3 + d.0 + d.4),
            target_region: Region::new(target_origin, shape).unwrap(),
            item_size,
        }
    })
}

proptest! {
    #[test]
    fn copying_agrees_with_copying_item_by_item(case in case()) {
        let size = case.item_size;
        let source: Vec<u8> =
            (0..bytes_of(&case.source_shape, size)).map(|i| (i * 7 + i / 251) as u8).collect();
        let mut target = vec![0xEE; bytes_of(&case.target_shape, size)];
        let mut expected = target.clone();
        let from = offsets(&case.source_shape, &case.source_region, size);
        let to = offsets(&case.target_shape, &case.target_region, size);
        for (from, to) in from.into_iter().zip(to) {
            expected[to..to + size].copy_from_slice(&source[from..from + size]);
        }
        copy_region(
            &source, &case.source_shape, &case.source_region,
            &mut target, &case.target_shape, case.target_region.origin(), size,
        ).unwrap();
        prop_assert_eq!(target, expected);
    }

    #[test]
    fn filling_agrees_with_filling_item_by_item(case in case(), same in any::<bool>()) {
        let size = case.item_size;
        let element: Vec<u8> = (0..size).map(|i| if same { 7 } else { i as u8 + 1 }).collect();
        let mut target = vec![0xEE; bytes_of(&case.target_shape, size)];
        let mut expected = target.clone();
        for at in offsets(&case.target_shape, &case.target_region, size) {
            expected[at..at + size].copy_from_slice(&element);
        }
        fill_region(&mut target, &case.target_shape, &case.target_region, &element).unwrap();
        prop_assert_eq!(target, expected);
    }
}

#[test]
fn boxes_that_do_not_fit_are_refused() {
    let region = Region::new([1], [3]).unwrap();
    let copy = |source: usize, source_shape: &[u64], target_shape: &[u64], origin: &[u64]| {
        let mut target = vec![0; bytes_of(target_shape, 1)];
        copy_region(&vec![0; source], source_shape, &region, &mut target, target_shape, origin, 1)
    };
    assert!(copy(4, &[4], &[3], &[0]).is_ok());
    assert!(copy(3, &[3], &[3], &[0]).is_err(), "source too small for the region");
    assert!(copy(5, &[4], &[3], &[0]).is_err(), "source bytes do not match its shape");
    assert!(copy(4, &[4], &[3], &[1]).is_err(), "target too small");
    assert!(copy(4, &[4], &[3], &[u64::MAX]).is_err(), "target origin overflows");
    assert!(copy(4, &[4], &[3, 1], &[0, 0]).is_err(), "ranks differ");
    assert!(copy(4, &[4, u64::MAX, u64::MAX], &[3], &[0]).is_err(), "shape overflows");
}

#[test]
fn long_runs_are_filled_to_their_end() {
    let mut target = vec![0; 3 * 100_001];
    fill_region(&mut target, &[100_001], &Region::whole(&[100_001]), &[1, 2, 3]).unwrap();
    assert!(target.chunks(3).all(|item| item == [1, 2, 3]));
}

#[test]
fn a_region_is_lent_only_where_it_is_one_piece() {
    let array: Vec<u8> = (0..24).collect();
    let lent = |text: &str| {
        let region = Region::parse(text, &[4, 6]).unwrap();
        contiguous_bytes(&array, &[4, 6], &region, 1).unwrap()
    };
    assert_eq!(lent("1:3,0:6"), Some(&array[6..18]));
    assert_eq!(lent("2:3,1:4"), Some(&array[13..16]));
    assert_eq!(lent("0:2,0:5"), None);
    assert!(contiguous_bytes(&array[1..], &[4, 6], &Region::whole(&[4, 6]), 1).is_err());
}
