//! A conversion as a job: tasks are packs, results are receipts, the end is the commit.

use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use chunkyard_format::{CreateOptions, OpenOptions};
use chunkyard_store::{Error, Noun, Options, Result, Store};
use futures::TryStreamExt;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::sync::OnceCell;

use super::document::{Job, Planned};
use super::run::Work;
use crate::pipeline::{
    Conversion, Coordinator, Done, Order, PackRange, RunOptions, WorkOptions, Worker,
};

/// The kind of job that is a conversion.
pub const CONVERT: &str = "convert";

/// Bytes of elements of a task if the caller does not say: a share of the whole between these bounds. A task should take
/// much longer than its two requests, and be short enough that little is lost with a worker.
const TASK_BYTES: std::ops::RangeInclusive<u64> = 8 << 20..=256 << 20;
/// Tasks at least, if they are not too small then.
const TASKS: u64 = 256;

/// How a conversion is made a job.
#[derive(Debug, Clone)]
pub struct ConversionJob {
    /// How the target is written.
    pub create: CreateOptions,
    /// Compare the target with the source before it becomes visible.
    pub verify: bool,
    /// Bytes of elements that a worker claims at a time.
    pub task_bytes: Option<u64>,
    /// How long the count of a worker may stand still.
    pub lease: Duration,
}

impl Default for ConversionJob {
    fn default() -> Self {
        Self {
            create: CreateOptions::default(),
            verify: false,
            task_bytes: None,
            lease: Duration::from_secs(60),
        }
    }
}

/// The work of a conversion, as the job has it.
#[derive(Debug, Serialize, Deserialize)]
struct Specification {
    order: Order,
    overwrite: bool,
    message: Option<String>,
    branch: Option<String>,
    verify: bool,
    packs: u64,
    bytes: u64,
}

impl Specification {
    fn of(job: &Job) -> Result<Self> {
        if job.kind() != CONVERT {
            return Err(Error::unsupported(format!(
                "{}, a job of kind {:?}, as a conversion",
                job.store().url(),
                job.kind()
            )));
        }
        serde_json::from_value(job.work().clone()).map_err(|error| Error::Corrupt {
            file: job.store().url().to_owned(),
            what: "the work of a job".to_owned(),
            expected: "a conversion".to_owned(),
            found: error.to_string(),
        })
    }
}

impl ConversionJob {
    /// Begins the target of a conversion and makes a job of its packs. The second value says whether the job is new: one of
    /// the same conversion may be there already.
    pub async fn create(&self, store: Store, conversion: &Conversion) -> Result<(Job, bool)> {
        match Job::open(store.clone()).await {
            Err(Error::NotFound { what: Noun::Job, .. }) => {}
            Err(error) => return Err(error),
            Ok(job) => {
                return match Specification::of(&job) {
                    Ok(found) if found.order.plan() == conversion.plan.name => Ok((job, false)),
                    _ => {
                        Err(Error::AlreadyExists { what: Noun::Job, name: store.url().to_owned() })
                    }
                };
            }
        }
        let create = CreateOptions { keep_attempts: true, ..self.create.clone() };
        let run = RunOptions { limits: *store.limits(), ..RunOptions::default() };
        let coordinator = Coordinator::begin(conversion, create, run).await?;
        let bytes = coordinator.bytes();
        let share = bytes.div_ceil(TASKS).clamp(*TASK_BYTES.start(), *TASK_BYTES.end());
        let specification = Specification {
            order: coordinator.order().as_ref().clone(),
            overwrite: self.create.overwrite,
            message: self.create.message.clone(),
            branch: self.create.branch.clone(),
            verify: self.verify,
            packs: coordinator.packs().1,
            bytes,
        };
        let work = serde_json::to_value(&specification).map_err(unwritable)?;
        let planned = Planned { kind: CONVERT.to_owned(), work, lease: self.lease };
        let tasks = coordinator.tasks_within(self.task_bytes.unwrap_or(share).max(1));
        let tasks =
            tasks.map(|task| Ok(serde_json::to_vec(&task.packs).map_err(unwritable)?.into()));
        Job::create(store, planned, tasks).await
    }
}

