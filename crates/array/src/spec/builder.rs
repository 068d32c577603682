//! Metadata of a new array, put together in code.

use serde_json::{Map, Value, json};
use zarrs::array::FillValue;

use super::{ArraySpec, Attributes, document, non_finite};
use crate::fill::{ITEM_BYTES_MAX, new_fill_element};
use crate::{DType, Error, Result, codec, fill_element};

/// Default codecs.
const DEFAULT_CODECS: &str = "zstd:3";

/// Builds an [`ArraySpec`]; see [`ArraySpec::builder`].
///
/// Defaults: zero as fill value, `zstd:3` as compression, `default` chunk keys separated by `/`.
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing until it is built"]
pub struct ArrayBuilder {
    shape: Vec<u64>,
    chunk_shape: Vec<u64>,
    dtype: Value,
    fill_value: Option<Value>,
    fill_bytes: Option<Vec<u8>>,
    codecs: Option<Vec<Value>>,
    dimension_names: Option<Vec<Option<String>>>,
    attributes: Attributes,
    chunk_key_encoding: Value,
}

impl ArrayBuilder {
    pub(super) fn new(shape: &[u64], chunk_shape: &[u64], dtype: Value) -> Self {
        Self {
            shape: shape.to_vec(),
            chunk_shape: chunk_shape.to_vec(),
            dtype,
            fill_value: None,
            fill_bytes: None,
            codecs: None,
            dimension_names: None,
            attributes: Attributes::new(),
            chunk_key_encoding: json!({"name": "default", "configuration": {"separator": "/"}}),
        }
    }

    /// The fill value, as it stands in the metadata.
    pub fn fill_value(mut self, json: impl Into<Value>) -> Self {
        self.fill_value = Some(json.into());
        self
    }

    /// The fill value, as the bytes of one element in native order.
    pub fn fill_bytes(mut self, element: &[u8]) -> Self {
        self.fill_bytes = Some(element.to_vec());
        self
    }

    /// The codecs, as they stand in the metadata; see [`codec::parse_shorthand`] for a short way.
    pub fn codecs(mut self, codecs: Vec<Value>) -> Self {
        self.codecs = Some(codecs);
        self
    }

    /// Names of the dimensions.
    pub fn dimension_names<N: Into<String>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        self.dimension_names = Some(names.into_iter().map(|name| Some(name.into())).collect());
        self
    }

    /// The user attributes.
    pub fn attributes(mut self, attributes: Attributes) -> Self {
        self.attributes = attributes;
        self
    }

    /// How chunk indices become keys, as it stands in the metadata.
    pub fn chunk_key_encoding(mut self, json: impl Into<Value>) -> Self {
        self.chunk_key_encoding = json.into();
        self
    }

    /// Checks all of it and gives the metadata. Refuses a finite fill value that the data type
    /// would hold as infinity.
    pub fn build(self) -> Result<ArraySpec> {
        let spec = self.build_as_read()?;
        new_fill_element(&spec.dtype()?, &spec.metadata().fill_value)?;
        Ok(spec)
    }

    /// The same for an existing array, with any fill value.
    pub(super) fn build_as_read(self) -> Result<ArraySpec> {
        let dtype = DType::parse(&self.dtype)?;
        let fill_value = match (self.fill_value, self.fill_bytes) {
            (Some(value), _) => non_finite::spelled(value),
            (None, Some(bytes)) => fill_json(&dtype, bytes)?,
            (None, None) => zero(&dtype)?,
        };
        let codecs = match self.codecs {
            Some(codecs) => codecs,
            None => codec::parse_shorthand(DEFAULT_CODECS, &dtype)?,
        };
        let mut members = Map::new();
        members.insert("zarr_format".into(), json!(3));
        members.insert("node_type".into(), json!("array"));
        members.insert("shape".into(), json!(self.shape));
        members.insert("data_type".into(), self.dtype);
        let configuration = json!({"chunk_shape": self.chunk_shape});
        let grid = json!({"name": "regular", "configuration": configuration});
        members.insert("chunk_grid".into(), grid);
        members.insert("chunk_key_encoding".into(), self.chunk_key_encoding);
        members.insert("fill_value".into(), fill_value);
        members.insert("codecs".into(), json!(codecs));
        document::set(&mut members, "attributes", Value::Object(self.attributes));
        if let Some(names) = self.dimension_names {
            members.insert("dimension_names".into(), json!(names));
        }
        let spec = ArraySpec::from_document(members)?;
        fill_element(&dtype, &spec.metadata().fill_value)?;
        Ok(spec)
    }
}

/// The fill value whose bytes are all zero, or empty for types of variable length.
pub(super) fn zero(dtype: &DType) -> Result<Value> {
    let missing = || Error::invalid(format!("data type {dtype} needs a fill value"));
    let bytes = match dtype.item_size() {
        Some(size) if size <= ITEM_BYTES_MAX => vec![0; size],
        Some(_) => return Err(missing()),
        None => Vec::new(),
    };
    fill_json(dtype, bytes)
}

/// The fill value whose bytes are these.
fn fill_json(dtype: &DType, bytes: Vec<u8>) -> Result<Value> {
    // Raw bytes become a list of numbers, of 32 bytes each.
    if let Some(size) = dtype.item_size().filter(|&size| size > ITEM_BYTES_MAX) {
        return Err(Error::unsupported(format!("a data type of {size} bytes")));
    }
    let refused = || Error::invalid(format!("these bytes are no fill value of data type {dtype}"));
    let metadata = dtype
        .zarrs()
        .metadata_fill_value(&FillValue::new(bytes))
        .map_err(|cause| refused().because(cause))?;
    serde_json::to_value(metadata).map_err(|cause| refused().because(cause))
}
