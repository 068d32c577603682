//! Casts against arithmetic without types: a number is ±m·2ᵉ, and a type has it or not.

use half::{bf16, f16};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::Cast;
use crate::{DType, Error, Result};

const REALS: [&str; 13] = [
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16",
    "bfloat16", "float32", "float64",
];

fn dtype(json: impl Into<Value>) -> DType {
    DType::parse(&json.into()).unwrap()
}

fn cast(source: &str, target: &str, rounding: bool) -> Option<Cast> {
    Cast::new(&dtype(source), &dtype(target), rounding).unwrap()
}

fn apply(cast: &Cast, source: &[u8]) -> Result<Vec<u8>> {
    let count = source.len() / cast.source().item_size().unwrap();
    let mut target = vec![0xEE; count * cast.target().item_size().unwrap()];
    cast.apply(source, &mut target).map(|()| target)
}

/// A number without a type.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Exact {
    Nan,
    Infinite {
        negative: bool,
    },
    /// `odd` is odd, or zero with exponent zero.
    Finite {
        negative: bool,
        odd: u128,
        exponent: i32,
    },
}

fn finite(negative: bool, magnitude: u128, exponent: i32) -> Exact {
    if magnitude == 0 {
        return Exact::Finite { negative, odd: 0, exponent: 0 };
    }
    let zeros = magnitude.trailing_zeros();
    Exact::Finite { negative, odd: magnitude >> zeros, exponent: exponent + zeros as i32 }
}

fn of_integer(value: i128) -> Exact {
    finite(value < 0, value.unsigned_abs(), 0)
}

fn of_float(value: f64) -> Exact {
    let bits = value.to_bits();
    let (negative, field, fraction) =
        (value.is_sign_negative(), (bits >> 52 & 0x7ff) as i32, bits & ((1 << 52) - 1));
    match field {
        0x7ff if fraction != 0 => Exact::Nan,
        0x7ff => Exact::Infinite { negative },
        0 => finite(negative, fraction.into(), -1074),
        _ => finite(negative, (fraction | 1 << 52).into(), field - 1075),
    }
}

/// Digits, lowest exponent of a digit, exponent that is too large.
fn float_format(name: &str) -> Option<(u32, i32, i32)> {
    match name {
        "float16" => Some((11, -24, 16)),
        "bfloat16" => Some((8, -133, 128)),
        "float32" => Some((24, -149, 128)),
        "float64" => Some((53, -1074, 1024)),
        _ => None,
    }
}

fn integer_range(name: &str) -> (i128, i128) {
    match name {
        "bool" => (0, 1),
        "int8" => (i8::MIN.into(), i8::MAX.into()),
        "int16" => (i16::MIN.into(), i16::MAX.into()),
        "int32" => (i32::MIN.into(), i32::MAX.into()),
        "int64" => (i64::MIN.into(), i64::MAX.into()),
        "uint8" => (0, u8::MAX.into()),
        "uint16" => (0, u16::MAX.into()),
        "uint32" => (0, u32::MAX.into()),
        "uint64" => (0, u64::MAX.into()),
        other => panic!("{other}"),
    }
}

fn has(name: &str, number: Exact) -> bool {
    let Exact::Finite { negative, odd, exponent } = number else {
        return float_format(name).is_some();
    };
    let digits = (128 - odd.leading_zeros()) as i32;
    match float_format(name) {
        _ if odd == 0 => true,
        Some((precision, lowest, too_large)) => {
            digits <= precision as i32 && exponent >= lowest && digits + exponent <= too_large
        }
        None => {
            let magnitude = odd.checked_shl(exponent.max(0) as u32);
            let (least, most) = integer_range(name);
            exponent >= 0
                && digits + exponent <= 64
                && magnitude.is_some_and(|magnitude| {
                    let value = if negative { -(magnitude as i128) } else { magnitude as i128 };
                    (least..=most).contains(&value)
                })
        }
    }
}

