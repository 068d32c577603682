//! Memory of Python, lent to the engine for the duration of a call.
//!
//! A NumPy array hands out its bytes by the buffer protocol, which also keeps it from being freed or
//! resized. The engine then decodes into them, or encodes from them, with no copy between.
#![expect(unsafe_code, reason = "slices of memory that Python owns")]

use std::ptr::NonNull;

use bytes::Bytes;
use chunkyard_array::OutputMemory;
use pyo3::buffer::PyBuffer;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// The bytes behind an object, held until this is dropped, on any thread.
pub(crate) struct Lent {
    buffer: Option<PyBuffer<u8>>,
    start: NonNull<u8>,
    len: usize,
}

// SAFETY: the pointer is valid until the buffer is released, which happens in `drop` only, with the
// interpreter attached. While a call runs, only Python itself can also reach the bytes: a program that
// changes an array from another thread while it is read or written gets mixed elements, as with every
// library that releases the interpreter, and nothing worse.
unsafe impl Send for Lent {}
// SAFETY: as above; through a shared reference the bytes are only read.
unsafe impl Sync for Lent {}

impl Lent {
    /// Borrows the bytes of an object: contiguous, of unsigned bytes, and writable on request.
    pub(crate) fn new(object: &Bound<'_, PyAny>, writable: bool) -> PyResult<Self> {
        let buffer = PyBuffer::<u8>::get(object)?;
        if !buffer.is_c_contiguous() {
            return Err(PyValueError::new_err("the memory is not contiguous"));
        }
        if writable && buffer.readonly() {
            return Err(PyValueError::new_err("the memory cannot be written to"));
        }
        let len = buffer.len_bytes();
        let start = NonNull::new(buffer.buf_ptr().cast::<u8>()).unwrap_or(NonNull::dangling());
        Ok(Self { buffer: Some(buffer), start, len })
    }

    /// The bytes, to be read by the engine without a copy.
    pub(crate) fn into_bytes(self) -> Bytes {
        Bytes::from_owner(self)
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        let Some(buffer) = self.buffer.take() else { return };
        let mut held = Some(buffer);
        let released = Python::try_attach(|_| drop(held.take()));
        if released.is_none() {
            // The interpreter is gone and takes its memory with it.
            std::mem::forget(held);
        }
    }
}

impl AsRef<[u8]> for Lent {
    fn as_ref(&self) -> &[u8] {
        // SAFETY: `start` and `len` describe the buffer that `self` holds.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }
}

impl OutputMemory for Lent {
    fn as_mut_slice(&mut self) -> &mut [u8] {
        // SAFETY: as in `as_ref`; the caller that made the buffer an output has checked that it is
        // writable, and `&mut self` is the only way to the bytes in here.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
    }
}
