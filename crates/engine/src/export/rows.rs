//! The blocks of a shard as rows for a caller, instead of files.
//!
//! Rows come in the order of their numbers, a few MiB at a time, and are made when they are asked for: what a slow caller leaves
//! waiting is what one call gives, and the chunks that were fetched ahead.

use bytes::Bytes;
use chunkyard_array::codec::packed::zstd_pack_checked;
use chunkyard_store::{Error, Result, cpu};
use futures::StreamExt;
use rayon::prelude::*;

use super::arrow::{ArrowOptions, Codec};
use super::blocks::{Cursor, LabelBlock};
use super::exporter::{Exporter, Pieces, from_source};
use super::shards::Shard;
use super::stripped::strip;
use super::table::origin;

/// A label block as a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlockRow {
    /// Its number in the grid of the scale, a compressed Morton code.
    pub morton: u64,
    /// Its first voxel, along x, y and z.
    pub origin: [i32; 3],
    /// The label of each supervoxel.
    pub labels: Vec<u64>,
    /// The list of the block.
    pub supervoxels: Vec<u64>,
    /// The block, compressed.
    pub data: Bytes,
    /// Its bytes before it was compressed.
    pub raw_bytes: u32,
}

/// The rows of a shard that are still to come.
pub struct BlockRows<'a> {
    exporter: &'a Exporter,
    scale: usize,
    /// None for a scale without voxels.
    pieces: Option<Pieces<'a>>,
}

impl Exporter {
    /// The blocks of a shard as rows. Nothing is written.
    pub fn rows(&self, shard: &Shard) -> Result<BlockRows<'_>> {
        let own = self.scale(shard.scale)?;
        // A number that is no shard of the scale is an error here.
        self.origin(shard)?;
        let pieces = own.level.as_ref().map(|(_, blocks)| {
            let cursor = Cursor::in_order(&own.cells, shard);
            Pieces::new(blocks, from_source(blocks, cursor).boxed())
        });
        Ok(BlockRows { exporter: self, scale: shard.scale, pieces })
    }

    /// The name of the compression of the blocks of a scale.
    pub fn codec(&self, scale: usize) -> Result<&'static str> {
        Ok(self.arrow.compression(self.scale(scale)?.stored_codec))
    }
}

impl BlockRows<'_> {
    /// The next rows, at least one; `None` after the last.
    pub async fn next(&mut self) -> Result<Option<Vec<BlockRow>>> {
        let Some(pieces) = &mut self.pieces else { return Ok(None) };
        loop {
            let Some((blocks, _)) = pieces.next().await? else { return Ok(None) };
            if blocks.is_empty() {
                continue;
            }
            let morton = self.exporter.scale(self.scale)?.boxes.morton().clone();
            let options = self.exporter.arrow.clone();
            let rows = cpu(move || {
                let row = |block: LabelBlock| {
                    let number = morton.encode(block.place.at);
                    row(number, block, &options)
                };
                blocks.into_par_iter().map(row).collect::<Result<Vec<_>>>()
            });
            return rows.await?.map(Some);
        }
    }
}

fn row(morton: u64, block: LabelBlock, options: &ArrowOptions) -> Result<BlockRow> {
    let plain = match options.strip_labels {
        true => strip(&block.bytes, block.supervoxels.len()),
        false => block.bytes,
    };
    let raw_bytes =
        u32::try_from(plain.len()).map_err(|_| Error::unsupported("a label block of 4 GiB"))?;
    let data = match options.codec {
        Codec::Keep => block.stored,
        Codec::Zstd(level) => {
            let mut packed = Vec::new();
            zstd_pack_checked(&plain, level, &mut packed)?;
            packed.shrink_to_fit();
            packed.into()
        }
    };
    let (labels, supervoxels) = (block.labels, block.supervoxels);
    Ok(BlockRow {
        morton,
        origin: origin(block.place.voxel)?,
        labels,
        supervoxels,
        data,
        raw_bytes,
    })
}
