//! A session: one version, with changes on top if it is writable.

use std::sync::Arc;

use chunkyard_array::{ArraySpec, GroupSpec};
use chunkyard_engine::Error;
use chunkyard_engine::repo::{self, CommitOptions, NodeKind, Rebase, Virtual};
use futures::TryStreamExt;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::array::Array;
use crate::error::to_python;
use crate::json;
use crate::refs::columns;
use crate::runtime::wait;

/// One version of a repository.
#[pyclass(frozen, module = "chunkyard._engine")]
pub(crate) struct Session {
    inner: Arc<repo::Session>,
}

impl Session {
    pub(crate) fn new(inner: Arc<repo::Session>) -> Self {
        Self { inner }
    }

    pub(crate) fn inner(&self) -> &Arc<repo::Session> {
        &self.inner
    }
}

/// A reference into an object outside the repository: chunk index, URL, offset, length, etag, time of
/// the last change in milliseconds, CRC-32C.
type VirtualChunk = (Vec<u64>, String, u64, u64, Option<String>, Option<i64>, Option<u32>);

#[pymethods]
impl Session {
    /// The branch it commits to; `None` if it is read-only.
    #[getter]
    fn branch(&self) -> Option<&str> {
        self.inner.branch()
    }

    /// The snapshot it is based on.
    #[getter]
    fn snapshot_id(&self) -> String {
        self.inner.snapshot().snapshot_id.clone()
    }

    /// All nodes in the order of their paths, each with whether it is an array.
    fn nodes(&self) -> Vec<(String, bool)> {
        let tree = self.inner.tree();
        let nodes = tree.nodes().filter(|node| !node.is_table());
        nodes.map(|node| (node.path.clone(), matches!(node.kind, NodeKind::Array(_)))).collect()
    }

    /// Whether the node at a path is an array; `None` if there is none.
    fn is_array(&self, path: &str) -> Option<bool> {
        let tree = self.inner.tree();
        tree.get(path)
            .filter(|node| !node.is_table())
            .map(|node| matches!(node.kind, NodeKind::Array(_)))
    }

    /// The Zarr document of a node.
    fn document(&self, py: Python<'_>, path: &str) -> PyResult<String> {
        let rendered = wait(py, async {
            let node = self.inner.node(path)?;
            let attributes = (*self.inner.attributes(path).await?).clone();
            Ok(match &node.kind {
                NodeKind::Array(_) => node.array()?.with_attributes(attributes)?.render(),
                NodeKind::Group { extra } => {
                    let group = GroupSpec::new(attributes);
                    let members = extra.iter();
                    members.fold(group, |g, (k, v)| g.with_member(k, v.clone())).render()
                }
                NodeKind::Table(_) => {
                    let what = format!("a Zarr document of the table {path}");
                    return Err(Error::Unsupported { what });
                }
            })
        })?;
        Ok(String::from_utf8_lossy(&rendered).into_owned())
    }

    fn array(&self, py: Python<'_>, path: &str) -> PyResult<Array> {
        Ok(Array::of_session(&wait(py, self.inner.array(path))?))
    }

