use proptest::prelude::*;

use super::*;

fn list(child: DType) -> DType {
    DType::List { child: Box::new(child) }
}

fn fixed(size: u32, child: DType) -> DType {
    DType::FixedSizeList { child: Box::new(child), size }
}

fn words(offsets: &[u32], rest: &[u8]) -> Vec<u8> {
    offsets.iter().flat_map(|offset| offset.to_le_bytes()).chain(rest.iter().copied()).collect()
}

#[test]
fn a_list_is_offsets_in_children_and_then_the_children() {
    let chunk = words(&[0, 2, 2, 3], &[1, 0, 2, 0, 3, 0]);
    let found = decode(&list(DType::Int16), 3, &chunk).unwrap();
    let child = Box::new(Values::Fixed(vec![1, 0, 2, 0, 3, 0]));
    assert_eq!(found, Values::List { offsets: vec![0, 2, 2, 3], child });
    assert_eq!(encode(&list(DType::Int16), &found).unwrap(), chunk);
    let bytes = list_chunk_to_offsets_bytes(&DType::Int16, 3, &chunk).unwrap();
    assert_eq!(bytes, words(&[0, 4, 4, 6], &[1, 0, 2, 0, 3, 0]), "offsets in bytes");
    assert_eq!(list_chunk_from_offsets_bytes(&DType::Int16, 3, &bytes).unwrap(), chunk);
}

#[test]
fn lists_of_strings_say_how_many_there_are() {
    let strings = words(&[0, 1, 3, 3], b"abc");
    let chunk = words(&[0, 2, 3], &strings);
    let bytes = list_chunk_to_offsets_bytes(&DType::String, 2, &chunk).unwrap();
    let first = words(&[2, 0, 1, 3], b"abc");
    let second = words(&[1, 0, 0], b"");
    let (one, both) = (first.len() as u32, (first.len() + second.len()) as u32);
    assert_eq!(bytes, words(&[0, one, both], &[first, second].concat()));
    assert_eq!(list_chunk_from_offsets_bytes(&DType::String, 2, &bytes).unwrap(), chunk);
}

#[test]
fn a_list_of_fixed_size_adds_nothing() {
    let dtype = fixed(2, fixed(3, DType::Bool));
    let chunk = [1, 0, 1, 0, 1, 0, 1, 1, 1, 0, 0, 0];
    let found = decode(&dtype, 2, &chunk).unwrap();
    assert_eq!(encode(&dtype, &found).unwrap(), chunk);
    assert!(decode(&dtype, 3, &chunk).is_err());
    let strings = words(&[0, 1, 2], b"ab");
    let found = decode(&fixed(2, DType::String), 1, &strings).unwrap();
    assert_eq!(encode(&fixed(2, DType::String), &found).unwrap(), strings);
}

#[test]
fn lists_of_nothing_are_counted() {
    let child = fixed(0, DType::Int8);
    let chunk = words(&[0, 5, u32::MAX], &[]);
    let bytes = list_chunk_to_offsets_bytes(&child, 2, &chunk).unwrap();
    assert_eq!(bytes, words(&[0, 4, 8], &words(&[5, u32::MAX - 5], &[])));
    assert_eq!(list_chunk_from_offsets_bytes(&child, 2, &bytes).unwrap(), chunk);
    assert!(decode(&fixed(u32::MAX, DType::Int8), u64::MAX, &[]).is_err());
}

#[test]
fn values_of_another_type_are_not_encoded() {
    let values =
        |offsets: &[u64]| Values::Variable { offsets: offsets.to_vec(), bytes: vec![0xff] };
    assert!(encode(&DType::Binary, &values(&[0, 1])).is_ok());
    assert!(encode(&DType::String, &values(&[0, 1])).is_err(), "no UTF-8");
    assert!(encode(&DType::Int8, &values(&[0, 1])).is_err());
    assert!(encode(&DType::Int16, &Values::Fixed(vec![1])).is_err());
    assert!(encode(&DType::Binary, &Values::Fixed(vec![1])).is_err());
    for offsets in [&[][..], &[0], &[1, 1], &[0, 2], &[0, 1, 0, 1]] {
        assert!(encode(&DType::Binary, &values(offsets)).is_err(), "{offsets:?}");
    }
    let nested = Values::List { offsets: vec![0, 2], child: Box::new(Values::Fixed(vec![1])) };
    assert!(encode(&list(DType::Int8), &nested).is_err(), "a child is missing");
}

#[test]
fn types_that_nest_too_deep_are_refused() {
    let deep = (0..=DEPTH_MAX).fold(DType::Int8, |child, _| fixed(1, child));
    assert_eq!(decode(&deep, 1, &[1]).unwrap_err().kind(), chunkyard_store::ErrorKind::Unsupported);
}

/// A type, and as many values of it as asked for.
fn typed() -> impl Strategy<Value = DType> {
    let leaf = prop::sample::select(vec![
        DType::Bool,
        DType::Int16,
        DType::Float64,
        DType::String,
        DType::Binary,
    ]);
    leaf.prop_recursive(3, 8, 1, |inner| {
        prop_oneof![inner.clone().prop_map(list), (0..4u32, inner).prop_map(|(n, c)| fixed(n, c))]
    })
}

fn values(dtype: &DType, count: u64, seed: &mut impl Iterator<Item = u8>) -> Values {
    let mut offsets = vec![0];
    match dtype {
        DType::String | DType::Binary => {
            offsets.extend((0..count).scan(0, |end, _| {
                *end += u64::from(seed.next().unwrap_or(0) % 4);
                Some(*end)
            }));
            let len = *offsets.last().unwrap() as usize;
            Values::Variable { offsets, bytes: vec![b'x'; len] }
        }
        DType::List { child } => {
            offsets.extend((0..count).scan(0, |end, _| {
                *end += u64::from(seed.next().unwrap_or(0) % 4);
                Some(*end)
            }));
            let end = *offsets.last().unwrap();
            Values::List { offsets, child: Box::new(values(child, end, seed)) }
        }
        DType::FixedSizeList { child, size } => {
            let child = Box::new(values(child, count * u64::from(*size), seed));
            Values::FixedList { size: *size, child }
        }
        leaf => {
            let len = leaf.item_size().unwrap() as u64 * count;
            Values::Fixed((0..len).map(|_| seed.next().unwrap_or(0) & 1).collect())
        }
    }
}

proptest! {
    #[test]
    fn lists_of_anything_round_trip(
        child in typed(),
        count in 0..5u64,
        seed in prop::collection::vec(any::<u8>(), 200),
    ) {
        let dtype = list(child.clone());
        let values = values(&dtype, count, &mut seed.into_iter());
        let chunk = encode(&dtype, &values).unwrap();
        prop_assert_eq!(decode(&dtype, count, &chunk).unwrap(), values);
        let bytes = list_chunk_to_offsets_bytes(&child, count, &chunk).unwrap();
        prop_assert_eq!(list_chunk_from_offsets_bytes(&child, count, &bytes).unwrap(), chunk);
    }

    #[test]
    fn decoded_bytes_encode_to_the_same_bytes(
        dtype in typed(),
        count in 0..4u64,
        bytes in prop::collection::vec(0..3u8, 0..48),
    ) {
        if let Ok(values) = decode(&dtype, count, &bytes) {
            prop_assert_eq!(encode(&dtype, &values).unwrap(), bytes.clone());
        }
        if let Ok(chunk) = list_chunk_from_offsets_bytes(&dtype, count, &bytes) {
            prop_assert_eq!(list_chunk_to_offsets_bytes(&dtype, count, &chunk).unwrap(), bytes);
        }
    }
}
