//! Carrying out a job: claim, do, note, until nothing is left.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use chunkyard_store::{Error, Result};
use futures::future::{Either, select, try_join_all};
use serde_json::Value;

use super::document::Job;
use super::worker::{Claim, Next, Worker};

/// The pauses of a worker that waits for others: the first, doubled up to the time between two beats.
const FIRST_PAUSE: Duration = Duration::from_millis(100);

/// A kind of work.
///
/// A task may be begun by several workers, at the same time or after one of them has died; the result of one of them
/// counts. So a task must not destroy what another attempt at it has made.
#[async_trait]
pub trait Work: Send + Sync {
    /// Does a task, durably. The result is for [`Work::finish`].
    async fn task(&self, task: Bytes) -> Result<Bytes>;

    /// Ends the job, when all tasks are done; the outcome is for people. `again`: another worker has begun to end it,
    /// and may have got as far as the commit.
    async fn finish(&self, job: &Job, again: bool) -> Result<Value>;
}

/// How a worker works.
#[derive(Debug, Clone)]
pub struct WorkerOptions {
    /// Tasks at a time, so that claims and ends of tasks cost no time.
    pub tasks_in_flight: usize,
    /// Stay while other workers do the rest, to take over what they leave.
    pub wait: bool,
}

impl Default for WorkerOptions {
    fn default() -> Self {
        Self { tasks_in_flight: 2, wait: true }
    }
}

/// What a worker has done.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Summary {
    /// Tasks that were done here.
    pub tasks: u64,
    /// Tasks that were done here and do not count: another worker had taken over.
    pub refused: u64,
    /// The outcome of the job, if it is finished.
    pub outcome: Option<Value>,
}

/// Joins a job and works until it is finished, or, if told not to wait, until no task is to be had.
///
/// A task that fails is given back, and the worker ends with its error. Whatever is under way then is given up, and
/// other workers may take it over at once.
pub async fn run(job: &Job, work: &dyn Work, options: &WorkerOptions) -> Result<Summary> {
    let tally = Tally::default();
    if let Some(outcome) = job.outcome().await? {
        return Ok(tally.summary(Some(outcome)));
    }
    let worker = Worker::join(job).await?;
    let worked = {
        let lanes =
            (0..options.tasks_in_flight.max(1)).map(|_| lane(&worker, work, options, &tally));
        let (working, beating) = (try_join_all(lanes), beats(&worker));
        futures::pin_mut!(working, beating);
        match select(working, beating).await {
            Either::Left((worked, _)) => worked.map(drop),
            Either::Right((never, _)) => match never {},
        }
    };
    // Only courtesy: a worker that says nothing is given up in time.
    worker.leave().await.ok();
    worked?;
    Ok(tally.summary(job.outcome().await?))
}

#[derive(Debug, Default)]
struct Tally {
    tasks: AtomicU64,
    refused: AtomicU64,
}

impl Tally {
    fn summary(&self, outcome: Option<Value>) -> Summary {
        let [tasks, refused] =
            [&self.tasks, &self.refused].map(|count| count.load(Ordering::Relaxed));
        Summary { tasks, refused, outcome }
    }
}

/// Shows that the worker lives, for as long as it is polled. A beat that fails is not the end: if the store is away
/// for longer than a lease, taking over is right.
async fn beats(worker: &Worker) -> std::convert::Infallible {
    loop {
        tokio::time::sleep(worker.beat_after()).await;
        worker.beat().await.ok();
    }
}

/// One task after the other.
async fn lane(
    worker: &Worker,
    work: &dyn Work,
    options: &WorkerOptions,
    tally: &Tally,
) -> Result<()> {
    let mut pause = FIRST_PAUSE;
    loop {
        match worker.next().await? {
            Next::Claimed(claim) => {
                pause = FIRST_PAUSE;
                let counts = attempt(worker, work, &claim).await?;
                if claim.task < worker.job().tasks() {
                    let count = if counts { &tally.tasks } else { &tally.refused };
                    count.fetch_add(1, Ordering::Relaxed);
                }
            }
            Next::Wait if options.wait => {
                tokio::time::sleep(pause.min(worker.beat_after())).await;
                pause = (pause * 2).min(worker.beat_after());
            }
            Next::Wait | Next::Over => return Ok(()),
        }
    }
}

/// Does a task that was claimed. `false`: it was taken over meanwhile.
async fn attempt(worker: &Worker, work: &dyn Work, claim: &Claim) -> Result<bool> {
    let job = worker.job();
    let done = async {
        if claim.task < job.tasks() {
            return work.task(job.task(claim.task).await?).await;
        }
        let outcome = work.finish(job, claim.epoch > 0).await?;
        let outcome = serde_json::to_vec(&outcome)
            .map_err(|error| Error::invalid(format!("the outcome of a job: {error}")))?;
        Ok(outcome.into())
    };
    match done.await {
        Ok(result) => worker.note(claim, result).await,
        // Where the task is another worker's by now, so is the failure.
        Err(error) => match worker.fail(claim, &error).await {
            Ok(false) => Ok(false),
            Ok(true) | Err(_) => Err(error),
        },
    }
}
