//! The arrays of a container that have been read, within a bound of memory.
//!
//! A footer holds a long value once, and any number of attributes of any number of arrays may have
//! it; in memory each attribute has a copy. Without a bound, a file of a few megabytes fills any
//! memory.

use std::collections::HashMap;
use std::sync::Arc;

use chunkyard_store::{Error, Result};

use super::array_state::ArrayState;
use crate::container::layers::layer::Layer;
use crate::container::model::AttributeValue;

/// Bytes that attributes may always take, however short the footers are.
const BYTES_MIN: u64 = 256 << 20;

/// Bytes of attributes in memory per byte of footer. Files that share values sensibly stay far below
/// that.
const EXPANSION_MAX: u64 = 16;

/// Arrays by name. Missing arrays are not remembered: a caller can ask for any name.
#[derive(Debug)]
pub(crate) struct ArrayCache {
    arrays: HashMap<Arc<str>, Arc<ArrayState>>,
    budget: AttributeBudget,
}

impl ArrayCache {
    /// No arrays yet, of a container with these layers.
    pub(crate) fn new(layers: &[Arc<Layer>]) -> Self {
        let footers = layers.iter().map(|layer| layer.footer_len()).fold(0, u64::saturating_add);
        Self { arrays: HashMap::new(), budget: AttributeBudget::beside(footers) }
    }

    /// An array, if it has been read.
    pub(crate) fn get(&self, name: &str) -> Option<Arc<ArrayState>> {
        self.arrays.get(name).cloned()
    }

    /// What is left for attributes.
    pub(crate) fn budget(&self) -> AttributeBudget {
        self.budget
    }

    /// Keeps an array whose attributes take so many bytes, unless another thread was faster.
    pub(crate) fn keep(&mut self, name: &str, array: ArrayState, bytes: u64) -> Arc<ArrayState> {
        let budget = &mut self.budget;
        let kept = self.arrays.entry(name.into()).or_insert_with(|| {
            budget.bytes_left = budget.bytes_left.saturating_sub(bytes);
            Arc::new(array)
        });
        kept.clone()
    }
}

/// Bytes that attributes may still take.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AttributeBudget {
    bytes_max: u64,
    bytes_left: u64,
}

impl AttributeBudget {
    fn beside(footers: u64) -> Self {
        let bytes_max = footers.saturating_mul(EXPANSION_MAX).max(BYTES_MIN);
        Self { bytes_max, bytes_left: bytes_max }
    }

    /// Counts an attribute.
    pub(crate) fn take(&mut self, key: &str, value: &AttributeValue) -> Result<()> {
        let bytes = (key.len() as u64).saturating_add(value_bytes(value));
        self.bytes_left = self.bytes_left.checked_sub(bytes).ok_or_else(|| {
            let mib = self.bytes_max >> 20;
            Error::unsupported(format!(
                "attributes of more than {mib} MiB, by values that many of them share"
            ))
        })?;
        Ok(())
    }

    /// Bytes that were taken since.
    pub(crate) fn taken_since(&self, before: Self) -> u64 {
        before.bytes_left.saturating_sub(self.bytes_left)
    }
}

/// The least bytes of a value in a footer.
fn value_bytes(value: &AttributeValue) -> u64 {
    use AttributeValue as V;
    let bytes = match value {
        V::Bool(_) | V::Int8(_) | V::UInt8(_) => 1,
        V::Int16(_) | V::UInt16(_) => 2,
        V::Int32(_) | V::UInt32(_) | V::Float32(_) => 4,
        V::Int64(_) | V::UInt64(_) | V::Float64(_) => 8,
        V::String(text) => text.len(),
        V::Binary(bytes) | V::UInt8List(bytes) => bytes.len(),
        V::BoolList(list) => list.len(),
        V::Int8List(list) => list.len(),
        V::Int16List(list) => size_of_val(list.as_slice()),
        V::UInt16List(list) => size_of_val(list.as_slice()),
        V::Int32List(list) => size_of_val(list.as_slice()),
        V::UInt32List(list) => size_of_val(list.as_slice()),
        V::Float32List(list) => size_of_val(list.as_slice()),
        V::Int64List(list) => size_of_val(list.as_slice()),
        V::UInt64List(list) => size_of_val(list.as_slice()),
        V::Float64List(list) => size_of_val(list.as_slice()),
        // From version 6 on, a string takes at least a number.
        V::StringList(list) => list.iter().map(|text| text.len() + 4).sum(),
        V::BinaryList(list) => list.iter().map(|bytes| bytes.len() + 4).sum(),
    };
    bytes as u64
}
