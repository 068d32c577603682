//! Swapping on object stores: a put conditioned on the version that was read.
//!
//! It is a step of [`chunkyard_store::atomic`], which reads the state back whenever the answer is
//! anything but a plain success; then the write ids of the state decide. The race is lost only when the
//! state has moved on without us.

use async_trait::async_trait;
use bytes::Bytes;
use chunkyard_store::atomic::{Content, SameBytes, Sight, Step, Witness};
use chunkyard_store::{Error, Result, Store, Version};

use super::{Attempt, Loaded, StateFile, Swap, overtaken};
use crate::state::{STATE_FILE, State};

pub(super) async fn read(file: &StateFile) -> Result<Loaded> {
    let object = file.store.backend().get(STATE_FILE).await?;
    let state = file.memory.parse(&object.bytes, STATE_FILE)?;
    let version = Some(Version::from(&object.meta));
    Ok(Loaded { state, version, bytes: object.bytes })
}

pub(super) async fn create(file: &StateFile, ours: Attempt<'_>) -> Result<Swap> {
    file.store.backend().sync(ours.files).await?;
    let content = Content::Parts(vec![ours.bytes.clone()]);
    let witness = Successor { file, next: ours.next, bytes: &ours.bytes, is_first: true };
    let outcome = Step::new(&file.store, STATE_FILE, witness).create(content, "").await?;
    ours.swapped(outcome)
}

pub(super) async fn swap(file: &StateFile, current: &Loaded, ours: Attempt<'_>) -> Result<Swap> {
    let Some(expected) = &current.version else {
        return Err(Error::Invalid { what: "a state without a version cannot be replaced".into() });
    };
    file.store.backend().sync(ours.files).await?;
    let content = Content::Parts(vec![ours.bytes.clone()]);
    let witness = Successor { file, next: ours.next, bytes: &ours.bytes, is_first: false };
    let step = Step::new(&file.store, STATE_FILE, witness);
    ours.swapped(step.replace(content, expected, "").await?)
}

/// Knows a state by its write id, in the latest state or its history.
struct Successor<'a> {
    file: &'a StateFile,
    next: &'a State,
    bytes: &'a Bytes,
    /// Whether it has no predecessor.
    is_first: bool,
}

#[async_trait]
impl Witness for Successor<'_> {
    type Proof = Loaded;

    async fn look(&self) -> Result<Sight<Loaded>> {
        let latest = match read(self.file).await {
            Err(Error::NotFound { .. }) if self.is_first => return Ok(Sight::Before),
            other => other?,
        };
        if !self.is_first && latest.state.generation < self.next.generation {
            return Ok(Sight::Before);
        }
        match self.file.landed(&latest.state, self.next).await? {
            Some(true) => Ok(Sight::Ours(latest)),
            None if !self.is_first => Err(overtaken()),
            _ => Ok(Sight::Another),
        }
    }

    fn acknowledged(&self, version: Version) -> Loaded {
        let state = self.next.clone().into();
        Loaded { state, version: Some(version), bytes: self.bytes.clone() }
    }
}

/// Stores a rebuilt state over an unreadable one, or none. The put is conditional too: one that is
/// repeated, or late, must not undo the commits after it.
pub(super) async fn put_rebuilt(store: &Store, bytes: Bytes) -> Result<()> {
    let expected = match store.backend().get(STATE_FILE).await {
        Ok(object) => Some(Version::from(&object.meta)),
        Err(Error::NotFound { .. }) => None,
        Err(error) => return Err(error),
    };
    let content = Content::Parts(vec![bytes.clone()]);
    let witness = SameBytes { store, path: STATE_FILE, expected: expected.as_ref(), bytes: &bytes };
    let step = Step::new(store, STATE_FILE, witness);
    let outcome = match &expected {
        Some(expected) => step.replace(content, expected, "").await?,
        None => step.create(content, "").await?,
    };
    match outcome.known(|| format!("storing a rebuilt {STATE_FILE}"))? {
        Some(_) => Ok(()),
        None => Err(Error::Conflict {
            message: format!("{STATE_FILE} has changed meanwhile; look at it again"),
            conflicts: Vec::new(),
        }),
    }
}
