//! Chunkyard engine: the store, and what is built on it.

pub mod error;
pub mod store;

pub use error::{Error, ErrorKind, Result};
