//! Keys as bytes that sort like the columns they are made of.
//!
//! Unsigned integers are big-endian, signed ones too with their sign bit flipped. In text and bytes each
//! `00` becomes `00 ff`, and `00 00` ends them. So no encoding of a column is the beginning of another,
//! and columns follow each other without a separator.

use std::ops::Bound;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type, UInt32Type, UInt64Type};
use arrow_array::{Array, ArrayRef};
use arrow_schema::{DataType, Schema};
use chunkyard_store::{Error, Result};

/// One value of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeyPart {
    /// An unsigned integer, for columns of either width.
    Uint(u64),
    /// A signed integer, for columns of either width.
    Int(i64),
    /// Text.
    Text(String),
    /// Bytes.
    Bytes(Vec<u8>),
}

impl From<u64> for KeyPart {
    fn from(value: u64) -> Self {
        Self::Uint(value)
    }
}

impl From<i64> for KeyPart {
    fn from(value: i64) -> Self {
        Self::Int(value)
    }
}

impl From<&str> for KeyPart {
    fn from(value: &str) -> Self {
        Self::Text(value.to_owned())
    }
}

/// Keys that lie together.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum KeyRange {
    /// All keys.
    #[default]
    All,
    /// Keys that begin with these values.
    Prefix(Vec<KeyPart>),
    /// Keys from the first on, up to the second and without it. Either may name fewer columns than the key
    /// has: then it stands before all keys that begin so.
    Between(Vec<KeyPart>, Vec<KeyPart>),
    /// Keys from this one on.
    From(Vec<KeyPart>),
}

/// Encoded bounds of a [`KeyRange`].
#[derive(Debug, Clone)]
pub(crate) struct Bounds {
    pub(crate) from: Vec<u8>,
    pub(crate) to: Bound<Vec<u8>>,
}

impl Bounds {
    pub(crate) fn keys(&self) -> crate::run::Keys<'_> {
        crate::run::Keys { from: &self.from, to: self.to.as_ref().map(Vec::as_slice) }
    }
}

impl KeyRange {
    /// One key.
    pub fn only(key: impl IntoIterator<Item = KeyPart>) -> Self {
        Self::Prefix(key.into_iter().collect())
    }

    pub(crate) fn encode(&self, key: &Schema) -> Result<Bounds> {
        Ok(match self {
            Self::All => Bounds { from: Vec::new(), to: Bound::Unbounded },
            Self::From(from) => Bounds { from: encode_parts(from, key)?, to: Bound::Unbounded },
            Self::Between(from, to) => Bounds {
                from: encode_parts(from, key)?,
                to: Bound::Excluded(encode_parts(to, key)?),
            },
            Self::Prefix(parts) => {
                let from = encode_parts(parts, key)?;
                let to = successor(&from).map_or(Bound::Unbounded, Bound::Excluded);
                Bounds { from, to }
            }
        })
    }
}

/// The least bytes above everything that begins with `prefix`.
fn successor(prefix: &[u8]) -> Option<Vec<u8>> {
    let last = prefix.iter().rposition(|byte| *byte != 0xff)?;
    let mut end = prefix.get(..=last)?.to_vec();
    if let Some(byte) = end.last_mut() {
        *byte += 1;
    }
    Some(end)
}

fn encode_parts(parts: &[KeyPart], key: &Schema) -> Result<Vec<u8>> {
    if parts.len() > key.fields().len() {
        return Err(Error::Invalid {
            what: format!("a key of {} values in a range has {}", key.fields().len(), parts.len()),
        });
    }
    let mut bytes = Vec::new();
    for (part, field) in parts.iter().zip(key.fields()) {
        let wrong = || Error::Invalid {
            what: format!(
                "the key column {:?} is {}, not {part:?}",
                field.name(),
                field.data_type()
            ),
        };
        match (part, field.data_type()) {
            (KeyPart::Uint(value), DataType::UInt64) => bytes.extend(value.to_be_bytes()),
            (KeyPart::Uint(value), DataType::UInt32) => {
                let value = u32::try_from(*value).map_err(|_| wrong())?;
                bytes.extend(value.to_be_bytes());
            }
            (KeyPart::Int(value), DataType::Int64) => bytes.extend(flip64(*value).to_be_bytes()),
            (KeyPart::Int(value), DataType::Int32) => {
                let value = i32::try_from(*value).map_err(|_| wrong())?;
                bytes.extend(flip32(value).to_be_bytes());
            }
            (KeyPart::Text(text), DataType::Utf8) => escape(text.as_bytes(), &mut bytes),
            (KeyPart::Bytes(value), DataType::Binary) => escape(value, &mut bytes),
            _ => return Err(wrong()),
        }
    }
    Ok(bytes)
}

pub(crate) fn flip64(value: i64) -> u64 {
    value.cast_unsigned() ^ 1 << 63
}

pub(crate) fn flip32(value: i32) -> u32 {
    value.cast_unsigned() ^ 1 << 31
}

