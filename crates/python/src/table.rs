//! The rows of a table, batch by batch, as messages of Arrow's stream format.
//!
//! pyarrow reads each message where it is, without a copy; memory holds one batch at a time.

use arrow_ipc::writer::StreamWriter;
use chunkyard_engine::repo::{KeyRange, Table};
use chunkyard_engine::{Error, Result};
use futures::stream::BoxStream;
use futures::{StreamExt, TryStreamExt};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use tokio::sync::Mutex;

use crate::error::to_python;
use crate::runtime::wait;

/// A scan of a table under way.
#[pyclass(frozen, module = "chunkyard._engine")]
pub(crate) struct TableScan {
    schema: Vec<u8>,
    batches: Mutex<BoxStream<'static, Result<Vec<u8>>>>,
}

impl TableScan {
    /// Starts to read a table, or some columns of it.
    pub(crate) fn new(table: &Table, columns: Option<&[String]>) -> PyResult<Self> {
        Self::start(table, columns).map_err(to_python)
    }

    fn start(table: &Table, columns: Option<&[String]>) -> Result<Self> {
        let names: Option<Vec<&str>> =
            columns.map(|columns| columns.iter().map(String::as_str).collect());
        let rows = table.scan(&KeyRange::All, names.as_deref())?;
        let all = table.schema();
        let schema = match &names {
            None => all.as_ref().clone(),
            Some(names) => {
                let numbers = names.iter().map(|name| all.index_of(name));
                let numbers =
                    numbers.collect::<std::result::Result<Vec<_>, _>>().map_err(refused)?;
                all.project(&numbers).map_err(refused)?
            }
        };
        let mut writer = StreamWriter::try_new(Vec::new(), &schema).map_err(refused)?;
        let schema = std::mem::take(writer.get_mut());
        let batches = rows.map(move |batch| {
            writer.write(&batch?).map_err(refused)?;
            Ok(std::mem::take(writer.get_mut()))
        });
        Ok(Self { schema, batches: Mutex::new(batches.boxed()) })
    }
}

#[pymethods]
impl TableScan {
    /// The message that says which columns there are.
    #[getter]
    fn schema<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.schema)
    }

    /// The message of the next batch; `None` at the end.
    fn next<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let batch = wait(py, async { self.batches.lock().await.try_next().await })?;
        Ok(batch.map(|batch| PyBytes::new(py, &batch)))
    }
}

fn refused(error: impl std::fmt::Display) -> Error {
    Error::unsupported(format!("these rows as Arrow messages: {error}"))
}
