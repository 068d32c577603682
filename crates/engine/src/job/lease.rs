//! How a worker shows that it lives, and how others see that it does not.
//!
//! A worker counts up in an object of its own. An observer remembers the count and, by its own steady clock, since when it
//! has been the same. After the time of a lease the worker is given up. No two clocks are compared, so none need agree.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use chunkyard_store::{Error, Meta, Noun, Result, Store, Uid, publish};
use serde::{Deserialize, Serialize};

use super::identity::Identity;

const WORKERS: &str = "workers";
/// Bytes of the object of a worker at most.
const BYTES_MAX: usize = 64 << 10;

/// The object of a worker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Sign {
    #[serde(flatten)]
    pub(super) identity: Identity,
    /// Grows while the worker lives.
    pub(super) beat: u64,
    /// Tasks it has done.
    pub(super) tasks: u64,
    /// It has ended in an orderly way.
    pub(super) left: bool,
}

impl Sign {
    pub(super) async fn put(&self, store: &Store) -> Result<()> {
        let bytes = serde_json::to_vec(self)
            .map_err(|error| Error::invalid(format!("the sign of a worker: {error}")))?;
        publish::publish(store, vec![(path(self.identity.worker), bytes.into())]).await
    }

    /// The object of a worker, and what the store knows about it.
    pub(super) async fn get(store: &Store, worker: Uid) -> Result<Option<(Self, Meta)>> {
        let path = path(worker);
        match store.get(&path).await {
            Ok(object) => Ok(Some((parse(&store.object_url(&path), &object.bytes)?, object.meta))),
            Err(Error::NotFound { what: Noun::Object, .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The workers that a job has seen.
    pub(super) async fn all(store: &Store) -> Result<Vec<(Self, Meta)>> {
        let mut signs = Vec::new();
        for meta in store.list_dir(WORKERS).await?.objects {
            let name = meta.path.strip_prefix(WORKERS).unwrap_or_default();
            let Some(id) = name.trim_start_matches('/').strip_suffix(".json") else { continue };
            let Ok(worker) = serde_json::from_value::<Uid>(id.into()) else { continue };
            signs.extend(Self::get(store, worker).await?);
        }
        Ok(signs)
    }
}

fn path(worker: Uid) -> String {
    format!("{WORKERS}/{worker}.json")
}

fn parse(file: &str, bytes: &Bytes) -> Result<Sign> {
    let corrupt = |found: String| Error::Corrupt {
        file: file.to_owned(),
        what: "worker of a job".to_owned(),
        expected: format!("a JSON document of up to {BYTES_MAX} bytes"),
        found,
    };
    if bytes.len() > BYTES_MAX {
        return Err(corrupt(format!("{} bytes", bytes.len())));
    }
    serde_json::from_slice(bytes).map_err(|error| corrupt(error.to_string()))
}

/// The clock of an observer. It only goes forward, and begins anywhere.
#[derive(Debug, Clone)]
pub(super) struct Clock {
    start: Instant,
    /// Milliseconds that a test has let pass.
    #[cfg(test)]
    pub(super) ahead_ms: std::sync::Arc<std::sync::atomic::AtomicU64>,
}

impl Clock {
    pub(super) fn start() -> Self {
        Self {
            start: Instant::now(),
            #[cfg(test)]
            ahead_ms: std::sync::Arc::default(),
        }
    }

    pub(super) fn now(&self) -> Duration {
        let elapsed = self.start.elapsed();
        #[cfg(test)]
        let elapsed = elapsed
            + Duration::from_millis(self.ahead_ms.load(std::sync::atomic::Ordering::Relaxed));
        elapsed
    }
}

/// What an observer remembers of other workers.
#[derive(Debug)]
pub(super) struct Watch {
    lease: Duration,
    clock: Clock,
    seen: Mutex<HashMap<Uid, Seen>>,
}

#[derive(Debug)]
struct Seen {
    /// `None`: no object yet.
    beat: Option<u64>,
    since: Duration,
}

impl Watch {
    pub(super) fn new(lease: Duration, clock: Clock) -> Self {
        Self { lease, clock, seen: Mutex::default() }
    }

    /// Whether a worker is to be given up.
    pub(super) async fn is_gone(&self, store: &Store, me: &Identity, worker: Uid) -> Result<bool> {
        let sign = Sign::get(store, worker).await?.map(|(sign, _)| sign);
        if let Some(sign) = &sign
            && (sign.left || me.sees_end_of(&sign.identity))
        {
            return Ok(true);
        }
        let (beat, now) = (sign.map(|sign| sign.beat), self.clock.now());
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let last = seen.entry(worker).or_insert(Seen { beat, since: now });
        if last.beat != beat {
            *last = Seen { beat, since: now };
        }
        Ok(now.saturating_sub(last.since) > self.lease)
    }
}
