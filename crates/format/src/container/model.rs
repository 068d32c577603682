//! The content of a container's files, as values: one vocabulary for all footer versions.
//!
//! The file holds 32-bit extents, and so do these types; code that makes them from wider numbers
//! refuses values that do not fit. No I/O, no bytes: `footer` parses and renders.

use chunkyard_store::{Error, Result};

/// The type of an array's elements.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DType {
    /// One byte, 0 or 1.
    Bool,
    /// Signed, 8 bits.
    Int8,
    /// Signed, 16 bits.
    Int16,
    /// Signed, 32 bits.
    Int32,
    /// Signed, 64 bits.
    Int64,
    /// Unsigned, 8 bits.
    UInt8,
    /// Unsigned, 16 bits.
    UInt16,
    /// Unsigned, 32 bits.
    UInt32,
    /// Unsigned, 64 bits.
    UInt64,
    /// Floating point, 32 bits.
    Float32,
    /// Floating point, 64 bits.
    Float64,
    /// UTF-8 of any length.
    String,
    /// Bytes of any length.
    Binary,
    /// A fixed number of children per element, back to back.
    FixedSizeList {
        /// Their type.
        child: Box<DType>,
        /// How many.
        size: u32,
    },
    /// Any number of children per element.
    List {
        /// Their type.
        child: Box<DType>,
    },
    /// Nanoseconds since 1970, signed, 64 bits.
    TimestampNs,
}

impl DType {
    /// Bytes of an element; `None` if the size varies, or is too large to count.
    pub fn item_size(&self) -> Option<usize> {
        match self {
            Self::Bool | Self::Int8 | Self::UInt8 => Some(1),
            Self::Int16 | Self::UInt16 => Some(2),
            Self::Int32 | Self::UInt32 | Self::Float32 => Some(4),
            Self::Int64 | Self::UInt64 | Self::Float64 | Self::TimestampNs => Some(8),
            Self::FixedSizeList { child, size } => {
                child.item_size()?.checked_mul(usize::try_from(*size).ok()?)
            }
            Self::String | Self::Binary | Self::List { .. } => None,
        }
    }
}

/// The value of elements that were never written.
#[derive(Debug, Clone)]
pub enum FillValue {
    /// For booleans.
    Bool(bool),
    /// For numbers.
    Int(i64),
    /// For numbers.
    UInt(u64),
    /// For numbers.
    Float(f64),
    /// For strings. Readers of 0.9 store it and read empty strings all the same.
    String(String),
    /// For timestamps.
    TimestampNs(i64),
}

/// Bit for bit, so that a NaN is itself.
impl PartialEq for FillValue {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Bool(a), Self::Bool(b)) => a == b,
            (Self::Int(a), Self::Int(b)) | (Self::TimestampNs(a), Self::TimestampNs(b)) => a == b,
            (Self::UInt(a), Self::UInt(b)) => a == b,
            (Self::Float(a), Self::Float(b)) => a.to_bits() == b.to_bits(),
            (Self::String(a), Self::String(b)) => a == b,
            _ => false,
        }
    }
}

/// The value of an attribute. Version 4 has the first twelve sorts only; lists and binary came with
/// version 5.
#[derive(Debug, Clone)]
#[expect(missing_docs, reason = "the names say it")]
pub enum AttributeValue {
    Bool(bool),
    Int8(i8),
    Int16(i16),
    Int32(i32),
    Int64(i64),
    UInt8(u8),
    UInt16(u16),
    UInt32(u32),
    UInt64(u64),
    Float32(f32),
    Float64(f64),
    String(String),
    Binary(Vec<u8>),
    BoolList(Vec<bool>),
    Int8List(Vec<i8>),
    Int16List(Vec<i16>),
    Int32List(Vec<i32>),
    Int64List(Vec<i64>),
    UInt8List(Vec<u8>),
    UInt16List(Vec<u16>),
    UInt32List(Vec<u32>),
    UInt64List(Vec<u64>),
    Float32List(Vec<f32>),
    Float64List(Vec<f64>),
    StringList(Vec<String>),
    BinaryList(Vec<Vec<u8>>),
}

impl AttributeValue {
    /// Whether it is of a sort that version 4 has.
    pub fn is_scalar(&self) -> bool {
        matches!(
            self,
            Self::Bool(_)
                | Self::Int8(_)
                | Self::Int16(_)
                | Self::Int32(_)
                | Self::Int64(_)
                | Self::UInt8(_)
                | Self::UInt16(_)
                | Self::UInt32(_)
                | Self::UInt64(_)
                | Self::Float32(_)
                | Self::Float64(_)
                | Self::String(_)
        )
    }
}

