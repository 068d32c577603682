//! Waiting for the engine: the interpreter released, Ctrl-C honoured, a forked process refused.
//!
//! The threads start with the first call. A process that was forked afterwards has none of them, so
//! every call in it is an error at once, instead of waiting forever; `spawn` and `forkserver` start
//! clean. When the interpreter exits, it ends the threads and waits for them.

use std::future::Future;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use chunkyard_engine::Result;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use tokio::runtime::{Builder, Handle, Runtime};

use crate::error::to_python;

/// How often a waiting call looks for Ctrl-C.
const LOOK_FOR_SIGNALS: Duration = Duration::from_millis(50);
/// How long the exit of the interpreter waits for work that cannot be stopped.
const EXIT_TIMEOUT: Duration = Duration::from_secs(5);

enum State {
    NotStarted,
    Running { runtime: Runtime, process: u32 },
    ShutDown,
}

static STATE: Mutex<State> = Mutex::new(State::NotStarted);

fn state() -> MutexGuard<'static, State> {
    // A panic leaves no half-made change: each change is one assignment.
    STATE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The runtime, started on first use.
pub(crate) fn handle() -> PyResult<Handle> {
    let mut state = state();
    match &*state {
        State::Running { runtime, process } if *process == std::process::id() => {
            Ok(runtime.handle().clone())
        }
        State::Running { .. } => Err(PyRuntimeError::new_err(
            "this process was forked from one that had used chunkyard already, and its threads are \
             not here; start processes with the method 'spawn' or 'forkserver', or fork before \
             the first use",
        )),
        State::ShutDown => Err(PyRuntimeError::new_err("the interpreter is shutting down")),
        State::NotStarted => {
            let runtime = Builder::new_multi_thread()
                .enable_all()
                .thread_name("chunkyard")
                .build()
                .map_err(|error| PyRuntimeError::new_err(format!("no threads: {error}")))?;
            let handle = runtime.handle().clone();
            *state = State::Running { runtime, process: std::process::id() };
            Ok(handle)
        }
    }
}

/// Ends the threads; registered to run when the interpreter exits.
#[pyfunction]
pub(crate) fn shut_down(py: Python<'_>) {
    py.detach(|| {
        let ended = std::mem::replace(&mut *state(), State::ShutDown);
        match ended {
            State::Running { runtime, process } if process == std::process::id() => {
                runtime.shutdown_timeout(EXIT_TIMEOUT);
            }
            // The threads belong to the process this one was forked from.
            State::Running { runtime, .. } => std::mem::forget(runtime),
            State::NotStarted | State::ShutDown => {}
        }
    });
}

/// Waits for the engine without holding the interpreter. Ctrl-C drops the future, which stops the
/// engine, and is raised.
pub(crate) fn wait<T, F>(py: Python<'_>, future: F) -> PyResult<T>
where
    T: Send,
    F: Future<Output = Result<T>> + Send,
{
    wait_watching(py, future, |_| Ok(()))
}

/// Like [`wait`], with a Python function that is called from time to time. Its exception ends the
/// wait as Ctrl-C does.
pub(crate) fn wait_watching<T, F>(
    py: Python<'_>,
    future: F,
    mut watch: impl FnMut(Python<'_>) -> PyResult<()> + Send,
) -> PyResult<T>
where
    T: Send,
    F: Future<Output = Result<T>> + Send,
{
    let handle = handle()?;
    py.detach(|| {
        handle.block_on(async {
            tokio::pin!(future);
            loop {
                tokio::select! {
                    biased;
                    result = &mut future => return result.map_err(to_python),
                    () = tokio::time::sleep(LOOK_FOR_SIGNALS) => {
                        Python::attach(|py| {
                            py.check_signals()?;
                            watch(py)
                        })?;
                    }
                }
            }
        })
    })
}
