//! The one atomic step: replacing the state file.
//!
//! No other module of a repository compares and swaps. Two protocols exist because stores differ:
//! [`conditional_put`] where a put can be conditioned on the version that was read, and
//! [`generation_claim`] where one can only create exclusively (local filesystems). Both admit
//! exactly one successor per generation, and both can tell a lost reply from a lost race, because
//! every state carries a random `write-id` and remembers the ids of its predecessors. The requests
//! themselves are steps of [`chunkyard_store::atomic`].

mod checksum;
mod conditional_put;
mod generation_claim;
mod rendered;
mod turn;

#[cfg(test)]
mod tests;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use chunkyard_store::atomic::Outcome;
pub(super) use chunkyard_store::atomic::back_off;
use chunkyard_store::{Error, Kind, Noun, Result, Store, Version};

use self::rendered::Rendered;
use self::turn::Turns;
use super::history::Kept;
use super::state::{State, SwapProtocol};
pub(super) use checksum::open as parse_state;
pub(super) use generation_claim::{CLAIMS, TEMPORARY, claim_generation};

/// A state as it was read, with what is needed to replace exactly this one.
#[derive(Debug, Clone)]
pub(super) struct Loaded {
    pub(super) state: Arc<State>,
    version: Option<Version>,
    pub(super) bytes: Bytes,
}

/// The outcome of a swap.
#[derive(Debug)]
pub(super) enum Swap {
    /// Our state is in history. It may already have successors.
    Won(Loaded),
    /// Another writer was first; nothing of ours is visible.
    Lost,
}

/// The state file of a repository.
#[derive(Debug, Clone)]
pub(super) struct StateFile {
    store: Store,
    /// Where the data files are, when not beside the state file.
    data: Option<Store>,
    pub(super) memory: Memory,
}

/// The last state that was parsed. A long history makes parsing the most expensive part of a
/// commit, and mostly the file is the one we read or wrote last: equal bytes are an equal state.
#[derive(Debug, Clone, Default)]
pub(super) struct Memory {
    last: Arc<Mutex<Option<Known>>>,
    /// The last state whose snapshots were all brought together.
    complete: Arc<Mutex<Option<Known>>>,
    /// Files of its history.
    pub(super) history: Arc<Mutex<Kept>>,
    /// What the last state we wrote was rendered from.
    rendered: Arc<Mutex<Rendered>>,
    /// Whether the claims were listed once, see [`StateFile::read_for_writing`].
    listed: Arc<AtomicBool>,
    turns: Turns,
}

/// A file's bytes and the parsed state.
type Known = (Bytes, Arc<State>);

impl Memory {
    fn parse(&self, bytes: &Bytes, file: &str) -> Result<Arc<State>> {
        let known = lock(&self.last).clone();
        match known {
            Some((known, state)) if known == *bytes => Ok(state),
            _ => {
                let state = Arc::new(checksum::open(bytes, file)?);
                self.keep(bytes, &state);
                Ok(state)
            }
        }
    }

    /// The bytes of a state to be written.
    fn seal(&self, state: &State) -> Result<Bytes> {
        checksum::seal(state, &mut lock(&self.rendered))
    }

    fn keep(&self, bytes: &Bytes, state: &Arc<State>) {
        *lock(&self.last) = Some((bytes.clone(), state.clone()));
    }

    /// The complete state of these bytes, if it is the last one.
    pub(super) fn completed(&self, bytes: &Bytes) -> Option<Arc<State>> {
        let known = lock(&self.complete);
        known.as_ref().filter(|(known, _)| known == bytes).map(|(_, state)| state.clone())
    }

    /// Keeps a state that we wrote: as in its file, and also complete if it is.
    fn keep_written(&self, written: &Loaded) {
        if written.state.history.is_none() {
            return self.keep(&written.bytes, &written.state);
        }
        if written.state.is_complete() {
            self.keep_completed(&written.bytes, &written.state);
        } else {
            self.keep(&written.bytes, &written.state);
        }
    }

    pub(super) fn keep_completed(&self, bytes: &Bytes, state: &Arc<State>) {
        *lock(&self.complete) = Some((bytes.clone(), state.clone()));
    }
}

