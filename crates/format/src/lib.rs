//! The one plug-in: how a format is read and written.
//!
//! ```text
//!  Format ─┬─ probe    is this yours?                       by content, never by name
//!          ├─ open   ─▶ Source   which arrays there are, where each chunk is
//!          ├─ create ─▶ Sink     takes the dataset, pack by pack; finish is the commit
//!          ├─ join   ─▶ PackSink the same for workers elsewhere, who write packs and never finish
//!          └─ edit   ─▶ Editor   changes what is there: nodes, elements, shapes, attributes
//! ```
//!
//! - A [`Dataset`] holds groups and arrays by path. An [`ArrayNode`] is the Zarr v3 metadata of its
//!   *chunks*, plus two facts that this metadata lacks: whether chunks are packed into shards, and
//!   whether chunks at the edge are clipped.
//! - A [`Survey`] of a dataset says where elements lie: axes, units, resolution, origin, pyramids. It is read from
//!   dimension names and attributes, which every format keeps, so it has no storage of its own.
//! - A [`Source`] locates chunks ([`ChunkRef`](chunkyard_store::ChunkRef)) and never fetches them. Its
//!   [`Fetcher`](chunkyard_store::Fetcher) does, the same for all formats.
//! - A [`Sink`] takes packs in any order and in parallel. A [`Pack`] is the unit of work, of resume
//!   and of distribution: its [`Receipt`] is all that is needed to adopt it later or elsewhere.
//! - A [`Reader`] reads regions and selections of any source, and [`check`] all of it; a [`Writer`]
//!   writes them where arrays can be changed. A [`MemorySource`] holds elements of the caller, to be
//!   written in any format.
//!
//! Anything that is not an array (branches, commits, label indices) stays out: rich formats keep their
//! own typed interface beside these traits. All formats are listed in `FORMATS` of the crate
//! `chunkyard_engine`.
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # tokio::runtime::Runtime::new()?.block_on(async {
//! use chunkyard_array::{ArraySpec, Region};
//! use chunkyard_format::{Format, OpenOptions, Place, Probe, Reader, zarr3::Zarr3};
//!
//! let place = Place::new("memory://formats/a.zarr", &chunkyard_store::Options::default())?;
//! let plain = vec![serde_json::json!({"name": "bytes"})];
//! let spec = ArraySpec::builder(&[4, 4], &[2, 2], "uint8").codecs(plain).build()?;
//! place.directory().put("zarr.json", vec![spec.render().into()]).await?;
//! place.directory().put("c/0/1", vec![vec![1, 2, 3, 4].into()]).await?;
//!
//! assert!(matches!(Zarr3.probe(&place).await?, Probe::Yes(_)));
//! let source = Zarr3.open(&place, &OpenOptions::default()).await?;
//! assert!(source.locate("/", &[vec![0, 1]]).await?[0].is_some());
//! let row = Reader::new(&source, "/")?.read_region(&Region::parse("1:2,1:4", &[4, 4])?).await?;
//! assert_eq!(&row[..], [0, 3, 4]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok(())
//! # }
//! ```

#![forbid(unsafe_code)]

pub mod badger;
mod check;
mod chunk_codecs;
pub mod container;
mod dataset;
pub mod dvid;
pub mod dvid_http;
mod edit;
mod encode;
mod finding;
pub mod hdf5;
#[doc(hidden)]
pub mod hostile;
mod joined;
pub mod keys;
mod memory;
mod meter;
mod path;
mod place;
pub mod precomputed;
mod read;
mod sink;
mod source;
mod space;
mod staging;
pub mod superchunk;
mod version;
mod worker_packs;
mod write;
pub mod zarr3;

use async_trait::async_trait;