fn read(name: &str, bytes: &[u8]) -> Exact {
    let mut wide = [0; 16];
    wide[..bytes.len()].copy_from_slice(bytes);
    let raw = u128::from_le_bytes(wide);
    match name {
        "float16" => of_float(f16::from_bits(raw as u16).to_f64()),
        "bfloat16" => of_float(bf16::from_bits(raw as u16).to_f64()),
        "float32" => of_float(f32::from_bits(raw as u32).into()),
        "float64" => of_float(f64::from_bits(raw as u64)),
        _ if name.starts_with("int") => {
            let unused = 128 - 8 * bytes.len() as u32;
            of_integer((raw << unused) as i128 >> unused)
        }
        _ => of_integer(raw as i128),
    }
}

/// Integers have one zero.
fn as_seen_by(name: &str, number: Exact) -> Exact {
    match number {
        Exact::Finite { odd: 0, .. } if float_format(name).is_none() => finite(false, 0, 0),
        other => other,
    }
}

/// One value through one cast: it is the same number, or the target has no such number.
fn check(cast: &Cast, source: &str, target: &str, bytes: &[u8]) {
    let number = read(source, bytes);
    let sound = source != "bool" || bytes[0] <= 1;
    match apply(cast, bytes) {
        Ok(found) => {
            assert!(sound, "{source} {bytes:?}");
            let seen = as_seen_by(target, number);
            assert_eq!(read(target, &found), seen, "{source} {bytes:?} to {target}");
        }
        Err(error) => {
            let refused = !sound || !has(target, number);
            assert!(refused && matches!(error, Error::Invalid { .. }), "{bytes:?}: {error}");
        }
    }
}

#[test]
fn every_value_of_two_bytes_becomes_itself_or_an_error() {
    for source in REALS {
        let size = dtype(source).item_size().unwrap();
        if size > 2 {
            continue;
        }
        for target in REALS {
            let Some(cast) = cast(source, target, false) else { continue };
            for bits in 0..1u32 << (8 * size) {
                check(&cast, source, target, &bits.to_le_bytes()[..size]);
            }
        }
    }
}

/// Values at which something changes for some type.
fn edges() -> Vec<f64> {
    let mut edges =
        vec![0.0, 0.5, 1.5, f64::MAX, f64::MIN_POSITIVE, 5e-324, 65504.0, 65519.0, 65520.0];
    edges.extend([f64::from(f32::MAX), f64::from(f32::MIN_POSITIVE), 3.3895313892515355e38]);
    edges.extend((-1074..1024).step_by(7).map(|exponent| 2f64.powi(exponent)));
    for bits in [1, 7, 8, 11, 15, 16, 24, 31, 32, 53, 63, 64] {
        edges.extend([2f64.powi(bits), 2f64.powi(bits) - 1.0, 2f64.powi(bits) + 1.0]);
    }
    let steps = edges.clone().into_iter().flat_map(|edge| [edge.next_up(), edge.next_down()]);
    edges.extend(steps);
    edges.extend([f64::INFINITY, f64::NAN]);
    edges.extend(edges.clone().into_iter().map(|edge| -edge));
    edges
}

/// The bytes of all values of a type that are near `value`.
fn nearest(name: &str, value: f64) -> Vec<Vec<u8>> {
    let around = |near: i128| {
        let (least, most) = integer_range(name);
        let size = dtype(name).item_size().unwrap();
        let near = (near.clamp(least, most) - 1)..=(near.clamp(least, most) + 1);
        near.filter(|value| (least..=most).contains(value))
            .map(|value| value.to_le_bytes()[..size].to_vec())
            .collect()
    };
    match name {
        "float16" => vec![f16::from_f64(value).to_le_bytes().to_vec()],
        "bfloat16" => vec![bf16::from_f64(value).to_le_bytes().to_vec()],
        "float32" => vec![(value as f32).to_le_bytes().to_vec()],
        "float64" => vec![value.to_le_bytes().to_vec()],
        _ => around(value as i128),
    }
}

