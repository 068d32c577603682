//! `chunkyard work`: a worker of a job, and what has become of the job.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Result;
use chunkyard_engine::Error;
use chunkyard_engine::Meter;
use chunkyard_engine::export::Progress;
use chunkyard_engine::format::OpenOptions;
use chunkyard_engine::job::{
    CONVERT, ConversionWork, EXPORT, ExportWork, Job, Open, Status, Summary, WorkerOptions, run,
};
use chunkyard_engine::pipeline::WorkOptions;
use chunkyard_engine::store::{Store, clock};
use clap::Args;
use serde_json::json;

use crate::cmd::convert::Machine;
use crate::cmd::export_shards;
use crate::context::Context;
use crate::output::{Output, columns};
use crate::progress::Watch;
use crate::units::{count, lasting};

/// Work on a job until it is finished, together with any number of other processes
///
/// A job is a directory on any store, made by `convert --job` or `export-shards --job`. It says what is read and written; this process
/// does so with its own credentials. Workers may join, end and be killed at any time, on any machine that
/// reaches the job, the source and the target. A task of a worker that shows no sign of life for the time of a lease is
/// taken over. The last worker ends the job: then the result is visible.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  chunkyard convert big.zarr s3://bucket/big.zarr --job s3://bucket/jobs/big     make the job
  chunkyard work s3://bucket/jobs/big                    on as many machines as there are
  chunkyard work s3://bucket/jobs/big --status           what is done, claimed and stale, and by whom
  srun --ntasks 64 chunkyard work /shared/jobs/big --threads 4
  seq 8 | parallel -n0 chunkyard work /shared/jobs/big --threads 1 --quiet")]
pub(crate) struct Work {
    /// The job
    job: String,

    /// Print what has become of the job, and touch nothing
    #[arg(long)]
    status: bool,

    /// End when no task is left, without waiting for tasks that other workers are at
    #[arg(long, conflicts_with = "status")]
    no_wait: bool,

    #[command(flatten)]
    machine: Machine,
}

impl Work {
    pub(crate) async fn run(&self, context: &Context) -> Result<()> {
        context.about(&self.job);
        let began = Instant::now();
        let limits = self.machine.apply()?;
        let store = context.store_options(limits);
        let job = Job::open(Store::open(&self.job, &store)?).await?;
        if self.status {
            let status = job.status().await?;
            return context.output.result(&status, || text(&status, job.lease(), context.output));
        }
        match job.kind() {
            CONVERT => {
                let meter = Arc::new(Meter::default());
                let options = WorkOptions { store, meter: meter.clone() };
                let work = ConversionWork::new(&job, options)?;
                let watch = Watch::new("working", meter, context.output.talks());
                let summary = run(&job, &work, &self.options()).await?;
                drop(watch);
                self.tell(&summary, work.places().1, began.elapsed(), context)
            }
            EXPORT => {
                let progress = Arc::new(Progress::default());
                let allowed = context.options().allowed.clone();
                let open = OpenOptions { store, allowed, ..OpenOptions::default() };
                let work = ExportWork::new(&job, open, progress.clone())?;
                let watch = export_shards::Watch::new(progress, context.output.talks());
                let summary = run(&job, &work, &self.options()).await?;
                drop(watch);
                self.tell(&summary, work.target(), began.elapsed(), context)
            }
            kind => {
                let what = format!("a job of kind {kind:?}, {}", self.job);
                Err(Error::unsupported(what).into())
            }
        }
    }

    fn options(&self) -> WorkerOptions {
        WorkerOptions { wait: !self.no_wait, ..WorkerOptions::default() }
    }

    /// Says what this worker has done.
    fn tell(
        &self,
        summary: &Summary,
        target: &str,
        time: Duration,
        context: &Context,
    ) -> Result<()> {
        let document = json!({
            "job": self.job,
            "tasks": summary.tasks,
            "refused": summary.refused,
            "finished": summary.outcome.is_some(),
            "outcome": summary.outcome,
            "seconds": time.as_secs_f64(),
        });
        context.output.done(&document, || {
            let end = match summary.outcome {
                Some(_) => format!("the job is finished: {target}"),
                None => "the rest is other workers'".to_owned(),
            };
            format!("did {} in {}; {end}", count(summary.tasks, "task"), lasting(time))
        })
    }
}

/// The state of a job as text.
fn text(status: &Status, lease: Duration, output: Output) -> String {
    let number = |state| status.open.iter().filter(|open| open.state == state).count() as u64;
    let open = [Open::Claimed, Open::Stale, Open::Failed].map(number);
    let state = match status.outcome {
        Some(_) => output.green("finished"),
        None => format!(
            "{} of {} done, {} claimed, {} stale, {} failed, {} free",
            status.done,
            count(status.tasks, "task"),
            open[0],
            open[1],
            open[2],
            status.free
        ),
    };
    let mut rows = vec![
        vec!["job".to_owned(), format!("{}  ({})", output.bold(&status.job), status.kind)],
        vec!["state".to_owned(), state],
        vec!["lease".to_owned(), lasting(lease)],
    ];
    for worker in &status.workers {
        let held: Vec<String> = status
            .open
            .iter()
            .filter(|open| open.worker == worker.worker && open.state != Open::Failed)
            .map(|open| match open.task == status.tasks {
                true => "the end".to_owned(),
                false => format!("task {}", open.task),
            })
            .collect();
        let at = if held.is_empty() { "nothing".to_owned() } else { held.join(", ") };
        let life = if worker.gone { "gone" } else { "alive" };
        let seen = match worker.seen_ms {
            0 => String::new(),
            ms => format!(", last seen {}", clock::text(ms)),
        };
        let what = format!(
            "{} process {}, {life}{seen}: {} done, at {at}",
            worker.host,
            worker.pid,
            count(worker.tasks, "task")
        );
        rows.push(vec!["worker".to_owned(), what]);
    }
    for open in status.open.iter().filter(|open| open.state == Open::Failed) {
        let why = open.error.as_deref().unwrap_or_default();
        rows.push(vec!["failed".to_owned(), format!("task {}: {why}", open.task)]);
    }
    columns(&rows)
}
