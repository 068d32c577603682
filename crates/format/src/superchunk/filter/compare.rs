//! Which elements a comparison holds for.

use std::cmp::Ordering;

use chunkyard_store::{Error, Result};
use half::f16;

use super::{Literal, Relation, Term};
use crate::superchunk::dtype::RowType;
use crate::superchunk::model::Column;

/// The stored number for "not a time".
const NAT: i64 = i64::MIN;

/// Keeps the rows for which the comparison holds. `bytes` are their elements, little-endian.
pub(super) fn hold(kept: &mut [bool], bytes: &[u8], column: &Column, term: &Term) -> Result<()> {
    let numpy = match &column.row {
        RowType::Plain { dtype, .. } => dtype.to_numpy().unwrap_or_default(),
        RowType::Struct(_) => String::new(),
    };
    let kind = numpy.trim_start_matches(['<', '|', '>']).split('[').next().unwrap_or_default();
    let mismatch = || {
        let value = match &term.value {
            Literal::Text(text) => format!("the text {text:?}"),
            Literal::Whole(number) => format!("the number {number}"),
            Literal::Real(number) => format!("the number {number}"),
        };
        Error::invalid(format!("{} has type {numpy}: not comparable with {value}", term.column))
    };
    let (relation, value) = (term.relation, &term.value);
    if let Literal::Text(text) = value {
        let wanted: Vec<u8> = match kind.as_bytes() {
            [b'S' | b'V', ..] => text.bytes().collect(),
            [b'U', ..] => text.chars().flat_map(|c| u32::from(c).to_be_bytes()).collect(),
            _ => return Err(mismatch()),
        };
        let item = usize::try_from(column.item_bytes()).unwrap_or(1).max(1);
        let characters = kind.starts_with('U');
        for (kept, element) in kept.iter_mut().zip(bytes.chunks_exact(item)) {
            let found = if characters { characters_of(element) } else { element.to_vec() };
            *kept &= relation.holds(Some(trimmed(&found).cmp(trimmed(&wanted))));
        }
        return Ok(());
    }
    match kind {
        "b1" => whole::<1>(kept, bytes, relation, value, |[byte]| Some(i128::from(byte != 0))),
        "i1" => whole(kept, bytes, relation, value, |b| Some(i8::from_le_bytes(b).into())),
        "i2" => whole(kept, bytes, relation, value, |b| Some(i16::from_le_bytes(b).into())),
        "i4" => whole(kept, bytes, relation, value, |b| Some(i32::from_le_bytes(b).into())),
        "i8" => whole(kept, bytes, relation, value, |b| Some(i64::from_le_bytes(b).into())),
        "u1" => whole::<1>(kept, bytes, relation, value, |[byte]| Some(byte.into())),
        "u2" => whole(kept, bytes, relation, value, |b| Some(u16::from_le_bytes(b).into())),
        "u4" => whole(kept, bytes, relation, value, |b| Some(u32::from_le_bytes(b).into())),
        "u8" => whole(kept, bytes, relation, value, |b| Some(u64::from_le_bytes(b).into())),
        "M8" | "m8" => whole(kept, bytes, relation, value, |b| {
            Some(i64::from_le_bytes(b)).filter(|count| *count != NAT).map(i128::from)
        }),
        "f2" => real(kept, bytes, relation, value, |b| f16::from_le_bytes(b).to_f64()),
        "f4" => real(kept, bytes, relation, value, |b| f32::from_le_bytes(b).into()),
        "f8" => real(kept, bytes, relation, value, f64::from_le_bytes),
        _ => return Err(mismatch()),
    }
    Ok(())
}

impl Relation {
    /// Whether it holds between two values in this order; `None` means that they do not compare.
    fn holds(self, order: Option<Ordering>) -> bool {
        match self {
            Self::Less => order == Some(Ordering::Less),
            Self::AtMost => matches!(order, Some(Ordering::Less | Ordering::Equal)),
            Self::Equal => order == Some(Ordering::Equal),
            Self::Unequal => order != Some(Ordering::Equal),
            Self::AtLeast => matches!(order, Some(Ordering::Greater | Ordering::Equal)),
            Self::Greater => order == Some(Ordering::Greater),
        }
    }
}

fn each<const N: usize>(kept: &mut [bool], bytes: &[u8], holds: impl Fn([u8; N]) -> bool) {
    for (kept, element) in kept.iter_mut().zip(bytes.as_chunks().0) {
        *kept &= holds(*element);
    }
}

fn whole<const N: usize>(
    kept: &mut [bool],
    bytes: &[u8],
    relation: Relation,
    value: &Literal,
    number: impl Fn([u8; N]) -> Option<i128>,
) {
    each(kept, bytes, |element| {
        relation.holds(number(element).and_then(|found| match value {
            Literal::Whole(wanted) => Some(found.cmp(wanted)),
            Literal::Real(wanted) => whole_to_real(found, *wanted),
            Literal::Text(_) => None,
        }))
    });
}

fn real<const N: usize>(
    kept: &mut [bool],
    bytes: &[u8],
    relation: Relation,
    value: &Literal,
    number: impl Fn([u8; N]) -> f64,
) {
    each(kept, bytes, |element| {
        let found = number(element);
        relation.holds(match value {
            Literal::Whole(wanted) => whole_to_real(*wanted, found).map(Ordering::reverse),
            Literal::Real(wanted) => found.partial_cmp(wanted),
            Literal::Text(_) => None,
        })
    });
}

/// Compares a whole number with a real one, without rounding either.
fn whole_to_real(whole: i128, real: f64) -> Option<Ordering> {
    if real.is_nan() {
        return None;
    }
    // A number out of range becomes the nearest `i128`, which is beyond all values in columns.
    let floor = real.floor();
    Some(whole.cmp(&(floor as i128)).then(match real > floor {
        true => Ordering::Less,
        false => Ordering::Equal,
    }))
}

/// The characters as bytes that compare in the same order.
fn characters_of(element: &[u8]) -> Vec<u8> {
    let characters = element.as_chunks::<4>().0.iter();
    characters.flat_map(|code| u32::from_le_bytes(*code).to_be_bytes()).collect()
}

/// The text without the zeros at its end, which NumPy ignores.
fn trimmed(text: &[u8]) -> &[u8] {
    let zeros = text.iter().rev().take_while(|&&byte| byte == 0).count();
    text.get(..text.len() - zeros).unwrap_or_default()
}
