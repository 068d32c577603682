//! The Chunkyard engine: opens arrays in any format and moves them to any other.
//!
//! ```text
//!  URL ── open ──▶ Source ─┐                          which of the formats is there, by its content
//!                          ├─ pipeline ──▶ Sink       copy, rewrite, transcode or regrid
//!  URL ── Wishes ──▶ Plan ─┘                 │        what will be done, before anything is
//!                                          finish     one atomic step makes it visible
//!
//!  array ◀── store ◀── format ◀── repo ◀── labels ◀── engine      each crate uses those on its left
//! ```
//!
//! A program depends on this crate alone; it gives the others on under short names.
//!
//! - [`store`] opens URLs: directories, memory, object stores. Everything reads and writes through it.
//! - [`format`](mod@format) has the traits of a format ([`Source`](format::Source), [`Sink`](format::Sink)), and Zarr, HDF5,
//!   containers and superchunks.
//! - [`repo`] keeps arrays under version control: transactions, branches, tags, time travel.
//! - [`labels`] knows which body a supervoxel of a segmentation belongs to.
//! - [`open`] lists all formats and recognises what is at a URL.
//! - [`export`] writes a segmentation as Arrow shards and as a volume for Neuroglancer, shard by shard.
//! - [`pipeline`] converts and links, in bounded memory, resumable, by one process or many.
//! - [`view`] shows a source as Zarr v3 or as a volume for Neuroglancer, chunk by chunk, on demand.
//! - [`job`] lets any number of processes share work, by a directory on any store.
//! - [`Error`] is sorted by what a caller does about it.
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # tokio::runtime::Runtime::new()?.block_on(async {
//! use chunkyard_array::{ArraySpec, Region};
//! use chunkyard_engine::format::{CreateOptions, OpenOptions, Reader};
//! use chunkyard_engine::pipeline::{Conversion, Request, RunOptions, Wishes};
//! use chunkyard_engine::repo::{self, CommitOptions, Repository};
//!
//! let (from, to) = ("memory://engine-example", "memory://engine-example-copy/field.zarr");
//! let repo = Repository::create(from, repo::OpenOptions::default(), repo::CreateOptions::default()).await?;
//! let session = repo.writable_session("main").await?;
//! let spec = ArraySpec::builder(&[4, 4], &[2, 2], "uint8").build()?;
//! let field = session.create_array("/field", spec).await?;
//! field.write_region(&Region::whole(&[4, 4]), (0..16).collect::<Vec<u8>>().into()).await?;
//! session.commit(CommitOptions::message("sixteen values")).await?;
//!
//! let wishes = Wishes { chunks: Some(vec![1, 4]), ..Wishes::default() };
//! let request = Request { source: from.into(), target: to.into(), wishes, ..Request::default() };
//! let conversion = Conversion::prepare(request).await?;
//! conversion.run(CreateOptions::default(), &RunOptions::default()).await?;
//!
//! let opened = chunkyard_engine::open::open(to, &OpenOptions::default()).await?;
//! let reader = Reader::new(&opened.source, "/field")?;
//! let row = reader.read_region(&Region::parse("2:3,0:4", &[4, 4])?).await?;
//! assert_eq!(&row[..], [8, 9, 10, 11]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok(())
//! # }
//! ```
//!
//! `examples/` has more of this size.

#![forbid(unsafe_code)]

pub mod block_table;
pub mod export;
pub mod job;
pub mod open;
pub mod pipeline;
mod scales;
pub mod view;

pub use chunkyard_format::Meter;
pub use chunkyard_store::{Error, ErrorKind, Noun, Result, error};
/// The CRC-32C of some bytes behind others, whose CRC-32C is `crc`.
pub fn crc32c(crc: u32, bytes: &[u8]) -> u32 {
    crc32c::crc32c_append(crc, bytes)
}

pub use {
    chunkyard_format as format, chunkyard_labels as labels, chunkyard_repo as repo,
    chunkyard_store as store,
};
