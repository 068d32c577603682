//! One conversion by many processes.

use std::sync::{Mutex, PoisonError};

use chunkyard_engine::Error;
use chunkyard_engine::pipeline::{self, Order, PackRange, Task, WorkOptions};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::convert::outcome_document;
use crate::json;
use crate::options::OpenOptions;
use crate::runtime::wait;
use crate::session::{pack, unpack};
use crate::watch::Watch;

/// Plans, hands out, collects and commits.
#[pyclass(frozen, module = "chunkyard._engine")]
pub(crate) struct Coordinator {
    /// `None` once it is finished.
    inner: tokio::sync::Mutex<Option<pipeline::Coordinator>>,
    watch: Watch,
}

impl Coordinator {
    pub(crate) fn new(inner: pipeline::Coordinator, watch: Watch) -> Self {
        Self { inner: tokio::sync::Mutex::new(Some(inner)), watch }
    }
}

fn finished() -> Error {
    Error::invalid("this conversion is finished")
}

#[pymethods]
impl Coordinator {
    /// The order for workers, the same for all tasks.
    fn order<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let order = wait(py, async {
            let inner = self.inner.lock().await;
            Ok(inner.as_ref().ok_or_else(finished)?.order().clone())
        })?;
        pack(py, &*order)
    }

    /// The packs that remain, as tasks for a number of workers.
    fn tasks(&self, py: Python<'_>, workers: usize) -> PyResult<Tasks> {
        let tasks = wait(py, async {
            let inner = self.inner.lock().await;
            Ok(inner.as_ref().ok_or_else(finished)?.tasks(workers))
        })?;
        Ok(Tasks { inner: Mutex::new(Box::new(tasks)) })
    }

    /// Takes over the receipts of a worker; gives the number of newly finished packs.
    fn adopt(&self, py: Python<'_>, done: &[u8]) -> PyResult<u64> {
        let done = unpack("the receipts of a worker", done)?;
        self.watch.wait(py, async {
            let mut inner = self.inner.lock().await;
            inner.as_mut().ok_or_else(finished)?.adopt(&done).await
        })
    }

    /// Records the finished packs, for a later attempt.
    fn pause(&self, py: Python<'_>) -> PyResult<()> {
        wait(py, async {
            let mut inner = self.inner.lock().await;
            inner.as_mut().ok_or_else(finished)?.pause().await
        })
    }

    /// Makes the result visible; gives the outcome, as a document.
    fn finish<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let outcome = self.watch.wait(py, async {
            let inner = self.inner.lock().await.take();
            inner.ok_or_else(finished)?.finish().await
        })?;
        json::to_python(py, &outcome_document(&outcome))
    }

    /// Lets go of the conversion, so that another process can continue it.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        wait(py, async {
            drop(self.inner.lock().await.take());
            Ok(())
        })
    }
}

/// Tasks, made one by one.
#[pyclass(frozen, module = "chunkyard._engine")]
pub(crate) struct Tasks {
    inner: Mutex<Box<dyn Iterator<Item = Task> + Send>>,
}

#[pymethods]
impl Tasks {
    fn __iter__(this: PyRef<'_, Self>) -> PyRef<'_, Self> {
        this
    }

    /// The packs of the next task.
    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let next = self.inner.lock().unwrap_or_else(PoisonError::into_inner).next();
        next.map(|task| pack(py, &task.packs)).transpose()
    }
}

/// Writes packs for a coordinator elsewhere.
#[pyclass(frozen, module = "chunkyard._engine")]
pub(crate) struct Worker {
    inner: pipeline::Worker,
}

#[pymethods]
impl Worker {
    /// Opens the source, makes the same plan, joins the target.
    #[staticmethod]
    fn join(py: Python<'_>, order: &[u8], options: OpenOptions) -> PyResult<Self> {
        let order: Order = unpack("an order", order)?;
        let options = WorkOptions { store: options.store(), ..WorkOptions::default() };
        Ok(Self { inner: wait(py, pipeline::Worker::join(&order, &options))? })
    }

    /// Writes packs; gives their receipts.
    fn work<'py>(&self, py: Python<'py>, packs: &[u8]) -> PyResult<Bound<'py, PyBytes>> {
        let packs: Vec<PackRange> = unpack("a task", packs)?;
        let done = wait(py, self.inner.work(&packs))?;
        pack(py, &done)
    }
}