#[test]
fn every_edge_of_every_type_becomes_itself_or_an_error() {
    for source in REALS {
        for target in REALS {
            let Some(cast) = cast(source, target, false) else {
                assert_eq!(source, target);
                continue;
            };
            for bytes in edges().into_iter().flat_map(|edge| nearest(source, edge)) {
                check(&cast, source, target, &bytes);
            }
        }
    }
}

proptest! {
    #[test]
    fn any_bits_become_the_same_number_or_an_error(
        bits: u64,
        shift in 0u32..64,
        source in prop::sample::select(&REALS[..]),
        target in prop::sample::select(&REALS[..]),
    ) {
        if let Some(cast) = cast(source, target, false) {
            let size = cast.source().item_size().unwrap();
            // Small numbers and short fractions are where most casts succeed.
            for bits in [bits, bits >> shift, bits << shift, (bits as i64 >> shift) as u64] {
                check(&cast, source, target, &bits.to_le_bytes()[..size]);
            }
        }
    }

    #[test]
    fn rounding_gives_the_nearest_float_and_never_infinity(bits: u64, exponent in -160i32..140) {
        let scaled = f64::from_bits(bits & !(0x7ff << 52) | 0x3ff << 52) * 2f64.powi(exponent);
        for value in [f64::from_bits(bits), scaled] {
            for target in ["float16", "bfloat16", "float32"] {
                let found = apply(&cast("float64", target, true).unwrap(), &value.to_le_bytes());
                let (precision, lowest, too_large) = float_format(target).unwrap();
                let nearest = round(value, precision, lowest);
                match found {
                    Ok(found) => prop_assert_eq!(read(target, &found), of_float(nearest)),
                    Err(_) => prop_assert!(value.is_finite() && nearest.abs() >= 2f64.powi(too_large)),
                }
            }
        }
    }

    #[test]
    fn times_in_another_unit_are_the_same_times(value: i64, shift in 0u32..64, a in 0usize..13, b in 0usize..13, n in 1u32..99, m in 1u32..99) {
        let value = value >> shift;
        let (source, target) = (time("datetime", a, n), time("datetime", b, m));
        let Ok(cast) = Cast::new(&dtype(source), &dtype(target), false) else {
            prop_assert_eq!(a < 2, b >= 2);
            return Ok(());
        };
        let Some(cast) = cast else { return Ok(()) };
        let (from, to) = (UNITS[a].1 * i128::from(n), UNITS[b].1 * i128::from(m));
        // A product that is too large for 128 bits is too large for 64 after any division here.
        let whole = i128::from(value).checked_mul(from).filter(|product| product % to == 0);
        let expected = whole.and_then(|product| i64::try_from(product / to).ok());
        let found = apply(&cast, &value.to_le_bytes()).ok();
        if from.checked_mul(1 << 63).is_some() {
            prop_assert_eq!(found, expected.map(|value| value.to_le_bytes().to_vec()));
        }
    }
}

/// To the nearest multiple of the last digit, ties to even, in `f64` whose range is wider.
fn round(value: f64, precision: u32, lowest: i32) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return value;
    }
    let Exact::Finite { odd, exponent, .. } = of_float(value) else { return value };
    let top = 128 - odd.leading_zeros() as i32 + exponent;
    let digit = (top - precision as i32).max(lowest);
    if digit < -1000 || digit <= exponent {
        return value;
    }
    let unit = 2f64.powi(digit.max(-1022));
    (value / unit).round_ties_even() * unit
}

const UNITS: [(&str, i128); 13] = [
    ("Y", 12),
    ("M", 1),
    ("W", 604_800_000_000_000_000_000_000),
    ("D", 86_400_000_000_000_000_000_000),
    ("h", 3_600_000_000_000_000_000_000),
    ("m", 60_000_000_000_000_000_000),
    ("s", 1_000_000_000_000_000_000),
    ("ms", 1_000_000_000_000_000),
    ("us", 1_000_000_000_000),
    ("ns", 1_000_000_000),
    ("ps", 1_000_000),
    ("fs", 1_000),
    ("as", 1),
];

