//! Results that array-format 0.9.0 computes for the same bytes, written down; and a naive loop.

use proptest::prelude::*;

use super::*;

fn le<const N: usize>(items: &[[u8; N]]) -> Vec<u8> {
    items.concat()
}

macro_rules! numbers {
    ($type:ty: $($value:expr),*) => { le(&[$(<$type>::to_le_bytes($value)),*]) };
}

fn words(values: &[&[u8]]) -> Vec<u8> {
    let mut ends = vec![0u32];
    let total = |ends: &Vec<u32>, value: &[u8]| ends.last().unwrap() + value.len() as u32;
    for value in values {
        ends.push(total(&ends, value));
    }
    let offsets = ends.iter().flat_map(|end| end.to_le_bytes());
    offsets.chain(values.concat()).collect()
}

/// Checks a chunk against the extremes and the count that 0.9.0 gives.
fn expect(
    dtype: DType,
    fill: impl Into<Option<FillValue>>,
    bytes: &[u8],
    (range, non_null): (Option<(StatValue, StatValue)>, u64),
) {
    let fill = fill.into();
    let found = of_chunk(&dtype, fill.as_ref(), bytes).unwrap();
    let (min, max) = range.unzip();
    assert_eq!(found, ChunkStats { min, max, non_null }, "{dtype:?} {fill:?} {bytes:?}");
}

#[test]
fn integers_are_counted_as_by_the_peer() {
    use FillValue::{Bool, Float, Int, UInt};
    let int = |min, max| Some((StatValue::Int(min), StatValue::Int(max)));
    let uint = |min, max| Some((StatValue::UInt(min), StatValue::UInt(max)));
    expect(DType::Bool, Bool(false), &[0, 1, 1, 0], (uint(1, 1), 2));
    expect(DType::Bool, Int(1), &[0, 1, 1, 0], (uint(0, 1), 4));
    expect(DType::Int8, UInt(255), &[255, 128, 127, 255], (int(-128, 127), 2));
    expect(DType::Int16, Int(65535), &numbers!(i16: -1, 3, 4), (int(3, 4), 2));
    expect(DType::Int32, Int(7), &numbers!(i32: 7, 7), (None, 0));
    let wide = numbers!(i64: 7, i64::MIN, i64::MAX);
    expect(DType::Int64, Float(7.0), &wide, (int(i64::MIN, i64::MAX), 3));
    expect(DType::UInt8, Int(-1), &[255, 0, 9], (uint(0, 9), 2));
    expect(DType::UInt16, Bool(true), &numbers!(u16: 1, 2), (uint(1, 2), 2));
    expect(DType::UInt32, None, &numbers!(u32: 5, u32::MAX), (uint(5, u32::MAX.into()), 2));
    expect(DType::UInt64, UInt(u64::MAX), &numbers!(u64: u64::MAX, 0, 1), (uint(0, 1), 2));
    let time = |min, max| Some((StatValue::TimestampNs(min), StatValue::TimestampNs(max)));
    let times = numbers!(i64: 10, 20, -5);
    expect(DType::TimestampNs, FillValue::TimestampNs(20), &times, (time(-5, 10), 2));
    expect(DType::TimestampNs, Int(-5), &times, (time(10, 20), 2));
    expect(DType::TimestampNs, UInt(10), &times, (time(-5, 20), 3));
    expect(DType::Int32, None, &[], (None, 0));
}