pub(crate) fn escape(value: &[u8], out: &mut Vec<u8>) {
    for &byte in value {
        out.push(byte);
        if byte == 0 {
            out.push(0xff);
        }
    }
    out.extend([0, 0]);
}

/// The encoded keys of consecutive rows.
#[derive(Debug, Clone)]
pub(crate) struct KeyColumn {
    bytes: Vec<u8>,
    layout: Layout,
}

#[derive(Debug, Clone)]
enum Layout {
    /// All keys have this many bytes.
    Fixed(usize),
    /// Where each key begins, and where the last one ends.
    Offsets(Vec<usize>),
}

fn width(kind: &DataType) -> Option<usize> {
    match kind {
        DataType::UInt64 | DataType::Int64 => Some(8),
        DataType::UInt32 | DataType::Int32 => Some(4),
        _ => None,
    }
}

impl KeyColumn {
    /// Encodes columns, which have the types of a key and no nulls.
    pub(crate) fn encode(columns: &[ArrayRef]) -> Self {
        let rows = columns.first().map_or(0, |column| column.len());
        let widths: Option<Vec<usize>> = columns.iter().map(|c| width(c.data_type())).collect();
        if let (Some([8]), [column]) = (widths.as_deref(), columns) {
            let bytes = match column.data_type() {
                DataType::Int64 => {
                    let values = column.as_primitive::<Int64Type>().values();
                    values.iter().flat_map(|value| flip64(*value).to_be_bytes()).collect()
                }
                _ => {
                    let values = column.as_primitive::<UInt64Type>().values();
                    values.iter().flat_map(|value| value.to_be_bytes()).collect()
                }
            };
            return Self { bytes, layout: Layout::Fixed(8) };
        }
        let mut bytes = Vec::with_capacity(rows * 16);
        let mut offsets = vec![0];
        let encoders: Vec<Encoder<'_>> = columns.iter().map(Encoder::new).collect();
        for row in 0..rows {
            encoders.iter().for_each(|encoder| encoder.encode(row, &mut bytes));
            if widths.is_none() {
                offsets.push(bytes.len());
            }
        }
        let layout = match widths {
            Some(widths) => Layout::Fixed(widths.iter().sum()),
            None => Layout::Offsets(offsets),
        };
        Self { bytes, layout }
    }

    pub(crate) fn len(&self) -> usize {
        match &self.layout {
            Layout::Fixed(0) => 0,
            Layout::Fixed(width) => self.bytes.len() / width,
            Layout::Offsets(offsets) => offsets.len() - 1,
        }
    }

    pub(crate) fn get(&self, at: usize) -> &[u8] {
        match &self.layout {
            Layout::Fixed(width) => &self.bytes[at * width..][..*width],
            Layout::Offsets(offsets) => &self.bytes[offsets[at]..offsets[at + 1]],
        }
    }

    pub(crate) fn bytes_held(&self) -> usize {
        let offsets = match &self.layout {
            Layout::Fixed(_) => 0,
            Layout::Offsets(offsets) => offsets.capacity() * 8,
        };
        self.bytes.capacity() + offsets
    }

    /// The places of the rows in the order of their keys, the last of equal keys alone; `None` if that is
    /// the order they are in.
    pub(crate) fn sorted(&self) -> Option<Vec<u32>> {
        let count = self.len();
        if (1..count).all(|at| self.get(at - 1) < self.get(at)) {
            return None;
        }
        let mut order: Vec<u32> = if let Layout::Fixed(8) = self.layout {
            // Numbers are compared far faster than bytes behind an index.
            let number = |at: usize| {
                let mut bytes = [0; 8];
                bytes.copy_from_slice(self.get(at));
                u64::from_be_bytes(bytes)
            };
            let mut pairs: Vec<(u64, u32)> = (0..count).map(|at| (number(at), at as u32)).collect();
            pairs.sort_unstable();
            pairs.into_iter().map(|(_, at)| at).collect()
        } else {
            let mut order: Vec<u32> = (0..count as u32).collect();
            order.sort_by(|a, b| self.get(*a as usize).cmp(self.get(*b as usize)));
            order
        };
        let mut kept = 0;
        for at in 0..order.len() {
            let next = order.get(at + 1).map(|next| self.get(*next as usize));
            if next != Some(self.get(order[at] as usize)) {
                order[kept] = order[at];
                kept += 1;
            }
        }
        order.truncate(kept);
        Some(order)
    }
}

