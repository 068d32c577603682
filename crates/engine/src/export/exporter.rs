//! An export that is open: it lists shards and writes any of them, in this process or another one.

use std::sync::Arc;

use chunkyard_array::Region;
use chunkyard_format::precomputed::{Info, Scale, ShardBoxes};
use chunkyard_format::{OpenOptions, Place, Reader, Source};
use chunkyard_labels::Labelmap;
use chunkyard_store::{Error, Limits, Result, Store};
use futures::stream::BoxStream;
use futures::{Stream, StreamExt, TryStreamExt, future, stream};

use super::arrow::{ArrowOptions, ArrowShard, BATCH_BYTES_MAX, Codec};
use super::blocks::{Blocks, Cursor, Fetched, LabelBlock};
use super::budget::Budget;
use super::cells::Cells;
use super::geometry::{Frame, Level, boxes};
use super::held::Held;
use super::lines::{Line, Sizes};
use super::plan::{Emit, Plan};
use super::segmentation::{digest, mapping};
use super::segments;
use super::shards::{Lie, Shard, Shards};
use super::table::{self, TableShard};
use super::volume::VolumeShard;
use crate::open::recognise;

/// Bytes of label blocks, and of what becomes of them, that a shard has in hand at most.
const IN_HAND_BYTES: u64 = 40 << 20;
/// Bytes on their way into files.
const LEAVING_BYTES: u64 = 8 << 20;

/// An export, ready to write shards.
#[derive(Debug)]
pub struct Exporter {
    plan: Plan,
    source: Arc<dyn Source>,
    target: Store,
    limits: Limits,
    pub(super) arrow: Arc<ArrowOptions>,
    budget: Budget,
    scales: Vec<ScaleExport>,
}

/// A scale of an export.
#[derive(Debug)]
pub(super) struct ScaleExport {
    scale: Scale,
    pub(super) boxes: ShardBoxes,
    pub(super) cells: Arc<Cells>,
    frame: Frame,
    /// None for a scale without voxels.
    pub(super) level: Option<(Level, Arc<Blocks>)>,
    /// Whether what is not stored is label 0.
    sparse: bool,
    /// The compression of blocks that are kept.
    pub(super) stored_codec: &'static str,
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
        mut plan: Plan,
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
        let found = digest(mapping.as_ref()).await?;
        match &plan.mapping {
            None => plan.mapping = Some(found),
            Some(expected) if *expected == found => {}
            Some(expected) => {
                return Err(Error::Conflict {
                    message: format!(
                        "the bodies of supervoxels in {} are others than when the export was planned: expected {expected}, \
                         found {found}; export them to another target",
                        plan.source
                    ),
                    conflicts: Vec::new(),
                });
            }
        }
        let budget = Budget::new(&limits);
        let mut scales = Vec::with_capacity(info.scales.len());
        for (scale, level) in info.scales.iter().zip(&plan.levels) {
            scales.push(ScaleExport::new(
                &plan,
                &source,
                scale,
                level.as_ref(),
                mapping.clone(),
                &budget,
            )?);
        }
        let arrow = Arc::new(plan.arrow.clone());
        Ok(Self { plan, source, target, limits, arrow, budget, scales })
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

    /// The labelmap that is exported; `None` if the source is anything else.
    pub async fn labelmap(&self) -> Result<Option<Labelmap>> {
        segments::labelmap(&self.source, &self.plan.levels).await
    }

    /// Number of scales.
    pub fn num_scales(&self) -> usize {
        self.scales.len()
    }

