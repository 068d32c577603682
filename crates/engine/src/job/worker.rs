//! A worker of a job: claims tasks and notes what became of them.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use chunkyard_store::atomic::Outcome;
use chunkyard_store::{Error, Result, Uid};

use super::board::{Board, Mark};
use super::document::Job;
use super::entry::Entry;
use super::identity::Identity;
use super::lease::{Clock, Sign, Watch};
use super::steps::Steps;

/// Open tasks that one look takes in.
const GLANCE: usize = 16;
/// With more open tasks elsewhere than this, a list is cheaper than looking at each.
const LIST_ABOVE: usize = 32;
/// How often the note of a result whose outcome is unknown is tried.
const NOTES: u32 = 3;
/// A worker counts this often in the time of a lease, so one lost write does not matter.
const BEATS_PER_LEASE: u32 = 4;

/// A task that a worker holds.
#[derive(Debug, PartialEq, Eq)]
pub struct Claim {
    /// The task; as many as there are tasks: the end.
    pub task: u64,
    /// The step that is the claim.
    pub epoch: u32,
}

/// What a worker is to do next.
#[derive(Debug, PartialEq, Eq)]
pub enum Next {
    /// This task is its own.
    Claimed(Claim),
    /// All tasks that are not done are other workers'. Ask again later: one of them may be given up.
    Wait,
    /// The job is finished.
    Over,
}

/// A worker. Several tasks may be under way at once.
#[derive(Debug)]
pub struct Worker {
    job: Job,
    steps: Steps,
    me: Identity,
    watch: Watch,
    board: Mutex<Board>,
    sign: tokio::sync::Mutex<Sign>,
    done: AtomicU64,
}

impl Worker {
    /// Joins a job. From then on [`Worker::beat`] must be called [in time](Worker::beat_after).
    pub async fn join(job: &Job) -> Result<Self> {
        Self::join_with(job, Clock::start()).await
    }

    pub(super) async fn join_with(job: &Job, clock: Clock) -> Result<Self> {
        let me = Identity::fresh()?;
        let sign = Sign { identity: me.clone(), beat: 0, tasks: 0, left: false };
        sign.put(job.store()).await?;
        let (steps, mut board) = (job.steps(), Board::new(job.tasks()));
        board.learn_all(&steps.list().await?);
        board.scatter(random()?);
        Ok(Self {
            steps,
            watch: Watch::new(job.lease(), clock),
            me,
            board: Mutex::new(board),
            sign: tokio::sync::Mutex::new(sign),
            done: AtomicU64::new(0),
            job: job.clone(),
        })
    }

    /// The job.
    pub fn job(&self) -> &Job {
        &self.job
    }

    /// Its random identity.
    pub fn id(&self) -> Uid {
        self.me.worker
    }

    /// How long to wait between two [beats](Worker::beat), and before asking again after [`Next::Wait`].
    pub fn beat_after(&self) -> Duration {
        self.job.lease() / BEATS_PER_LEASE
    }

    /// Shows that the worker lives.
    pub async fn beat(&self) -> Result<()> {
        self.show(false).await
    }

    /// Says that the worker has ended: others take over what it holds at once.
    pub async fn leave(&self) -> Result<()> {
        self.show(true).await
    }

    async fn show(&self, left: bool) -> Result<()> {
        let mut sign = self.sign.lock().await;
        let tasks = self.done.load(Ordering::Relaxed);
        *sign = Sign { beat: sign.beat + 1, tasks, left, ..sign.clone() };
        sign.put(self.job.store()).await
    }

    /// Claims a task, if there is one.
    pub async fn next(&self) -> Result<Next> {
        loop {
            let Some(task) = self.board().pick() else { break };
            if let Some(claim) = self.claim(task, 0).await? {
                return Ok(Next::Claimed(claim));
            }
            // Another worker is at work here.
            self.look_around().await?;
        }
        if self.board().open_elsewhere() > LIST_ABOVE {
            self.look_around().await?;
        }
        let open = self.board().open_tasks(GLANCE);
        for task in open {
            if let Some(claim) = self.examine(task).await? {
                return Ok(Next::Claimed(claim));
            }
        }
        // A task that turned out to have no claim is picked at once.
        self.claim_end().await
    }

    /// Claims the end, if all tasks are done. [`Next::Wait`]: some are not, or another worker is at it.
    pub async fn end(&self) -> Result<Next> {
        if !self.is_all_done() {
            self.look_around().await?;
            let open = self.board().open_tasks(GLANCE);
            for task in open {
                let Some(Mark::Open(known)) = self.board().mark(task) else { continue };
                if let Some((_, Entry::Done { .. })) = self.steps.last_from(task, known).await? {
                    self.board().learn(task, Mark::Done);
                }
            }
        }
        self.claim_end().await
    }

    /// Whether all tasks are known to be done.
    pub fn is_all_done(&self) -> bool {
        self.board().all_done()
    }

    async fn claim_end(&self) -> Result<Next> {
        if !self.board().all_done() {
            return Ok(Next::Wait);
        }
        let end = self.job.tasks();
        if self.board().holds(end) {
            return Ok(Next::Wait);
        }
        match self.steps.last_from(end, 0).await? {
            Some((_, Entry::Done { .. })) => Ok(Next::Over),
            last => Ok(self.succeed(end, last).await?.map_or(Next::Wait, Next::Claimed)),
        }
    }

