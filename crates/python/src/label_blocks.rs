//! Chunks of labels: for zarr-python, which decodes the chunks of its arrays itself, and for
//! Neuroglancer, in its own form.

use chunkyard_array::codec::label_block::{self, Block};
use chunkyard_array::{ArraySpec, Codecs};
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes};
use serde_json::json;

use crate::error::to_python;
use crate::memory::Lent;

/// Chunks of one type and shape as label blocks.
#[pyclass(frozen, module = "chunkyard._engine")]
pub(crate) struct LabelBlocks(Codecs);

#[pymethods]
impl LabelBlocks {
    /// Refuses types and shapes that are no chunks of labels.
    #[new]
    fn new(dtype: &str, shape: Vec<u64>) -> PyResult<Self> {
        let codecs = vec![json!({"name": label_block::NAME})];
        let spec = ArraySpec::builder(&shape, &shape, dtype).codecs(codecs).build();
        let codecs = spec.and_then(|spec| Codecs::new(&spec));
        Ok(Self(codecs.map_err(|error| to_python(error.into()))?))
    }

    /// The voxels of a block: little-endian, in C order.
    fn decode<'py>(
        &self,
        py: Python<'py>,
        encoded: &Bound<'_, PyAny>,
    ) -> PyResult<Bound<'py, PyByteArray>> {
        let encoded = Lent::new(encoded, false)?.into_bytes();
        let bytes = self.0.chunk_bytes().unwrap_or_default();
        PyByteArray::new_with(py, bytes, |voxels| {
            let decoded = self.0.decode_into(&encoded, voxels);
            decoded.map_err(|error| to_python(error.into()))
        })
    }

    /// The block of voxels.
    fn encode<'py>(
        &self,
        py: Python<'py>,
        voxels: &Bound<'_, PyAny>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let voxels = Lent::new(voxels, false)?.into_bytes();
        let mut encoded = Vec::new();
        let done = self.0.encode_into(&voxels, &mut encoded);
        done.map_err(|error| to_python(error.into()))?;
        Ok(PyBytes::new(py, &encoded))
    }
}

/// A label block as a `compressed_segmentation` of `shape`, or whole.
#[pyfunction]
#[pyo3(signature = (block, shape))]
pub(crate) fn to_segmentation<'py>(
    py: Python<'py>,
    block: &Bound<'_, PyAny>,
    shape: Option<[u32; 3]>,
) -> PyResult<Bound<'py, PyBytes>> {
    let bytes = Lent::new(block, false)?.into_bytes();
    let mut chunk = Vec::new();
    let done = Block::parse(&bytes).and_then(|block| {
        let extent = shape.map_or(block.size(), x_first);
        block.segmentation_onto(extent, &mut chunk)
    });
    done.map_err(|error| to_python(error.into()))?;
    Ok(PyBytes::new(py, &chunk))
}

/// The canonical label block of a `compressed_segmentation` of `shape`.
#[pyfunction]
pub(crate) fn from_segmentation<'py>(
    py: Python<'py>,
    chunk: &Bound<'_, PyAny>,
    shape: [u32; 3],
) -> PyResult<Bound<'py, PyBytes>> {
    let chunk = Lent::new(chunk, false)?.into_bytes();
    let mut block = Vec::new();
    let done = label_block::from_segmentation(&chunk, x_first(shape), &mut block);
    done.map_err(|error| to_python(error.into()))?;
    Ok(PyBytes::new(py, &block))
}

/// From the order of NumPy's axes to the order of a block's.
fn x_first([z, y, x]: [u32; 3]) -> [u32; 3] {
    [x, y, z]
}
