//! Shards of a Neuroglancer volume: label blocks in, chunks out, in the order of their numbers.
//!
//! A block becomes a chunk without its voxels: its table is mapped to labels, and its cells are packed anew.

use std::sync::Arc;

use bytes::Bytes;
use chunkyard_array::codec::gzip_onto;
use chunkyard_array::codec::label_block::{Block, relabel};
use chunkyard_format::precomputed::{Encoding, Packing, Scale, ShardWriter};
use chunkyard_store::{Error, Result, Store, cpu};
use rayon::prelude::*;

use super::blocks::LabelBlock;
use super::files::{NewFile, aside, settle};
use super::geometry::Frame;
use super::lines::Spread;

/// The level at which chunks are compressed: the next ones take twice the time for one part in a hundred.
const LEVEL: u32 = 6;

/// A shard of a volume, growing.
#[derive(Debug)]
pub(super) struct VolumeShard {
    store: Store,
    path: String,
    temp: String,
    writer: ShardWriter,
    form: Form,
    sizes: Spread,
}

/// How a chunk is encoded.
#[derive(Debug, Clone)]
struct Form {
    frame: Frame,
    raw: bool,
    packing: Packing,
}

impl VolumeShard {
    /// Begins the shard of a number.
    pub(super) fn begin(store: &Store, scale: &Scale, shard: u64) -> Result<Self> {
        let sharding = scale.sharding.ok_or_else(|| Error::invalid("a scale without sharding"))?;
        let path = format!("{}/{}", scale.key, sharding.file_name(shard));
        let temp = if store.renames() { aside(&path)? } else { path.clone() };
        let writer = ShardWriter::new(store.clone(), &temp, sharding, shard)?;
        let form = Form {
            frame: Frame::of(scale),
            raw: scale.encoding == Encoding::Raw,
            packing: sharding.data_encoding,
        };
        Ok(Self { store: store.clone(), path, temp, writer, form, sizes: Spread::default() })
    }

    /// Appends blocks with the numbers of their chunks, in ascending order of these.
    pub(super) async fn push(&mut self, blocks: Vec<(u64, LabelBlock)>) -> Result<()> {
        let form = Arc::new(self.form.clone());
        let chunks = cpu(move || {
            let encode =
                |(id, block): (u64, LabelBlock)| form.encode(block).map(|chunk| (id, chunk));
            blocks.into_par_iter().map(encode).collect::<Result<Vec<_>>>()
        })
        .await??;
        for (id, chunk) in chunks {
            self.sizes.add(chunk.len() as u64);
            self.writer.push(id, chunk).await?;
        }
        Ok(())
    }

    /// Makes the shard durable and visible. Also says how large chunks are.
    pub(super) async fn finish(self) -> Result<(Option<NewFile>, Spread)> {
        let Some(written) = self.writer.finish().await? else { return Ok((None, self.sizes)) };
        settle(&self.store, &self.temp, &self.path).await?;
        let file = NewFile::new(&self.path, written.bytes, written.crc32c);
        Ok((Some(file), self.sizes))
    }

    /// Removes what was written.
    pub(super) async fn abort(self) {
        self.writer.abort().await;
    }
}

impl Form {
    fn encode(&self, block: LabelBlock) -> Result<Bytes> {
        let LabelBlock { place, supervoxels, labels, mut bytes, .. } = block;
        if supervoxels != labels {
            let mut next = labels.iter();
            relabel(&mut bytes, |label| next.next().copied().unwrap_or(label))?;
        }
        let block = Block::parse(&bytes)?;
        let extent = self.extent(place.at);
        let mut chunk = Vec::new();
        match self.raw {
            true => raw_onto(&block, extent, &mut chunk)?,
            false => block.segmentation_onto(extent, &mut chunk)?,
        }
        if self.packing == Packing::Raw {
            return Ok(chunk.into());
        }
        let mut packed = Vec::new();
        gzip_onto(&chunk, LEVEL, &mut packed)?;
        packed.shrink_to_fit();
        Ok(packed.into())
    }

    /// Voxels of a chunk: less at the upper edges of the volume.
    fn extent(&self, at: [u64; 3]) -> [u32; 3] {
        std::array::from_fn(|axis| {
            let chunk = self.frame.chunk[axis];
            let ahead = self.frame.size[axis].saturating_sub(at[axis].saturating_mul(chunk));
            u32::try_from(ahead.min(chunk)).unwrap_or(u32::MAX)
        })
    }
}

/// The voxels of a part of a block, x fastest.
fn raw_onto(block: &Block<'_>, extent: [u32; 3], out: &mut Vec<u8>) -> Result<()> {
    let mut voxels = vec![0u64; block.voxel_count()];
    block.decode_into(&mut voxels)?;
    let [width, height, _] = block.size().map(|size| size as usize);
    let [x, y, z] = extent.map(|extent| extent as usize);
    for slice in voxels.chunks(width * height).take(z) {
        for line in slice.chunks(width).take(y) {
            line.iter().take(x).for_each(|label| out.extend_from_slice(&label.to_le_bytes()));
        }
    }
    Ok(())
}
