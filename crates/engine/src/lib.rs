//! The Chunkyard engine: a store, a versioned repository on it, and the pipeline that moves arrays.
//!
//! ```text
//!  repo ──▶ pipeline::cpu          async where one waits, threads where one computes
//!    │
//!    ▼
//!  store                           directories and object stores behind one interface
//! ```
//!
//! - [`store`] opens URLs; everything else reads and writes through it.
//! - [`repo`] keeps arrays under version control: transactions, branches, tags, time travel.
//! - [`pipeline`] is the bridge from waiting to computing.
//! - [`Error`] is sorted by what a caller does about it.

#![forbid(unsafe_code)]

pub mod open;
pub mod pipeline;

pub use chunkyard_format::Meter;
pub use chunkyard_store::{Error, ErrorKind, Result, error};
pub use {chunkyard_format as format, chunkyard_repo as repo, chunkyard_store as store};
