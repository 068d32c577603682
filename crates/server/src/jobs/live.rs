//! A job that this server takes part in, for the workers that talk to it.
//!
//! To the job the server is one worker: it claims tasks, hands each to a worker of its own, and notes what that one acknowledges. So
//! everything that must survive the server is in the job, by the rules of docs/design/017-jobs.md: a claim is a step, an
//! acknowledgement is the last step of its task, and a step is created once. What is only here are the leases of workers.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use bytes::Bytes;
use chunkyard_engine::export::Exporter;
use chunkyard_engine::job::{Claim, Job, Next, Open, Worker};
use chunkyard_engine::store::{Store, clock, publish};
use chunkyard_engine::{Error, Noun, Result};
use futures::TryStreamExt;
use serde::{Deserialize, Serialize};
use tokio::sync::{Notify, OnceCell, OwnedMutexGuard};

use super::claims::{Begun, Claims, Compared, End};
use super::document::{About, Acked, Marker, Task, Unit, Work};
use super::failure::{Failed, Outcome};
use super::make;
use super::request::{JobId, Request};
use crate::State;

/// The object that says that a job was cancelled.
const CANCELLED: &str = "cancelled.json";
/// How long it counts that no task was to be had, if nothing has changed here: other servers may have given one back.
const LOOK_AGAIN: Duration = Duration::from_millis(500);

/// What became of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Phase {
    Running,
    Over,
    Cancelled,
}

/// A job that this server takes part in.
#[derive(Debug)]
pub(crate) struct Live {
    id: JobId,
    job: Job,
    work: Work,
    phase: Mutex<Phase>,
    claims: Mutex<Claims>,
    exporter: OnceCell<Arc<Exporter>>,
    worker: OnceCell<Arc<Worker>>,
    /// When no task was to be had, and how often anything had changed by then.
    looked: tokio::sync::Mutex<Option<(Instant, u64)>>,
    changes: AtomicU64,
    /// Wakes those who wait for a task of any job.
    changed: Arc<Notify>,
}

/// What a worker gets that asks for a task.
#[derive(Debug)]
pub(crate) enum Got {
    Task(Given),
    Wait,
    Over,
    Cancelled,
}

/// A task that is a worker's.
#[derive(Debug)]
pub(crate) struct Given {
    pub(crate) live: Arc<Live>,
    pub(crate) task: u64,
    pub(crate) epoch: u32,
    pub(crate) content: Arc<Task>,
}

/// The claim that a worker names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Named {
    pub(crate) worker: String,
    pub(crate) job: String,
    pub(crate) task: u64,
    pub(crate) epoch: u32,
}

/// The outcome of a job that is over.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Totals {
    shards: u64,
    rows: u64,
    bytes: u64,
}

/// What is told of a job.
#[derive(Debug, Serialize)]
pub(crate) struct Told {
    job: String,
    state: Phase,
    key: Option<String>,
    request: Request,
    created_ms: i64,
    tasks: u64,
    done: u64,
    claimed: u64,
    failed: u64,
    free: u64,
    shards: ToldShards,
    rows: u64,
    bytes: u64,
    rate: f64,
    workers: Vec<ToldWorker>,
    claims: Vec<ToldClaim>,
    last_error: Option<String>,
}

#[derive(Debug, Serialize)]
struct ToldShards {
    total: u64,
    done: u64,
}

#[derive(Debug, Serialize)]
struct ToldWorker {
    worker: String,
    claims: u64,
    acked: u64,
    seen_ms: i64,
}

#[derive(Debug, Serialize)]
struct ToldClaim {
    task: u64,
    epoch: u32,
    worker: String,
    left_ms: u64,
    sent_bytes: u64,
}

impl Live {
    /// Takes part in a job that exists.
    pub(crate) async fn open(store: &Store, id: &JobId, changed: Arc<Notify>) -> Result<Self> {
        let job = match Job::open(store.below(id.as_str())?).await {
            Err(Error::NotFound { what: Noun::Job, .. }) => {
                return Err(Error::NotFound { what: Noun::Job, name: id.as_str().to_owned() });
            }
            other => other?,
        };
        let work = Work::of(&job)?;
        let phase = phase(&job).await?;
        Ok(Self {
            id: id.clone(),
            job,
            work,
            phase: Mutex::new(phase),
            claims: Mutex::default(),
            exporter: OnceCell::new(),
            worker: OnceCell::new(),
            looked: tokio::sync::Mutex::default(),
            changes: AtomicU64::new(0),
            changed,
        })
    }