pub use self::check::{Checked, FINDINGS_MAX, Report, Verdict, check};
pub use self::chunk_codecs::ChunkCodecs;
pub(crate) use self::dataset::check_node_path;
pub use self::dataset::{ArrayNode, Dataset, Edges, Loss, Node};
pub use self::edit::{Committed, Edit, EditOptions, Editor};
pub use self::encode::encode_chunk;
pub(crate) use self::encode::encode_with;
pub use self::finding::{Finding, Level, Severity};
pub use self::joined::taken_away;
pub use self::memory::MemorySource;
pub use self::meter::Meter;
pub use self::path::{is_within, normalise_path, parent_path};
pub use self::place::{Place, TABLE};
pub use self::read::Reader;
pub use self::read::{BATCHES, batched, fetch_chunks, in_chunk};
pub use self::sink::{CreateOptions, Pack, PackSink, PackWriter, Published, Receipt, Sink, Ticket};
pub use self::sink::{HELD_BYTES_MAX, JOURNAL_PLAN};
pub use self::source::{ChunkStream, Locate, Occupied, OpenOptions, Source};
pub use self::space::{Axis, Multiscale, Resolution, Space, Survey};
pub use self::space::{Fate, KEY as SPACE_KEY, carry_array, carry_group, in_zarr3};
pub use self::version::{Version, Versions};
pub use self::write::Writer;
pub use self::write::{Accept, Exclusion, Writers};
pub(crate) use chunkyard_store::publish;
use chunkyard_store::{Error, Result};

/// A way to lay out arrays in a store.
#[async_trait]
pub trait Format: Send + Sync {
    /// Its name, as the user types it.
    fn name(&self) -> &'static str;

    /// The file name endings, without the dot, that choose this format for a new dataset.
    fn extensions(&self) -> &'static [&'static str] {
        &[]
    }

    /// URL schemes that belong to this format alone; a URL with one of them is given to it before a store is opened.
    fn schemes(&self) -> &'static [&'static str] {
        &[]
    }

    /// Which older states of a dataset can still be read.
    fn versions(&self) -> Versions {
        Versions::One
    }

    /// Whether the root of a dataset is always a group, so that every array needs a name.
    fn names_every_array(&self) -> bool {
        false
    }

    /// Whether a place holds a dataset of this format.
    async fn probe(&self, place: &Place) -> Result<Probe>;

    /// Opens a dataset.
    async fn open(
        &self,
        place: &Place,
        options: &OpenOptions,
    ) -> Result<std::sync::Arc<dyn Source>>;

    /// How this format writes a dataset: unchanged where it can, otherwise as the nearest it has,
    /// otherwise an error that names what it lacks.
    fn express(&self, dataset: Dataset) -> Result<Dataset> {
        Err(Error::unsupported(format!(
            "writing {} ({} arrays)",
            self.name(),
            dataset.arrays().count()
        )))
    }

    /// Shape of the smallest box of elements that can be written on its own: a shard, or a chunk.
    fn grain(&self, node: &ArrayNode) -> Result<Vec<u64>> {
        match &node.sharding {
            Some(sharding) => Ok(sharding.shard_shape.clone()),
            None => Ok(node.grid()?.chunk_shape().to_vec()),
        }
    }

    /// Whether every chunk is written, even if it holds the fill value only: for formats that cannot
    /// leave one out.
    fn stores_every_chunk(&self) -> bool {
        false
    }

    /// Begins to write a dataset, as [`Format::express`] returned it. Refuses an occupied place,
    /// unless told to replace its content.
    async fn create(
        &self,
        place: &Place,
        dataset: Dataset,
        options: CreateOptions,
    ) -> Result<Box<dyn Sink>> {
        drop((place, dataset, options));
        Err(Error::unsupported(format!("writing {}", self.name())))
    }

    /// Joins a sink that was created at a place, perhaps by another process, to write packs for it.
    async fn join(
        &self,
        _place: &Place,
        _dataset: &Dataset,
        _ticket: &Ticket,
    ) -> Result<Box<dyn PackSink>> {
        Err(Error::unsupported(format!("writing {} by several workers", self.name())))
    }

    /// Which changes its [editor](Format::edit) can make.
    fn edits(&self) -> &'static [Edit] {
        &[]
    }

    /// Whether the chunks of all arrays are packed in one way, so that the codecs of a new array have
    /// no effect: [`EditOptions::packing`] chooses it instead.
    fn packs_arrays_alike(&self) -> bool {
        false
    }

    /// Opens a dataset to change it.
    async fn edit(
        &self,
        place: &Place,
        _options: &EditOptions,
    ) -> Result<std::sync::Arc<dyn Editor>> {
        Err(Edit::Write.refused(place.url(), self))
    }
}

/// What a format says about a place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Probe {
    /// It holds a dataset of this format, recognised by this.
    Yes(String),
    /// It does not, and this is missing.
    No(String),
}
