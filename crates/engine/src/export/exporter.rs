//! An export that is open: it lists shards and writes any of them, in this process or another one.

use std::sync::Arc;

use chunkyard_format::precomputed::{Info, Scale, ShardBoxes};
use chunkyard_format::{OpenOptions, Place, Reader, Source};
use chunkyard_store::{Error, Limits, Result, Store};
use futures::{Stream, StreamExt, TryStreamExt, stream};

use super::arrow::{ArrowOptions, ArrowShard, Codec};
use super::blocks::{Blocks, Cursor, Fetched, LabelBlock};
use super::geometry::{Frame, Level, boxes};
use super::held::Held;
use super::lines::{Line, Sizes};
use super::plan::{Emit, Plan};
use super::segmentation::mapping;
use super::shards::{Shard, Shards, in_order, in_zyx};
use super::table::{self, TableShard};
use super::volume::VolumeShard;
use crate::open::recognise;

/// Batches of blocks that are fetched and unpacked at once, for each shard.
const BATCHES: usize = 2;

/// An export, ready to write shards.
#[derive(Debug)]
pub struct Exporter {
    plan: Plan,
    source: Arc<dyn Source>,
    target: Store,
    limits: Limits,
    arrow: Arc<ArrowOptions>,
    scales: Vec<ScaleExport>,
}

/// A scale of an export.
#[derive(Debug)]
struct ScaleExport {
    scale: Scale,
    boxes: ShardBoxes,
    frame: Frame,
    /// None for a scale without voxels.
    level: Option<(Level, Arc<Blocks>)>,
    /// Whether what is not stored is label 0.
    sparse: bool,
    /// The compression of blocks that are kept.
    stored_codec: &'static str,
}

impl Exporter {
    /// Opens the source of a plan again. A source that has changed since is refused.
    pub async fn open(plan: Plan, target: Store, open: &OpenOptions) -> Result<Self> {
        let options = OpenOptions { version: plan.source_version.clone(), ..open.clone() };
        let place = Place::new(&plan.source, &options.store)?;
        let source = recognise(&place).await?.open(&place, &options).await?;
        Self::new(plan, source, target, open.store.limits).await
    }

    /// An export of an open source.
    pub async fn new(
        plan: Plan,
        source: Arc<dyn Source>,
        target: Store,
        limits: Limits,
    ) -> Result<Self> {
        let found = source.identity();
        if found != plan.identity {
            return Err(Error::VirtualSourceChanged {
                url: plan.source,
                expected: plan.identity,
                found,
            });
        }
        let info: Info = plan.info()?;
        let mapping = mapping(&source, &plan.levels, plan.ids).await?;
        let mut scales = Vec::with_capacity(info.scales.len());
        for (scale, level) in info.scales.iter().zip(&plan.levels) {
            scales.push(ScaleExport::new(&plan, &source, scale, level.as_ref(), mapping.clone())?);
        }
        let arrow = Arc::new(plan.arrow.clone());
        Ok(Self { plan, source, target, limits, arrow, scales })
    }

    /// What is exported, and how.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Where to.
    pub fn target(&self) -> &Store {
        &self.target
    }

    /// How much of the machine may be used.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// The source.
    pub fn source(&self) -> &Arc<dyn Source> {
        &self.source
    }

    /// Number of scales.
    pub fn num_scales(&self) -> usize {
        self.scales.len()
    }

    /// The shards of a scale that hold anything.
    pub async fn shards(&self, scale: usize) -> Result<Shards> {
        let own = self.scale(scale)?;
        let Some((level, _)) = &own.level else { return Ok(Shards::none(scale, &own.boxes)) };
        Shards::list(scale, &self.source, level, &own.frame, &own.boxes, own.sparse).await
    }

    /// The folders that shards are in.
    pub(super) fn folders(&self) -> Vec<String> {
        let mut folders = Vec::new();
        if self.plan.emits(Emit::Arrow) {
            folders.extend((0..self.num_scales()).map(|scale| format!("s{scale}/")));
        }
        if self.plan.emits(Emit::Precomputed) {
            folders.extend(self.scales.iter().map(|own| format!("{}/", own.scale.key)));
        }
        if self.plan.emits(Emit::Table) {
            folders.extend((0..self.num_scales()).map(table::folder));
        }
        folders
    }

