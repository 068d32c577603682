//! What an export wrote, scale by scale: `export.log.json`.

use std::time::Duration;

use chunkyard_store::{Error, Result};
use serde::Serialize;

use super::lines::{Line, Sizes, Spread};
use super::plan::Plan;

/// The file of the report.
pub const LOG: &str = "export.log.json";

/// What an export wrote.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Report {
    /// URL of the source.
    pub source: String,
    /// What labels are: bodies or supervoxels.
    pub ids: String,
    /// Seconds that this run took.
    pub seconds: f64,
    /// Shards that an earlier run had finished.
    pub resumed: u64,
    /// Scale by scale.
    pub scales: Vec<ScaleReport>,
    /// All scales together.
    pub total: Totals,
    /// Stored blocks outside of the volume, by scale, until the scales are filled in.
    #[serde(skip)]
    pub(super) outside: Vec<u64>,
}

/// What was written of a scale.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct ScaleReport {
    /// The scale.
    pub scale: usize,
    /// Voxels along x, y and z.
    pub volume: [u64; 3],
    /// Voxels of a chunk.
    pub chunk: [u64; 3],
    /// Its numbers.
    #[serde(flatten)]
    pub totals: Totals,
    /// Blocks of a shard.
    pub records: Spread,
    /// Bytes of the files of a shard.
    pub files: Spread,
    /// How large blocks are, and how many labels they have.
    pub sizes: Sizes,
}

/// Numbers of a scale, or of all.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Totals {
    /// Shards with blocks.
    pub shards: u64,
    /// Shards whose blocks are all label 0: they have no files.
    pub empty_shards: u64,
    /// Blocks that were written.
    pub blocks: u64,
    /// Blocks that are all label 0 and were left out.
    pub empty: u64,
    /// Stored blocks outside of the volume that were left out.
    pub outside: u64,
    /// Bytes of all files.
    pub bytes: u64,
    /// Bytes of label blocks per byte in Arrow shards.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ratio: Option<f64>,
}

impl Totals {
    fn add(&mut self, other: &Self) {
        self.shards += other.shards;
        self.empty_shards += other.empty_shards;
        self.blocks += other.blocks;
        self.empty += other.empty;
        self.outside += other.outside;
        self.bytes += other.bytes;
    }
}

impl Report {
    /// Says what is reported about.
    pub(super) fn begin(&mut self, plan: &Plan) -> Result<()> {
        let info = plan.info()?;
        self.source = plan.source.clone();
        self.ids = serde_json::to_value(plan.ids)
            .ok()
            .and_then(|ids| ids.as_str().map(str::to_owned))
            .unwrap_or_default();
        self.scales = info
            .scales
            .iter()
            .enumerate()
            .map(|(number, scale)| ScaleReport {
                scale: number,
                volume: scale.size,
                chunk: scale.chunk_size(),
                ..ScaleReport::default()
            })
            .collect();
        Ok(())
    }

    /// Adds the numbers of a finished shard.
    pub(super) fn add(&mut self, line: &Line) {
        let Some(scale) = self.scales.get_mut(line.scale) else { return };
        let totals = &mut scale.totals;
        totals.empty += line.empty;
        if line.blocks == 0 {
            totals.empty_shards += 1;
            return;
        }
        totals.shards += 1;
        totals.blocks += line.blocks;
        totals.bytes += line.bytes;
        scale.records.add(line.blocks);
        scale.files.add(line.bytes);
        scale.sizes.merge(&line.sizes);
    }

    /// Sums up.
    pub(super) fn end(&mut self, time: Duration) {
        self.seconds = time.as_secs_f64();
        let mut all = Sizes::default();
        self.total = Totals::default();
        for (scale, outside) in
            self.scales.iter_mut().zip(self.outside.iter().chain(std::iter::repeat(&0)))
        {
            scale.totals.outside = *outside;
            scale.totals.ratio = ratio(&scale.sizes);
            self.total.add(&scale.totals);
            all.merge(&scale.sizes);
        }
        self.total.ratio = ratio(&all);
    }

    /// The report as it is written.
    pub fn render(&self) -> Result<Vec<u8>> {
        let mut text =
            serde_json::to_vec_pretty(self).map_err(|error| Error::invalid(error.to_string()))?;
        text.push(b'\n');
        Ok(text)
    }
}

fn ratio(sizes: &Sizes) -> Option<f64> {
    (sizes.packed.total > 0).then(|| sizes.plain.total as f64 / sizes.packed.total as f64)
}
