//! The Chunkyard engine: opens arrays in any format and moves them to any other.
//!
//! ```text
//!  array ◀── store ◀── format ◀── repo ◀── engine      each crate uses those on its left
//!
//!  engine = open ──▶ which of the formats is at a URL
//!           pipeline ──▶ any source into any sink, copying, transcoding or regridding
//! ```
//!
//! A program depends on this crate alone; it gives the others on under short names.
//!
//! - [`store`] opens URLs: directories, memory, object stores. Everything reads and writes through it.
//! - [`format`](mod@format) has the traits of a format ([`Source`](format::Source), [`Sink`](format::Sink)), and Zarr, HDF5,
//!   containers and superchunks.
//! - [`repo`] keeps arrays under version control: transactions, branches, tags, time travel.
//! - [`open`] lists all formats and recognises what is at a URL.
//! - [`pipeline`] converts and links, in bounded memory, resumable, by one process or many.
//! - [`Error`] is sorted by what a caller does about it.

#![forbid(unsafe_code)]

pub mod open;
pub mod pipeline;

pub use chunkyard_format::Meter;
pub use chunkyard_store::{Error, ErrorKind, Noun, Result, error};
pub use {chunkyard_format as format, chunkyard_repo as repo, chunkyard_store as store};
