//! A container, changed in place: changes wait for a flush.

use chunkyard_array::ArraySpec;
use chunkyard_engine::format::container::elements::{element_of_json, json_of_element};
use chunkyard_engine::format::container::model::{ArrayStats, StatValue};
use chunkyard_engine::format::container::{
    self, AttributeType, CompactOptions, ContainerEditor, ContainerOptions, ContainerSource,
    mapping,
};
use chunkyard_engine::format::{Node, Place};
use chunkyard_engine::{Error, Noun};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList};
use serde_json::json;

use crate::array::Array;
use crate::error::to_python;
use crate::json;
use crate::options::OpenOptions;
use crate::runtime::wait;
use crate::source;

/// Groups and arrays of a container, with changes on top.
#[pyclass(frozen, module = "chunkyard._engine")]
pub(crate) struct Container {
    inner: ContainerEditor,
}

/// Opens the container at a URL to change it, or creates it.
#[pyfunction]
pub(crate) fn open_container(
    py: Python<'_>,
    url: &str,
    options: OpenOptions,
    create: bool,
) -> PyResult<Container> {
    let place = Place::new(url, &options.any(None).store).map_err(to_python)?;
    let how = ContainerOptions { strict: true, ..ContainerOptions::default() };
    let opened = wait(py, async {
        match container::Container::open(&place, how.clone()).await {
            Err(Error::NotFound { what: Noun::Container, .. }) if create => {
                container::Container::create(&place, how).await
            }
            other => other,
        }
    })?;
    Ok(Container { inner: ContainerEditor::new(opened) })
}

impl Container {
    fn node(&self, py: Python<'_>, path: &str) -> PyResult<Option<Node>> {
        wait(py, self.inner.node(path))
    }
}

#[pymethods]
impl Container {
    /// All nodes in the order of their paths, each with whether it is an array.
    fn nodes(&self, py: Python<'_>) -> PyResult<Vec<(String, bool)>> {
        Ok(source::nodes(&wait(py, self.inner.container().dataset())?))
    }

    /// Whether the node at a path is an array; `None` if there is none.
    fn is_array(&self, py: Python<'_>, path: &str) -> PyResult<Option<bool>> {
        Ok(self.node(py, path)?.map(|node| matches!(node, Node::Array(_))))
    }

    /// The Zarr document of a node.
    fn document(&self, py: Python<'_>, path: &str) -> PyResult<String> {
        let missing = || Error::NotFound { what: Noun::Node, name: path.to_owned() };
        let node = self.node(py, path)?.ok_or_else(|| to_python(missing()))?;
        let rendered = node.render().map_err(to_python)?;
        Ok(String::from_utf8_lossy(&rendered).into_owned())
    }

    /// Where the flushed chunks of an array are, as columns.
    fn chunk_refs<'py>(&self, py: Python<'py>, path: &str) -> PyResult<Bound<'py, PyDict>> {
        let container = self.inner.container().clone();
        source::chunk_refs(py, &wait(py, ContainerSource::new(container))?, path)
    }

    fn array(&self, py: Python<'_>, path: &str) -> PyResult<Array> {
        Array::of_container(&wait(py, self.inner.array(path))?)
    }

    /// Creates an array from its Zarr document.
    fn create_array(&self, py: Python<'_>, path: &str, document: &str) -> PyResult<()> {
        wait(py, async {
            let spec = ArraySpec::parse(document.as_bytes())?;
            self.inner.create_array(path, &spec).await
        })
    }

    fn create_group(
        &self,
        py: Python<'_>,
        path: &str,
        attributes: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let attributes = json::attributes(attributes)?;
        wait(py, self.inner.create_group(path, attributes))
    }

    fn set_attributes(
        &self,
        py: Python<'_>,
        path: &str,
        attributes: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let attributes = json::attributes(attributes)?;
        wait(py, self.inner.set_attributes(path, attributes))
    }

    /// Gives attributes of a node these types, by name.
    fn retype_attributes(
        &self,
        py: Python<'_>,
        path: &str,
        types: Vec<(String, String)>,
    ) -> PyResult<()> {
        let types = types.into_iter().map(|(key, name)| Ok((key, AttributeType::parse(&name)?)));
        let types = types.collect::<Result<Vec<_>, Error>>().map_err(to_python)?;
        wait(py, self.inner.retype_attributes(path, &types))
    }

    /// The types of the attributes of a node, by key.
    fn attribute_types(&self, py: Python<'_>, path: &str) -> PyResult<Vec<(String, &'static str)>> {
        let stored = wait(py, self.inner.typed_attributes(path))?;
        Ok(stored.into_iter().map(|(key, value)| (key, value.type_word())).collect())
    }

    fn resize(&self, py: Python<'_>, path: &str, shape: Vec<u64>) -> PyResult<()> {
        wait(py, self.inner.resize(path, &shape))
    }

    fn delete(&self, py: Python<'_>, path: &str) -> PyResult<()> {
        wait(py, self.inner.delete(path))
    }

    /// Makes all changes visible. Gives the number of the new layer and a note, or `None` if there
    /// were no changes.
    fn flush(&self, py: Python<'_>) -> PyResult<Option<(u64, Option<String>)>> {
        let flushed = wait(py, self.inner.container().flush())?;
        Ok(flushed.map(|flushed| (flushed.layer, flushed.note)))
    }

    /// Drops all changes that are not flushed.
    fn discard(&self, py: Python<'_>) -> PyResult<()> {
        wait(py, async {
            self.inner.container().discard().await;
            Ok(())
        })
    }

    /// Merges all layers: how many there were, and their bytes before and after.
    fn compact(&self, py: Python<'_>, alone: bool) -> PyResult<(u64, u64, u64)> {
        let options = CompactOptions { alone, ..CompactOptions::default() };
        let done = wait(py, self.inner.container().compact(&options))?;
        Ok((done.layers, done.bytes_before, done.bytes_after))
    }

    /// The layers, oldest first.
    fn layers<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        layers(py, self.inner.container())
    }

    /// The statistics of an array, if they are known.
    fn statistics<'py>(&self, py: Python<'py>, path: &str) -> PyResult<Option<Bound<'py, PyDict>>> {
        statistics(py, self.inner.container(), path)
    }
}

