//! Exports, and reading what they wrote as a stranger would: with Arrow's own reader.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, UInt32Type, UInt64Type};
use arrow_ipc::reader::FileReader;
use chunkyard_array::codec::gunzip;
use chunkyard_array::codec::label_block::{Block, from_segmentation, relabel};
use chunkyard_array::codec::packed::zstd_unpacked;
use chunkyard_engine::Result;
use chunkyard_engine::export::{Exporter, Plan, Progress, Report, Request};
use chunkyard_engine::format::precomputed::{Morton, Packing, Scale, Sharding};
use chunkyard_engine::format::{Place, Source};
use chunkyard_engine::store::{Limits, Options, Store};
use serde_json::{Value, json};

/// A record of a shard.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Row {
    /// The file without its ending.
    pub(super) stem: String,
    pub(super) labels: Vec<u64>,
    pub(super) supervoxels: Vec<u64>,
    /// The label block.
    pub(super) block: Vec<u8>,
}

impl Row {
    /// The voxels, with supervoxels or with labels.
    pub(super) fn voxels(&self, mapped: bool) -> Vec<u64> {
        let mut block = self.block.clone();
        if mapped {
            let mut labels = self.labels.iter();
            relabel(&mut block, |_| *labels.next().unwrap()).unwrap();
        }
        let block = Block::parse(&block).unwrap();
        let mut voxels = vec![0; block.voxel_count()];
        block.decode_into(&mut voxels).unwrap();
        voxels
    }
}

/// A size, an offset, and preshift, minishard and shard bits.
type ScaleBits = ([u64; 3], [i64; 3], [u32; 3]);

/// A specification of scales, each of a size, an offset, and preshift, minishard and shard bits.
pub(super) fn spec(scales: &[ScaleBits]) -> Vec<u8> {
    let scale = |(number, (size, offset, bits)): (usize, &ScaleBits)| {
        let edge = 8 << number;
        json!({
            "key": format!("{edge}_{edge}_{edge}"), "size": size, "voxel_offset": offset,
            "resolution": [edge, edge, edge], "chunk_sizes": [[64, 64, 64]],
            "encoding": "compressed_segmentation", "compressed_segmentation_block_size": [8, 8, 8],
            "sharding": {
                "@type": "neuroglancer_uint64_sharded_v1", "hash": "identity", "preshift_bits": bits[0],
                "minishard_bits": bits[1], "shard_bits": bits[2],
                "minishard_index_encoding": "gzip", "data_encoding": "gzip"
            }
        })
    };
    let scales: Vec<Value> = scales.iter().enumerate().map(scale).collect();
    let document = json!({
        "@type": "neuroglancer_multiscale_volume", "type": "segmentation", "data_type": "uint64", "num_channels": 1,
        "scales": scales
    });
    document.to_string().into_bytes()
}

/// Exports an open source.
pub(super) async fn export(
    source: &Arc<dyn Source>,
    request: &Request,
    target: &Store,
) -> Result<Report> {
    let url = match request.source.as_str() {
        "" => "memory://export-source",
        named => named,
    };
    let place = Place::new(url, &Options::default())?;
    let plan = Plan::of(source, &place, request, target)?;
    let exporter = Exporter::new(plan, source.clone(), target.clone(), Limits::default()).await?;
    exporter.run(&Progress::default()).await
}

/// The records of all shards of a scale, by their positions in blocks. Everything that the files promise is checked.
pub(super) fn rows(directory: &Path, scale: usize) -> BTreeMap<[i32; 3], Row> {
    let mut all = BTreeMap::new();
    let Ok(files) = std::fs::read_dir(directory.join(format!("s{scale}"))) else { return all };
    for file in files {
        let path = file.unwrap().path();
        if path.extension().is_some_and(|ending| ending == "arrow") {
            for (at, row) in shard(&path) {
                assert!(all.insert(at, row).is_none(), "{at:?} is in two shards");
            }
        }
    }
    all
}

