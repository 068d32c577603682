//! Reports the progress of a long call to Python.

use std::future::Future;
use std::sync::Arc;

use chunkyard_engine::{Meter, Result};
use pyo3::prelude::*;

use crate::runtime::wait_watching;

/// A Python function that gets the progress: bytes done, bytes in all, packs done, packs in all.
#[derive(Debug)]
pub(crate) struct Watch {
    meter: Arc<Meter>,
    report: Option<Py<PyAny>>,
}

impl Watch {
    pub(crate) fn new(meter: Arc<Meter>, report: Option<Py<PyAny>>) -> Self {
        Self { meter, report }
    }

    /// Waits for work that advances the meter, and reports its progress, the last time at its end.
    pub(crate) fn wait<T, F>(&self, py: Python<'_>, work: F) -> PyResult<T>
    where
        T: Send,
        F: Future<Output = Result<T>> + Send,
    {
        let done = wait_watching(py, work, |py| self.tell(py))?;
        self.tell(py)?;
        Ok(done)
    }

    /// Reports the progress.
    pub(crate) fn tell(&self, py: Python<'_>) -> PyResult<()> {
        if let Some(report) = &self.report {
            let (packs, packs_total) = self.meter.packs();
            report.call1(py, (self.meter.done(), self.meter.total(), packs, packs_total))?;
        }
        Ok(())
    }
}
