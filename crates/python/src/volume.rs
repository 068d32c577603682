//! A volume of labels that an object of Python holds: NumPy arrays, and all that can be sliced like one.

use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;
use chunkyard_array::Region;
use chunkyard_engine::labels::Volume;
use chunkyard_engine::{Error, Result};
use pyo3::buffer::PyBuffer;
use pyo3::prelude::*;

/// A function of Python that gives the labels of a box as contiguous `uint64`.
pub(crate) struct PythonVolume {
    shape: [u64; 3],
    read: Py<PyAny>,
    /// What the function raised, for the caller: an error of the engine has no place for it.
    raised: Mutex<Option<PyErr>>,
}

impl PythonVolume {
    pub(crate) fn new(shape: [u64; 3], read: Py<PyAny>) -> Self {
        Self { shape, read, raised: Mutex::default() }
    }

    /// The exception of the function, if it raised one.
    pub(crate) fn raised(&self) -> Option<PyErr> {
        self.raised.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

#[async_trait]
impl Volume for PythonVolume {
    fn shape(&self) -> [u64; 3] {
        self.shape
    }

    async fn read(&self, region: &Region) -> Result<Vec<u64>> {
        let labels = Python::attach(|py| {
            let labels = self.read.call1(py, (region.origin(), region.end()))?;
            PyBuffer::<u64>::get(labels.bind(py))?.to_vec(py)
        });
        labels.map_err(|raised| {
            let error = Error::invalid(format!("the volume cannot be read: {raised}"));
            *self.raised.lock().unwrap_or_else(PoisonError::into_inner) = Some(raised);
            error
        })
    }
}