fn time(kind: &str, unit: usize, scale: u32) -> Value {
    let configuration = json!({"unit": UNITS[unit].0, "scale_factor": scale});
    json!({"name": format!("numpy.{kind}64"), "configuration": configuration})
}

#[test]
fn times_keep_nat_and_refuse_what_is_not_whole() {
    let cast = |from, to| Cast::new(&dtype(from), &dtype(to), false).unwrap().unwrap();
    let (second, nano, week) =
        (time("datetime", 6, 1), time("datetime", 9, 1), time("datetime", 2, 1));
    let finer = cast(second.clone(), nano.clone());
    let one = |cast: &Cast, value: i64| {
        apply(cast, &value.to_le_bytes()).ok().map(|b| i64::from_le_bytes(b.try_into().unwrap()))
    };
    assert_eq!(one(&finer, 7), Some(7_000_000_000));
    assert_eq!(one(&finer, -1), Some(-1_000_000_000));
    assert_eq!(one(&finer, i64::MIN), Some(i64::MIN), "NaT");
    assert_eq!(one(&finer, 9_223_372_037), None, "the year 2262");
    let coarser = cast(nano, second);
    assert_eq!(one(&coarser, 7_000_000_000), Some(7));
    assert_eq!(one(&coarser, 7_000_000_001), None);
    let far = cast(week.clone(), time("datetime", 12, 1));
    assert_eq!((one(&far, 0), one(&far, 1), one(&far, i64::MIN)), (Some(0), None, Some(i64::MIN)));
    let back = cast(time("datetime", 12, 1), week);
    assert_eq!((one(&back, 0), one(&back, i64::MAX)), (Some(0), None));
    assert_eq!(one(&cast(time("timedelta", 0, 1), time("timedelta", 1, 5)), 5), Some(12));
    let error = apply(&coarser, &[[0; 8], [1, 0, 0, 0, 0, 0, 0, 0]].concat()).unwrap_err();
    assert!(error.to_string().starts_with("element 1 is 1, a numpy.datetime64"), "{error}");
}

#[test]
fn complex_numbers_follow_their_parts() {
    let pair = |re: f64, im: f64| [re.to_le_bytes(), im.to_le_bytes()].concat();
    let floats = |values: &[f32]| values.iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<_>>();
    let narrowed = cast("complex128", "complex64", false).unwrap();
    assert_eq!(apply(&narrowed, &pair(-0.0, 2.5)).unwrap(), floats(&[-0.0, 2.5]));
    let fine = [pair(1.0, 1.0), pair(1.0, 0.1)].concat();
    let error = apply(&narrowed, &fine).unwrap_err().to_string();
    assert_eq!(error, "element 1 is 1 + 0.1i, a complex128 that no complex64 equals");
    let rounded = apply(&cast("complex128", "complex64", true).unwrap(), &fine).unwrap();
    assert_eq!(rounded, floats(&[1.0, 1.0, 1.0, 0.1]));
    // More elements than pass at a time, so that positions are counted across blocks.
    let many: Vec<u8> = (0..2000u16).flat_map(u16::to_le_bytes).collect();
    let widened = apply(&cast("uint16", "complex64", false).unwrap(), &many).unwrap();
    let expected: Vec<f32> = (0..2000u16).flat_map(|value| [value.into(), 0.0]).collect();
    assert_eq!(widened, floats(&expected));
    let back = cast("complex64", "uint16", false).unwrap();
    assert_eq!(apply(&back, &widened).unwrap(), many);
    for (at, value) in [(1501 * 2, 0.5), (1501 * 2 + 1, 1.0)] {
        let mut spoilt = expected.clone();
        spoilt[at] = value;
        let error = apply(&back, &floats(&spoilt)).unwrap_err().to_string();
        assert!(error.starts_with("element 1501 is "), "{error}");
    }
    let real = cast("complex64", "float32", false).unwrap();
    assert_eq!(apply(&real, &floats(&[3.0, -0.0])).unwrap(), floats(&[3.0]));
    assert!(apply(&real, &floats(&[3.0, f32::NAN])).is_err());
    assert!(apply(&cast("float64", "complex64", false).unwrap(), &0.1f64.to_le_bytes()).is_err());
}

