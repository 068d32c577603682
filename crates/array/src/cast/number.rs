//! Conversion between number types: the value, and whether it is still the same number.
//!
//! All functions here are branch-free, so that a loop over them becomes vector instructions.
//! Integers, `f32` and `f64` are converted directly; the others go through one of them, which holds
//! all of their values.

use std::fmt;

use half::{bf16, f16};

/// An element in memory.
pub(super) trait Number: Copy + fmt::Display {
    /// Its little-endian bytes.
    type Bytes: Copy;

    /// Memory as a slice of such elements.
    fn items(bytes: &[u8]) -> &[Self::Bytes];

    /// Memory as a slice of such elements.
    fn items_mut(bytes: &mut [u8]) -> &mut [Self::Bytes];

    fn from_bytes(bytes: Self::Bytes) -> Self;

    fn into_bytes(self) -> Self::Bytes;
}

/// Conversion to another number. The second value says whether the first may stand for this one.
pub(super) trait To<T> {
    /// To the equal number.
    fn exactly(self) -> (T, bool);

    /// To the nearest number if both are floats, otherwise to the equal one.
    fn nearly(self) -> (T, bool);
}

/// A byte that should be 0 or 1.
#[derive(Clone, Copy)]
pub(super) struct Bool(u8);

impl fmt::Display for Bool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            0 => f.write_str("false"),
            1 => f.write_str("true"),
            other => write!(f, "the byte {other}"),
        }
    }
}

macro_rules! number {
    ($($number:ty: $size:literal, $from:expr, $into:expr;)*) => {$(
        impl Number for $number {
            type Bytes = [u8; $size];

            fn items(bytes: &[u8]) -> &[Self::Bytes] {
                bytes.as_chunks().0
            }

            fn items_mut(bytes: &mut [u8]) -> &mut [Self::Bytes] {
                bytes.as_chunks_mut().0
            }

            #[inline(always)]
            fn from_bytes(bytes: Self::Bytes) -> Self {
                $from(bytes)
            }

            #[inline(always)]
            fn into_bytes(self) -> Self::Bytes {
                $into(self)
            }
        }
    )*};
}

number! {
    Bool: 1, |[byte]: [u8; 1]| Bool(byte), |bool: Bool| [bool.0];
    i8: 1, i8::from_le_bytes, i8::to_le_bytes;
    i16: 2, i16::from_le_bytes, i16::to_le_bytes;
    i32: 4, i32::from_le_bytes, i32::to_le_bytes;
    i64: 8, i64::from_le_bytes, i64::to_le_bytes;
    u8: 1, u8::from_le_bytes, u8::to_le_bytes;
    u16: 2, u16::from_le_bytes, u16::to_le_bytes;
    u32: 4, u32::from_le_bytes, u32::to_le_bytes;
    u64: 8, u64::from_le_bytes, u64::to_le_bytes;
    f16: 2, f16::from_le_bytes, f16::to_le_bytes;
    bf16: 2, bf16::from_le_bytes, bf16::to_le_bytes;
    f32: 4, f32::from_le_bytes, f32::to_le_bytes;
    f64: 8, f64::from_le_bytes, f64::to_le_bytes;
}

/// `impl To<$target> for $source` by one expression that serves both ways.
macro_rules! to {
    ($source:ty, $target:ty, |$value:ident| $both:expr) => {
        to!($source, $target, |$value| $both, $both);
    };
    ($source:ty, $target:ty, |$value:ident| $exactly:expr, $nearly:expr) => {
        impl To<$target> for $source {
            #[inline(always)]
            fn exactly(self) -> ($target, bool) {
                let $value = self;
                $exactly
            }

            #[inline(always)]
            fn nearly(self) -> ($target, bool) {
                let $value = self;
                $nearly
            }
        }
    };
}

macro_rules! integers {
    ($source:ty => $($target:ty),*) => {
        $(to!($source, $target, |value| {
            let cast = value as $target;
            #[allow(unused_comparisons, clippy::allow_attributes, reason = "some are unsigned")]
            let same_sign = (cast < 0) == (value < 0);
            (cast, cast as $source == value && same_sign)
        });)*
        integers!(@float $source => f32, f64);
    };
    (@float $integer:ty => $($float:ty),*) => {$(
        // `as` stops at the largest integer, which as a float may round up to the power of two
        // above it: a float that is not below that power is no integer of this type.
        to!($integer, $float, |value| {
            let cast = value as $float;
            let all_fit = <$integer>::BITS <= <$float>::MANTISSA_DIGITS;
            let below = cast < <$integer>::MAX as $float + 1.0;
            (cast, all_fit || (cast as $integer == value && below))
        });
        to!($float, $integer, |value| {
            let cast = value as $integer;
            (cast, cast as $float == value && value < <$integer>::MAX as $float + 1.0)
        });
    )*};
}

