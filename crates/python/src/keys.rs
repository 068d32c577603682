//! A session as keys and values, for the store of zarr-python.
//!
//! Each method gives its result, or a future of asyncio if it is not ready; methods whose names end
//! in `_sync` wait themselves.

use std::future::Future;
use std::sync::Arc;

use bytes::Bytes;
use chunkyard_engine::Result;
use chunkyard_engine::repo::{self, ByteRange, Virtual};
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};

use crate::bridge::answer;
use crate::error::to_python;
use crate::memory::Lent;
use crate::runtime::wait;
use crate::session::Session;

/// The keys of a session.
#[pyclass(frozen, module = "chunkyard._engine")]
pub(crate) struct Keys {
    inner: repo::Keys,
}

/// Keys that are being listed.
#[pyclass(frozen, module = "chunkyard._engine")]
pub(crate) struct Listing {
    inner: Arc<tokio::sync::Mutex<repo::Listing>>,
}

/// A range of a value: from and to, from, or, without a first number, how many at the end.
type Range = (Option<u64>, Option<u64>);

#[pymethods]
impl Keys {
    #[new]
    fn new(session: &Session) -> Self {
        Self { inner: repo::Keys::new(session.inner().clone()) }
    }

    /// The value of a key, or a range of it, as bytes; `None` if there is no such key.
    fn get(&self, py: Python<'_>, key: String, range: Option<Range>) -> PyResult<Py<PyAny>> {
        let (keys, range) = (self.inner.clone(), range.map(byte_range));
        answer(py, async move { keys.get(&key, range).await }, value)
    }

    fn get_sync<'py>(
        &self,
        py: Python<'py>,
        key: &str,
        range: Option<Range>,
    ) -> PyResult<Py<PyAny>> {
        let found = wait(py, self.inner.get(key, range.map(byte_range)))?;
        value(py, found)
    }

    /// Many values or ranges of them, located and fetched together.
    fn get_many(
        &self,
        py: Python<'_>,
        wanted: Vec<(String, Option<Range>)>,
    ) -> PyResult<Py<PyAny>> {
        let keys = self.inner.clone();
        let wanted: Vec<_> =
            wanted.into_iter().map(|(key, range)| (key, range.map(byte_range))).collect();
        answer(py, async move { keys.get_many(&wanted).await }, |py, found| {
            let found = found.into_iter().map(|it| value(py, it)).collect::<PyResult<Vec<_>>>()?;
            Ok(PyList::new(py, found)?.into_any().unbind())
        })
    }

    fn set(&self, py: Python<'_>, key: String, bytes: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        let (keys, bytes) = (self.inner.clone(), copied(bytes)?);
        answer(py, async move { keys.set(&key, bytes).await }, nothing)
    }

    fn set_sync(&self, py: Python<'_>, key: &str, bytes: &Bound<'_, PyAny>) -> PyResult<()> {
        wait(py, self.inner.set(key, copied(bytes)?))
    }

    /// Sets a key if it does not exist; gives whether it was set.
    fn set_if_not_exists(
        &self,
        py: Python<'_>,
        key: String,
        bytes: &Bound<'_, PyAny>,
    ) -> PyResult<Py<PyAny>> {
        let (keys, bytes) = (self.inner.clone(), copied(bytes)?);
        answer(py, async move { keys.set_if_not_exists(&key, bytes).await }, plain)
    }

    fn delete(&self, py: Python<'_>, key: String) -> PyResult<Py<PyAny>> {
        self.ask(py, |keys| async move { keys.delete(&key).await }, nothing)
    }

    fn delete_sync(&self, py: Python<'_>, key: &str) -> PyResult<()> {
        wait(py, self.inner.delete(key))
    }

    fn delete_dir(&self, py: Python<'_>, prefix: String) -> PyResult<Py<PyAny>> {
        self.ask(py, |keys| async move { keys.delete_dir(&prefix).await }, nothing)
    }

    fn exists(&self, py: Python<'_>, key: String) -> PyResult<Py<PyAny>> {
        self.ask(py, |keys| async move { keys.exists(&key).await }, plain)
    }

    /// How many bytes a value has; `None` if there is no such key.
    fn size(&self, py: Python<'_>, key: String) -> PyResult<Py<PyAny>> {
        self.ask(py, |keys| async move { keys.size(&key).await }, plain)
    }

    fn size_prefix(&self, py: Python<'_>, prefix: String) -> PyResult<Py<PyAny>> {
        self.ask(py, |keys| async move { keys.size_prefix(&prefix).await }, plain)
    }

    fn is_empty(&self, py: Python<'_>, prefix: String) -> PyResult<Py<PyAny>> {
        self.ask(py, |keys| async move { keys.is_empty(&prefix).await }, plain)
    }

    fn list_dir(&self, py: Python<'_>, prefix: String) -> PyResult<Py<PyAny>> {
        self.ask(py, |keys| async move { keys.list_dir(&prefix).await }, plain)
    }

    fn list_prefix(&self, prefix: &str) -> Listing {
        Listing { inner: Arc::new(self.inner.list_prefix(prefix).into()) }
    }

    /// The array and the chunk that a key names; `None` for every other key.
    fn chunk(&self, key: &str) -> PyResult<Option<(String, Vec<u64>)>> {
        self.inner.chunk(key).map_err(to_python)
    }

    /// Points a chunk at a range of an object elsewhere.
    #[expect(clippy::too_many_arguments, reason = "the columns of a reference")]
    fn set_virtual(
        &self,
        key: &str,
        url: &str,
        offset: u64,
        length: u64,
        etag: Option<String>,
        last_modified_ms: Option<i64>,
        crc32c: Option<u32>,
    ) -> PyResult<()> {
        let url = url.into();
        let reference = Virtual { url, offset, length, etag, last_modified_ms, crc32c };
        self.inner.set_virtual(key, reference).map_err(to_python)
    }
}