/// Bit for bit, so that a NaN is itself.
impl PartialEq for AttributeValue {
    fn eq(&self, other: &Self) -> bool {
        let bits32 = |values: &[f32]| values.iter().map(|v| v.to_bits()).collect::<Vec<_>>();
        let bits64 = |values: &[f64]| values.iter().map(|v| v.to_bits()).collect::<Vec<_>>();
        match (self, other) {
            (Self::Bool(a), Self::Bool(b)) => a == b,
            (Self::Int8(a), Self::Int8(b)) => a == b,
            (Self::Int16(a), Self::Int16(b)) => a == b,
            (Self::Int32(a), Self::Int32(b)) => a == b,
            (Self::Int64(a), Self::Int64(b)) => a == b,
            (Self::UInt8(a), Self::UInt8(b)) => a == b,
            (Self::UInt16(a), Self::UInt16(b)) => a == b,
            (Self::UInt32(a), Self::UInt32(b)) => a == b,
            (Self::UInt64(a), Self::UInt64(b)) => a == b,
            (Self::Float32(a), Self::Float32(b)) => a.to_bits() == b.to_bits(),
            (Self::Float64(a), Self::Float64(b)) => a.to_bits() == b.to_bits(),
            (Self::String(a), Self::String(b)) => a == b,
            (Self::Binary(a), Self::Binary(b)) | (Self::UInt8List(a), Self::UInt8List(b)) => a == b,
            (Self::BoolList(a), Self::BoolList(b)) => a == b,
            (Self::Int8List(a), Self::Int8List(b)) => a == b,
            (Self::Int16List(a), Self::Int16List(b)) => a == b,
            (Self::Int32List(a), Self::Int32List(b)) => a == b,
            (Self::Int64List(a), Self::Int64List(b)) => a == b,
            (Self::UInt16List(a), Self::UInt16List(b)) => a == b,
            (Self::UInt32List(a), Self::UInt32List(b)) => a == b,
            (Self::UInt64List(a), Self::UInt64List(b)) => a == b,
            (Self::Float32List(a), Self::Float32List(b)) => bits32(a) == bits32(b),
            (Self::Float64List(a), Self::Float64List(b)) => bits64(a) == bits64(b),
            (Self::StringList(a), Self::StringList(b)) => a == b,
            (Self::BinaryList(a), Self::BinaryList(b)) => a == b,
            _ => false,
        }
    }
}

/// Where a block is in its layer's file, and how it is packed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlockMeta {
    /// Its number in the layer.
    pub id: u32,
    /// Where it begins in the file.
    pub file_offset: u64,
    /// Its bytes in the file.
    pub compressed_size: u64,
    /// Its bytes when unpacked.
    pub uncompressed_size: u64,
    /// Name of the codec; `None` for plain bytes.
    pub codec: Option<String>,
}

/// Where a chunk is: a part of an unpacked block of the same layer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChunkEntry {
    /// Position of the chunk in the grid.
    pub coord: Vec<u32>,
    /// Its place.
    pub address: ChunkAddress,
}

/// A part of an unpacked block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChunkAddress {
    /// Number of the block.
    pub block: u32,
    /// First byte.
    pub offset: u32,
    /// Bytes.
    pub size: u32,
}

/// How wide the indices of an array's attributes are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum IndexWidth {
    /// 16 bits, which 0.9 always writes.
    #[default]
    U16,
    /// 32 bits.
    U32,
    /// 64 bits.
    U64,
}

/// Everything that a layer says about an array, except for its chunks.
#[derive(Debug, Clone, PartialEq)]
pub struct ArrayMeta {
    /// Its name.
    pub name: String,
    /// The type of its elements.
    pub dtype: DType,
    /// Its extents.
    pub shape: Vec<u32>,
    /// The names of its dimensions: one for each, or none at all.
    pub dimension_names: Vec<String>,
    /// The extents of its chunks.
    pub chunk_shape: Vec<u32>,
    /// The value of elements that were never written; `None` is zero, or empty.
    pub fill_value: Option<FillValue>,
    /// Whether the array is gone: then older layers no longer count for it.
    pub deleted: bool,
    /// Its attributes, as indices of keys and of values in the dictionaries of the same layer,
    /// sorted by key.
    pub attributes: Vec<(u64, u64)>,
    /// The stored width of these indices.
    pub index_width: IndexWidth,
}

/// A value among statistics.
#[derive(Debug, Clone)]
pub enum StatValue {
    /// Of signed integers.
    Int(i64),
    /// Of unsigned integers and booleans.
    UInt(u64),
    /// Of floating point numbers.
    Float(f64),
    /// Of strings and bytes.
    Bytes(Vec<u8>),
    /// Of timestamps.
    TimestampNs(i64),
}

/// Bit for bit, so that a NaN is itself.
impl PartialEq for StatValue {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Int(a), Self::Int(b)) | (Self::TimestampNs(a), Self::TimestampNs(b)) => a == b,
            (Self::UInt(a), Self::UInt(b)) => a == b,
            (Self::Float(a), Self::Float(b)) => a.to_bits() == b.to_bits(),
            (Self::Bytes(a), Self::Bytes(b)) => a == b,
            _ => false,
        }
    }
}

/// Statistics of an array. Elements that equal the fill value, or were never written, are null.
#[derive(Debug, Clone, PartialEq)]
pub struct ArrayStats {
    /// Name of the array.
    pub name: String,
    /// The smallest element that is not null.
    pub min: Option<StatValue>,
    /// The largest one.
    pub max: Option<StatValue>,
    /// Elements that are null.
    pub null_count: u64,
    /// All elements.
    pub row_count: u64,
}

/// A number that the file keeps in 32 bits; refused if it does not fit.
pub(crate) fn to_u32(what: impl FnOnce() -> String, value: u64) -> Result<u32> {
    u32::try_from(value).map_err(|_| {
        Error::invalid(format!(
            "{}: {value} does not fit the container, which keeps 32 bits of it (at most {})",
            what(),
            u32::MAX
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_beyond_32_bits_is_refused_with_value_and_limit() {
        assert_eq!(to_u32(|| "size of a chunk".into(), u32::MAX.into()).unwrap(), u32::MAX);
        let error = to_u32(|| "size of a chunk".into(), 1 << 32).unwrap_err().to_string();
        assert!(error.contains("size of a chunk") && error.contains("4294967296"), "{error}");
    }
}