    fn scale(&self, scale: usize) -> Result<&ScaleExport> {
        let missing = || Error::invalid(format!("there is no scale {scale} in the export"));
        self.scales.get(scale).ok_or_else(missing)
    }

    /// The first voxel of a shard.
    fn origin(&self, shard: &Shard) -> Result<[i64; 3]> {
        let own = self.scale(shard.scale)?;
        let first = own.boxes.origin(shard.number).ok_or_else(|| {
            Error::invalid(format!("there is no shard {} in scale {}", shard.number, shard.scale))
        })?;
        Ok(own.frame.voxel(first))
    }

    /// Writes a shard: its files are durable and visible when this returns, or there are none.
    pub async fn run_shard(&self, shard: &Shard) -> Result<Line> {
        let mut line = Line {
            scale: shard.scale,
            shard: shard.number,
            origin: self.origin(shard)?,
            blocks: 0,
            empty: 0,
            bytes: 0,
            labels: 0,
            supervoxels: 0,
            files: Vec::new(),
            sizes: Sizes::default(),
        };
        let own = self.scale(shard.scale)?;
        let Some((_, blocks)) = &own.level else { return Ok(line) };
        let numbered = self.plan.emits(Emit::Precomputed) || self.plan.emits(Emit::Table);
        let mut held = Held::new(self.plan.emits(Emit::Arrow) && numbered);
        if self.plan.emits(Emit::Arrow) {
            self.write_arrow(own, blocks, shard, &mut line, &mut held).await?;
        }
        if numbered {
            self.write_numbered(own, blocks, shard, &mut line, held).await?;
        }
        line.bytes = line.files.iter().map(|file| file.bytes).sum();
        Ok(line)
    }

    /// Writes the Arrow shard and its indices.
    async fn write_arrow(
        &self,
        own: &ScaleExport,
        blocks: &Arc<Blocks>,
        shard: &Shard,
        line: &mut Line,
        held: &mut Held,
    ) -> Result<()> {
        let [x, y, z] = line.origin;
        let stem = format!("s{}/{x}_{y}_{z}", shard.scale);
        let cursor = Cursor::new(in_zyx(&own.boxes, shard));
        let fetched = from_source(blocks, cursor).inspect_ok(|fetched| held.keep(fetched));
        let mut batches = std::pin::pin!(unpacked(blocks, fetched));
        let mut arrow: Option<ArrowShard> = None;
        let written = async {
            while let Some((some, empty)) = batches.try_next().await? {
                line.count(&some, empty);
                if some.is_empty() {
                    continue;
                }
                let begun = match &mut arrow {
                    Some(begun) => begun,
                    None => arrow.insert(
                        ArrowShard::begin(&self.target, &stem, &self.arrow, own.stored_codec)
                            .await?,
                    ),
                };
                begun.push(&Arc::new(some)).await?;
            }
            Ok(())
        };
        match (written.await, arrow) {
            (Err(error), Some(begun)) => {
                begun.abort().await;
                Err(error)
            }
            (Ok(()), Some(complete)) => {
                let (files, packed) = complete.finish().await?;
                line.files.extend(files);
                line.sizes.packed = packed;
                Ok(())
            }
            (written, None) => written,
        }
    }

