//! A shard being written: blocks in, messages out.

use std::sync::Arc;

use arrow_schema::SchemaRef;
use chunkyard_array::codec::packed::zstd_pack_checked;
use chunkyard_store::{Error, Result, Store, cpu};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::file::{Container, Frame};
use super::index::{Index, IndexKind};
use super::message::{Message, Record, batch_message};
use super::schema::{Codec, schema};
use crate::export::blocks::{BlockPlace, LabelBlock};
use crate::export::files::{Growing, NewFile, put_new};
use crate::export::lines::Spread;
use crate::export::stripped::strip;

/// A batch is closed before its blocks and lists take more than this, whatever the number of records asked for: all of it waits
/// in memory. It does not depend on how much there is, so that equal exports have equal files.
pub(in crate::export) const BATCH_BYTES_MAX: usize = 16 << 20;

/// How Arrow shards are written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArrowOptions {
    /// How blocks are compressed.
    pub codec: Codec,
    /// How messages are framed.
    pub container: Container,
    /// The indices beside each shard.
    pub index: Vec<IndexKind>,
    /// Records of a batch.
    pub batch: u32,
    /// Whether blocks go without their table, which is the column `supervoxels`.
    pub strip_labels: bool,
}

impl Default for ArrowOptions {
    fn default() -> Self {
        Self {
            codec: Codec::default(),
            container: Container::File,
            index: vec![IndexKind::Json],
            batch: 1,
            strip_labels: false,
        }
    }
}

impl ArrowOptions {
    /// The name of the compression of blocks; `stored` is the one of blocks that are kept.
    pub(in crate::export) fn compression<'a>(&self, stored: &'a str) -> &'a str {
        match self.codec {
            Codec::Zstd(_) => "zstd",
            Codec::Keep => stored,
        }
    }

    /// Refuses what cannot be written.
    pub(crate) fn check(&self) -> Result<()> {
        if self.batch == 0 {
            return Err(Error::invalid("a batch of an Arrow shard has at least one record, not 0"));
        }
        if self.index.is_empty() {
            return Err(Error::invalid("an Arrow shard has an index: json, csv or both"));
        }
        if self.strip_labels && self.codec == Codec::Keep {
            return Err(Error::invalid(
                "blocks that are kept as they are stored have their label list; without it they are compressed anew",
            ));
        }
        Ok(())
    }
}

/// The file of a shard, growing.
#[derive(Debug)]
pub(crate) struct ArrowShard {
    store: Store,
    /// The path without an ending.
    stem: String,
    options: Arc<ArrowOptions>,
    schema: SchemaRef,
    file: Growing,
    frame: Frame,
    indices: Vec<Index>,
    /// Records of a batch that is not full.
    waiting: Vec<(BlockPlace, Record)>,
    waiting_bytes: usize,
    packed: Spread,
}

impl ArrowShard {
    /// Begins a shard at a path without an ending; `stored` names the compression of blocks that are kept.
    pub(crate) async fn begin(
        store: &Store,
        stem: &str,
        options: &Arc<ArrowOptions>,
        stored: &str,
    ) -> Result<Self> {
        let compression = options.compression(stored);
        let schema = schema(compression, options.strip_labels);
        let (frame, head) = Frame::begin(options.container, &schema)?;
        let mut file = Growing::begin(store, &format!("{stem}.arrow")).await?;
        file.write(vec![head]).await?;
        let index = |kind: &IndexKind| Index::new(*kind, frame.head_bytes());
        Ok(Self {
            store: store.clone(),
            stem: stem.to_owned(),
            options: options.clone(),
            schema,
            file,
            indices: options.index.iter().map(index).collect(),
            frame,
            waiting: Vec::new(),
            waiting_bytes: 0,
            packed: Spread::default(),
        })
    }