    pub(crate) fn id(&self) -> &JobId {
        &self.id
    }

    pub(crate) fn request(&self) -> &Request {
        &self.work.request
    }

    pub(crate) fn about(&self) -> &About {
        &self.work.about
    }

    pub(crate) fn created_ms(&self) -> i64 {
        self.work.created_ms
    }

    pub(crate) fn lease(&self) -> Duration {
        self.job.lease()
    }

    pub(crate) fn phase(&self) -> Phase {
        *self.phase.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn claims(&self) -> MutexGuard<'_, Claims> {
        self.claims.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The source, opened at the first use.
    pub(crate) async fn exporter(&self, state: &State) -> Result<&Arc<Exporter>> {
        let open = || async {
            let place = state.places().get(&self.work.request.source)?;
            make::open(&self.work, self.job.store(), place).await
        };
        self.exporter.get_or_try_init(open).await
    }

    /// This server as a worker of the job. From the first use on it shows that it lives, and looks after leases.
    async fn worker(self: &Arc<Self>) -> Result<&Arc<Worker>> {
        let join = || async {
            let worker = Arc::new(Worker::join(&self.job).await?);
            tokio::spawn(look_after(Arc::downgrade(self), worker.clone()));
            Ok(worker)
        };
        self.worker.get_or_try_init(join).await
    }

    /// Something has happened that a waiting worker may be glad about.
    fn tell(&self) {
        self.changes.fetch_add(1, Ordering::Relaxed);
        self.changed.notify_waiters();
    }

    /// Learns whether the job was cancelled, perhaps by another server.
    async fn is_cancelled(&self) -> Result<bool> {
        if self.phase() == Phase::Running && is_marked(self.job.store()).await? {
            self.enter(Phase::Cancelled);
        }
        Ok(self.phase() == Phase::Cancelled)
    }

    /// The job runs no longer.
    fn enter(&self, phase: Phase) {
        *self.phase.lock().unwrap_or_else(PoisonError::into_inner) = phase;
        let why = if phase == Phase::Cancelled { End::Cancelled } else { End::Lost };
        self.claims().clear(why);
        self.tell();
    }

    /// A task for a worker.
    pub(crate) async fn next(self: &Arc<Self>, name: &str) -> Result<Got> {
        match self.phase() {
            Phase::Running if !self.is_cancelled().await? => {}
            Phase::Over => return Ok(Got::Over),
            _ => return Ok(Got::Cancelled),
        }
        self.claims().greet(name, Instant::now(), clock::now_ms());
        let returned = self.claims().returned();
        if let Some((claim, task)) = returned {
            return Ok(Got::Task(self.hand_out(&claim, task, name)));
        }
        let worker = self.worker().await?.clone();
        // One looks at a time: what it does not find, the others do not find either.
        let mut looked = self.looked.lock().await;
        let changes = self.changes.load(Ordering::Relaxed);
        if let Some((when, then)) = *looked
            && then == changes
            && when.elapsed() < LOOK_AGAIN
        {
            return Ok(Got::Wait);
        }
        match worker.next().await? {
            Next::Claimed(claim) if claim.task < self.job.tasks() => {
                match self.task(claim.task).await {
                    Ok(task) => Ok(Got::Task(self.hand_out(&claim, Arc::new(task), name))),
                    Err(error) => {
                        worker.fail(&claim, &error).await?;
                        Err(error)
                    }
                }
            }
            Next::Claimed(end) => {
                self.finish(&worker, &end).await?;
                Ok(Got::Over)
            }
            Next::Over => {
                self.enter(Phase::Over);
                Ok(Got::Over)
            }
            Next::Wait => {
                *looked = Some((Instant::now(), changes));
                Ok(Got::Wait)
            }
        }
    }

    fn hand_out(self: &Arc<Self>, claim: &Claim, content: Arc<Task>, name: &str) -> Given {
        let mut claims = self.claims();
        claims.hold(claim, content.clone(), name, Instant::now());
        // A cancellation that came in between finds the claim, or is found here.
        if self.phase() != Phase::Running {
            claims.clear(End::Cancelled);
        }
        Given { live: self.clone(), task: claim.task, epoch: claim.epoch, content }
    }

    /// Takes back a task whose worker never heard of it.
    pub(crate) fn give_back(&self, task: u64, epoch: u32) {
        self.claims().give_back(task, epoch, Instant::now());
        self.tell();
    }

    /// All tasks are done: notes that the job is over, with what there was.
    async fn finish(&self, worker: &Worker, end: &Claim) -> Result<()> {
        let noted = async {
            let mut totals = Totals::default();
            let mut results = std::pin::pin!(self.job.results().await?);
            while let Some((_, result)) = results.try_next().await? {
                for marker in Acked::parse(&self.job, &result)?.shards {
                    totals.shards += u64::from(matches!(marker, Marker::Blocks { .. }));
                    totals.rows += marker.rows();
                    totals.bytes += marker.bytes();
                }
            }
            let totals = serde_json::to_vec(&totals)
                .map_err(|error| Error::invalid(format!("the outcome of a job: {error}")))?;
            worker.note(end, totals.into()).await
        };
        match noted.await {
            Ok(true) => {
                self.enter(Phase::Over);
                Ok(())
            }
            Ok(false) => Ok(()),
            Err(error) => {
                worker.fail(end, &error).await?;
                Err(error)
            }
        }
    }

    /// Ends the job if all of it is done.
    async fn settle(&self, worker: &Worker) -> Result<()> {
        match worker.end().await? {
            Next::Claimed(end) => self.finish(worker, &end).await,
            Next::Over => {
                self.enter(Phase::Over);
                Ok(())
            }
            Next::Wait => Ok(()),
        }
    }

    fn gone(&self, named: &Named) -> Failed {
        let (job, task) = (self.id.as_str(), named.task);
        Failed::Gone(match self.phase() {
            Phase::Running => format!(
                "task {task} of job {job} is not held by {:?} with epoch {}: the lease has run out, or another server has \
                 taken over; claim again",
                named.worker, named.epoch
            ),
            Phase::Over => format!("job {job} is over"),
            Phase::Cancelled => format!("job {job} was cancelled"),
        })
    }

    /// Renews the lease of a claim; whether the job was cancelled.
    pub(crate) async fn beat(&self, named: &Named) -> Outcome<bool> {
        if self.is_cancelled().await? {
            return Ok(true);
        }
        let now = Instant::now();
        self.claims().greet(&named.worker, now, clock::now_ms());
        let held = self.claims().get(&named.worker, named.task, named.epoch, now).is_some();
        if held { Ok(false) } else { Err(self.gone(named)) }
    }

    /// Begins the stream of a claim, and ends the one that it had.
    pub(crate) async fn begin(&self, named: &Named) -> Outcome<Begun> {
        if self.is_cancelled().await? {
            return Err(Failed::Cancelled(format!("job {} was cancelled", self.id.as_str())));
        }
        self.claims().greet(&named.worker, Instant::now(), clock::now_ms());
        let begun = self.claims().begin(&named.worker, named.task, named.epoch);
        begun.ok_or_else(|| self.gone(named))
    }

    /// Notes a unit that a stream has sent to its end.
    pub(crate) fn sent(&self, named: &Named, stream: u64, marker: Marker) {
        self.claims().sent(named.task, named.epoch, stream, marker);
    }

    /// Waits until nothing else is done about a claim.
    async fn gate(&self, named: &Named) -> Option<OwnedMutexGuard<()>> {
        let gate = self.claims().gate(named.task, named.epoch)?;
        Some(gate.lock_owned().await)
    }

    /// Notes durably that a worker has a task. The same again gets the same answer.
    pub(crate) async fn ack(&self, named: &Named, shards: Vec<Marker>) -> Outcome<Vec<Unit>> {
        let units: Vec<Unit> = shards.iter().map(Marker::unit).collect();
        let acked = Acked { worker: named.worker.clone(), epoch: named.epoch, shards };
        let cancelled = self.is_cancelled().await?;
        let _alone = self.gate(named).await;
        let now = Instant::now();
        self.claims().greet(&named.worker, now, clock::now_ms());
        let compared = {
            let mut claims = self.claims();
            let held = claims.get(&named.worker, named.task, named.epoch, now);
            held.map(|held| held.compare(&acked.shards))
        };
        match compared {
            Some(Compared::Equal) if !cancelled => {}
            Some(Compared::Differs(how)) => return Err(Failed::from(Error::invalid(how))),
            _ => {
                // Acknowledged already, perhaps to the server before this one?
                let known = named.task < self.job.tasks();
                let result = if known { self.job.result(named.task).await? } else { None };
                return match result {
                    Some(result) if Acked::parse(&self.job, &result)? == acked => Ok(units),
                    _ => Err(self.gone(named)),
                };
            }
        }
        let Some(worker) = self.worker.get() else { return Err(self.gone(named)) };
        let claim = Claim { task: named.task, epoch: named.epoch };
        let result = serde_json::to_vec(&acked)
            .map_err(|error| Error::invalid(format!("an acknowledgement: {error}")))?;
        // Where it is not known how this ends, it may still happen. The worker asks again, and the same note is found or made.
        let counts = worker.note(&claim, Bytes::from(result)).await?;
        self.claims().take(named.task, named.epoch, End::Lost);
        if !counts {
            return Err(self.gone(named));
        }
        self.claims().count(&named.worker, &acked.shards, Instant::now());
        if worker.is_all_done()
            && let Err(error) = self.settle(worker).await
        {
            // The task itself is done. The end is tried again by whatever looks next.
            tracing::warn!(job = self.id.as_str(), %error, "the end of the job could not be noted");
        }
        Ok(units)
    }

    /// Gives a task back that a worker could not do.
    pub(crate) async fn fail(&self, named: &Named, why: &str) -> Outcome<()> {
        let _alone = self.gate(named).await;
        let held =
            self.claims().get(&named.worker, named.task, named.epoch, Instant::now()).is_some();
        let Some(worker) = self.worker.get().filter(|_| held) else { return Err(self.gone(named)) };
        let claim = Claim { task: named.task, epoch: named.epoch };
        worker.fail(&claim, &Error::invalid(format!("{}: {why}", named.worker))).await?;
        let mut claims = self.claims();
        claims.take(named.task, named.epoch, End::Lost);
        claims.last_error = Some(why.to_owned());
        drop(claims);
        self.tell();
        Ok(())
    }

    /// Cancels the job; `false` if it is over.
    pub(crate) async fn cancel(&self) -> Outcome<bool> {
        if phase(&self.job).await? == Phase::Over {
            self.enter(Phase::Over);
            return Ok(false);
        }
        let text = Bytes::from(format!("{{\"cancelled_ms\": {}}}\n", clock::now_ms()));
        publish::publish(self.job.store(), vec![(CANCELLED.to_owned(), text)]).await?;
        self.enter(Phase::Cancelled);
        Ok(true)
    }

    /// The tasks of blocks that are not acknowledged.
    pub(crate) async fn left(&self) -> Result<Vec<u64>> {
        let done: BTreeSet<u64> = self.job.status().await?.done_tasks.into_iter().collect();
        Ok((0..self.work.about.shards).filter(|task| !done.contains(task)).collect())
    }

    /// A task.
    pub(crate) async fn task(&self, task: u64) -> Result<Task> {
        Task::parse(&self.job, &self.job.task(task).await?)
    }

    /// What there is to tell.
    pub(crate) async fn told(&self) -> Outcome<Told> {
        let status = self.job.status().await?;
        let totals = status.outcome.clone().map(serde_json::from_value::<Totals>);
        let totals = totals.and_then(std::result::Result::ok);
        if totals.is_some() && self.phase() == Phase::Running {
            self.enter(Phase::Over);
        }
        self.is_cancelled().await?;
        let open = || status.open.iter().filter(|open| open.task < status.tasks);
        let failed = open().filter(|open| open.state == Open::Failed);
        let last_failure = failed.clone().filter_map(|open| open.error.clone()).next_back();
        let failed = failed.count() as u64;
        let shards = self.work.about.shards;
        let (claims, now) = (self.claims(), Instant::now());
        let workers = claims.workers().into_iter().map(|(worker, known, claims)| ToldWorker {
            worker,
            claims,
            acked: known.acked,
            seen_ms: known.seen_ms,
        });
        let held = claims.held().map(|(task, held)| ToldClaim {
            task,
            epoch: held.epoch,
            worker: held.worker.clone(),
            left_ms: u64::try_from(held.left(self.lease(), now).as_millis()).unwrap_or(u64::MAX),
            sent_bytes: held.sent_bytes(),
        });
        Ok(Told {
            job: self.id.as_str().to_owned(),
            state: self.phase(),
            key: self.work.request.key.clone(),
            request: self.work.request.clone(),
            created_ms: self.work.created_ms,
            tasks: status.tasks,
            done: status.done,
            claimed: open().count() as u64 - failed,
            failed,
            free: status.free,
            shards: ToldShards {
                total: shards,
                done: status.done_tasks.iter().filter(|task| **task < shards).count() as u64,
            },
            rows: totals.as_ref().map_or(claims.rows, |totals| totals.rows),
            bytes: totals.as_ref().map_or(claims.bytes, |totals| totals.bytes),
            rate: claims.rate(now),
            workers: workers.collect(),
            claims: held.collect(),
            last_error: last_failure.or_else(|| claims.last_error.clone()),
        })
    }

    /// Gives up the claims whose workers are silent.
    async fn expire(&self, worker: &Worker) {
        let lease = self.lease();
        let Some(before) = Instant::now().checked_sub(lease) else { return };
        let silent = self.claims().expire(before);
        for expired in silent {
            let why = match &expired.worker {
                None => "no worker asked for it".to_owned(),
                Some(name) => {
                    format!("{name} has shown no sign of life for {} ms", lease.as_millis())
                }
            };
            let claim = &expired.claim;
            match worker.fail(claim, &Error::invalid(&*why)).await {
                Ok(_) => {
                    let mut claims = self.claims();
                    claims.take(claim.task, claim.epoch, End::Lost);
                    claims.last_error = Some(why);
                }
                // Tried again, unless the worker wakes up before.
                Err(error) => {
                    let (job, task) = (self.id.as_str(), claim.task);
                    tracing::warn!(job, task, %error, "a claim could not be given up");
                    self.claims().keep(expired, Instant::now());
                }
            }
            self.tell();
        }
    }
}

/// Shows that this server lives, and looks after leases, for as long as the job runs here.
async fn look_after(live: Weak<Live>, worker: Arc<Worker>) {
    let beat_after = worker.beat_after();
    let step = (beat_after / 2).max(Duration::from_millis(10));
    let mut beaten = Instant::now();
    loop {
        tokio::time::sleep(step).await;
        let Some(live) = live.upgrade() else { break };
        if live.phase() != Phase::Running {
            break;
        }
        live.expire(&worker).await;
        if beaten.elapsed() < beat_after {
            continue;
        }
        beaten = Instant::now();
        // A beat that fails is not the end: if the store is away for longer than a lease, taking over is right.
        worker.beat().await.ok();
        let seen = async {
            if !live.is_cancelled().await? && live.claims().is_empty() {
                live.settle(&worker).await?;
            }
            Ok::<_, Error>(())
        };
        if let Err(error) = seen.await {
            tracing::warn!(job = live.id.as_str(), %error, "the job could not be looked at");
        }
    }
    // Only courtesy: a worker that says nothing is given up in time.
    worker.leave().await.ok();
}

async fn phase(job: &Job) -> Result<Phase> {
    if job.outcome().await?.is_some() {
        return Ok(Phase::Over);
    }
    Ok(if is_marked(job.store()).await? { Phase::Cancelled } else { Phase::Running })
}

async fn is_marked(store: &Store) -> Result<bool> {
    match store.head(CANCELLED).await {
        Ok(_) => Ok(true),
        Err(Error::NotFound { .. }) => Ok(false),
        Err(error) => Err(error),
    }
}
