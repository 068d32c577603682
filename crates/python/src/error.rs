//! Each sort of error is mapped once, to the classes of `chunkyard.exceptions`.

use std::error::Error as _;

use chunkyard_engine::{Error, ErrorKind};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyModule;

use crate::json;

/// The name of the class in `chunkyard.exceptions`.
fn class_of(error: &Error) -> &'static str {
    match error {
        Error::AlreadyExists { .. } => "AlreadyExistsError",
        Error::BaseExpired { .. } | Error::SessionCollected { .. } => "SessionExpiredError",
        Error::VirtualSourceChanged { .. } => "VirtualSourceChangedError",
        Error::OutcomeUnknown { .. } => "OutcomeUnknownError",
        other => match other.kind() {
            ErrorKind::Invalid => "InvalidError",
            ErrorKind::NotFound => "NotFoundError",
            ErrorKind::Conflict => "ConflictError",
            ErrorKind::Corrupt => "CorruptError",
            ErrorKind::Unsupported => "UnsupportedError",
            ErrorKind::Store => "StoreError",
        },
    }
}

/// The exception for an error of the engine.
pub(crate) fn to_python(error: Error) -> PyErr {
    Python::attach(|py| instance(py, &error).map_or_else(|failed| failed, PyErr::from_value))
}

fn instance<'py>(py: Python<'py>, error: &Error) -> PyResult<Bound<'py, PyAny>> {
    static MODULE: PyOnceLock<Py<PyModule>> = PyOnceLock::new();
    let module = MODULE
        .get_or_try_init(py, || Ok::<_, PyErr>(py.import("chunkyard.exceptions")?.unbind()))?;
    let class = module.bind(py).getattr(class_of(error))?;
    let exception = class.call1((message(error),))?;
    if let Error::Conflict { conflicts, .. } = error {
        let listed = json::to_python(py, conflicts)?;
        exception.call_method1("_set_conflicts", (listed,))?;
    }
    Ok(exception)
}

/// The message with all its causes.
fn message(error: &Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(next) = cause {
        let said = next.to_string();
        // Some libraries repeat the words of their cause in their own.
        if !text.contains(&said) {
            text.push_str(": ");
            text.push_str(&said);
        }
        cause = next.source();
    }
    text
}