impl Keys {
    fn ask<T, F>(
        &self,
        py: Python<'_>,
        question: impl FnOnce(repo::Keys) -> F,
        convert: impl FnOnce(Python<'_>, T) -> PyResult<Py<PyAny>> + Send + 'static,
    ) -> PyResult<Py<PyAny>>
    where
        T: Send + 'static,
        F: Future<Output = Result<T>> + Send + 'static,
    {
        answer(py, question(self.inner.clone()), convert)
    }
}

#[pymethods]
impl Listing {
    /// The next keys; none at the end.
    fn next(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let listing = self.inner.clone();
        answer(py, async move { listing.lock().await.next().await }, plain)
    }
}

fn byte_range(range: Range) -> ByteRange {
    match range {
        (Some(from), Some(to)) => ByteRange::Within(from..to),
        (Some(from), None) => ByteRange::From(from),
        (None, count) => ByteRange::Last(count.unwrap_or(0)),
    }
}

/// A copy of the bytes of an object, which the caller may change after the call: zarr-python passes
/// views of the user's array if no codec compresses it.
fn copied(object: &Bound<'_, PyAny>) -> PyResult<Bytes> {
    Ok(Bytes::copy_from_slice(Lent::new(object, false)?.as_ref()))
}

fn value(py: Python<'_>, found: Option<Bytes>) -> PyResult<Py<PyAny>> {
    Ok(found.map_or_else(|| py.None(), |bytes| PyBytes::new(py, &bytes).into_any().unbind()))
}

fn nothing(py: Python<'_>, (): ()) -> PyResult<Py<PyAny>> {
    Ok(py.None())
}

fn plain<T>(py: Python<'_>, result: T) -> PyResult<Py<PyAny>>
where
    T: for<'py> IntoPyObject<'py>,
{
    result.into_py_any(py)
}
