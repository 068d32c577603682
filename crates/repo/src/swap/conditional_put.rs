//! Swapping on object stores: a put conditioned on the version that was read.
//!
//! A store client repeats requests. So «the condition failed» may mean that our own put landed, the
//! reply was lost, and the repeat met our own new version. Whenever the answer is anything but a
//! plain success the state is read back, and its write ids decide.
//!
//! And a request that timed out may still be on its way. As long as the version it is conditioned
//! on is the latest, it may land. So «nothing has landed» is never an outcome: the same bytes are
//! sent again, which settles it one way or the other, and if that cannot be done the outcome is
//! unknown. The race is lost only when the state has moved on without us; then the condition of any
//! request still on its way fails.

use bytes::Bytes;
use chunkyard_store::{Created, Error, Replaced, Result, Store, Version, is_refusal};

use super::{Attempt, Loaded, StateFile, Swap, overtaken, unknown_outcome};
use crate::state::STATE_FILE;

/// Attempts to send the same bytes while nothing lands.
const ATTEMPTS: u32 = 5;

pub(super) async fn read(file: &StateFile) -> Result<Loaded> {
    let object = file.store.backend().get(STATE_FILE).await?;
    let state = file.memory.parse(&object.bytes, STATE_FILE)?;
    let version = Some(Version::from(&object.meta));
    Ok(Loaded { state, version, bytes: object.bytes })
}

pub(super) async fn create(file: &StateFile, ours: Attempt<'_>) -> Result<Swap> {
    file.store.backend().sync(ours.files).await?;
    let mut last = None;
    for attempt in 0..ATTEMPTS {
        let failure = match file.store.backend().create(STATE_FILE, ours.bytes.clone()).await {
            Ok(Created::Done(version)) => return Ok(won(ours, version)),
            Ok(Created::Exists) => None,
            Err(error) => Some(error),
        };
        match read(file).await {
            Ok(latest) => {
                let landed = file.landed(&latest.state, ours.next).await;
                return match landed.map_err(|error| unknown_outcome(ours.next, error))? {
                    Some(true) => Ok(Swap::Won(latest)),
                    _ => Ok(Swap::Lost),
                };
            }
            // No state so far. Some stores answer «exists» to that too.
            Err(Error::NotFound { .. }) => last = pause(failure, attempt).await?,
            Err(error) => return Err(unknown_outcome(ours.next, failure.unwrap_or(error))),
        }
    }
    Err(unknown_outcome(ours.next, last.unwrap_or_else(overtaken)))
}

pub(super) async fn swap(file: &StateFile, current: &Loaded, ours: Attempt<'_>) -> Result<Swap> {
    let Some(expected) = &current.version else {
        return Err(Error::Invalid { what: "a state without a version cannot be replaced".into() });
    };
    file.store.backend().sync(ours.files).await?;
    let mut last = None;
    for attempt in 0..ATTEMPTS {
        let bytes = ours.bytes.clone();
        let failure = match file.store.backend().replace(STATE_FILE, bytes, expected).await {
            Ok(Replaced::Done(version)) => return Ok(won(ours, version)),
            Ok(Replaced::Lost) => None,
            Err(error) => Some(error),
        };
        let latest = match read(file).await {
            Ok(latest) => latest,
            Err(error) => return Err(unknown_outcome(ours.next, failure.unwrap_or(error))),
        };
        if latest.state.generation < ours.next.generation {
            last = pause(failure, attempt).await?;
            continue;
        }
        let landed = file.landed(&latest.state, ours.next).await;
        return match landed.map_err(|error| unknown_outcome(ours.next, error))? {
            Some(true) => Ok(Swap::Won(latest)),
            Some(false) => Ok(Swap::Lost),
            None => Err(unknown_outcome(ours.next, failure.unwrap_or_else(overtaken))),
        };
    }
    Err(unknown_outcome(ours.next, last.unwrap_or_else(overtaken)))
}

/// Stores a rebuilt state over an unreadable one, or none. The put is conditional too: one that is
/// repeated, or late, must not undo the commits after it.
pub(super) async fn put_rebuilt(store: &Store, bytes: Bytes) -> Result<()> {
    let backend = store.backend();
    let put = match backend.get(STATE_FILE).await {
        Ok(object) => {
            let expected = Version::from(&object.meta);
            backend.replace(STATE_FILE, bytes, &expected).await? != Replaced::Lost
        }
        Err(Error::NotFound { .. }) => backend.create(STATE_FILE, bytes).await? != Created::Exists,
        Err(error) => return Err(error),
    };
    if put {
        return Ok(());
    }
    Err(Error::Conflict {
        message: format!("{STATE_FILE} has changed meanwhile; look at it again"),
        conflicts: Vec::new(),
    })
}

/// Waits before the same bytes are sent again, unless the store refused them for good.
async fn pause(failure: Option<Error>, attempt: u32) -> Result<Option<Error>> {
    match failure {
        Some(error) if is_refusal(&error) => Err(error),
        other => {
            super::back_off(attempt).await;
            Ok(other)
        }
    }
}

fn won(ours: Attempt<'_>, version: Version) -> Swap {
    let state = ours.next.clone().into();
    Swap::Won(Loaded { state, version: Some(version), bytes: ours.bytes })
}
