//! An export as a job: tasks are runs of shards, results are their lines, the end is what tells of all of them.
//!
//! A shard is a function of the plan, and its files get their names when they are complete. So two attempts at a shard replace
//! each other's files by the same bytes, and an attempt that is given up leaves a temporary name at most, which the end deletes.

use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use bytes::Bytes;
use chunkyard_format::OpenOptions;
use chunkyard_store::{Error, Noun, Result, Store};
use futures::{StreamExt, TryStreamExt, stream};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::sync::{OnceCell, Semaphore};

use super::document::{Job, Planned};
use super::run::Work;
use crate::export::{Exporter, Line, Lines, Plan, Progress, Shard, Shards};

/// The kind of job that is an export.
pub const EXPORT: &str = "export-shards";

/// Bytes of labels of a task if the caller does not say: a share of the whole between these bounds. Label blocks are passed on
/// without a look at their voxels, so a task of a GiB takes a fraction of a second.
const TASK_BYTES: std::ops::RangeInclusive<u64> = 1 << 30..=64 << 30;
/// Tasks at least, if they are not too small then.
const TASKS: u64 = 256;
/// Shards of a task at most: its lines are one object.
const TASK_SHARDS_MAX: usize = 1024;
/// Chunks that are named in a task at most, if it has more than one shard.
const TASK_CHUNKS_MAX: usize = 1 << 16;
/// Bytes of a label.
const LABEL_BYTES: u64 = 8;

/// How an export is made a job.
#[derive(Debug, Clone)]
pub struct ExportJob {
    /// Bytes of labels that a worker claims at a time.
    pub task_bytes: Option<u64>,
    /// How long the count of a worker may stand still.
    pub lease: Duration,
}

impl Default for ExportJob {
    fn default() -> Self {
        Self { task_bytes: None, lease: Duration::from_secs(60) }
    }
}

/// The work of an export, as the job has it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Specification {
    target: String,
    plan: Plan,
    shards: u64,
    weight: u64,
    /// Stored chunks outside of the volume, by scale.
    outside: Vec<u64>,
}

impl Specification {
    fn of(job: &Job) -> Result<Self> {
        if job.kind() != EXPORT {
            return Err(Error::unsupported(format!(
                "{}, a job of kind {:?}, as an export",
                job.store().url(),
                job.kind()
            )));
        }
        serde_json::from_value(job.work().clone()).map_err(|error| Error::Corrupt {
            file: job.store().url().to_owned(),
            what: "the work of a job".to_owned(),
            expected: "an export".to_owned(),
            found: error.to_string(),
        })
    }
}

impl ExportJob {
    /// Makes the target the export's, and a job of its shards. The second value says whether the job is new: one of the same
    /// export may be there already.
    pub async fn create(&self, store: Store, exporter: &Exporter) -> Result<(Job, bool)> {
        match Job::open(store.clone()).await {
            Err(Error::NotFound { what: Noun::Job, .. }) => {}
            Err(error) => return Err(error),
            Ok(job) => {
                return match Specification::of(&job) {
                    Ok(found)
                        if found.target == exporter.target().url()
                            && found.plan == *exporter.plan() =>
                    {
                        Ok((job, false))
                    }
                    _ => {
                        Err(Error::AlreadyExists { what: Noun::Job, name: store.url().to_owned() })
                    }
                };
            }
        }
        // Another process that exports to the same place is noticed here.
        let _alone = exporter.begin(Some(store.url())).await?;
        let mut shards = Vec::with_capacity(exporter.num_scales());
        for scale in 0..exporter.num_scales() {
            shards.push(exporter.shards(scale).await?);
        }
        let info = exporter.plan().info()?;
        let chunk_bytes: Vec<u64> = info
            .scales
            .iter()
            .map(|scale| {
                scale.chunk_size().iter().fold(LABEL_BYTES, |all, n| all.saturating_mul(*n))
            })
            .collect();
        let bytes = shards.iter().zip(&chunk_bytes);
        let bytes = bytes.map(|(shards, chunk)| shards.weight().saturating_mul(*chunk));
        let share = bytes.fold(0, u64::saturating_add).div_ceil(TASKS);
        let share = share.clamp(*TASK_BYTES.start(), *TASK_BYTES.end());
        let specification = Specification {
            target: exporter.target().url().to_owned(),
            plan: exporter.plan().clone(),
            shards: shards.iter().map(Shards::count).fold(0, u64::saturating_add),
            weight: shards.iter().map(Shards::weight).fold(0, u64::saturating_add),
            outside: shards.iter().map(|shards| shards.outside).collect(),
        };
        let work = serde_json::to_value(&specification).map_err(unwritable)?;
        let planned = Planned { kind: EXPORT.to_owned(), work, lease: self.lease };
        let tasks = tasks(&shards, &chunk_bytes, self.task_bytes.unwrap_or(share));
        let tasks =
            tasks.map(|task| serde_json::to_vec(&task).map(Bytes::from).map_err(unwritable));
        Job::create(store, planned, tasks).await
    }
}