#[test]
fn only_numbers_are_cast() {
    let time = time("datetime", 6, 1);
    let generic = json!({"name": "numpy.datetime64", "configuration":
        {"unit": "generic", "scale_factor": 1}});
    let delta =
        json!({"name": "numpy.timedelta64", "configuration": {"unit": "s", "scale_factor": 1}});
    for (source, target) in [
        (json!("string"), json!("int8")),
        (json!("int8"), json!("string")),
        (json!("r8"), json!("uint8")),
        (json!("int64"), time.clone()),
        (time.clone(), json!("int64")),
        (time.clone(), generic),
        (time.clone(), delta),
    ] {
        let error = Cast::new(&dtype(source), &dtype(target), true).unwrap_err();
        assert!(matches!(error, Error::Unsupported { .. }), "{error}");
    }
    for same in [json!("string"), json!("int8"), json!("r24"), time] {
        assert!(Cast::new(&dtype(same.clone()), &dtype(same), false).unwrap().is_none());
    }
    let spelled = Cast::new(&dtype("int8"), &dtype(json!({"name": "int8"})), false);
    assert!(spelled.unwrap().is_none());
}

#[test]
fn memory_of_another_size_is_refused() {
    let cast = cast("uint16", "uint8", false).unwrap();
    for (source, target) in [(3, 1), (4, 1), (4, 3), (0, 1)] {
        assert!(cast.apply(&vec![0; source], &mut vec![0; target]).is_err());
    }
    assert!(cast.apply(&[], &mut []).is_ok());
}

#[test]
fn fill_values_are_cast_too() {
    let fill = |source: Value, target: Value, rounding, value: Value| {
        let cast = Cast::new(&dtype(source), &dtype(target), rounding).unwrap().unwrap();
        cast.fill_value(&serde_json::from_value(value).unwrap())
    };
    for (source, target, value, expected) in [
        ("uint8", "int64", json!(255), json!(255)),
        ("int8", "float32", json!(-1), json!(-1.0)),
        ("float64", "float32", json!("NaN"), json!("NaN")),
        ("float32", "float64", json!("-Infinity"), json!("-Infinity")),
        ("float64", "int16", json!(-7.0), json!(-7)),
        ("bool", "uint8", json!(true), json!(1)),
        ("uint8", "bool", json!(0), json!(false)),
        ("float32", "complex128", json!(1.5), json!([1.5, 0.0])),
        ("float32", "float64", json!(-0.0), json!(-0.0)),
    ] {
        let found = fill(json!(source), json!(target), false, value.clone()).unwrap();
        assert_eq!(found.to_string(), expected.to_string(), "{source} {target} {value}");
    }
    let nat = fill(time("datetime", 6, 1), time("datetime", 9, 1), false, json!("NaT"));
    assert_eq!(nat.unwrap(), json!("NaT"));
    assert!(fill(json!("float64"), json!("float32"), true, json!(0.1)).is_ok());
    let error = fill(json!("float64"), json!("int8"), true, json!("NaN")).unwrap_err();
    assert_eq!(error.to_string(), "the fill value is NaN, a float64 that no int8 equals");
    let error = fill(json!("int16"), json!("int8"), false, json!(1 << 20)).unwrap_err();
    assert!(error.to_string().contains("is not a int16"), "{error}");
}