/// The records of a shard.
pub(super) fn shard(path: &Path) -> Vec<([i32; 3], Row)> {
    let index = std::fs::read(path.with_extension("json")).unwrap();
    let index: BTreeMap<String, usize> = serde_json::from_slice(&index).unwrap();
    let reader = FileReader::try_new(File::open(path).unwrap(), None).unwrap();
    let names: Vec<String> =
        reader.schema().fields().iter().map(|field| field.name().clone()).collect();
    assert_eq!(
        names,
        [
            "chunk_x",
            "chunk_y",
            "chunk_z",
            "labels",
            "supervoxels",
            "dvid_compressed_block",
            "uncompressed_size"
        ]
    );
    assert!(reader.schema().fields().iter().all(|field| !field.is_nullable()));
    let stem = path.file_stem().unwrap().to_str().unwrap().to_owned();
    let (mut found, mut last) = (Vec::new(), None);
    for batch in reader {
        let batch = batch.unwrap();
        let axis = |axis: usize| batch.column(axis).as_primitive::<Int32Type>();
        for row in 0..batch.num_rows() {
            let at = [axis(0).value(row), axis(1).value(row), axis(2).value(row)];
            let key = at.map(|at| (i64::from(at) * 64).to_string()).join("_");
            assert_eq!(index[&key], found.len(), "{key} of {}", path.display());
            // The order of z, then y, then x.
            let order = [at[2], at[1], at[0]];
            assert!(last.is_none_or(|last| last < order), "{at:?} of {}", path.display());
            last = Some(order);
            let list = |column: usize| {
                let list = batch.column(column).as_list::<i32>().value(row);
                list.as_primitive::<UInt64Type>().values().to_vec()
            };
            let packed = batch.column(5).as_binary::<i32>().value(row);
            let plain_bytes = batch.column(6).as_primitive::<UInt32Type>().value(row);
            let block = zstd_unpacked(packed, plain_bytes as usize).unwrap();
            assert_eq!(block.len(), plain_bytes as usize);
            // A frame says how large its content is, and carries a checksum of it.
            let descriptor = packed[4];
            assert!(
                descriptor >> 6 != 0 || descriptor & 0x20 != 0,
                "no content size: {descriptor:#x}"
            );
            assert!(descriptor & 4 != 0, "no checksum: {descriptor:#x}");
            let row = Row { stem: stem.clone(), labels: list(3), supervoxels: list(4), block };
            let table: Vec<u64> = Block::parse(&row.block).unwrap().labels().collect();
            assert_eq!(row.supervoxels, table);
            assert_eq!(row.labels.len(), table.len());
            assert!(row.labels.iter().any(|label| *label != 0), "{at:?} is empty");
            found.push((at, row));
        }
    }
    assert_eq!(index.len(), found.len());
    found
}

/// The chunks of a sharded scale of a Neuroglancer volume, decoded and padded to 64 voxels along each axis, by their positions
/// in blocks.
pub(super) fn volume(directory: &Path, scale: &Scale) -> BTreeMap<[i32; 3], Vec<u64>> {
    let (sharding, morton) = (scale.sharding.unwrap(), Morton::new(scale.grid()).unwrap());
    let mut all = BTreeMap::new();
    let Ok(files) = std::fs::read_dir(directory.join(&scale.key)) else { return all };
    for file in files {
        let path = file.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        let number = sharding.parse_file_name(name).unwrap();
        for (id, chunk) in chunks_of(&std::fs::read(&path).unwrap(), sharding) {
            let at = morton.decode(id).unwrap();
            assert_eq!(sharding.slot(id).shard, number);
            let extent: [u64; 3] =
                std::array::from_fn(|axis| (scale.size[axis] - at[axis] * 64).min(64));
            let block_at: [i32; 3] = std::array::from_fn(|axis| {
                (scale.voxel_offset[axis] / 64 + at[axis] as i64) as i32
            });
            assert!(all.insert(block_at, padded(&chunk, extent)).is_none());
        }
    }
    all
}

/// The chunks of a shard, by their numbers. Specification: neuroglancer, `sharded.md`.
fn chunks_of(shard: &[u8], sharding: Sharding) -> Vec<(u64, Vec<u8>)> {
    let word =
        |bytes: &[u8], at: usize| u64::from_le_bytes(bytes[at * 8..at * 8 + 8].try_into().unwrap());
    let unpack = |bytes: &[u8], packing| match packing {
        Packing::Raw => bytes.to_vec(),
        Packing::Gzip => gunzip(bytes, 64 << 20).unwrap(),
    };
    let minishards = 1usize << sharding.minishard_bits;
    let (head, body) = shard.split_at(16 * minishards);
    let mut chunks = Vec::new();
    for number in 0..minishards {
        let (start, end) = (word(head, 2 * number) as usize, word(head, 2 * number + 1) as usize);
        if start == end {
            continue;
        }
        let index = unpack(&body[start..end], sharding.minishard_index_encoding);
        let count = index.len() / 24;
        let (mut id, mut at) = (0, 0);
        for row in 0..count {
            id += word(&index, row);
            let start = at + word(&index, count + row) as usize;
            at = start + word(&index, 2 * count + row) as usize;
            assert_eq!(sharding.slot(id).minishard, number as u64);
            chunks.push((id, unpack(&body[start..at], sharding.data_encoding)));
        }
    }
    chunks
}

fn padded(chunk: &[u8], extent: [u64; 3]) -> Vec<u64> {
    let mut block = Vec::new();
    from_segmentation(chunk, extent.map(|extent| extent as u32), &mut block).unwrap();
    let block = Block::parse(&block).unwrap();
    let mut voxels = vec![0; block.voxel_count()];
    block.decode_into(&mut voxels).unwrap();
    let [x, y, _] = block.size().map(|size| size as usize);
    let mut out = vec![0; 64 * 64 * 64];
    for (number, line) in voxels.chunks(x).enumerate() {
        let start = (number / y * 64 + number % y) * 64;
        out[start..start + x].copy_from_slice(line);
    }
    out
}
