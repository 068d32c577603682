use proptest::prelude::*;

use super::Region;

fn parsed(text: &str, shape: &[u64]) -> String {
    match Region::parse(text, shape) {
        Ok(region) => region.to_string(),
        Err(error) => format!("error: {error}"),
    }
}

#[test]
fn regions_are_read_as_numpy_reads_them() {
    for (text, shape, expected) in [
        ("0:10,5:20", &[10, 20][..], "0:10,5:20"),
        (":", &[7], "0:7"),
        ("", &[7, 3], "0:7,0:3"),
        ("", &[], ""),
        ("...", &[], ""),
        ("3", &[7], "3:4"),
        ("-1", &[7], "6:7"),
        ("-3:", &[7], "4:7"),
        (":-3", &[7], "0:4"),
        (" 1 : 2 , 3 ", &[7, 7], "1:2,3:4"),
        ("...,1", &[2, 3, 4], "0:2,0:3,1:2"),
        ("1,...", &[2, 3, 4], "1:2,0:3,0:4"),
        ("0,...,1", &[2, 3, 4], "0:1,0:3,1:2"),
        ("0,...,1", &[2, 3], "0:1,1:2"),
        ("1", &[2, 3], "1:2,0:3"),
        ("3:3", &[7], "3:3"),
        ("7:7", &[7], "7:7"),
        (":", &[0], "0:0"),
    ] {
        assert_eq!(parsed(text, shape), expected, "{text} of {shape:?}");
    }
}

#[test]
fn a_wrong_region_says_what_is_wrong() {
    for (text, shape, expected) in [
        ("7", &[7][..], "index 7 is out of bounds, the extent is 7"),
        ("-8", &[7], "index -8 is out of bounds, the extent is 7"),
        ("0:8", &[7], "'0:8' is out of bounds, the extent is 7"),
        ("5:2", &[7], "'5:2' ends before it starts"),
        ("0:6:2", &[7], "has a step"),
        ("a", &[7], "'a' is not an index"),
        ("-+3", &[7], "'-+3' is not an index"),
        ("0,1", &[7], "has 2 dimensions, the array has 1"),
        ("...,...", &[7], "more than one '...'"),
        ("0,,1", &[7, 7, 7], "dimension 1"),
        ("99999999999999999999", &[7], "beyond 2^64"),
    ] {
        let found = parsed(text, shape);
        assert!(found.starts_with("error: ") && found.contains(expected), "{text}: {found}");
    }
}

#[test]
fn a_region_beyond_the_end_of_numbers_is_refused() {
    assert!(Region::new([u64::MAX], [1]).is_err());
    assert!(Region::new([0, 0], [1]).is_err());
    assert_eq!(Region::whole(&[u64::MAX, u64::MAX]).num_elements(), u64::MAX);
    assert!(Region::whole(&[u64::MAX, 2]).num_bytes(8).is_err());
}

#[test]
fn a_region_of_rank_zero_is_one_element() {
    let point = Region::whole(&[]);
    assert!(!point.is_empty());
    assert_eq!(point.num_elements(), 1);
    assert_eq!(point.intersect(&point), Some(point.clone()));
}

fn region() -> impl Strategy<Value = Region> {
    prop::collection::vec((0u64..6, 0u64..6), 2).prop_map(|dimensions| {
        let (origin, shape): (Vec<_>, Vec<_>) = dimensions.into_iter().unzip();
        Region::new(origin, shape).unwrap()
    })
}

fn holds(region: &Region, y: u64, x: u64) -> bool {
    let (origin, end) = (region.origin(), region.end());
    (origin[0]..end[0]).contains(&y) && (origin[1]..end[1]).contains(&x)
}

proptest! {
    #[test]
    fn intersection_and_containment_agree_with_membership(a in region(), b in region()) {
        let common = a.intersect(&b);
        let mut all_of_b_in_a = true;
        for y in 0..12 {
            for x in 0..12 {
                let in_both = holds(&a, y, x) && holds(&b, y, x);
                prop_assert_eq!(common.as_ref().is_some_and(|c| holds(c, y, x)), in_both);
                all_of_b_in_a &= !holds(&b, y, x) || holds(&a, y, x);
            }
        }
        prop_assert_eq!(a.contains(&b), all_of_b_in_a);
    }

    #[test]
    fn what_is_printed_is_read_back(a in region()) {
        prop_assert_eq!(Region::parse(&a.to_string(), &[20, 20]).unwrap(), a);
    }

    #[test]
    fn any_text_is_read_or_refused(text in "[-0-9:,. +a]{0,12}", rank in 0usize..4) {
        let shape = vec![9; rank];
        if let Ok(region) = Region::parse(&text, &shape) {
            prop_assert!(Region::whole(&shape).contains(&region));
        }
    }
}
