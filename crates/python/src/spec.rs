//! The Zarr document of a new array.

use chunkyard_array::{ArraySpec, DType, Sharding, codec, guess_chunks};
use pyo3::prelude::*;
use serde_json::Value;

use crate::error::to_python;
use crate::json;

/// The properties of a new array, as Python gives them.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct ArrayProperties<'py> {
    shape: Vec<u64>,
    /// About a mebibyte if not given.
    chunks: Option<Vec<u64>>,
    shards: Option<Vec<u64>>,
    /// NumPy's description, or Zarr's name or document.
    dtype: Bound<'py, PyAny>,
    /// Shorthand, or a list of Zarr's documents; the default compression if not given.
    codecs: Bound<'py, PyAny>,
    /// The bytes of one element; zero if not given.
    fill: Option<Vec<u8>>,
    attributes: Bound<'py, PyAny>,
    dimension_names: Option<Vec<Option<String>>>,
}

/// The Zarr document of an array.
#[pyfunction]
pub(crate) fn array_document(properties: ArrayProperties<'_>) -> PyResult<String> {
    let attributes = json::attributes(&properties.attributes)?;
    let dtype: Value = json::of_python(&properties.dtype)?;
    let codecs: Option<Value> = json::of_python(&properties.codecs)?;
    let make = || -> chunkyard_array::Result<ArraySpec> {
        let dtype = match dtype.as_str().map(DType::from_numpy) {
            Some(Ok((dtype, _))) => dtype,
            _ => DType::parse(&dtype)?,
        };
        let chunks = properties
            .chunks
            .clone()
            .unwrap_or_else(|| guess_chunks(&properties.shape, dtype.item_size().unwrap_or(16)));
        let metadata = serde_json::to_value(dtype.metadata()).unwrap_or_default();
        let mut builder = ArraySpec::builder(&properties.shape, &chunks, metadata);
        match codecs {
            Some(Value::String(text)) => {
                builder = builder.codecs(codec::parse_shorthand(&text, &dtype)?);
            }
            Some(Value::Array(list)) => builder = builder.codecs(list),
            Some(other) => {
                return Err(chunkyard_array::Error::invalid(format!(
                    "codecs are text such as 'zstd:3' or a list, not {other}"
                )));
            }
            None => {}
        }
        if let Some(element) = &properties.fill {
            builder = builder.fill_bytes(element);
        }
        let spec = builder.attributes(attributes).build()?;
        let spec = match properties.dimension_names.as_deref() {
            Some(names) => spec.with_dimension_names(Some(names))?,
            None => spec,
        };
        match &properties.shards {
            Some(shards) => spec.sharded(&Sharding::new(shards)),
            None => Ok(spec),
        }
    };
    let spec = make().map_err(|error| to_python(error.into()))?;
    Ok(String::from_utf8_lossy(&spec.render()).into_owned())
}
