//! Futures of the engine as futures of asyncio.
//!
//! An answer that the engine has in memory is given at once: no future, no other thread. All other
//! calls run on the engine's threads. Their results go to a queue, one per event loop, and the loop is
//! woken only when the queue was empty: a thousand chunks that arrive together wake it once.
//!
//! A future that is cancelled on either side is over on both.

use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll, Waker};

use chunkyard_engine::Result;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use tokio::task::AbortHandle;

use crate::error::to_python;
use crate::runtime;

/// Turns a result into a Python object, on the thread of the event loop.
type Convert = Box<dyn FnOnce(Python<'_>) -> PyResult<Py<PyAny>> + Send>;

/// Results for one event loop that it has not taken yet.
struct Queue {
    event_loop: Py<PyAny>,
    completed: Mutex<Vec<(Py<PyAny>, Convert)>>,
}

/// The queues of event loops with running calls, by the address of the loop. A queue holds its loop,
/// so that no two live loops share an address.
static QUEUES: Mutex<Option<HashMap<usize, Weak<Queue>>>> = Mutex::new(None);

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A panic leaves no half-made change: each change is one insertion.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The result of a future of the engine, or a future of asyncio if it is not ready.
pub(crate) fn answer<T, F, C>(py: Python<'_>, future: F, convert: C) -> PyResult<Py<PyAny>>
where
    T: Send + 'static,
    F: Future<Output = Result<T>> + Send + 'static,
    C: FnOnce(Python<'_>, T) -> PyResult<Py<PyAny>> + Send + 'static,
{
    let handle = runtime::handle()?;
    let mut future = Box::pin(future);
    let polled = py.detach(|| {
        let _entered = handle.enter();
        // The next poll leaves another waker.
        future.as_mut().poll(&mut Context::from_waker(Waker::noop()))
    });
    match polled {
        Poll::Ready(result) => convert(py, result.map_err(to_python)?),
        Poll::Pending => start(py, &handle, future, convert),
    }
}

fn start<T, F, C>(
    py: Python<'_>,
    handle: &tokio::runtime::Handle,
    future: Pin<Box<F>>,
    convert: C,
) -> PyResult<Py<PyAny>>
where
    T: Send + 'static,
    F: Future<Output = Result<T>> + Send + 'static,
    C: FnOnce(Python<'_>, T) -> PyResult<Py<PyAny>> + Send + 'static,
{
    let event_loop = running_loop(py)?;
    let waiting = event_loop.call_method0("create_future")?;
    let queue = queue_of(&event_loop);
    let completes = waiting.clone().unbind();
    let task = handle.spawn(async move {
        let result = future.await;
        let convert: Convert = Box::new(move |py| convert(py, result.map_err(to_python)?));
        queue.push(completes, convert);
    });
    waiting.call_method1("add_done_callback", (Stop(task.abort_handle()),))?;
    Ok(waiting.unbind())
}

fn running_loop(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    static GET: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    GET.import(py, "asyncio", "get_running_loop")?.call0()
}

fn queue_of(event_loop: &Bound<'_, PyAny>) -> Arc<Queue> {
    let address = event_loop.as_ptr().addr();
    let mut queues = lock(&QUEUES);
    let queues = queues.get_or_insert_default();
    if let Some(queue) = queues.get(&address).and_then(Weak::upgrade) {
        return queue;
    }
    queues.retain(|_, queue| queue.strong_count() > 0);
    let event_loop = event_loop.clone().unbind();
    let queue = Arc::new(Queue { event_loop, completed: Mutex::default() });
    queues.insert(address, Arc::downgrade(&queue));
    queue
}

impl Queue {
    fn push(self: Arc<Self>, future: Py<PyAny>, convert: Convert) {
        let is_first = {
            let mut completed = lock(&self.completed);
            completed.push((future, convert));
            completed.len() == 1
        };
        if is_first {
            // The interpreter is gone or the loop is closed: then no caller waits.
            Python::try_attach(|py| {
                let drain = Drain(self.clone());
                self.event_loop.call_method1(py, "call_soon_threadsafe", (drain,)).is_ok()
            });
        }
    }
}

/// Called by the event loop: hands over all results.
#[pyclass(frozen)]
struct Drain(Arc<Queue>);

#[pymethods]
impl Drain {
    fn __call__(&self, py: Python<'_>) -> PyResult<()> {
        let completed = std::mem::take(&mut *lock(&self.0.completed));
        for (future, convert) in completed {
            let future = future.bind(py);
            if future.call_method0("done")?.extract()? {
                continue; // cancelled meanwhile
            }
            match convert(py) {
                Ok(result) => future.call_method1("set_result", (result,))?,
                Err(error) => future.call_method1("set_exception", (error.into_value(py),))?,
            };
        }
        Ok(())
    }
}

/// Called by the event loop when a future is done: if it was cancelled, stops the engine's future.
#[pyclass(frozen)]
struct Stop(AbortHandle);

#[pymethods]
impl Stop {
    fn __call__(&self, _future: &Bound<'_, PyAny>) {
        // Has no effect on a future that has ended.
        self.0.abort();
    }
}
