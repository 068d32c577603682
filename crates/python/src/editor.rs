//! Plain Zarr, changed in place.

use chunkyard_array::{ArraySpec, Attributes, GroupSpec};
use chunkyard_engine::format::zarr3::Zarr3Editor;
use chunkyard_engine::format::{Node, Place};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::array::Array;
use crate::error::to_python;
use crate::json;
use crate::options::OpenOptions;
use crate::runtime::wait;
use crate::source;

/// A hierarchy of groups and arrays; each of its objects changes in one step.
#[pyclass(frozen, module = "chunkyard._engine")]
pub(crate) struct Editor {
    inner: Zarr3Editor,
}

/// Opens the hierarchy at a URL.
#[pyfunction]
pub(crate) fn open_editor(py: Python<'_>, url: &str, options: OpenOptions) -> PyResult<Editor> {
    let place = place(url, options)?;
    Ok(Editor { inner: wait(py, Zarr3Editor::open(place.directory().clone()))? })
}

/// Creates a hierarchy at a URL with an empty group as its root.
#[pyfunction]
pub(crate) fn create_editor(py: Python<'_>, url: &str, options: OpenOptions) -> PyResult<Editor> {
    let place = place(url, options)?;
    let root = Node::Group(GroupSpec::new(Attributes::new()));
    Ok(Editor { inner: wait(py, Zarr3Editor::create(place.directory().clone(), root))? })
}

fn place(url: &str, options: OpenOptions) -> PyResult<Place> {
    Place::new(url, &options.any(None).store).map_err(to_python)
}

#[pymethods]
impl Editor {
    /// All nodes in the order of their paths, each with whether it is an array.
    fn nodes(&self) -> Vec<(String, bool)> {
        source::nodes(&self.inner.dataset())
    }

    /// Whether the node at a path is an array; `None` if there is none.
    fn is_array(&self, path: &str) -> Option<bool> {
        source::is_array(&self.inner.dataset(), path)
    }

    /// The Zarr document of a node.
    fn document(&self, path: &str) -> PyResult<String> {
        source::document(&self.inner.dataset(), path)
    }

    /// Where the chunks of an array are, as columns.
    fn chunk_refs<'py>(&self, py: Python<'py>, path: &str) -> PyResult<Bound<'py, PyDict>> {
        source::chunk_refs(py, &*self.inner.source().map_err(to_python)?, path)
    }

    fn array(&self, py: Python<'_>, path: &str) -> PyResult<Array> {
        Ok(Array::of_editor(&wait(py, self.inner.array(path))?))
    }

    /// Creates an array from its Zarr document.
    fn create_array(&self, py: Python<'_>, path: &str, document: &str) -> PyResult<()> {
        wait(py, async {
            let spec = ArraySpec::parse(document.as_bytes())?;
            self.inner.create_array(path, &spec).await.map(drop)
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

    fn resize(&self, py: Python<'_>, path: &str, shape: Vec<u64>) -> PyResult<()> {
        wait(py, self.inner.resize(path, &shape))
    }

    fn delete(&self, py: Python<'_>, path: &str) -> PyResult<()> {
        wait(py, self.inner.delete(path))
    }
}
