//! Segmentations as shards: Arrow files from a store of DVID, Neuroglancer volumes, and how cost grows.

mod arrow;
mod blocks;
mod growth;
mod volume;
mod watch;
mod work;

use std::error::Error;

use chunkyard_engine::export::{
    ArrowOptions, Codec, Emit, Exporter, Plan, Progress, Report, Request,
};
use chunkyard_engine::format::OpenOptions;
use chunkyard_engine::store::{Durability, Limits, Options, Store};

pub use arrow::arrow;
pub use blocks::{blocks, shards};
pub use growth::growth;
pub use volume::{precomputed, volume};
pub use work::{work, worker};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// The default of `chunkyard export-shards`.
const MEMORY_BYTES: usize = 1 << 30;

/// What is exported, from where, and how.
struct Wish<'a> {
    source: &'a str,
    emit: Emit,
    codec: Codec,
    spec: Option<String>,
    durability: Durability,
}

impl Wish<'_> {
    /// The export, open, from a source that is opened anew.
    async fn open(&self, target: &str) -> Result<Exporter> {
        let limits = Limits { bytes_in_flight: MEMORY_BYTES, ..Limits::default() };
        let store = Options { durability: self.durability, limits, ..Options::default() };
        let target = Store::open(target, &store)?;
        let request = Request {
            source: self.source.to_owned(),
            open: OpenOptions { store, ..OpenOptions::default() },
            spec: self.spec.as_ref().map(|spec| spec.clone().into_bytes()),
            scales: Some(1),
            emit: vec![self.emit],
            arrow: ArrowOptions { codec: self.codec, ..ArrowOptions::default() },
            ..Request::default()
        };
        let (plan, source) = Plan::prepare(&request, &target).await?;
        Ok(Exporter::new(plan, source, target, limits).await?)
    }

    /// Exports into a new directory.
    async fn run(&self, target: &str) -> Result<(Exporter, Report)> {
        let exporter = self.open(target).await?;
        let report = exporter.run(&Progress::default()).await?;
        Ok((exporter, report))
    }
}

/// Whether every shard is there, and every file as it was written.
async fn is_whole(exporter: &Exporter) -> Result<bool> {
    let checked = exporter.check().await?;
    Ok(checked.errors() == 0 && checked.present + checked.empty == checked.expected)
}

/// Bytes of the label blocks of an export.
fn plain_bytes(report: &Report) -> u64 {
    report.scales.iter().map(|scale| scale.sizes.plain.total).sum()
}

/// A specification of a volume of `size` voxels along x, y and z, with numbers of chunks split as given.
fn spec(size: [u64; 3], preshift: u32, minishard: u32, shard: u32) -> String {
    serde_json::json!({
        "@type": "neuroglancer_multiscale_volume",
        "type": "segmentation",
        "data_type": "uint64",
        "num_channels": 1,
        "scales": [{
            "key": "s0",
            "size": size,
            "resolution": [8, 8, 8],
            "voxel_offset": [0, 0, 0],
            "chunk_sizes": [[64, 64, 64]],
            "encoding": "compressed_segmentation",
            "compressed_segmentation_block_size": [8, 8, 8],
            "sharding": {
                "@type": "neuroglancer_uint64_sharded_v1",
                "hash": "identity",
                "preshift_bits": preshift,
                "minishard_bits": minishard,
                "shard_bits": shard,
                "minishard_index_encoding": "gzip",
                "data_encoding": "gzip",
            },
        }],
    })
    .to_string()
}

/// Bits that the numbers of all chunks of a volume need.
fn chunk_bits(size: [u64; 3]) -> u32 {
    size.iter().map(|voxels| u64::BITS - (voxels.div_ceil(64) - 1).leading_zeros()).sum()
}
