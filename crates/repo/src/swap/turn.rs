//! Taking turns, so that no writer starves.
//!
//! The protocols alone decide which of several swaps succeeds, and they favour the first: a writer
//! that has just won knows the state already, and beats all others again. So every swap lines up
//! first. In one process a queue gives turns to all users of the state file. In a directory the
//! processes take turns too, by locks that can be broken. An object store has no locks; there the
//! writer that has waited longest tries soonest, and a writer that has just won lets others go
//! first.
//!
//! A turn is a courtesy. It may be lost, broken or unavailable, and then there is a race, as ever.
//! `docs/design/012-turns.md` has the argument.

use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use chunkyard_store::Lock;
use tokio::sync::OwnedMutexGuard;
use tokio::time::{Instant, sleep, timeout_at};

use super::{StateFile, lock};

/// The lock of the writer whose turn it is.
const ROOM: &str = "state.turn";
/// The lock of the next writer.
const DOOR: &str = "state.next";
/// How long an attempt may take, until one has been measured.
const HOLD: Duration = Duration::from_secs(1);
/// The same on an object store, where only tasks of this process wait for each other.
const HOLD_REMOTE: Duration = Duration::from_secs(10);
/// No attempt may ask for more.
const HOLD_MAX: Duration = Duration::from_secs(30);
/// An attempt that took longer, perhaps because the machine slept, is no measure for pauses.
const PAUSE_MAX: Duration = Duration::from_secs(5);
/// The most that a writer stands back for others after it has won, in attempts.
const COURTESY_MAX: u32 = 8;

/// The turns of one state file in this process. Clones are the same.
#[derive(Debug, Clone, Default)]
pub(super) struct Turns {
    queue: Arc<Mutex<Arc<Queue>>>,
    /// Held by the task whose turn it is.
    held: Arc<Mutex<Weak<Held>>>,
    /// How long to stand back before the next attempt, because other writers were seen.
    courtesy: Arc<Mutex<Duration>>,
}

/// The waiting tasks of this process, first come, first served.
#[derive(Debug, Default)]
struct Queue {
    turn: Arc<tokio::sync::Mutex<()>>,
    /// Until when the current holder means to keep its turn.
    until: Mutex<Option<Instant>>,
}

/// The locks of a turn: among processes, and among the tasks of this one. Released in this order,
/// so that the next task lines up behind the next process.
type Held = Mutex<Option<(Option<Lock>, OwnedMutexGuard<()>)>>;

/// A change to be swapped in, in as many attempts as it takes.
#[derive(Debug)]
pub(crate) struct Line<'a> {
    file: &'a StateFile,
    attempts: u32,
    /// When the last attempt began, and how long it took, if it is over.
    began: Option<Instant>,
    took: Duration,
}

/// The right to go first, or at least with few others. Held for an attempt: from reading the state
/// until no other can win any more. A task that lines up while it holds a turn waits for itself.
#[derive(Debug)]
pub(crate) struct Turn {
    /// Whether the task had to wait for it, so that an earlier read is likely out of date.
    pub(crate) waited: bool,
    held: Arc<Held>,
}

impl Drop for Turn {
    fn drop(&mut self) {
        drop(lock(&self.held).take());
    }
}

impl StateFile {
    /// Lines up for a change.
    pub(crate) fn line_up(&self) -> Line<'_> {
        Line { file: self, attempts: 0, began: None, took: Duration::ZERO }
    }

    /// Ends the turn of the attempt that has just won: the next one can read its claim while this
    /// one still waits for the disk. If this attempt's turn was broken and another holds the turn,
    /// there is a race.
    pub(super) fn end_turn(&self) {
        if let Some(held) = lock(&self.memory.turns.held).upgrade() {
            drop(lock(&held).take());
        }
    }

    /// Whether reading the state is worth a request before the turn comes.
    pub(crate) fn is_remote(&self) -> bool {
        !self.is_local()
    }
}

impl Line<'_> {
    /// Waits for the turn of the next attempt; the last one failed, and its turn is over.
    pub(crate) async fn turn(&mut self) -> Turn {
        let lost = self.attempts;
        self.attempts += 1;
        let turns = &self.file.memory.turns;
        let pause = match self.began.take() {
            Some(began) => {
                self.took = began.elapsed();
                // The more races were lost, the sooner comes the next attempt.
                self.took.min(PAUSE_MAX) / lost.max(1)
            }
            None => std::mem::take(&mut *lock(&turns.courtesy)),
        };
        if !pause.is_zero() {
            sleep(random_part(pause)).await;
        }
        let least = if self.file.is_local() { HOLD } else { HOLD_REMOTE };
        // An attempt that took long, and lost because its turn was broken, needs as long again.
        let hold = least.max(2 * self.took).min(HOLD_MAX);
        let turn = turns.take(self.file, hold).await;
        self.began = Some(Instant::now());
        turn
    }
}

impl Drop for Line<'_> {
    fn drop(&mut self) {
        let lost = self.attempts.saturating_sub(1);
        let Some(began) = self.began.filter(|_| lost > 0) else { return };
        let attempt = began.elapsed().min(PAUSE_MAX);
        let courtesy = attempt * (1 << (lost - 1).min(8)).min(COURTESY_MAX);
        *lock(&self.file.memory.turns.courtesy) = courtesy;
    }
}

impl Turns {
    async fn take(&self, file: &StateFile, hold: Duration) -> Turn {
        let (queue, among_tasks, waited) = self.line_up(hold).await;
        let mut among_processes = None;
        if file.is_local() {
            // Other tasks of this process wait as long as this one waits for other processes.
            queue.expect_until(Instant::now() + HOLD_MAX + hold);
            // Without a turn there is a race, which is what the protocols are for.
            among_processes = file.store.backend().turn(DOOR, ROOM, hold).await.ok();
        }
        queue.expect_until(Instant::now() + hold);
        let held = Arc::new(Mutex::new(Some((among_processes, among_tasks))));
        *lock(&self.held) = Arc::downgrade(&held);
        Turn { waited, held }
    }

    /// Waits for the turn among the tasks of this process. A future that holds it and is no longer
    /// polled would block all others, so the queue can be broken too.
    async fn line_up(&self, hold: Duration) -> (Arc<Queue>, OwnedMutexGuard<()>, bool) {
        let mut waited = false;
        loop {
            let queue = lock(&self.queue).clone();
            if let Ok(guard) = queue.turn.clone().try_lock_owned() {
                return (queue, guard, waited);
            }
            waited = true;
            let began = Instant::now();
            let mut turn = std::pin::pin!(queue.turn.clone().lock_owned());
            loop {
                let until = lock(&queue.until).unwrap_or(began).max(began + hold);
                if let Ok(guard) = timeout_at(until, &mut turn).await {
                    return (queue, guard, waited);
                }
                if lock(&queue.until).is_none_or(|until| until <= Instant::now()) {
                    break;
                }
            }
            let mut current = lock(&self.queue);
            if Arc::ptr_eq(&current, &queue) {
                *current = Arc::default();
            }
        }
    }
}

impl Queue {
    fn expect_until(&self, until: Instant) {
        *lock(&self.until) = Some(until);
    }
}

/// A random part of a duration.
fn random_part(whole: Duration) -> Duration {
    let mut random = [0; 4];
    // Without random numbers the full pause is made, which is only slower.
    match getrandom::fill(&mut random) {
        Ok(()) => whole.mul_f64(f64::from(u32::from_le_bytes(random)) / f64::from(u32::MAX)),
        Err(_) => whole,
    }
}
