//! Neuroglancer's precomputed volumes.
//!
//! Specification: neuroglancer, `src/datasource/precomputed/volume.md` and `sharded.md`; docs/formats/precomputed.md.
//! Compatible implementations: neuroglancer, TensorStore, cloud-volume.
//!
//! ```text
//!  info                     what the volume is, and its scales
//!  8_8_8/041f9.shard        a shard of a scale: an index, then chunks and the indices of minishards
//!  8_8_8/0-64_0-64_64-128   or a chunk, by its bounds
//! ```
//!
//! - `info` and `sharding` are the metadata; `choose` picks a sharding.
//! - `morton` numbers the chunks of a grid, `shard_grid` tells which of them share a shard.
//! - `volume` makes a dataset of a volume and the reverse; `axes` turns x, y, z into the order of an array, `codecs` an
//!   encoding into a chain of codecs; `express` says what becomes of any dataset.
//! - `source` locates chunks: by the names of `chunk_files`, or in shards, whose indices `shard_reader` reads.
//! - `unsharded` makes a volume of arrays of any format, to be served chunk by chunk.
//! - `properties` is what a viewer lists of segments.
//! - `shard_writer` writes a shard in one pass, from chunks in order; `pack_writer` takes them in any.

mod axes;
mod choose;
mod chunk_files;
mod codecs;
mod express;
pub(crate) mod hostile;
mod info;
mod json;
mod morton;
mod murmur;
mod pack_writer;
mod properties;
mod shard_grid;
mod shard_index;
mod shard_reader;
mod shard_writer;
mod sharding;
mod sink;
mod source;
mod spool;
#[cfg(test)]
mod tests;
mod unsharded;
mod volume;

use std::sync::Arc;

use async_trait::async_trait;
use chunkyard_store::{Error, Result};

pub use self::choose::ShardWish;
pub use self::info::{Encoding, Info, Scale, VolumeKind, VoxelType};
pub use self::morton::{Morton, Walk};
pub use self::properties::{Property, PropertyValues, SegmentProperties};
pub use self::shard_grid::{ShardBoxes, ShardGrid};
pub use self::shard_writer::{ShardWriter, WrittenShard};
pub use self::sharding::{Hash, Packing, Sharding, Slot};
pub use self::sink::PrecomputedSink;
use self::sink::Scales;
pub use self::source::PrecomputedSource;
pub use self::unsharded::Unsharded;
use crate::worker_packs::Member;
use crate::{
    CreateOptions, Dataset, Format, OpenOptions, PackSink, Place, Probe, Sink, Source, Ticket,
};

/// A precomputed volume.
#[derive(Debug, Clone, Copy)]
pub struct Precomputed;

/// The file that makes a directory a volume.
const INFO: &str = "info";

/// Bytes of that file at most.
const INFO_BYTES_MAX: u64 = 16 << 20;

#[async_trait]
impl Format for Precomputed {
    fn name(&self) -> &'static str {
        "precomputed"
    }

    fn extensions(&self) -> &'static [&'static str] {
        &["precomputed"]
    }

    fn names_every_array(&self) -> bool {
        true
    }

    async fn probe(&self, place: &Place) -> Result<Probe> {
        let meta = match place.directory().head(INFO).await {
            Ok(meta) => meta,
            Err(Error::NotFound { .. }) => return Ok(Probe::No(format!("no {INFO}"))),
            Err(error) => return Err(error),
        };
        if meta.size > INFO_BYTES_MAX {
            return Ok(Probe::No(format!("its {INFO} has {} bytes", meta.size)));
        }
        // Meshes, skeletons and annotations have a file of that name too.
        let bytes = place.directory().get(INFO).await?.bytes;
        let document: Option<serde_json::Value> = serde_json::from_slice(&bytes).ok();
        let is_volume = document.is_some_and(|document| {
            document.get("scales").is_some_and(serde_json::Value::is_array)
                && document.get("data_type").is_some()
        });
        Ok(match is_volume {
            true => Probe::Yes(format!("it has {INFO} with scales")),
            false => Probe::No(format!("its {INFO} has no scales")),
        })
    }

    async fn open(&self, place: &Place, options: &OpenOptions) -> Result<Arc<dyn Source>> {
        options.refuse_version("a precomputed volume")?;
        Ok(Arc::new(PrecomputedSource::open(place.directory().clone()).await?))
    }

    fn express(&self, dataset: Dataset) -> Result<Dataset> {
        express::express(dataset)
    }

    async fn create(
        &self,
        place: &Place,
        dataset: Dataset,
        options: CreateOptions,
    ) -> Result<Box<dyn Sink>> {
        Ok(Box::new(PrecomputedSink::create(place, dataset, options).await?))
    }

    async fn join(
        &self,
        place: &Place,
        dataset: &Dataset,
        ticket: &Ticket,
    ) -> Result<Box<dyn PackSink>> {
        Ok(Box::new(Member::join(place, Scales::new(dataset)?, ticket).await?))
    }
}
