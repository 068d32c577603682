//! What NumPy writes as text: data types, Python literals, and the headers of `.npy` files.
//!
//! ```text
//!  literal   ('x', '<f8', (3,))   {'shape': (2, 4)}       Python's texts, numbers, lists, dictionaries
//!  descr     <f4   >M8[25s]   |S8                         a plain type ⇄ DType
//!  row       float64   [('x', '<f8'), ('y', '<i2')]       a type of rows ⇄ RowType
//!  npy       \x93NUMPY … {'descr': '<f8', …}              the header of a file
//! ```
//!
//! All of it is a function of bytes and texts, which may be hostile: nothing here panics, nests deeper
//! than a bound, or reserves memory on the word of a number.

mod descr;
mod literal;
pub mod npy;
mod row;
#[cfg(test)]
mod tests;

pub use self::row::{Field, RowType, item_bytes, parse, render, repr};