/// The bytes of a state, without anything kept from an earlier one.
pub(super) fn seal_state(state: &State) -> Result<Bytes> {
    checksum::seal(state, &mut Rendered::default())
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // The value is replaced whole, so a panic elsewhere cannot have left it half-made.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl StateFile {
    pub(super) fn new(store: Store) -> Self {
        Self { store, data: None, memory: Memory::default() }
    }

    /// A state file that names files of another store.
    pub(super) fn apart_from(store: Store, data: Store) -> Self {
        Self { store, data: Some(data), memory: Memory::default() }
    }

    /// Makes data files durable that are in a separate store; returns the files still to sync.
    async fn sync_data<'a>(&self, files: &'a [String]) -> Result<&'a [String]> {
        match &self.data {
            Some(data) => {
                data.backend().sync(files).await?;
                Ok(&[])
            }
            None => Ok(files),
        }
    }

    /// The store of the state file, which may be apart from the data.
    pub(super) fn store(&self) -> &Store {
        &self.store
    }

    /// The store of everything but the state file.
    pub(super) fn data_store(&self) -> &Store {
        self.data.as_ref().unwrap_or(&self.store)
    }

    /// The protocol this store allows.
    pub(super) fn protocol(&self) -> Result<SwapProtocol> {
        match self.store.backend().kind() {
            Kind::Local | Kind::Object { conditional_put: false } => {
                Ok(SwapProtocol::GenerationClaim)
            }
            Kind::Object { conditional_put: true } => Ok(SwapProtocol::ConditionalPut),
            Kind::ReadOnly => Err(Error::Unsupported {
                what: format!("writing to {}: the store is read-only", self.store.url()),
            }),
        }
    }

    fn is_local(&self) -> bool {
        self.store.backend().kind() == Kind::Local
    }

    /// Reads the latest state. `NotFound` when there is none.
    pub(super) async fn read(&self) -> Result<Loaded> {
        match self.store.backend().kind() {
            Kind::Object { conditional_put: true } | Kind::ReadOnly => {
                conditional_put::read(self).await
            }
            Kind::Local => generation_claim::read_local(self).await,
            Kind::Object { conditional_put: false } => generation_claim::read_listed(self).await,
        }
    }

    /// Like `read`, for writers: the first time it also lists the claims, so that even a published
    /// copy that moved backwards is repaired, not believed.
    pub(super) async fn read_for_writing(&self) -> Result<Loaded> {
        self.protocol()?;
        let loaded = if self.is_local() && !self.memory.listed.load(Ordering::Relaxed) {
            let loaded = generation_claim::read_listed(self).await?;
            self.memory.listed.store(true, Ordering::Relaxed);
            loaded
        } else {
            self.read().await?
        };
        self.check_protocol(&loaded.state)?;
        Ok(loaded)
    }

    /// Two protocols on one root (a bucket also mounted as a filesystem) would not exclude each
    /// other.
    fn check_protocol(&self, state: &State) -> Result<()> {
        let ours = self.protocol()?;
        match state.swap {
            Some(theirs) if theirs != ours => Err(Error::Unsupported {
                what: format!(
                    "writing to {}: it is guarded by {theirs:?}, this way of opening it allows \
                     only {ours:?}",
                    self.store.url()
                ),
            }),
            _ => Ok(()),
        }
    }

    /// Publishes the highest sound claim again. Returns its generation, and how many damaged claims
    /// above it were set aside.
    pub(super) async fn republish(&self) -> Result<(u64, u64)> {
        match self.protocol()? {
            SwapProtocol::GenerationClaim => generation_claim::republish(&self.store).await,
            SwapProtocol::ConditionalPut => Err(Error::Unsupported {
                what: format!("{} keeps no claims to publish again", self.store.url()),
            }),
        }
    }

    /// Stores a rebuilt state where no state can be read.
    pub(super) async fn put_rebuilt(&self, state: State) -> Result<()> {
        let bytes = self.memory.seal(&state)?;
        match self.protocol()? {
            SwapProtocol::ConditionalPut => conditional_put::put_rebuilt(&self.store, bytes).await,
            SwapProtocol::GenerationClaim => {
                generation_claim::put_rebuilt(&self.store, &state, bytes).await
            }
        }
    }

    /// Creates the first state. `AlreadyExists` when there is one.
    pub(super) async fn create(&self, state: State, files: &[String]) -> Result<Loaded> {
        let files = self.sync_data(files).await?;
        let attempt = Attempt { next: &state, bytes: self.memory.seal(&state)?, files };
        let created = match self.protocol()? {
            SwapProtocol::ConditionalPut => conditional_put::create(self, attempt).await?,
            SwapProtocol::GenerationClaim => generation_claim::swap(self, None, attempt).await?,
        };
        match created {
            Swap::Won(loaded) => Ok(loaded),
            Swap::Lost => Err(Error::AlreadyExists {
                what: Noun::Repository,
                name: self.store.url().to_owned(),
            }),
        }
    }

    /// Replaces `current` by `next`, a successor of it. `files` are made durable first: everything
    /// the new state names that was not yet synced.
    pub(super) async fn swap(
        &self,
        current: &Loaded,
        mut next: State,
        files: &[String],
    ) -> Result<Swap> {
        self.check_protocol(&current.state)?;
        // A state of the bare draft does not name its protocol; ours must, from the first one on.
        next.swap = Some(self.protocol()?);
        next.check("the new state")?;
        let history = self.archive(&mut next).await?;
        let files = [files, &history].concat();
        let bytes = self.memory.seal(&next)?;
        let attempt = Attempt { next: &next, bytes, files: self.sync_data(&files).await? };
        let swap = match self.protocol()? {
            SwapProtocol::ConditionalPut => conditional_put::swap(self, current, attempt).await?,
            SwapProtocol::GenerationClaim => {
                generation_claim::swap(self, Some(current), attempt).await?
            }
        };
        match &swap {
            Swap::Won(loaded) => self.memory.keep_written(loaded),
            Swap::Lost => self.data_store().backend().delete(&history).await?,
        }
        Ok(swap)
    }
}

/// A state on its way to become the latest.
struct Attempt<'a> {
    next: &'a State,
    bytes: Bytes,
    /// What must be durable before it is visible.
    files: &'a [String],
}

impl Attempt<'_> {
    /// What the outcome of the step means for the swap.
    fn swapped(&self, outcome: Outcome<Loaded>) -> Result<Swap> {
        match outcome {
            Outcome::Done(loaded) => Ok(Swap::Won(loaded)),
            Outcome::Lost => Ok(Swap::Lost),
            Outcome::Unknown(error) => Err(unknown_outcome(self.next, error)),
        }
    }
}

fn unknown_outcome(ours: &State, source: Error) -> Error {
    let snapshot = ours.snapshots.last().map_or("none", |snapshot| &snapshot.snapshot_id);
    Error::OutcomeUnknown {
        what: format!("generation {}, newest snapshot {snapshot}", ours.generation),
        source: Box::new(source),
    }
}

fn overtaken() -> Error {
    Error::Conflict { message: "overtaken by many writers".into(), conflicts: Vec::new() }
}
