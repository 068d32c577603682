use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

fn mapping(rows: &BTreeMap<u64, u64>) -> Mapping {
    Mapping::from_sorted(rows.keys().copied().collect(), rows.values().copied().collect()).unwrap()
}

#[test]
fn a_supervoxel_without_a_row_is_its_own_body_and_a_retired_one_has_none() {
    let mapping = mapping(&BTreeMap::from([(3, 9), (7, 0)]));
    assert_eq!((mapping.body(3), mapping.body(7), mapping.body(5)), (9, 0, 5));
    assert_eq!((mapping.get(7), mapping.get(5)), (Some(0), None));
    assert_eq!(Mapping::default().body(u64::MAX), u64::MAX);
}

#[test]
fn rows_out_of_order_and_doubles_are_refused() {
    for keys in [vec![2, 1], vec![1, 1]] {
        let error = Mapping::from_sorted(keys, vec![5, 5]).unwrap_err();
        assert!(error.to_string().contains("sorted"), "{error}");
    }
    assert!(Mapping::from_sorted(vec![1], vec![]).is_err());
}

#[test]
fn a_row_takes_at_most_twenty_bytes() {
    let keys: Vec<u64> = (0..100_000).map(|row| row * 977 + row % 13).collect();
    let mapping = Mapping::from_sorted(keys.clone(), keys).unwrap();
    assert!(mapping.bytes() <= 20 * mapping.len(), "{}", mapping.bytes());
}

/// Ids of several sources: few rows are compared, whatever their distances.
#[test]
fn ids_that_are_not_spread_evenly_are_found_with_few_looks() {
    let small = || 1..200_000u64;
    let cases: [(&str, Vec<u64>); 5] = [
        ("even", small().map(|row| row * 977).collect()),
        ("one far away", small().chain([217 << 40]).collect()),
        (
            "two sources",
            small().chain((0..1000).map(|row| (217 << 40) + row * 1_000_003)).collect(),
        ),
        (
            "far away on both sides",
            [0].into_iter().chain(small().map(|row| (1 << 50) + row)).chain([u64::MAX]).collect(),
        ),
        (
            "clusters",
            (0..200u64)
                .flat_map(|at| (0..1000).map(move |row| (at << 40) + row * at.max(1)))
                .collect(),
        ),
    ];
    for (name, keys) in cases {
        let made = Mapping::from_sorted(keys.clone(), keys.clone()).unwrap();
        assert!(made.bytes() <= 20 * made.len(), "{name}: {} bytes", made.bytes());
        for (row, key) in keys.iter().enumerate() {
            let (start, end) = made.buckets.find(*key).unwrap();
            assert!((start..end).contains(&row), "{name}: {row} in {start}..{end}");
            assert!(end - start <= 64, "{name}: {} rows of {key}", end - start);
        }
    }
}

/// Each key is twice the one before: no division makes that even, and memory stays bounded all the same.
#[test]
fn the_memory_of_a_row_is_bounded_for_any_ids() {
    let doubling: Vec<u64> = (0..64).map(|bit| 1 << bit).collect();
    let mut nested: Vec<u64> = Vec::new();
    for bit in 20..63 {
        nested.extend((0..3000u64).map(|row| (1u64 << bit) + row * 3));
    }
    for keys in [doubling, nested] {
        let made = Mapping::from_sorted(keys.clone(), keys.clone()).unwrap();
        // What a mapping of a few rows takes besides does not matter.
        assert!(made.bytes() <= 20 * made.len() + 200, "{} of {}", made.bytes(), made.len());
        for key in keys {
            assert_eq!((made.body(key), made.get(key)), (key, Some(key)));
        }
    }
}

proptest! {
    /// Ids come in clusters: a few near zero, many beyond 2^40, some at the end of the type.
    #[test]
    fn every_lookup_agrees_with_a_tree(
        rows in prop::collection::btree_map(
            prop_oneof![0..50u64, (1u64 << 40)..(1u64 << 40) + 200, u64::MAX - 9..=u64::MAX],
            0..5u64,
            0..120,
        ),
        asked in prop::collection::vec(
            prop_oneof![0..60u64, (1u64 << 40) - 5..(1u64 << 40) + 210, u64::MAX - 12..=u64::MAX],
            0..100,
        ),
    ) {
        let mapping = mapping(&rows);
        let expected: Vec<u64> = asked.iter().map(|id| *rows.get(id).unwrap_or(id)).collect();
        let single: Vec<u64> = asked.iter().map(|&id| mapping.body(id)).collect();
        let mut together = asked;
        mapping.relabel(&mut together);
        prop_assert_eq!(&single, &expected);
        prop_assert_eq!(&together, &expected);
        prop_assert_eq!(mapping.rows().collect::<BTreeMap<_, _>>(), rows);
    }
}