    /// Appends blocks, in the order of z, then y, then x.
    pub(crate) async fn push(&mut self, blocks: &Arc<Vec<LabelBlock>>) -> Result<()> {
        let (from, options) = (blocks.clone(), self.options.clone());
        let records = cpu(move || {
            let work =
                |block: &LabelBlock| record(block, &options).map(|record| (block.place, record));
            from.par_iter().map(work).collect::<Result<Vec<_>>>()
        })
        .await??;
        let (size, mut batches) = (self.options.batch as usize, Vec::new());
        for (place, record) in records {
            self.packed.add(record.block.len() as u64);
            let bytes = record.block.len() + record.labels.len() * 16;
            if !self.waiting.is_empty() && self.waiting_bytes + bytes > BATCH_BYTES_MAX {
                batches.push(self.take_batch());
            }
            self.waiting.push((place, record));
            self.waiting_bytes += bytes;
            if self.waiting.len() >= size {
                batches.push(self.take_batch());
            }
        }
        self.write(batches).await
    }

    fn take_batch(&mut self) -> Vec<(BlockPlace, Record)> {
        self.waiting_bytes = 0;
        std::mem::take(&mut self.waiting)
    }

    async fn write(&mut self, batches: Vec<Vec<(BlockPlace, Record)>>) -> Result<()> {
        if batches.is_empty() {
            return Ok(());
        }
        let schema = self.schema.clone();
        let encoded = cpu(move || {
            let encode = |batch: Vec<(BlockPlace, Record)>| {
                let (places, records): (Vec<_>, Vec<_>) = batch.into_iter().unzip();
                batch_message(&schema, records).map(|message| (places, message))
            };
            batches.into_par_iter().map(encode).collect::<Result<Vec<_>>>()
        })
        .await??;
        let mut bytes = Vec::with_capacity(encoded.len());
        for (places, message) in encoded {
            self.note(&places, &message)?;
            bytes.push(message.bytes);
        }
        self.file.write(bytes).await
    }

    fn note(&mut self, places: &[BlockPlace], message: &Message) -> Result<()> {
        let range = self.frame.place(message)?;
        for (number, place) in places.iter().enumerate() {
            for index in &mut self.indices {
                index.push(place.voxel, place.chunk, &range, number);
            }
        }
        Ok(())
    }

    /// Ends the shard: it is durable and visible, and so are its indices. Also says how large compressed blocks are.
    pub(crate) async fn finish(mut self) -> Result<(Vec<NewFile>, Spread)> {
        let rest = self.take_batch();
        if !rest.is_empty() {
            self.write(vec![rest]).await?;
        }
        self.file.write(vec![self.frame.end()]).await?;
        let mut files = Vec::with_capacity(self.indices.len() + 1);
        // A shard that is seen has its index.
        for index in self.indices {
            let path = format!("{}.{}", self.stem, index.kind.ending());
            files.push(put_new(&self.store, &path, index.finish().into()).await?);
        }
        files.insert(0, self.file.finish().await?);
        Ok((files, self.packed))
    }

    /// Removes what was written.
    pub(crate) async fn abort(self) {
        self.file.abort().await;
    }
}

/// A block as a record.
pub(in crate::export) fn record(block: &LabelBlock, options: &ArrowOptions) -> Result<Record> {
    let too_large = |_| Error::unsupported("a label block of 4 GiB");
    let stripped;
    let plain: &[u8] = match options.strip_labels {
        true => {
            stripped = strip(&block.bytes, block.supervoxels.len());
            &stripped
        }
        false => &block.bytes,
    };
    let packed = match options.codec {
        Codec::Keep => block.stored.clone(),
        Codec::Zstd(level) => {
            let mut packed = Vec::new();
            zstd_pack_checked(plain, level, &mut packed)?;
            // What is kept until it is written is as large as it has to be.
            packed.shrink_to_fit();
            packed.into()
        }
    };
    Ok(Record {
        at: block.place.chunk,
        labels: block.labels.clone(),
        supervoxels: block.supervoxels.clone(),
        block: packed,
        plain_bytes: u32::try_from(plain.len()).map_err(too_large)?,
    })
}
