//! NumPy's `.npy` files, streamed: a header, then the elements in C or Fortran order.
//!
//! Elements leave and enter in slabs, as the engine takes them: row-major and little-endian. Byte
//! order and Fortran order of an input are undone slab by slab, so that no file needs to fit in
//! memory. A header, which [`numpy`](chunkyard_array::numpy) reads, is untrusted until it is checked, and a file that ends too early is an
//! error before anything is written.

mod header;
mod order;
mod read;
mod write;

pub(crate) use self::header::{Header, parse};
pub(crate) use self::order::{swap_bytes, swap_unit};
pub(crate) use self::read::{Reader, read_text};
pub(crate) use self::write::{Target, Writer};