/// Shards in runs, each of one shard or of no more than a number of bytes.
fn tasks<'a>(
    shards: &'a [Shards],
    chunk_bytes: &'a [u64],
    bytes_max: u64,
) -> impl Iterator<Item = Vec<Shard>> + Send + 'a {
    let sized = |(shards, chunk): (&'a Shards, &'a u64)| {
        shards.iter().map(move |shard| (shard.weight.saturating_mul(*chunk), shard))
    };
    let mut ahead = shards.iter().zip(chunk_bytes).flat_map(sized).peekable();
    std::iter::from_fn(move || {
        let (mut bytes, first) = ahead.next()?;
        let mut chunks = first.chunks.len();
        let mut task = vec![first];
        while task.len() < TASK_SHARDS_MAX {
            let next = ahead.next_if(|(more, shard)| {
                bytes.saturating_add(*more) <= bytes_max
                    && chunks + shard.chunks.len() <= TASK_CHUNKS_MAX
            });
            let Some((more, shard)) = next else { break };
            bytes += more;
            chunks += shard.chunks.len();
            task.push(shard);
        }
        Some(task)
    })
}

fn unwritable(error: serde_json::Error) -> Error {
    Error::invalid(format!("a task of an export: {error}"))
}

/// Carries out a job that is an export. The source is opened at the first task.
#[derive(Debug)]
pub struct ExportWork {
    specification: Specification,
    open: OpenOptions,
    progress: Arc<Progress>,
    /// So many shards are written at once, over all tasks.
    permits: Semaphore,
    began: Instant,
    opened: OnceCell<Opened>,
}

/// An export that is open, and what an earlier run of it had finished.
#[derive(Debug)]
struct Opened {
    exporter: Exporter,
    before: Lines,
}

impl ExportWork {
    /// Reads the work of a job.
    pub fn new(job: &Job, open: OpenOptions, progress: Arc<Progress>) -> Result<Self> {
        let specification = Specification::of(job)?;
        progress.expect(specification.shards, specification.weight);
        let permits = Semaphore::new(open.store.limits.packs_in_flight.max(1));
        let (began, opened) = (Instant::now(), OnceCell::new());
        Ok(Self { specification, open, progress, permits, began, opened })
    }

    /// URL of the target.
    pub fn target(&self) -> &str {
        &self.specification.target
    }

    async fn opened(&self) -> Result<&Opened> {
        let open = || async {
            let target = Store::open(&self.specification.target, &self.open.store)?;
            let before = Lines::open(&target).await?;
            let plan = self.specification.plan.clone();
            let exporter = Exporter::open(plan, target, &self.open).await?;
            Ok(Opened { exporter, before })
        };
        self.opened.get_or_try_init(open).await
    }

    async fn shard(&self, opened: &Opened, shard: Shard) -> Result<Line> {
        let closed = |_| Error::invalid("an export that is over gets no more tasks");
        let _permit = self.permits.acquire().await.map_err(closed)?;
        let before = opened.before.get(shard.scale, shard.number).await?;
        let (line, _) = opened.exporter.complete(&shard, before.as_ref()).await?;
        self.progress.finish_shard(shard.weight, line.blocks, line.bytes);
        Ok(line)
    }
}

#[async_trait]
impl Work for ExportWork {
    async fn task(&self, task: Bytes) -> Result<Bytes> {
        let shards: Vec<Shard> = serde_json::from_slice(&task)
            .map_err(|error| Error::invalid(format!("a task of an export: {error}")))?;
        let opened = self.opened().await?;
        let at_once = self.open.store.limits.packs_in_flight.max(1);
        let lines: Vec<Line> = stream::iter(shards)
            .map(|shard| self.shard(opened, shard))
            .buffered(at_once)
            .try_collect()
            .await?;
        serde_json::to_vec(&lines).map(Bytes::from).map_err(unwritable)
    }

    /// Ending twice writes the same again, whatever another worker has done of it.
    async fn finish(&self, job: &Job, _again: bool) -> Result<Value> {
        let lines = job.results().await?.map(|result| {
            let (task, result) = result?;
            serde_json::from_slice::<Vec<Line>>(&result).map_err(|error| Error::Corrupt {
                file: job.store().url().to_owned(),
                what: format!("result of task {task}"),
                expected: "lines of finished shards".to_owned(),
                found: error.to_string(),
            })
        });
        let exporter = &self.opened().await?.exporter;
        let outside = self.specification.outside.clone();
        let report = exporter.conclude(lines, outside, self.began).await?;
        Ok(json!({
            "target": self.target(),
            "shards": report.total.shards,
            "empty_shards": report.total.empty_shards,
            "blocks": report.total.blocks,
            "bytes": report.total.bytes,
        }))
    }
}