    /// Notes the result of a task. `false`: another worker has taken over, and the result does not count.
    pub async fn note(&self, claim: &Claim, result: Bytes) -> Result<bool> {
        let entry = Entry::Done { worker: self.me.worker, result };
        for attempt in 1.. {
            match self.steps.create(claim.task, after(claim.epoch)?, &entry).await? {
                Outcome::Done(()) => {
                    let mut board = self.board();
                    board.let_go(claim.task);
                    board.learn(claim.task, Mark::Done);
                    let is_task = claim.task < self.job.tasks();
                    self.done.fetch_add(u64::from(is_task), Ordering::Relaxed);
                    break;
                }
                Outcome::Lost => {
                    self.lost(claim);
                    return Ok(false);
                }
                Outcome::Unknown(_) if attempt < NOTES => {}
                Outcome::Unknown(source) => {
                    let what = format!("noting task {} of {}", claim.task, self.job.store().url());
                    return Err(Error::OutcomeUnknown { what, source: Box::new(source) });
                }
            }
        }
        Ok(true)
    }

    /// Gives a task back that could not be done. `false`: another worker has taken over, and the failure does not
    /// matter.
    pub async fn fail(&self, claim: &Claim, error: &Error) -> Result<bool> {
        let entry = Entry::Failed { worker: self.me.worker, error: messages(error) };
        let created = self.steps.create(claim.task, after(claim.epoch)?, &entry).await?;
        self.lost(claim);
        Ok(!matches!(created, Outcome::Lost))
    }

    fn lost(&self, claim: &Claim) {
        let mut board = self.board();
        board.let_go(claim.task);
        board.learn(claim.task, Mark::Open(claim.epoch.saturating_add(1)));
    }

    /// Creates a claim. `None`: it was lost, or nothing is known of it. In that case a later look finds out.
    async fn claim(&self, task: u64, epoch: u32) -> Result<Option<Claim>> {
        // Held from before the claim exists: otherwise another task of this worker could find the claim and take
        // it for one that nothing works on.
        if !self.board().hold(task) {
            return Ok(None);
        }
        let entry = Entry::Claim { worker: self.me.worker };
        let created = self.steps.create(task, epoch, &entry).await;
        let mut board = self.board();
        match created {
            Ok(Outcome::Done(())) => {
                board.learn(task, Mark::Open(epoch));
                return Ok(Some(Claim { task, epoch }));
            }
            Ok(Outcome::Lost) => board.learn(task, Mark::Open(epoch)),
            Ok(Outcome::Unknown(_)) => {}
            Err(error) => {
                board.let_go(task);
                return Err(error);
            }
        }
        board.let_go(task);
        Ok(None)
    }

    /// Looks at a task that another worker seemed to hold.
    async fn examine(&self, task: u64) -> Result<Option<Claim>> {
        let known = match self.board().mark(task) {
            Some(Mark::Open(step)) => step,
            _ => return Ok(None),
        };
        match self.steps.last_from(task, known).await? {
            Some((_, Entry::Done { .. })) => {
                self.board().learn(task, Mark::Done);
                Ok(None)
            }
            // A claim of our own whose outcome was unknown, and which never came to be.
            None if known == 0 => {
                self.board().free_again(task);
                Ok(None)
            }
            last => self.succeed(task, last).await,
        }
    }

    /// Claims what comes after the last step of a task that is not done, if it is to be had.
    async fn succeed(&self, task: u64, last: Option<(u32, Entry)>) -> Result<Option<Claim>> {
        let Some((step, entry)) = last else { return self.claim(task, 0).await };
        self.board().learn(task, Mark::Open(step));
        match entry {
            Entry::Done { .. } => Ok(None),
            Entry::Failed { .. } => self.claim(task, after(step)?).await,
            // Ours, though we were never told.
            Entry::Claim { worker } if worker == self.me.worker => {
                let taken_up = self.board().hold(task);
                Ok(taken_up.then_some(Claim { task, epoch: step }))
            }
            Entry::Claim { worker } => {
                match self.watch.is_gone(self.job.store(), &self.me, worker).await? {
                    true => self.claim(task, after(step)?).await,
                    false => Ok(None),
                }
            }
        }
    }

    /// Learns what all workers have done, and goes on elsewhere.
    async fn look_around(&self) -> Result<()> {
        let listed = self.steps.list().await?;
        let random = random()?;
        let mut board = self.board();
        board.learn_all(&listed);
        board.scatter(random);
        Ok(())
    }

    fn board(&self) -> MutexGuard<'_, Board> {
        // A panic leaves no half-made change: it would be one of our own tests.
        self.board.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn after(step: u32) -> Result<u32> {
    step.checked_add(1).ok_or_else(|| Error::unsupported("more than 2³² steps of a task"))
}

/// An error with its causes.
fn messages(error: &Error) -> String {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}

fn random() -> Result<u64> {
    let id = Uid::fresh()?;
    Ok(id.as_bytes().first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes)))
}
