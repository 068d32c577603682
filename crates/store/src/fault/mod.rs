//! A store that fails on purpose: the tool of crash and lost-reply tests.
//!
//! [`Fault`] wraps any backend, counts operations and lets one of them go wrong in one of the ways
//! of [`Mode`]. A test runs the same work [at every operation](at_every_operation), and after each
//! run opens the store afresh and checks what it finds:
//!
//! ```
//! # use chunkyard_store::{Options, Store, fault::{Mode, Plan, at_every_operation}};
//! # async fn work(store: &Store) -> chunkyard_store::Result<()> {
//! #     store.put("a", vec!["x".into()]).await?;
//! #     store.put("b", vec!["y".into()]).await
//! # }
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> chunkyard_store::Result<()> {
//! for attempt in at_every_operation(Plan::new(0, Mode::Die)) {
//!     let store = Store::open(&format!("memory://crash-{}", attempt.at()), &Options::default())?;
//!     let (faulty, fault) = attempt.wrap(&store);
//!     let outcome = work(&faulty).await;
//!     assert_eq!(outcome.is_err(), fault.fired());
//!     // … and here: what does a reader of `store` find?
//! }
//! # Ok(())
//! # }
//! ```
//!
//! A process that dies loses nothing that it wrote; a machine that loses power does. With
//! [`Plan::with_power_cut`], death also loses all unsynced data.
//!
//! Where two writers can meet, one of them falls asleep at any operation, and the other at any of
//! its own meanwhile: [`pairs`] lists which, and [`overlap`] runs them.

mod backend;
mod every;
mod late;
mod moves;
mod pairs;
mod plan;
mod power;
mod unsynced;
mod upload;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

pub use self::every::{Attempt, Attempts, at_every_operation};
use self::late::Late;
pub use self::pairs::{overlap, pairs};
pub use self::plan::{Mode, Plan, Refusal, Unsynced};
use self::power::Ledger;
use super::Store;
use super::backend::{Backend, Kind};
use crate::error::{Error, Result};

/// The cause of every error that a [`Fault`] makes up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("injected fault: {0}")]
pub struct Injected(&'static str);

/// A backend that goes wrong at a chosen operation. Clones are the same backend.
#[derive(Debug, Clone)]
pub struct Fault {
    inner: Arc<dyn Backend>,
    plan: Plan,
    state: Arc<Mutex<State>>,
    ledger: Arc<Ledger>,
    slept: Arc<Notify>,
    awake: Arc<Notify>,
}

#[derive(Debug, Default)]
struct State {
    log: Vec<String>,
    fired: bool,
    asleep: bool,
    dead: bool,
    refusing: Option<Refusal>,
    over: bool,
    /// A request that has timed out and will take effect.
    late: Option<Late>,
    /// How many writes time out before it does.
    timing_out: usize,
}

/// An operation under way.
struct Step {
    op: &'static str,
    path: String,
    mode: Option<Mode>,
}

impl Step {
    fn injected(&self, what: &'static str) -> Error {
        Error::store(self.op, self.path.clone(), Injected(what))
    }

    fn tears(&self) -> bool {
        self.mode == Some(Mode::Tear)
    }

    fn is_late(&self) -> bool {
        matches!(self.mode, Some(Mode::Late(_)))
    }
}

impl Fault {
    /// A backend that works as `inner` does until the plan strikes.
    pub fn new(inner: Arc<dyn Backend>, plan: Plan) -> Self {
        Self {
            inner,
            plan,
            state: Arc::default(),
            ledger: Arc::default(),
            slept: Arc::default(),
            awake: Arc::default(),
        }
    }

    /// A store that works as `store` does until the plan strikes, and the [`Fault`] that drives it.
    pub fn wrap(store: &Store, plan: Plan) -> (Store, Arc<Self>) {
        let fault = Arc::new(Self::new(store.backend().clone(), plan));
        (store.with_backend(fault.clone()), fault)
    }

    /// How many operations were counted.
    pub fn ops(&self) -> usize {
        self.state().log.len()
    }

    /// The operations counted, as `op path`.
    pub fn log(&self) -> Vec<String> {
        self.state().log.clone()
    }

    /// Whether the plan has struck.
    pub fn fired(&self) -> bool {
        self.state().fired
    }

    /// Whether every further operation fails.
    pub fn dead(&self) -> bool {
        self.state().dead
    }

    /// Ends a [refusal](Mode::Refuse) and prevents further ones, as if the disk had space again. Ends
    /// [time-outs](Mode::Late) too.
    pub fn relent(&self) {
        let mut state = self.state();
        (state.refusing, state.over, state.timing_out) = (None, true, 0);
    }

    /// Whether an operation sleeps now.
    pub fn asleep(&self) -> bool {
        self.state().asleep
    }

    /// Waits until the operation of the plan [sleeps](Mode::Sleep).
    pub async fn falls_asleep(&self) {
        self.slept.notified().await;
    }

    async fn sleep(&self) {
        self.state().asleep = true;
        self.slept.notify_one();
        self.awake.notified().await;
        self.state().asleep = false;
    }

    /// Wakes an operation that [sleeps](Mode::Sleep), or will.
    pub fn wake(&self) {
        self.awake.notify_one();
    }

    /// Pulls the plug now, whatever the plan says.
    pub async fn die(&self) -> Result<()> {
        let died_before = std::mem::replace(&mut self.state().dead, true);
        if died_before || !self.cuts_power() {
            return Ok(());
        }
        self.ledger.lose(&*self.inner, self.plan.unsynced).await
    }

    /// Whether unsynced data is lost: only a file system has any.
    fn cuts_power(&self) -> bool {
        self.plan.unsynced != Unsynced::Kept && self.inner.kind() == Kind::Local
    }

    async fn begin_read(&self, op: &'static str, path: &str) -> Result<Step> {
        self.step(op, path, self.plan.count_reads, false).await
    }

    async fn begin_write(&self, op: &'static str, path: &str) -> Result<Step> {
        self.begin_late(op, path, false).await
    }

    /// Begins an operation that can be half done.
    async fn begin_tearable(&self, op: &'static str, path: &str) -> Result<Step> {
        self.begin_late(op, path, true).await
    }

    /// Begins a write, which may come just after a late one, or time out like it.
    async fn begin_late(&self, op: &'static str, path: &str, tearable: bool) -> Result<Step> {
        let step = self.step(op, path, true, tearable).await?;
        if step.is_late() {
            return match op {
                "put" | "create" | "replace" | "link" => Ok(step),
                _ => Err(step.injected("timed out")),
            };
        }
        {
            let mut state = self.state();
            if let Some(left) = state.timing_out.checked_sub(1) {
                state.timing_out = left;
                return Err(step.injected("timed out"));
            }
        }
        self.land_late().await;
        Ok(step)
    }

    async fn step(
        &self,
        op: &'static str,
        path: &str,
        counted: bool,
        tearable: bool,
    ) -> Result<Step> {
        // The root has no name of its own, and an error must say where.
        let path = if path.is_empty() { "." } else { path };
        let mut step = Step { op, path: path.to_owned(), mode: None };
        {
            let mut state = self.state();
            if state.dead {
                return Err(step.injected("the store is dead"));
            }
            if counted {
                if state.log.len() == self.plan.at && !state.over {
                    state.fired = true;
                    step.mode = Some(self.plan.mode);
                }
                state.log.push(format!("{op} {path}"));
            }
            if let Some(Mode::Refuse(refusal)) = step.mode {
                state.refusing = Some(refusal);
            }
            if let Some(Mode::Late(count)) = step.mode {
                state.timing_out = count;
            }
            if let Some(refusal) = state.refusing.filter(|refusal| !refusal.spares(op, path)) {
                return Err(Error::store(op, path, refusal.error()));
            }
        }
        if step.tears() && !tearable {
            step.mode = Some(Mode::Die);
        }
        match step.mode {
            Some(Mode::Die) => {
                self.die().await?;
                Err(step.injected("the store died"))
            }
            Some(Mode::FailOnce) => Err(step.injected("this operation failed")),
            Some(Mode::Stall(time)) => {
                tokio::time::sleep(time).await;
                Ok(step)
            }
            Some(Mode::Sleep) => {
                self.sleep().await;
                Ok(step)
            }
            Some(
                Mode::DieAfter
                | Mode::Tear
                | Mode::LoseReply
                | Mode::Late(_)
                | Mode::Refuse(_)
                | Mode::SleepAfter
                | Mode::SleepAndLose,
            )
            | None => Ok(step),
        }
    }

    async fn end<T>(&self, step: Step, result: Result<T>) -> Result<T> {
        match step.mode {
            Some(Mode::DieAfter | Mode::Tear) => {
                self.die().await?;
                result.and(Err(step.injected("the store died")))
            }
            Some(Mode::SleepAfter) => {
                self.sleep().await;
                result
            }
            Some(Mode::SleepAndLose) => {
                self.sleep().await;
                result.and(Err(step.injected("the reply was lost")))
            }
            Some(Mode::LoseReply) => result.and(Err(step.injected("the reply was lost"))),
            Some(Mode::Late(_)) => Err(step.injected("timed out")),
            // Another operation may have killed the store meanwhile, and a dead client hears no
            // replies.
            _ if self.dead() => result.and(Err(step.injected("the store is dead"))),
            _ => result,
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Tests panic by design; the log is still useful.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
