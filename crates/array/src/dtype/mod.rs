//! Data types: Zarr's names, and sizes in memory.
//!
//! All data types that `zarrs` knows are accepted; this module only adds bytes of fixed length, and
//! [`numpy`](crate::numpy) the exact translation to and from NumPy's array protocol.

use std::fmt;

use serde_json::Value;
use zarrs::array::{DataType, DataTypeSize};
use zarrs::metadata::v3::MetadataV3;

use crate::{Error, Result};

mod fixed_bytes;
#[cfg(test)]
mod tests;

pub(crate) use self::fixed_bytes::{RAW, TERMINATED};

/// Order of the bytes of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ByteOrder {
    /// Least significant byte first; also types whose items are single bytes.
    Little,
    /// Most significant byte first.
    Big,
}

/// The data type of an array.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DType {
    data_type: DataType,
    metadata: MetadataV3,
}

impl DType {
    /// Reads a data type as it stands in array metadata: a name, or an object with one.
    pub fn parse(json: &Value) -> Result<Self> {
        let metadata: MetadataV3 = serde_json::from_value(json.clone())
            .map_err(|cause| Error::invalid(format!("data type {json}")).because(cause))?;
        Self::from_metadata(&metadata)
    }

    /// The data type that the metadata describes.
    pub fn from_metadata(metadata: &MetadataV3) -> Result<Self> {
        fixed_bytes::register();
        let data_type = DataType::from_metadata(metadata)
            .map_err(|cause| Error::from_plugin(format!("data type {metadata}"), cause))?;
        Ok(Self { data_type, metadata: metadata.clone() })
    }

    /// The Zarr name, without the configuration that some types have.
    pub fn name(&self) -> &str {
        self.metadata.name()
    }

    /// Bytes of an item; `None` for types of variable length.
    pub fn item_size(&self) -> Option<usize> {
        match self.data_type.size() {
            DataTypeSize::Fixed(size) => Some(size),
            DataTypeSize::Variable => None,
        }
    }

    /// Whether items can be missing (the `zarrs.optional` type).
    pub fn is_optional(&self) -> bool {
        self.data_type.is_optional()
    }

    /// The metadata as it was read.
    pub fn metadata(&self) -> &MetadataV3 {
        &self.metadata
    }

    /// The type behind it.
    pub fn zarrs(&self) -> &DataType {
        &self.data_type
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.metadata.fmt(f)
    }
}
