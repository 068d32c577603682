//! Writing a volume: shards or chunk files, then `info`.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use chunkyard_array::ChunkIndex;
use chunkyard_store::{Error, Noun, Result, Store};
use futures::{StreamExt, TryStreamExt, stream};

use super::INFO;
use super::pack_writer::ShardFiles;
use super::source::{OpenScale, PrecomputedSource};
use super::volume::Volume;
use crate::staging::{Marks, Staging, refuse_long_names};
use crate::worker_packs::{self, Writers, receipt};
use crate::{
    CreateOptions, Dataset, Pack, PackSink, PackWriter, Place, Published, Receipt, Sink, Source,
    Ticket,
};

/// Objects of one pack that are put at once in an object store, where each is a round trip.
const PUTS: usize = 4;

const MARKS: Marks =
    Marks { format: "a precomputed volume", known: &[INFO], complete: &[INFO], file: None };

/// A volume being written.
#[derive(Debug)]
pub struct PrecomputedSink {
    staging: Staging,
    volume: Volume,
    scales: Scales,
}

/// Where the chunks of each array go.
#[derive(Debug)]
pub(super) struct Scales(BTreeMap<String, Arc<OpenScale>>);

impl Scales {
    pub(super) fn new(dataset: &Dataset) -> Result<Self> {
        Self::of(&Volume::of(dataset)?)
    }

    fn of(volume: &Volume) -> Result<Self> {
        let mut scales = BTreeMap::new();
        for (path, (number, axes)) in &volume.arrays {
            let Some(scale) = volume.info.scales.get(*number) else { continue };
            let open = OpenScale::new(path, scale, axes, volume.info.num_channels)?;
            scales.insert(path.clone(), Arc::new(open));
        }
        Ok(Self(scales))
    }
}

impl Writers for Scales {
    fn writer(&self, pack: &Pack, store: Store) -> Result<Box<dyn PackWriter>> {
        let missing = || Error::NotFound { what: Noun::Array, name: pack.array.to_string() };
        let scale = self.0.get(&*pack.array).ok_or_else(missing)?.clone();
        Ok(match scale.sharded() {
            Some(_) => Box::new(ShardFiles::new(store, scale)),
            None => Box::new(ChunkFiles { store, scale, paths: Vec::new(), bytes: 0 }),
        })
    }
}

impl PrecomputedSink {
    /// Begins to write a volume at a place.
    pub async fn create(place: &Place, dataset: Dataset, options: CreateOptions) -> Result<Self> {
        let volume = Volume::of(&dataset)?;
        let scales = Scales::of(&volume)?;
        refuse_long_names(place, dataset.nodes.keys().map(String::as_str))?;
        let staging = Staging::begin(place, &options, MARKS).await?;
        Ok(Self { staging, volume, scales })
    }
}

#[async_trait]
impl PackSink for PrecomputedSink {
    async fn open_pack(&self, pack: &Pack) -> Result<Box<dyn PackWriter>> {
        self.scales.writer(pack, self.staging.data.clone())
    }

    async fn sync(&self, receipts: &[Receipt]) -> Result<()> {
        self.staging.sync(receipts).await
    }
}

#[async_trait]
impl Sink for PrecomputedSink {
    async fn adopt(&self, _pack: &Pack, _receipt: &Receipt) -> Result<bool> {
        // The objects are in their places; only we write there.
        Ok(true)
    }

    async fn ticket(&self) -> Result<Ticket> {
        worker_packs::ticket(&self.staging.journal).await
    }

    async fn accept(&self, _pack: &Pack, receipt: Receipt) -> Result<Receipt> {
        self.staging.accept(&receipt).await
    }

    fn journal(&self) -> &Store {
        &self.staging.journal
    }

    async fn written(&self) -> Result<Arc<dyn Source>> {
        let source = PrecomputedSource::written(self.staging.data.clone(), &self.volume)?;
        Ok(Arc::new(source))
    }

    async fn finish(self: Box<Self>) -> Result<Published> {
        self.staging.data.put(INFO, vec![self.volume.info.render().into()]).await?;
        self.staging.data.sync(&[INFO.to_owned()]).await?;
        self.staging.publish().await?;
        Ok(Published::default())
    }
}

/// A pack of chunks that are one object each.
struct ChunkFiles {
    store: Store,
    scale: Arc<OpenScale>,
    paths: Vec<String>,
    bytes: u64,
}

#[async_trait]
impl PackWriter for ChunkFiles {
    async fn push(&mut self, chunks: Vec<(ChunkIndex, Bytes)>) -> Result<()> {
        let objects: Vec<(String, Bytes)> = chunks
            .into_iter()
            .map(|(index, bytes)| (self.scale.chunk_path(&index), bytes))
            .collect();
        self.paths.extend(objects.iter().map(|(path, _)| path.clone()));
        self.bytes += objects.iter().map(|(_, bytes)| bytes.len() as u64).sum::<u64>();
        let store = &self.store;
        stream::iter(objects)
            .map(|(path, bytes)| async move { store.put(&path, vec![bytes]).await })
            .buffer_unordered(store.puts_at_once(PUTS))
            .try_collect()
            .await
    }

    async fn close(self: Box<Self>) -> Result<Receipt> {
        Ok(receipt(self.paths.len() as u64, self.bytes, &self.paths))
    }
}
