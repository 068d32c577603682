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