    /// Writes what has blocks in the order of their numbers: the shard of the volume and the table.
    async fn write_numbered(
        &self,
        own: &ScaleExport,
        blocks: &Arc<Blocks>,
        shard: &Shard,
        line: &mut Line,
        held: Held,
    ) -> Result<()> {
        let order = || in_order(&own.boxes, shard).map(|(_, at)| at);
        let fetched = match held.in_order(order()) {
            Some(batches) => stream::iter(batches.map(Ok)).boxed(),
            None => from_source(blocks, Cursor::new(order())).boxed(),
        };
        let mut batches = std::pin::pin!(unpacked(blocks, fetched));
        let counted = self.plan.emits(Emit::Arrow);
        let mut sinks = Numbered::default();
        if self.plan.emits(Emit::Precomputed) {
            sinks.volume = Some(VolumeShard::begin(&self.target, &own.scale, shard.number)?);
        }
        let written = async {
            while let Some((some, empty)) = batches.try_next().await? {
                if !counted {
                    line.count(&some, empty);
                }
                if some.is_empty() {
                    continue;
                }
                if self.plan.emits(Emit::Table) && sinks.table.is_none() {
                    let at = (shard.scale, shard.number);
                    let codec = self.arrow.compression(own.stored_codec);
                    let table = TableShard::begin(&self.target, at, &self.arrow, codec).await?;
                    sinks.table = Some(table);
                }
                let morton = own.boxes.morton();
                let numbered = some.into_iter().map(|block| (morton.encode(block.place.at), block));
                sinks.push(numbered.collect()).await?;
            }
            Ok(())
        };
        if let Err(error) = written.await {
            sinks.abort().await;
            return Err(error);
        }
        if let Some(volume) = sinks.volume {
            let (file, sizes) = volume.finish().await?;
            line.files.extend(file);
            line.sizes.chunk = sizes;
        }
        if let Some(table) = sinks.table {
            let (file, packed) = table.finish().await?;
            line.files.push(file);
            line.sizes.packed = packed;
        }
        Ok(())
    }
}

/// The sinks that want blocks in the order of their numbers.
#[derive(Default)]
struct Numbered {
    volume: Option<VolumeShard>,
    table: Option<TableShard>,
}

impl Numbered {
    async fn push(&mut self, mut blocks: Vec<(u64, LabelBlock)>) -> Result<()> {
        if let Some(table) = &mut self.table {
            blocks = table.push(blocks).await?;
        }
        match &mut self.volume {
            Some(volume) => volume.push(blocks).await,
            None => Ok(()),
        }
    }

    async fn abort(self) {
        if let Some(volume) = self.volume {
            volume.abort().await;
        }
        if let Some(table) = self.table {
            table.abort().await;
        }
    }
}

/// Chunks as the source gives them.
fn from_source(
    blocks: &Arc<Blocks>,
    cursor: Cursor,
) -> impl Stream<Item = Result<Fetched>> + Send + '_ {
    stream::try_unfold(cursor, move |mut cursor| async move {
        Ok::<_, Error>(blocks.fetch(&mut cursor).await?.map(|fetched| (fetched, cursor)))
    })
}

/// Label blocks batch by batch, each with how many blocks were all label 0: the next batch is unpacked while the caller uses
/// the last.
fn unpacked<'a>(
    blocks: &'a Arc<Blocks>,
    fetched: impl Stream<Item = Result<Fetched>> + Send + 'a,
) -> impl Stream<Item = Result<(Vec<LabelBlock>, u64)>> + Send + 'a {
    fetched.map(move |fetched| async move { blocks.unpack(fetched?).await }).buffered(BATCHES)
}

impl Line {
    /// Counts blocks, and those that were left out.
    fn count(&mut self, blocks: &[LabelBlock], empty: u64) {
        self.empty += empty;
        for block in blocks {
            self.blocks += 1;
            self.labels += block.distinct_labels;
            self.supervoxels += block.distinct_supervoxels;
            self.sizes.plain.add(block.bytes.len() as u64);
            self.sizes.labels.add(block.distinct_labels);
            self.sizes.supervoxels.add(block.distinct_supervoxels);
        }
    }
}

impl ScaleExport {
    fn new(
        plan: &Plan,
        source: &Arc<dyn Source>,
        scale: &Scale,
        level: Option<&Level>,
        mapping: Option<Arc<chunkyard_labels::Mapping>>,
    ) -> Result<Self> {
        let frame = Frame::of(scale);
        let (mut known, mut sparse, mut stored_codec) = (None, true, "zstd");
        if let Some(level) = level {
            let wanted = plan.emits(Emit::Arrow) || plan.emits(Emit::Table);
            let kept = plan.arrow.codec == Codec::Keep && wanted;
            let blocks = Blocks::new(source, level, &frame, mapping, kept)?;
            if kept {
                stored_codec = blocks.stored_codec()?;
            }
            let fill = Reader::new(source, &level.path)?.codecs().whole().fill_element().to_vec();
            sparse = fill.iter().all(|byte| *byte == 0);
            known = Some((level.clone(), Arc::new(blocks)));
        }
        let (boxes, scale) = (boxes(scale)?, scale.clone());
        Ok(Self { scale, boxes, frame, level: known, sparse, stored_codec })
    }
}