    /// Where the chunks of an array are, as columns.
    fn chunk_refs<'py>(&self, py: Python<'py>, path: &str) -> PyResult<Bound<'py, PyDict>> {
        let chunks: Vec<_> = wait(py, self.inner.chunk_refs(path).try_collect())?;
        columns(py, self.inner.repository().store(), &chunks)
    }

    /// Creates an array from its Zarr document.
    fn create_array(&self, py: Python<'_>, path: &str, document: &str) -> PyResult<()> {
        wait(py, async {
            let spec = ArraySpec::parse(document.as_bytes())?;
            self.inner.create_array(path, spec).await.map(drop)
        })
    }

    fn create_group(&self, path: &str, attributes: &Bound<'_, PyAny>) -> PyResult<()> {
        let attributes = json::attributes(attributes)?;
        self.inner.create_group(path, attributes).map(drop).map_err(to_python)
    }

    fn set_attributes(&self, path: &str, attributes: &Bound<'_, PyAny>) -> PyResult<()> {
        let attributes = json::attributes(attributes)?;
        self.inner.set_attributes(path, attributes).map_err(to_python)
    }

    fn resize(&self, py: Python<'_>, path: &str, shape: Vec<u64>) -> PyResult<()> {
        wait(py, self.inner.resize(path, &shape))
    }

    fn delete(&self, path: &str) -> PyResult<()> {
        self.inner.delete(path).map_err(to_python)
    }

    fn move_node(&self, source: &str, target: &str) -> PyResult<()> {
        self.inner.move_node(source, target).map_err(to_python)
    }

    /// From now on remembers the chunks that are read, for rebases.
    fn track_reads(&self) {
        self.inner.track_reads();
    }

    /// Points chunks at ranges of objects elsewhere. `checked`: each must carry a guard.
    fn set_virtual(
        &self,
        py: Python<'_>,
        path: &str,
        chunks: Vec<VirtualChunk>,
        checked: bool,
    ) -> PyResult<()> {
        let references = chunks.into_iter().map(
            |(index, url, offset, length, etag, last_modified_ms, crc32c)| {
                let url = url.into();
                (index, Virtual { url, offset, length, etag, last_modified_ms, crc32c })
            },
        );
        py.detach(|| match checked {
            true => self.inner.set_virtual_all(path, references),
            false => references
                .into_iter()
                .try_for_each(|(at, to)| self.inner.set_virtual_unchecked(path, &at, to)),
        })
        .map_err(to_python)
    }

    /// The changes since the base.
    fn status<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let diff = wait(py, self.inner.status())?;
        json::to_python(py, &diff)
    }

    /// Commits; gives the id of the new snapshot. `rebase` is a policy, or `None`.
    fn commit(
        &self,
        py: Python<'_>,
        message: String,
        properties: &Bound<'_, PyAny>,
        rebase: &Bound<'_, PyAny>,
        amend: bool,
        allow_empty: bool,
    ) -> PyResult<String> {
        let properties = json::properties(properties)?;
        let rebase: Option<Rebase> = json::of_python(rebase)?;
        let options = CommitOptions {
            message,
            properties,
            rebase,
            amend,
            allow_empty,
            ..CommitOptions::default()
        };
        Ok(wait(py, self.inner.commit(options))?.snapshot_id.clone())
    }

    fn rebase(&self, py: Python<'_>, policy: &Bound<'_, PyAny>) -> PyResult<String> {
        let policy: Rebase = json::of_python(policy)?;
        Ok(wait(py, self.inner.rebase(policy))?.snapshot_id.clone())
    }

    /// A fork of the session, which `Repository.open_fork` opens in another process.
    fn fork<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let fork = wait(py, self.inner.fork())?;
        pack(py, &fork)
    }

    /// The changes of a fork so far, durable, for a merge.
    fn changes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let changes = wait(py, self.inner.changes_so_far())?;
        pack(py, &changes)
    }

    fn merge(&self, py: Python<'_>, changes: &[u8]) -> PyResult<()> {
        let changes = unpack("a change set", changes)?;
        py.detach(|| self.inner.merge(changes)).map_err(to_python)
    }
}

/// Bytes for another process: compact, and readable by the same version only.
pub(crate) fn pack<'py>(
    py: Python<'py>,
    value: &(impl serde::Serialize + Sync),
) -> PyResult<Bound<'py, PyBytes>> {
    let packed = py.detach(|| rmp_serde::to_vec_named(value)).map_err(|error| {
        to_python(Error::invalid(format!("cannot be sent to another process: {error}")))
    })?;
    Ok(PyBytes::new(py, &packed))
}

/// The inverse of [`pack`].
pub(crate) fn unpack<T: serde::de::DeserializeOwned>(what: &str, packed: &[u8]) -> PyResult<T> {
    rmp_serde::from_slice(packed).map_err(|error| {
        to_python(Error::invalid(format!("these bytes are not {what} of this version: {error}")))
    })
}