    /// The shards of a scale that hold anything.
    pub async fn shards(&self, scale: usize) -> Result<Shards> {
        let own = self.scale(scale)?;
        let Some((level, _)) = &own.level else { return Ok(Shards::none(scale, &own.boxes)) };
        let Self { source, .. } = self;
        Shards::list(scale, source, level, &own.frame, &own.boxes, &own.cells, own.sparse).await
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

    pub(super) fn scale(&self, scale: usize) -> Result<&ScaleExport> {
        let missing = || Error::invalid(format!("there is no scale {scale} in the export"));
        self.scales.get(scale).ok_or_else(missing)
    }

    /// The first voxel of a shard.
    pub(super) fn origin(&self, shard: &Shard) -> Result<[i64; 3]> {
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
        let _room = self.budget.take(self.working_bytes(own, blocks, shard), shard.weight).await?;
        let mut held = Held::new(self.plan.emits(Emit::Arrow) && numbered, &self.budget);
        if self.plan.emits(Emit::Arrow) {
            self.write_arrow(own, blocks, shard, &mut line, &mut held).await?;
        }
        if numbered {
            self.write_numbered(own, blocks, shard, &mut line, held).await?;
        }
        line.bytes = line.files.iter().map(|file| file.bytes).sum();
        Ok(line)
    }

    /// Bytes that a shard has in hand at most, besides what each of its blocks leaves behind.
    fn working_bytes(&self, own: &ScaleExport, blocks: &Blocks, shard: &Shard) -> u64 {
        // A block of nothing but different labels: 8 bytes for each in its table, and what its cells need.
        let largest =
            own.frame.chunk.iter().fold(13, |bytes: u64, edge| bytes.saturating_mul(*edge));
        // Those that are unpacked, those that are written, and what they have become.
        let in_hand = IN_HAND_BYTES.max(largest.saturating_mul(4));
        let in_hand = in_hand.min(shard.weight.max(1).saturating_mul(largest).saturating_mul(4));
        let waiting = match self.plan.emits(Emit::Arrow) && self.arrow.batch > 1 {
            true => (BATCH_BYTES_MAX as u64 * 3).min(in_hand),
            false => 0,
        };
        let parts = [in_hand, waiting, blocks.fetching_bytes(), LEAVING_BYTES];
        parts.into_iter().fold(0, u64::saturating_add)
    }

    /// Writes the Arrow shard and its indices.
    async fn write_arrow(
        &self,
        own: &ScaleExport,
        blocks: &Arc<Blocks>,
        shard: &Shard,
        line: &mut Line,
        held: &mut Held<'_>,
    ) -> Result<()> {
        let [x, y, z] = line.origin;
        let stem = format!("s{}/{x}_{y}_{z}", shard.scale);
        let cursor = Cursor::in_zyx(&own.cells, shard);
        let fetched = from_source(blocks, cursor).inspect_ok(|fetched| held.keep(fetched));
        let mut pieces = Pieces::new(blocks, fetched.boxed());
        let mut arrow: Option<ArrowShard> = None;
        let written = async {
            let mut ready = pieces.next().await?;
            while let Some((some, empty)) = ready {
                line.count(&some, empty);
                self.budget.check_blocks(line.blocks)?;
                let push = async {
                    if some.is_empty() {
                        return Ok(());
                    }
                    let begun = match &mut arrow {
                        Some(begun) => begun,
                        None => arrow.insert(
                            ArrowShard::begin(&self.target, &stem, &self.arrow, own.stored_codec)
                                .await?,
                        ),
                    };
                    begun.push(&Arc::new(some)).await
                };
                // The next blocks are unpacked while these are written.
                let (pushed, next) = future::join(push, pieces.next()).await;
                pushed?;
                ready = next?;
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
        held: Held<'_>,
    ) -> Result<()> {
        let fetched = match held.in_order(own.boxes.morton()) {
            Some(batches) => stream::iter(batches.map(Ok)).boxed(),
            None => from_source(blocks, Cursor::in_order(&own.cells, shard)).boxed(),
        };
        let mut pieces = Pieces::new(blocks, fetched);
        let counted = self.plan.emits(Emit::Arrow);
        let mut sinks = Numbered::default();
        if self.plan.emits(Emit::Precomputed) {
            sinks.volume = Some(VolumeShard::begin(&self.target, &own.scale, shard.number)?);
        }
        let written = async {
            let mut ready = pieces.next().await?;
            while let Some((some, empty)) = ready {
                if !counted {
                    line.count(&some, empty);
                    self.budget.check_blocks(line.blocks)?;
                }
                let push = async {
                    if some.is_empty() {
                        return Ok(());
                    }
                    if self.plan.emits(Emit::Table) && sinks.table.is_none() {
                        let at = (shard.scale, shard.number);
                        let codec = self.arrow.compression(own.stored_codec);
                        let table = TableShard::begin(&self.target, at, &self.arrow, codec).await?;
                        sinks.table = Some(table);
                    }
                    let morton = own.boxes.morton();
                    let number = |block: LabelBlock| (morton.encode(block.place.at), block);
                    sinks.push(some.into_iter().map(number).collect()).await
                };
                let (pushed, next) = future::join(push, pieces.next()).await;
                pushed?;
                ready = next?;
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
pub(super) fn from_source(
    blocks: &Arc<Blocks>,
    cursor: Cursor,
) -> impl Stream<Item = Result<Fetched>> + Send + '_ {
    stream::try_unfold(cursor, move |mut cursor| async move {
        Ok::<_, Error>(blocks.fetch(&mut cursor).await?.map(|fetched| (fetched, cursor)))
    })
}

/// Label blocks, some at a time: the next chunks are fetched while the last ones are unpacked.
pub(super) struct Pieces<'a> {
    blocks: &'a Arc<Blocks>,
    fetched: BoxStream<'a, Result<Fetched>>,
    /// Chunks that are unpacked next, and those after them.
    now: Option<Fetched>,
    ahead: Option<Fetched>,
    over: bool,
}

impl<'a> Pieces<'a> {
    pub(super) fn new(blocks: &'a Arc<Blocks>, fetched: BoxStream<'a, Result<Fetched>>) -> Self {
        Self { blocks, fetched, now: None, ahead: None, over: false }
    }

    /// The next blocks, and how many were all label 0; `None` after the last.
    pub(super) async fn next(&mut self) -> Result<Option<(Vec<LabelBlock>, u64)>> {
        let now = match self.now.take().or_else(|| self.ahead.take()) {
            Some(now) => now,
            None if self.over => return Ok(None),
            None => match self.fetched.try_next().await? {
                Some(now) => now,
                None => return Ok(None),
            },
        };
        let fetch = async {
            if self.ahead.is_none() && !self.over {
                self.ahead = self.fetched.try_next().await?;
                self.over = self.ahead.is_none();
            }
            Ok::<_, Error>(())
        };
        let (unpacked, fetched) = future::join(self.blocks.unpack(now), fetch).await;
        let unpacked = unpacked?;
        fetched?;
        self.now = unpacked.rest;
        Ok(Some((unpacked.blocks, unpacked.empty)))
    }
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
        budget: &Budget,
    ) -> Result<Self> {
        let frame = Frame::of(scale);
        let (mut known, mut sparse, mut stored_codec) = (None, true, "zstd");
        let mut reach = ([0; 3], [0; 3]);
        if let Some(level) = level {
            let all = Region::whole(source.dataset().array(&level.path)?.spec.shape());
            reach = Lie::new(level, &frame).chunks(&all).unwrap_or(reach);
            let wanted = plan.emits(Emit::Arrow) || plan.emits(Emit::Table);
            let kept = plan.arrow.codec == Codec::Keep && wanted;
            let blocks = Blocks::new(source, level, &frame, mapping, kept, budget)?;
            if kept {
                stored_codec = blocks.stored_codec()?;
            }
            let fill = Reader::new(source, &level.path)?.codecs().whole().fill_element().to_vec();
            sparse = fill.iter().all(|byte| *byte == 0);
            known = Some((level.clone(), Arc::new(blocks)));
        }
        let (boxes, scale) = (boxes(scale)?, scale.clone());
        let cells = Arc::new(Cells::new(&scale, &boxes, reach));
        Ok(Self { scale, boxes, cells, frame, level: known, sparse, stored_codec })
    }
}
