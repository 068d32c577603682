//! Whatever is at a URL, for reading.

use std::sync::Arc;

use chunkyard_engine::format::{self, Node, Reader};
use chunkyard_engine::{Error, open};
use pyo3::prelude::*;

use crate::array::Array;
use crate::error::to_python;
use crate::options::{OpenOptions, Version};
use crate::runtime::wait;

/// Groups and arrays of any format.
#[pyclass(frozen, module = "chunkyard._engine")]
pub(crate) struct Source {
    inner: Arc<dyn format::Source>,
    format: &'static str,
}

/// Opens whatever is at a URL, by its content.
#[pyfunction]
pub(crate) fn open_source(
    py: Python<'_>,
    url: &str,
    options: OpenOptions,
    version: Option<Version>,
) -> PyResult<Source> {
    let options = options.any(version.map(|version| version.0));
    let opened = wait(py, open::open(url, &options))?;
    Ok(Source { inner: opened.source, format: opened.format })
}

#[pymethods]
impl Source {
    /// Name of the format.
    #[getter]
    fn format(&self) -> &'static str {
        self.format
    }

    /// All nodes in the order of their paths, each with whether it is an array.
    fn nodes(&self) -> Vec<(String, bool)> {
        let nodes = self.inner.dataset().nodes.iter();
        nodes.map(|(path, node)| (path.clone(), matches!(node, Node::Array(_)))).collect()
    }

    /// Whether the node at a path is an array; `None` where there is none.
    fn is_array(&self, path: &str) -> Option<bool> {
        let node = self.inner.dataset().nodes.get(path)?;
        Some(matches!(node, Node::Array(_)))
    }

    /// The Zarr document of a node.
    fn document(&self, path: &str) -> PyResult<String> {
        let rendered = match self.inner.dataset().nodes.get(path) {
            Some(node) => node.render(),
            None => Err(Error::NotFound { what: "node", name: path.to_owned() }),
        };
        Ok(String::from_utf8_lossy(&rendered.map_err(to_python)?).into_owned())
    }

    fn array(&self, path: &str) -> PyResult<Array> {
        Ok(Array::of_source(Reader::new(&self.inner, path).map_err(to_python)?))
    }
}