integers!(i8 => i8, i16, i32, i64, u8, u16, u32, u64);
integers!(i16 => i8, i16, i32, i64, u8, u16, u32, u64);
integers!(i32 => i8, i16, i32, i64, u8, u16, u32, u64);
integers!(i64 => i8, i16, i32, i64, u8, u16, u32, u64);
integers!(u8 => i8, i16, i32, i64, u8, u16, u32, u64);
integers!(u16 => i8, i16, i32, i64, u8, u16, u32, u64);
integers!(u32 => i8, i16, i32, i64, u8, u16, u32, u64);
integers!(u64 => i8, i16, i32, i64, u8, u16, u32, u64);

to!(f32, f32, |value| (value, true));
to!(f64, f64, |value| (value, true));
to!(f32, f64, |value| (f64::from(value), true));
to!(f64, f32, |value| narrowed(value, value as f32, f64::from), {
    let cast = value as f32;
    (cast, cast.is_finite() || !value.is_finite())
});

/// Whether a float that was narrowed is still the same number.
#[inline(always)]
fn narrowed<S: PartialEq + Copy, T: Copy>(value: S, cast: T, widen: fn(T) -> S) -> (T, bool) {
    // The one value that does not equal itself is NaN, which every float has.
    #[expect(clippy::eq_op, reason = "it asks for NaN")]
    let nan = value != value;
    (cast, widen(cast) == value || nan)
}

/// The nearest `f32`, rounded to odd: lost digits set the last bit, so that rounding a second time,
/// to a format with two digits less, gives the nearest number of that format.
#[inline(always)]
fn to_odd(value: f64) -> f32 {
    let near = value as f32;
    if f64::from(near) == value || !value.is_finite() {
        return near;
    }
    let beyond = f64::from(near).abs() > value.abs();
    f32::from_bits((near.to_bits() - u32::from(beyond)) | 1)
}

/// Halves go through `f32`.
macro_rules! halves {
    ($($half:ty),*) => {$(
        to!(f32, $half, |value| narrowed(value, <$half>::from_f32(value), f32::from), {
            let cast = <$half>::from_f32(value);
            (cast, cast.is_finite() || !value.is_finite())
        });
        to!(f64, $half, |value| {
            let (middle, first): (f32, bool) = value.exactly();
            let (cast, second): ($half, bool) = middle.exactly();
            (cast, first && second)
        }, {
            let (cast, second): ($half, bool) = to_odd(value).nearly();
            (cast, second)
        });
        to!($half, f16, |value| f32::from(value).exactly(), f32::from(value).nearly());
        to!($half, bf16, |value| f32::from(value).exactly(), f32::from(value).nearly());
        to!($half, Bool, |value| f32::from(value).exactly());
        halves!(@each $half => f32, f64, i8, i16, i32, i64, u8, u16, u32, u64);
        halves!(@from $half => i8, i16, i32, i64, u8, u16, u32, u64);
    )*};
    (@each $half:ty => $($target:ty),*) => {
        $(to!($half, $target, |value| f32::from(value).exactly());)*
    };
    (@from $half:ty => $($source:ty),*) => {
        $(to!($source, $half, |value| {
            let (middle, first): (f32, bool) = value.exactly();
            let (cast, second): ($half, bool) = middle.exactly();
            (cast, first && second)
        });)*
    };
}

halves!(f16, bf16);

/// A bool is the integer 0 or 1.
macro_rules! bools {
    ($($other:ty),*) => {$(
        to!(Bool, $other, |value| {
            let (cast, same): ($other, bool) = value.0.exactly();
            (cast, same && value.0 <= 1)
        });
    )*};
    (@from $($other:ty),*) => {$(
        to!($other, Bool, |value| {
            let (byte, same): (u8, bool) = value.exactly();
            (Bool(byte), same && byte <= 1)
        });
    )*};
}

bools!(i8, i16, i32, i64, u8, u16, u32, u64, f16, bf16, f32, f64);
bools!(@from i8, i16, i32, i64, u8, u16, u32, u64, f32, f64);
to!(Bool, Bool, |value| (value, value.0 <= 1));