/// The bytes of an element that is a list, from JSON.
#[pyfunction]
pub(crate) fn list_element<'py>(
    py: Python<'py>,
    dtype: &str,
    json: &str,
) -> PyResult<Bound<'py, PyBytes>> {
    let element = || {
        let value =
            serde_json::from_str(json).map_err(|error| Error::invalid(error.to_string()))?;
        element_of_json(&mapping::parse_type(dtype)?, &value)
    };
    Ok(PyBytes::new(py, &element().map_err(to_python)?))
}

/// An element that is a list, as JSON.
#[pyfunction]
pub(crate) fn list_json(dtype: &str, element: &[u8]) -> PyResult<String> {
    let json = || json_of_element(&mapping::parse_type(dtype)?, element);
    Ok(json().map_err(to_python)?.to_string())
}

/// The layers of a container, oldest first.
pub(crate) fn layers<'py>(
    py: Python<'py>,
    container: &container::Container,
) -> PyResult<Bound<'py, PyList>> {
    let layers = wait(py, container.layers())?;
    let documents = layers.iter().map(|layer| {
        let document = json!({
            "number": layer.number,
            "file": layer.path,
            "bytes": layer.bytes,
            "arrays": layer.arrays,
            "deleted": layer.deleted,
            "chunks": layer.chunks,
            "blocks": layer.blocks,
            "checksums": layer.sealed,
        });
        json::to_python(py, &document)
    });
    PyList::new(py, documents.collect::<PyResult<Vec<_>>>()?)
}

/// The statistics of an array of a container, if they are known.
pub(crate) fn statistics<'py>(
    py: Python<'py>,
    container: &container::Container,
    path: &str,
) -> PyResult<Option<Bound<'py, PyDict>>> {
    let known: Option<ArrayStats> = wait(py, container.statistics(mapping::name_of(path)))?;
    let Some(known) = known else { return Ok(None) };
    let document = PyDict::new(py);
    document.set_item("min", value(py, known.min)?)?;
    document.set_item("max", value(py, known.max)?)?;
    document.set_item("null_count", known.null_count)?;
    document.set_item("row_count", known.row_count)?;
    Ok(Some(document))
}

fn value(py: Python<'_>, value: Option<StatValue>) -> PyResult<Py<PyAny>> {
    Ok(match value {
        None => py.None(),
        Some(StatValue::Int(value) | StatValue::TimestampNs(value)) => {
            value.into_pyobject(py)?.into_any().unbind()
        }
        Some(StatValue::UInt(value)) => value.into_pyobject(py)?.into_any().unbind(),
        Some(StatValue::Float(value)) => value.into_pyobject(py)?.into_any().unbind(),
        Some(StatValue::Bytes(value)) => PyBytes::new(py, &value).into_any().unbind(),
    })
}