#[test]
fn floats_are_in_total_order_as_by_the_peer() {
    use FillValue::{Float, Int};
    let bits = |min, max| {
        Some((StatValue::Float(f64::from_bits(min)), StatValue::Float(f64::from_bits(max))))
    };
    let nans = numbers!(u32: 0x7fc0_0000, 0x3fc0_0000, 0x7f80_0000, 0xffc0_0001, 0x7f80_0001);
    let expected = bits(0x3ff8_0000_0000_0000, 0x7ff0_0000_0000_0000);
    expect(DType::Float32, Float(f64::NAN), &nans, (expected, 2));
    let mixed = numbers!(u32: 0x3f80_0000, 0x8000_0000, 0, 0xffc0_0001, 0x7fc0_0002);
    let expected = bits(0xfff8_0000_2000_0000, 0x7ff8_0000_4000_0000);
    expect(DType::Float32, Float(1.0), &mixed, (expected, 4));
    let signalling = numbers!(u32: 0x7f80_0001, 0xff80_0001);
    let expected = bits(0xfff8_0000_2000_0000, 0x7ff8_0000_2000_0000);
    expect(DType::Float32, None, &signalling, (expected, 2));
    let zeros = numbers!(f32: 0.0, -0.0, 2.0, -3.0);
    let expected = Some((StatValue::Float(-3.0), StatValue::Float(2.0)));
    expect(DType::Float32, Float(-0.0), &zeros, (expected, 2));
    let expected = Some((StatValue::Float(2.0), StatValue::Float(3.0)));
    expect(DType::Float32, Int(2), &numbers!(f32: 2.0, 3.0), (expected, 2));
    let expected = bits(0x3fc9_9999_a000_0000, 0x3fc9_9999_a000_0000);
    expect(DType::Float32, Float(0.1), &numbers!(f32: 0.1, 0.2), (expected, 1));
    let expected = bits(0x8000_0000_0000_0000, 0);
    expect(DType::Float64, None, &numbers!(f64: 0.0, -0.0), (expected, 2));
    expect(DType::Float64, Float(f64::NAN), &numbers!(f64: f64::NAN, -f64::NAN), (None, 0));
    let infinite = numbers!(f64: f64::INFINITY, f64::NAN, f64::NEG_INFINITY);
    let expected = bits(0xfff0_0000_0000_0000, 0x7ff8_0000_0000_0000);
    expect(DType::Float64, Float(f64::INFINITY), &infinite, (expected, 2));
}

#[test]
fn strings_are_compared_by_their_bytes_as_by_the_peer() {
    let bytes = |min: &[u8], max: &[u8]| {
        Some((StatValue::Bytes(min.to_vec()), StatValue::Bytes(max.to_vec())))
    };
    let fill = |text: &str| FillValue::String(text.to_owned());
    expect(DType::String, None, &words(&[b"b", b"", b"abc", b"ab"]), (bytes(b"", b"b"), 4));
    let some = words(&[b"b", b"ab", b"abc", b"ab"]);
    expect(DType::String, fill("ab"), &some, (bytes(b"abc", b"b"), 2));
    expect(DType::String, fill(""), &words(&[b"", b""]), (None, 0));
    let binary = words(&[b"x", b"\xff\x00", b"\xff"]);
    expect(DType::Binary, fill("x"), &binary, (bytes(b"\xff", b"\xff\x00"), 2));
    expect(DType::Binary, None, &words(&[b""]), (bytes(b"", b""), 1));
    expect(DType::String, None, &words(&[]), (None, 0));
    expect(DType::String, None, &[], (None, 0));
}

#[test]
fn lists_have_no_statistics() {
    let child = Box::new(DType::Int8);
    expect(DType::List { child: child.clone() }, None, &[1, 2, 3], (None, 0));
    expect(DType::FixedSizeList { child, size: 3 }, None, &[1, 2, 3], (None, 0));
}

#[test]
fn bytes_that_do_not_hold_elements_are_corrupt() {
    let lying: [&[u8]; 5] = [&[1], &[0; 5], &[0, 0, 0, 0, 9, 0, 0, 0], &[4; 12], &[0, 0, 0, 0, 1]];
    for bytes in lying {
        let found = of_chunk(&DType::String, None, bytes);
        assert!(found.is_err(), "{bytes:?} {found:?}");
    }
    let falling = [0u32, 3, 1, 2].map(u32::to_le_bytes).concat();
    assert!(of_chunk(&DType::Binary, None, &[&falling[..], b"ab"].concat()).is_err());
    let error = of_chunk(&DType::Float64, None, &[0; 12]).unwrap_err();
    assert_eq!(error.kind(), chunkyard_store::ErrorKind::Corrupt);
}

