//! Where the bytes are: one interface over directories, memory and object stores.
//!
//! ```text
//!  Store ──▶ Backend ─┬▶ Local    directories: positioned reads, fsync, link, rename, lock
//!    │                ├▶ Object   memory, S3, GCS, Azure, HTTP: conditional puts
//!    │                ├▶ Dvid     label blocks of a DVID server, many to a request
//!    │                ├▶ Fault    any of them, dying at the n-th operation (tests)
//!    │                └▶ Counted  any of them, counting operations and bytes (tests, benches)
//!    ├─ fetch: many ranges of many objects, coalesced, bounded, in the order asked
//!    └─ Fetcher: the chunks that references name, here and elsewhere, all at once
//! ```
//!
//! Formats and the repository *locate* bytes ([`ChunkRef`]); only this crate moves them ([`Fetcher`]). It knows
//! paths and bytes, and neither arrays nor versions. As the lowest crate that can fail it also has the
//! [`Error`] of all of them, random identities ([`Uid`]) and the bridge from async code to compute threads ([`cpu`]).
//!
//! Three promises hold on every backend:
//!
//! - A read gives all the bytes asked for or an error, never fewer.
//! - [`put`](Backend::put) makes bytes readable; [`sync`](Backend::sync) makes them survive a power
//!   cut. On object stores the two are one.
//! - One [step](atomic) makes things visible atomically: [`link`](Backend::link), and on an object store
//!   [`create`](Backend::create) and [`replace`](Backend::replace). Its outcome
//!   is reported honestly: done, lost, or unknown.
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # tokio::runtime::Runtime::new()?.block_on(async {
//! use chunkyard_store::{Options, Store};
//!
//! let store = Store::open("memory://example", &Options::default())?;
//! store.put("c/0/0", vec!["four".into()]).await?;
//! assert_eq!(store.get_range("c/0/0", 1..3).await?, "ou");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok(())
//! # }
//! ```

#![forbid(unsafe_code)]

mod alone;
pub mod atomic;
mod backend;
mod below;
mod block;
mod cache;
mod checksum;
mod chunk_ref;
pub mod clock;
mod confine;
mod conflict;
mod counted;
mod cpu;
mod digest;
pub mod dvid_http;
pub mod error;
pub mod fault;
mod fetch;
mod fetcher;
mod group;
mod guard;
mod limits;
mod local;
mod location;
mod object;
mod offers;
mod options;
mod packing;
mod path;
mod pool;
pub mod publish;
mod remotes;
mod slices;
mod uid;
mod upload;
mod url;

use std::ops::{Deref, Range};
use std::sync::Arc;

use bytes::Bytes;

pub use self::alone::alone;
pub use self::backend::{
    Backend, Created, Dir, Kind, Linked, Links, Lock, Meta, Object, Replaced, Version,
};
pub use self::block::Block;
pub use self::cache::ByteCache;
pub use self::checksum::Check;
pub use self::chunk_ref::ChunkRef;
pub use self::conflict::{Conflict, ConflictKind};
pub use self::counted::{Counted, Counts};
pub use self::cpu::{Started, cpu, start};
pub use self::digest::Digest;
pub use self::error::{Error, ErrorKind, Noun, Result};
pub use self::fault::Fault;
pub use self::fetch::Request;
pub use self::fetcher::Fetcher;
pub use self::guard::Guard;
pub use self::limits::Limits;
pub use self::local::{Local, TEMP_PREFIX};
pub use self::location::Location;
pub use self::object::{ObjectBackend, is_refusal};
pub use self::options::{Durability, Options};
pub use self::packing::{BlockCodec, block_codec, register_block_codec, zstd_block_codec};
pub use self::path::check_path;
pub use self::pool::Pooled;
pub use self::remotes::Remotes;
pub use self::uid::Uid;
pub use self::upload::Upload;

/// An open store: a [`Backend`], the URL it was opened with and the limits to use it within. Cheap to
/// clone.
///
/// It dereferences to its backend, so every operation of [`Backend`] is one of the store's.
#[derive(Debug, Clone)]
pub struct Store {
    url: Arc<str>,
    backend: Arc<dyn Backend>,
    limits: Limits,
}

impl Store {
    /// Opens the store at `url`, without touching it: a missing directory is created by the first
    /// put, a missing bucket is an error of the first operation.
    ///
    /// | URL | Store |
    /// |---|---|
    /// | a path, `file:///path` | a directory |
    /// | `memory://name/prefix` | this process's memory; the same name is the same store |
    /// | `s3://bucket/prefix` | Amazon S3 and what speaks its language (option `endpoint`) |
    /// | `gs://bucket/prefix` | Google Cloud Storage |
    /// | `az://container/prefix` (also `azure`, `abfs`, `abfss`) | Azure Blob Storage |
    /// | `http://host/prefix`, `https://…` | any web server that serves ranges; read-only |
    pub fn open(url: &str, options: &Options) -> Result<Self> {
        Ok(Self { limits: options.limits, ..url::open(url, options)? })
    }

    /// A store in memory that no other code can open, and that goes with its last clone.
    pub fn unnamed(options: &Options) -> Result<Self> {
        Ok(Self { limits: options.limits, ..url::unnamed(options)? })
    }

    /// A store on a backend of one's own, within the default limits.
    pub fn from_backend(url: impl Into<Arc<str>>, backend: Arc<dyn Backend>) -> Self {
        Self { url: url.into(), backend, limits: Limits::default() }
    }

    /// The same store through another backend, such as a [`Fault`] around the first.
    pub fn with_backend(&self, backend: Arc<dyn Backend>) -> Self {
        Self { backend, ..self.clone() }
    }

    /// The store's URL, which [`Store::open`] accepts again; for a directory its absolute path.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The URL of an object of this store.
    pub fn object_url(&self, path: &str) -> String {
        let root = self.url.trim_end_matches('/');
        match root.contains("://") {
            true => format!("{root}/{path}"),
            false => format!("file://{root}/{path}"),
        }
    }

    /// How much may be under way at once, as asked for when the store was opened.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// The backend, to be wrapped in another one.
    pub fn backend(&self) -> &Arc<dyn Backend> {
        &self.backend
    }

    /// One range of one object. For several, [`Store::fetch`] is faster.
    pub async fn get_range(&self, path: &str, range: Range<u64>) -> Result<Bytes> {
        let mut parts = self.backend.get_ranges(path, &[range], None).await?;
        parts.pop().ok_or_else(|| Error::store("read", path, "the backend returned no bytes"))
    }
}

impl Deref for Store {
    type Target = dyn Backend;

    fn deref(&self) -> &Self::Target {
        &*self.backend
    }
}
