//! A dataset of any format, for reading.

use std::any::Any;
use std::sync::Arc;

use chunkyard_array::Region;
use chunkyard_engine::format::container::{Container, ContainerSource};
use chunkyard_engine::format::superchunk::{self, BlzSource};
use chunkyard_engine::format::{self, Dataset, Node, Place, Reader};
use chunkyard_engine::{Error, Noun, Result, open, repo};
use futures::TryStreamExt;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};

use crate::array::Array;
use crate::blz::Blz;
use crate::container;
use crate::error::to_python;
use crate::options::{OpenOptions, Version};
use crate::refs::columns;
use crate::runtime::wait;

/// Groups and arrays of any format.
#[pyclass(frozen, module = "chunkyard._engine")]
pub(crate) struct Source {
    inner: Arc<dyn format::Source>,
    format: &'static str,
    /// The container, if it is one: it has layers and statistics.
    container: Option<Container>,
    /// The BLZ dataset, if it is one: it has rows.
    blz: Option<superchunk::Blz>,
    /// The options it was opened with, for another process.
    url: String,
    options: Py<PyAny>,
}

/// Opens the dataset at a URL; its content tells the format.
#[pyfunction]
pub(crate) fn open_source(
    py: Python<'_>,
    url: &str,
    options: Bound<'_, PyAny>,
    version: Option<Version>,
) -> PyResult<Source> {
    let how = options.extract::<OpenOptions>()?.any(version.map(|version| version.0));
    let Opened { source, format, container, blz } = wait(py, opened(url, &how))?;
    let (url, options) = (url.to_owned(), options.unbind());
    Ok(Source { inner: source, format, container, blz, url, options })
}

struct Opened {
    source: Arc<dyn format::Source>,
    format: &'static str,
    container: Option<Container>,
    blz: Option<superchunk::Blz>,
}

async fn opened(url: &str, how: &format::OpenOptions) -> Result<Opened> {
    let place = Place::new(url, &how.store)?;
    let format = open::recognise(&place).await?;
    let source = format.open(&place, how).await?;
    let any: &dyn Any = &*source;
    let container = any.downcast_ref::<ContainerSource>().map(|it| it.container().clone());
    let blz = any.downcast_ref::<BlzSource>().and_then(|it| it.blz().cloned());
    Ok(Opened { source, format: format.name(), container, blz })
}

impl Source {
    fn container(&self) -> PyResult<&Container> {
        let what =
            || Error::unsupported(format!("layers of {}, which is {}", self.url, self.format));
        self.container.as_ref().ok_or_else(|| to_python(what()))
    }
}

#[pymethods]
impl Source {
    /// Name of the format.
    #[getter]
    fn format(&self) -> &'static str {
        self.format
    }

    /// A text that differs for every state of the dataset.
    #[getter]
    fn identity(&self) -> String {
        self.inner.identity()
    }

    /// What a reader should know.
    fn cautions(&self) -> Vec<String> {
        self.inner.cautions()
    }

    /// The same as rows, if it is one BLZ array or table.
    fn blz(&self) -> Option<Blz> {
        self.blz.clone().map(Blz::new)
    }

    /// The layers of a container, oldest first.
    fn layers<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        container::layers(py, self.container()?)
    }

    /// The statistics of an array of a container, if they are known.
    fn statistics<'py>(&self, py: Python<'py>, path: &str) -> PyResult<Option<Bound<'py, PyDict>>> {
        container::statistics(py, self.container()?, path)
    }

    /// Another process opens the same version.
    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let open = py.import("chunkyard._engine")?.getattr("open_source")?;
        let version = match self.inner.version() {
            Some(repo::Version::Snapshot(id)) => Some(("snapshot", id)),
            _ => None,
        };
        (open, (&self.url, &self.options, version)).into_pyobject(py)
    }

    /// All nodes in the order of their paths, each with whether it is an array.
    fn nodes(&self) -> Vec<(String, bool)> {
        nodes(self.inner.dataset())
    }

    /// Whether the node at a path is an array; `None` if there is none.
    fn is_array(&self, path: &str) -> Option<bool> {
        is_array(self.inner.dataset(), path)
    }

    /// The Zarr document of a node.
    fn document(&self, path: &str) -> PyResult<String> {
        document(self.inner.dataset(), path)
    }

    /// Where the chunks of an array are, as columns.
    fn chunk_refs<'py>(&self, py: Python<'py>, path: &str) -> PyResult<Bound<'py, PyDict>> {
        chunk_refs(py, &*self.inner, path)
    }

    fn array(&self, path: &str) -> PyResult<Array> {
        Ok(Array::of_source(Reader::new(&self.inner, path).map_err(to_python)?))
    }
}

/// All nodes of a dataset in the order of their paths, each with whether it is an array.
pub(crate) fn nodes(dataset: &Dataset) -> Vec<(String, bool)> {
    let nodes = dataset.nodes.iter();
    nodes.map(|(path, node)| (path.clone(), matches!(node, Node::Array(_)))).collect()
}

/// Whether the node at a path is an array; `None` if there is none.
pub(crate) fn is_array(dataset: &Dataset, path: &str) -> Option<bool> {
    dataset.nodes.get(path).map(|node| matches!(node, Node::Array(_)))
}

/// The Zarr document of a node.
pub(crate) fn document(dataset: &Dataset, path: &str) -> PyResult<String> {
    let rendered = match dataset.nodes.get(path) {
        Some(node) => node.render(),
        None => Err(Error::NotFound { what: Noun::Node, name: path.to_owned() }),
    };
    Ok(String::from_utf8_lossy(&rendered.map_err(to_python)?).into_owned())
}

/// Where the chunks of an array are, as columns.
pub(crate) fn chunk_refs<'py>(
    py: Python<'py>,
    source: &dyn format::Source,
    path: &str,
) -> PyResult<Bound<'py, PyDict>> {
    let array = source.dataset().array(path).map_err(to_python)?;
    let everything = Region::whole(array.spec.shape());
    let chunks: Vec<_> = wait(py, source.chunks(path, &everything).try_collect())?;
    columns(py, source.fetcher().store(), &chunks)
}