#[test]
fn elements_never_written_are_null() {
    let mut all = of_chunk(&DType::Int8, Some(&FillValue::Int(0)), &[5, 0, 251]).unwrap();
    all.merge(of_chunk(&DType::Int8, Some(&FillValue::Int(0)), &[0, 0, 0]).unwrap());
    all.merge(of_chunk(&DType::Int8, Some(&FillValue::Int(0)), &[7, 7, 1]).unwrap());
    let stats = all.to_array_stats("a", &[4, 10]);
    assert_eq!((stats.row_count, stats.null_count), (40, 35));
    assert_eq!((stats.min, stats.max), (Some(StatValue::Int(-5)), Some(StatValue::Int(7))));
    let none = ChunkStats::default().to_array_stats("b", &[u32::MAX; 3]);
    assert_eq!((none.row_count, none.null_count), (u64::MAX, u64::MAX), "more than can be counted");
    assert_eq!(ChunkStats::default().to_array_stats("c", &[]).row_count, 1, "a scalar");
}

/// The definition, element by element.
fn naive(values: &[f32], fill: Option<f64>) -> (Option<f64>, Option<f64>, u64) {
    let fill = fill.map(|fill| fill as f32);
    let is_null = |value: f32| match fill {
        Some(fill) if fill.is_nan() => value.is_nan(),
        Some(fill) => value == fill,
        None => false,
    };
    let kept: Vec<f32> = values.iter().copied().filter(|value| !is_null(*value)).collect();
    let min = kept.iter().copied().min_by(f32::total_cmp).map(f64::from);
    let max = kept.iter().copied().max_by(f32::total_cmp).map(f64::from);
    (min, max, kept.len() as u64)
}

fn float() -> impl Strategy<Value = f32> {
    let special = vec![0.0, -0.0, 1.0, f32::NAN, -f32::NAN, f32::INFINITY, f32::NEG_INFINITY];
    prop_oneof![prop::sample::select(special), any::<u32>().prop_map(f32::from_bits)]
}

proptest! {
    #[test]
    fn floats_agree_with_a_naive_loop(
        values in prop::collection::vec(float(), 0..600),
        fill in prop::option::of(float().prop_map(f64::from)),
        split in 0..600usize,
    ) {
        let (min, max, non_null) = naive(&values, fill);
        let expected = ChunkStats {
            min: min.map(StatValue::Float),
            max: max.map(StatValue::Float),
            non_null,
        };
        let stats = |values: &[f32]| {
            let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
            of_chunk(&DType::Float32, fill.map(FillValue::Float).as_ref(), &bytes).unwrap()
        };
        let found = stats(&values);
        // Merging in two parts compares as float64, in which a signalling NaN has become quiet.
        if !values.iter().any(|value| value.is_nan()) {
            let (front, back) = values.split_at(split.min(values.len()));
            let mut merged = stats(front);
            merged.merge(stats(back));
            prop_assert_eq!(&merged, &found);
        }
        prop_assert_eq!(found, expected);
    }

    #[test]
    fn integers_agree_with_a_naive_loop(
        values in prop::collection::vec(prop_oneof![-3..3i64, any::<i64>()], 0..600),
        fill in prop::option::of(-3..3i64),
    ) {
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        let fill_value = fill.map(FillValue::Int);
        let kept: Vec<i64> = values.iter().copied().filter(|v| Some(*v) != fill).collect();
        let signed = of_chunk(&DType::Int64, fill_value.as_ref(), &bytes).unwrap();
        prop_assert_eq!(signed.min, kept.iter().copied().min().map(StatValue::Int));
        prop_assert_eq!(signed.max, kept.iter().copied().max().map(StatValue::Int));
        prop_assert_eq!(signed.non_null, kept.len() as u64);
        let unsigned = of_chunk(&DType::UInt64, fill_value.as_ref(), &bytes).unwrap();
        let of_bits = |value: &i64| StatValue::UInt(*value as u64);
        prop_assert_eq!(unsigned.min, kept.iter().min_by_key(|v| **v as u64).map(of_bits));
        prop_assert_eq!(unsigned.max, kept.iter().max_by_key(|v| **v as u64).map(of_bits));
    }

    #[test]
    fn any_bytes_are_refused_or_counted(bytes in prop::collection::vec(0..4u8, 0..40)) {
        of_chunk(&DType::String, None, &bytes).ok();
    }
}
