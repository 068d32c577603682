//! The block table of a shard: the same label blocks as rows of a Parquet file, in the order of their numbers.

use std::sync::Arc;

use chunkyard_store::{Error, Result, Store, cpu};
use rayon::prelude::*;

use super::arrow::{ArrowOptions, Record, record};
use super::blocks::LabelBlock;
use super::files::{NewFile, aside, settle};
use super::lines::Spread;
use crate::block_table::{Block, TableWriter};

/// The folder of the tables of a scale.
pub(super) fn folder(scale: usize) -> String {
    format!("blocks_s{scale}/")
}

/// A block as it is in the table.
struct Row {
    number: u64,
    origin: [i32; 3],
    record: Record,
}

/// The table of a shard, growing.
#[derive(Debug)]
pub(super) struct TableShard {
    store: Store,
    path: String,
    temp: String,
    codec: &'static str,
    options: Arc<ArrowOptions>,
    writer: TableWriter,
    packed: Spread,
}

impl TableShard {
    /// Begins the table of a shard; `codec` names the compression of blocks.
    pub(super) async fn begin(
        store: &Store,
        (scale, shard): (usize, u64),
        options: &Arc<ArrowOptions>,
        codec: &'static str,
    ) -> Result<Self> {
        let path = format!("{}shard={shard:08x}.parquet", folder(scale));
        let temp = if store.renames() { aside(&path)? } else { path.clone() };
        let number = u8::try_from(scale).map_err(|_| {
            Error::unsupported(format!("scale {scale} in a block table, whose last is {}", u8::MAX))
        })?;
        let mut writer = TableWriter::begin(store, &temp, number, shard).await?;
        writer.tell_labels(options.strip_labels);
        let (store, options, packed) = (store.clone(), options.clone(), Spread::default());
        Ok(Self { store, path, temp, codec, options, writer, packed })
    }

    /// Appends blocks with their numbers, in ascending order of these, and gives them back.
    pub(super) async fn push(
        &mut self,
        blocks: Vec<(u64, LabelBlock)>,
    ) -> Result<Vec<(u64, LabelBlock)>> {
        let options = self.options.clone();
        let (rows, blocks) = cpu(move || {
            let row = |(number, block): &(u64, LabelBlock)| {
                let origin = origin(block.place.voxel)?;
                Ok(Row { number: *number, origin, record: record(block, &options)? })
            };
            let rows = blocks.par_iter().map(row).collect::<Result<Vec<_>>>()?;
            Ok::<_, Error>((rows, blocks))
        })
        .await??;
        for Row { number, origin, record } in rows {
            self.packed.add(record.block.len() as u64);
            let block = Block {
                morton: number,
                origin,
                labels: &record.labels,
                supervoxels: &record.supervoxels,
                payload: &record.block,
                raw_bytes: record.plain_bytes,
                codec: self.codec,
            };
            self.writer.push(block).await?;
        }
        Ok(blocks)
    }

    /// Makes the table durable and visible. Also says how large compressed blocks are.
    pub(super) async fn finish(self) -> Result<(NewFile, Spread)> {
        let written = self.writer.close().await?;
        settle(&self.store, &self.temp, &self.path).await?;
        Ok((NewFile::new(&self.path, written.file_bytes, written.crc32c), self.packed))
    }

    /// Removes what was written.
    pub(super) async fn abort(self) {
        self.writer.abort().await;
    }
}

/// The first voxel of a block as the columns have it.
pub(super) fn origin(voxel: [i64; 3]) -> Result<[i32; 3]> {
    let mut origin = [0; 3];
    for (to, from) in origin.iter_mut().zip(voxel) {
        *to = i32::try_from(from).map_err(|_| {
            Error::unsupported(format!("voxel {from} in a block table, whose columns are int32"))
        })?;
    }
    Ok(origin)
}