/// A column of a key.
enum Encoder<'a> {
    U64(&'a [u64]),
    U32(&'a [u32]),
    I64(&'a [i64]),
    I32(&'a [i32]),
    Text(&'a arrow_array::StringArray),
    Bytes(&'a arrow_array::BinaryArray),
}

impl<'a> Encoder<'a> {
    fn new(column: &'a ArrayRef) -> Self {
        match column.data_type() {
            DataType::UInt64 => Self::U64(column.as_primitive::<UInt64Type>().values()),
            DataType::UInt32 => Self::U32(column.as_primitive::<UInt32Type>().values()),
            DataType::Int64 => Self::I64(column.as_primitive::<Int64Type>().values()),
            DataType::Int32 => Self::I32(column.as_primitive::<Int32Type>().values()),
            DataType::Utf8 => Self::Text(column.as_string()),
            _ => Self::Bytes(column.as_binary()),
        }
    }

    fn encode(&self, row: usize, out: &mut Vec<u8>) {
        match self {
            Self::U64(values) => out.extend(values[row].to_be_bytes()),
            Self::U32(values) => out.extend(values[row].to_be_bytes()),
            Self::I64(values) => out.extend(flip64(values[row]).to_be_bytes()),
            Self::I32(values) => out.extend(flip32(values[row]).to_be_bytes()),
            Self::Text(values) => escape(values.value(row).as_bytes(), out),
            Self::Bytes(values) => escape(values.value(row), out),
        }
    }
}

/// A key for people: `7, "a"`.
pub(crate) fn show(columns: &[ArrayRef], row: usize) -> String {
    let value = |column: &ArrayRef| match column.data_type() {
        DataType::UInt64 => column.as_primitive::<UInt64Type>().value(row).to_string(),
        DataType::UInt32 => column.as_primitive::<UInt32Type>().value(row).to_string(),
        DataType::Int64 => column.as_primitive::<Int64Type>().value(row).to_string(),
        DataType::Int32 => column.as_primitive::<Int32Type>().value(row).to_string(),
        DataType::Utf8 => format!("{:?}", column.as_string::<i32>().value(row)),
        _ => {
            column.as_binary::<i32>().value(row).iter().map(|byte| format!("{byte:02x}")).collect()
        }
    };
    columns.iter().map(value).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{BinaryArray, Int32Array, Int64Array, StringArray, UInt64Array};
    use proptest::prelude::*;

    use super::*;

    fn keys(columns: Vec<ArrayRef>) -> Vec<Vec<u8>> {
        let keys = KeyColumn::encode(&columns);
        (0..keys.len()).map(|at| keys.get(at).to_vec()).collect()
    }

    proptest! {
        #[test]
        fn keys_sort_like_the_values_they_are_made_of(
            rows in prop::collection::vec(
                (prop::collection::vec(0u8..3, 0..4), any::<i32>(), "[\\x00ab]{0,3}", any::<u64>()), 0..40)
        ) {
            let bytes: BinaryArray = rows.iter().map(|row| Some(row.0.as_slice())).collect();
            let ints = Int32Array::from_iter_values(rows.iter().map(|row| row.1));
            let text = StringArray::from_iter_values(rows.iter().map(|row| &row.2));
            let uints = UInt64Array::from_iter_values(rows.iter().map(|row| row.3));
            let keys = keys(vec![Arc::new(bytes), Arc::new(ints), Arc::new(text), Arc::new(uints)]);
            for a in 0..rows.len() {
                for b in 0..rows.len() {
                    prop_assert_eq!(rows[a].cmp(&rows[b]), keys[a].cmp(&keys[b]));
                }
            }
        }

        #[test]
        fn negative_numbers_come_first(a in any::<i64>(), b in any::<i64>()) {
            let keys = keys(vec![Arc::new(Int64Array::from(vec![a, b]))]);
            prop_assert_eq!(a.cmp(&b), keys[0].cmp(&keys[1]));
        }
    }

    #[test]
    fn the_last_of_equal_keys_stays() {
        let keys = KeyColumn::encode(&[Arc::new(UInt64Array::from(vec![5, 3, 5, 1]))]);
        assert_eq!(keys.sorted().unwrap(), [3, 1, 2]);
        let text = KeyColumn::encode(&[Arc::new(StringArray::from(vec!["b", "a", "b"]))]);
        assert_eq!(text.sorted().unwrap(), [1, 2]);
        let sorted = KeyColumn::encode(&[Arc::new(StringArray::from(vec!["a", "ab", "b"]))]);
        assert_eq!(sorted.sorted(), None);
    }

    #[test]
    fn a_prefix_ends_before_the_next_one() {
        let schema = Schema::new(vec![
            arrow_schema::Field::new("a", DataType::UInt64, false),
            arrow_schema::Field::new("b", DataType::Utf8, false),
        ]);
        let range = KeyRange::Prefix(vec![255u64.into()]).encode(&schema).unwrap();
        assert_eq!(range.to, Bound::Excluded(vec![0, 0, 0, 0, 0, 0, 1]));
        let all = KeyRange::Prefix(vec![u64::MAX.into()]).encode(&schema).unwrap();
        assert_eq!(all.to, Bound::Unbounded);
        assert!(KeyRange::Prefix(vec![KeyPart::Int(1)]).encode(&schema).is_err());
        assert!(KeyRange::Prefix(vec!["x".into()]).encode(&schema).is_err());
    }
}