fn unwritable(error: serde_json::Error) -> Error {
    Error::invalid(format!("a task of a conversion: {error}"))
}

/// Carries out a job that is a conversion. Source and target are opened at the first task.
#[derive(Debug)]
pub struct ConversionWork {
    specification: Specification,
    options: WorkOptions,
    worker: OnceCell<Worker>,
}

impl ConversionWork {
    /// Reads the work of a job.
    pub fn new(job: &Job, options: WorkOptions) -> Result<Self> {
        let specification = Specification::of(job)?;
        options.meter.expect(specification.bytes);
        options.meter.expect_packs(specification.packs);
        Ok(Self { specification, options, worker: OnceCell::new() })
    }

    /// URLs of the source and the target.
    pub fn places(&self) -> (&str, &str) {
        self.specification.order.places()
    }

    /// What to conclude when another worker has begun to end the conversion and its work aside is gone.
    async fn after_the_end(&self, conversion: &Conversion, store: Options) -> Result<Value> {
        let url = conversion.target().url();
        let options = OpenOptions { store, ..OpenOptions::default() };
        let there = match conversion.to.open(conversion.target(), &options).await {
            Ok(_) => true,
            Err(Error::NotFound { .. }) => false,
            Err(error) => return Err(error),
        };
        match (there, self.specification.overwrite) {
            (true, false) => Ok(found()),
            (true, true) => Err(Error::OutcomeUnknown {
                what: format!("replacing {url}"),
                source: "the worker that did it died at that moment".into(),
            }),
            (false, _) => Err(Error::Conflict {
                message: format!(
                    "the work on {url} is gone, and {url} is not there: another process has restarted the \
                     conversion, or one died while it gave the result its name; make the job anew"
                ),
                conflicts: Vec::new(),
            }),
        }
    }
}

/// The outcome where another worker has made the result visible and had no time to say so.
fn found() -> Value {
    json!({"found": true})
}

#[async_trait]
impl Work for ConversionWork {
    async fn task(&self, task: Bytes) -> Result<Bytes> {
        let packs: Vec<PackRange> = serde_json::from_slice(&task)
            .map_err(|error| Error::invalid(format!("a task of a conversion: {error}")))?;
        let join = || Worker::join(&self.specification.order, &self.options);
        let done = self.worker.get_or_try_init(join).await?.work(&packs).await?;
        serde_json::to_vec(&done).map(Bytes::from).map_err(unwritable)
    }

    async fn finish(&self, job: &Job, again: bool) -> Result<Value> {
        let Specification { order, overwrite, message, branch, verify, .. } = &self.specification;
        let store = self.options.store.clone();
        let conversion = Conversion::of_order(order, &store).await?;
        if again {
            let dataset = &conversion.plan.dataset;
            let joined = conversion.to.join(conversion.target(), dataset, order.ticket()).await;
            match joined {
                Err(Error::Conflict { .. }) => return self.after_the_end(&conversion, store).await,
                other => drop(other?),
            }
        }
        let create = CreateOptions {
            overwrite: *overwrite,
            message: message.clone(),
            branch: branch.clone(),
            keep_attempts: true,
            ..CreateOptions::default()
        };
        let run = RunOptions { limits: store.limits, verify: *verify, ..RunOptions::default() };
        let mut coordinator = match Coordinator::begin(&conversion, create, run).await {
            Err(Error::AlreadyExists { .. }) if again => return Ok(found()),
            other => other?,
        };
        let results = job.results().await?;
        futures::pin_mut!(results);
        while let Some((task, result)) = results.try_next().await? {
            let done: Done = serde_json::from_slice(&result).map_err(|error| Error::Corrupt {
                file: job.store().url().to_owned(),
                what: format!("the result of task {task}"),
                expected: "the receipts of packs".to_owned(),
                found: error.to_string(),
            })?;
            coordinator.adopt(&done).await?;
        }
        let outcome = coordinator.finish().await?;
        Ok(json!({
            "packs": outcome.packs,
            "chunks": outcome.chunks,
            "bytes": outcome.bytes,
            "bytes-stored": outcome.bytes_stored,
            "snapshot": outcome.published.snapshot,
        }))
    }
}
