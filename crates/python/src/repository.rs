//! A repository.

use chunkyard_engine::repo::{
    self, CreateOptions, ExpireOptions, GcOptions, Level, ReferenceKind, RepackOptions,
};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::json;
use crate::options::{OpenOptions, Version};
use crate::runtime::wait;
use crate::session::{Session, unpack};

/// A versioned repository.
#[pyclass(frozen, module = "chunkyard._engine")]
pub(crate) struct Repository {
    inner: repo::Repository,
}

impl Repository {
    pub(crate) fn inner(&self) -> &repo::Repository {
        &self.inner
    }
}

#[pymethods]
impl Repository {
    /// Creates one. `config` and `properties` are documents.
    #[staticmethod]
    fn create(
        py: Python<'_>,
        url: &str,
        options: OpenOptions,
        default_branch: String,
        properties: &Bound<'_, PyAny>,
        config: &Bound<'_, PyAny>,
        force: bool,
    ) -> PyResult<Self> {
        let create = CreateOptions {
            default_branch,
            properties: json::properties(properties)?,
            config: json::of_python(config)?,
            force,
            store_root: None,
        };
        let inner = wait(py, repo::Repository::create(url, options.repository(), create))?;
        Ok(Self { inner })
    }

    #[staticmethod]
    fn open(py: Python<'_>, url: &str, options: OpenOptions) -> PyResult<Self> {
        Ok(Self { inner: wait(py, repo::Repository::open(url, options.repository()))? })
    }

    /// The state: snapshots, references, configuration, as one document.
    fn state<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let state = wait(py, self.inner.state())?;
        json::to_python(py, &*state)
    }

    fn readonly_session(&self, py: Python<'_>, version: Version) -> PyResult<Session> {
        Ok(Session::new(wait(py, self.inner.readonly_session(&version.0))?))
    }

    fn writable_session(&self, py: Python<'_>, branch: &str) -> PyResult<Session> {
        Ok(Session::new(wait(py, self.inner.writable_session(branch))?))
    }

    /// Opens a fork from [`Session::fork`].
    fn open_fork(&self, py: Python<'_>, fork: &[u8]) -> PyResult<Session> {
        let fork = unpack("a fork", fork)?;
        Ok(Session::new(wait(py, self.inner.open_fork(fork))?))
    }

    /// The snapshots from a version back to the first one, as documents.
    fn ancestry<'py>(&self, py: Python<'py>, version: Version) -> PyResult<Bound<'py, PyAny>> {
        let found = wait(py, async {
            let state = self.inner.state().await?;
            let tip = state.resolve(&version.0)?.snapshot_id.clone();
            Ok(state.ancestry(&tip).cloned().collect::<Vec<_>>())
        })?;
        json::to_python(py, &found)
    }

    /// Branches, or tags, each with the id of its snapshot.
    fn references(&self, py: Python<'_>, kind: &str) -> PyResult<Vec<(String, String)>> {
        let kind = reference_kind(kind)?;
        let state = wait(py, self.inner.state())?;
        let found = state.refs.values().filter(|reference| reference.kind == kind);
        Ok(found.map(|r| (r.name.clone(), r.snapshot_id.clone())).collect())
    }

    /// The id of the snapshot of a version.
    fn resolve(&self, py: Python<'_>, version: Version) -> PyResult<String> {
        wait(py, async {
            let state = self.inner.state().await?;
            Ok(state.resolve(&version.0)?.snapshot_id.clone())
        })
    }

    fn create_branch(&self, py: Python<'_>, name: &str, at: Version) -> PyResult<String> {
        let snapshot = wait(py, self.inner.create_branch(name, &at.0))?;
        Ok(snapshot.snapshot_id.clone())
    }

    fn create_tag(&self, py: Python<'_>, name: &str, at: Version, reuse: bool) -> PyResult<String> {
        let snapshot = wait(py, self.inner.create_tag(name, &at.0, reuse))?;
        Ok(snapshot.snapshot_id.clone())
    }

    fn delete_branch(&self, py: Python<'_>, name: &str) -> PyResult<()> {
        wait(py, self.inner.delete_branch(name))
    }

    fn delete_tag(&self, py: Python<'_>, name: &str) -> PyResult<()> {
        wait(py, self.inner.delete_tag(name))
    }

    fn reset_branch(
        &self,
        py: Python<'_>,
        name: &str,
        to: Version,
        expected: Option<&str>,
    ) -> PyResult<()> {
        wait(py, async { self.inner.reset_branch(name, &to.0, expected).await.map(drop) })
    }

    fn diff<'py>(
        &self,
        py: Python<'py>,
        before: Version,
        after: Version,
    ) -> PyResult<Bound<'py, PyAny>> {
        let diff = wait(py, self.inner.diff(&before.0, &after.0))?;
        json::to_python(py, &diff)
    }

    fn expire<'py>(
        &self,
        py: Python<'py>,
        older_than_ms: Option<i64>,
        keep_last: Option<usize>,
        drop_references: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        let options = ExpireOptions { older_than_ms, keep_last, drop_references };
        let expired = wait(py, self.inner.expire(&options))?;
        json::to_python(py, &expired)
    }

    fn garbage_collect<'py>(
        &self,
        py: Python<'py>,
        min_age_ms: i64,
        dry_run: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        let options = GcOptions { min_age_ms, dry_run };
        let report = wait(py, self.inner.garbage_collect(&options))?;
        json::to_python(py, &report)
    }

    fn optimise<'py>(&self, py: Python<'py>, branch: &str) -> PyResult<Bound<'py, PyAny>> {
        let report = wait(py, self.inner.optimise(branch))?;
        json::to_python(py, &report)
    }

    fn repack<'py>(
        &self,
        py: Python<'py>,
        branch: &str,
        live_share_min: f64,
    ) -> PyResult<Bound<'py, PyAny>> {
        let options = RepackOptions { live_share_min };
        let report = wait(py, self.inner.repack(branch, &options))?;
        json::to_python(py, &report)
    }

    fn verify<'py>(&self, py: Python<'py>, level: &str) -> PyResult<Bound<'py, PyAny>> {
        let report = wait(py, self.inner.verify(parse_level(level)?))?;
        json::to_python(py, &report)
    }
}

fn reference_kind(kind: &str) -> PyResult<ReferenceKind> {
    match kind {
        "branch" => Ok(ReferenceKind::Branch),
        "tag" => Ok(ReferenceKind::Tag),
        other => Err(PyValueError::new_err(format!("no reference is a {other:?}"))),
    }
}

/// How deep a verification looks, by its name.
pub(crate) fn parse_level(level: &str) -> PyResult<Level> {
    match level {
        "state" => Ok(Level::State),
        "metadata" => Ok(Level::Metadata),
        "existence" => Ok(Level::Existence),
        "bytes" => Ok(Level::Bytes),
        other => Err(PyValueError::new_err(format!(
            "level is one of 'state', 'metadata', 'existence' and 'bytes', not {other:?}"
        ))),
    }
}
