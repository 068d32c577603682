//! Exports to workers: a job is a directory, its tasks are handed to workers, and what they acknowledge is noted there.
//!
//! ```text
//!  request ──▶ make ──▶ document      export.start: the plan and the tasks, durable before anything is answered
//!                          │
//!  flight, http ──▶ Jobs ──▶ live     a job that this server takes part in: claim, beat, ack, fail, cancel
//!                              └─ claims   which worker holds what, in memory: leases, streams, what was sent
//! ```
//!
//! [`Jobs`] finds the jobs of the configured directory, also those that another server has made there, and lets workers wait.

mod claims;
mod document;
mod failure;
mod http;
mod index;
mod live;
mod make;
mod request;

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use axum::Router;
use chunkyard_engine::store::Store;
use chunkyard_engine::{Error, Noun, Result};
use serde::Serialize;
use tokio::sync::{Notify, Semaphore, oneshot};

pub(crate) use self::claims::{Begun, End};
pub(crate) use self::document::{IndexPart, Marker, Task};
pub(crate) use self::failure::{Failed, Outcome, refused};
pub(crate) use self::index::{keys as index_keys, table as index_table};
pub(crate) use self::live::{Given, Got, Live, Named, Phase, Told};
use self::make::Source;
pub(crate) use self::request::{JobId, Request};
use crate::state::Stopping;
use crate::{Config, State};

/// Jobs that are planned at a time: each lists the shards of a volume.
const STARTS: usize = 2;
/// Claims that wait at a time.
const WAITING: usize = 4096;
/// How often the directory is looked at for jobs that other servers have made.
const LOOK_AGAIN: Duration = Duration::from_secs(1);
/// Jobs that are kept in mind at most; further ones are opened whenever they are named.
const KNOWN_MAX: usize = 4096;

/// The routes.
pub(crate) fn routes() -> Router<State> {
    http::routes()
}

/// The jobs of a server.
#[derive(Debug)]
pub(crate) struct Jobs {
    /// The directory; none if the configuration names none.
    store: Option<Store>,
    lease: Duration,
    known: Mutex<HashMap<JobId, Arc<Live>>>,
    /// Jobs that have ended and are not kept in mind.
    put_aside: Mutex<HashSet<JobId>>,
    opening: tokio::sync::Mutex<Option<Instant>>,
    changed: Arc<Notify>,
    starts: Semaphore,
    waiting: Semaphore,
}

/// The answer to `export.start`.
#[derive(Debug, Serialize)]
pub(crate) struct Started {
    pub(crate) job: JobId,
    pub(crate) created: bool,
    pub(crate) shards: u64,
    pub(crate) tasks: u64,
}

impl Jobs {
    /// The jobs of a configuration. Nothing is opened yet.
    pub(crate) fn new(config: &Config) -> Result<Self> {
        let store = config.jobs.as_ref().map(|url| Store::open(url, &config.store_options()));
        Ok(Self {
            store: store.transpose()?,
            lease: config.limits.lease(),
            known: Mutex::default(),
            put_aside: Mutex::default(),
            opening: tokio::sync::Mutex::default(),
            changed: Arc::default(),
            starts: Semaphore::new(STARTS),
            waiting: Semaphore::new(WAITING),
        })
    }

    fn store(&self) -> Result<&Store> {
        self.store.as_ref().ok_or_else(|| {
            Error::unsupported("exports: the server has no directory for jobs; name one as `jobs` in its configuration")
        })
    }

    fn known(&self) -> MutexGuard<'_, HashMap<JobId, Arc<Live>>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn put_aside(&self) -> MutexGuard<'_, HashSet<JobId>> {
        self.put_aside.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts an export, or finds the one of this key. `source` is what the request means, if it cannot say so itself.
    pub(crate) async fn start(
        &self,
        state: &State,
        request: Request,
        source: Option<Source>,
    ) -> Outcome<Started> {
        let store = self.store()?;
        let (request, id) = request.settle()?;
        let place = state.places().get(&request.source)?;
        let mut created = false;
        let live = match self.get(&id).await {
            Ok(live) => live,
            Err(Failed::Engine(Error::NotFound { what: Noun::Job, .. })) => {
                let busy = |_| Failed::Busy("the server is stopping".to_owned());
                let _turn = self.starts.acquire().await.map_err(busy)?;
                let below = store.below(id.as_str())?;
                let source = source.unwrap_or_else(|| Source::of(&request, place));
                match make::make(below, request.clone(), place, &source, self.lease).await {
                    Ok((_, new)) => created = new,
                    // Another server was faster; what it has made is compared below.
                    Err(Error::AlreadyExists { what: Noun::Job, .. }) => {}
                    Err(error) => return Err(error.into()),
                }
                self.get(&id).await?
            }
            Err(error) => return Err(error),
        };
        if *live.request() != request {
            return Err(Failed::from(Error::Conflict {
                message: format!(
                    "the key {:?} is that of another export, {}",
                    request.key.unwrap_or_default(),
                    id.as_str()
                ),
                conflicts: Vec::new(),
            }));
        }
        self.changed.notify_waiters();
        let (shards, tasks) = (live.about().shards, live.about().tasks);
        Ok(Started { job: id, created, shards, tasks })
    }

    /// A job by its identity.
    pub(crate) async fn get(&self, id: &JobId) -> Outcome<Arc<Live>> {
        let store = self.store()?;
        if let Some(live) = self.known().get(id) {
            return Ok(live.clone());
        }
        // One at a time, so that there is one of each.
        let _alone = self.opening.lock().await;
        if let Some(live) = self.known().get(id) {
            return Ok(live.clone());
        }
        let live = Arc::new(Live::open(store, id, self.changed.clone()).await?);
        let mut known = self.known();
        if known.len() >= KNOWN_MAX {
            let ended = known.extract_if(|_, live| live.phase() != Phase::Running);
            self.put_aside().extend(ended.map(|(id, _)| id));
        }
        known.insert(id.clone(), live.clone());
        Ok(live)
    }

    /// Looks for jobs in the directory, unless that was done just now.
    async fn discover(&self) -> Outcome<()> {
        let Some(store) = &self.store else { return Ok(()) };
        {
            let mut looked = self.opening.lock().await;
            if looked.is_some_and(|when| when.elapsed() < LOOK_AGAIN) {
                return Ok(());
            }
            *looked = Some(Instant::now());
        }
        for name in store.list_dir("").await?.dirs {
            let name = name.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
            let Ok(id) = JobId::parse(name) else { continue };
            if self.put_aside().contains(&id) {
                continue;
            }
            match self.get(&id).await {
                // One that is just being made has no document yet.
                Ok(_) | Err(Failed::Engine(Error::NotFound { .. })) => {}
                Err(Failed::Engine(error)) => {
                    tracing::warn!(job = name, %error, "a job that cannot be opened");
                }
                Err(other) => return Err(other),
            }
        }
        Ok(())
    }

    /// All jobs, those that were made first first.
    pub(crate) async fn all(&self) -> Outcome<Vec<Arc<Live>>> {
        self.discover().await?;
        let mut all: Vec<Arc<Live>> = self.known().values().cloned().collect();
        all.sort_by(|a, b| (a.created_ms(), a.id()).cmp(&(b.created_ms(), b.id())));
        Ok(all)
    }

    /// A task for a worker, of a job or of any. Waits until there is one, but no longer than `wait`.
    pub(crate) async fn claim(
        self: &Arc<Self>,
        worker: &str,
        job: Option<&JobId>,
        wait: Duration,
        mut stopping: Stopping,
    ) -> Outcome<Got> {
        let too_many = |_| Failed::Busy(format!("{WAITING} claims wait already; ask again later"));
        let _place = self.waiting.try_acquire().map_err(too_many)?;
        let until = Instant::now() + wait;
        loop {
            // Registered before the look, so that nothing is missed in between.
            let mut changed = std::pin::pin!(self.changed.notified());
            changed.as_mut().enable();
            let (sender, receiver) = oneshot::channel();
            let (own, name, job) = (self.clone(), worker.to_owned(), job.cloned());
            // A claim is never torn apart, even if the worker hangs up: what it does not hear of goes to the next one.
            tokio::spawn(async move {
                let got = own.claim_now(&name, job.as_ref()).await;
                if let Err(Ok(Got::Task(given))) = sender.send(got) {
                    given.live.give_back(given.task, given.epoch);
                }
            });
            let got = receiver.await.unwrap_or(Ok(Got::Wait))?;
            let left = until.saturating_duration_since(Instant::now());
            if !matches!(got, Got::Wait) || left.is_zero() {
                return Ok(got);
            }
            tokio::select! {
                () = stopping.wait() => return Ok(Got::Wait),
                () = changed => {}
                () = tokio::time::sleep(left.min(LOOK_AGAIN)) => {}
            }
        }
    }

    async fn claim_now(&self, worker: &str, job: Option<&JobId>) -> Outcome<Got> {
        let Some(id) = job else {
            for live in self.all().await? {
                if live.phase() != Phase::Running {
                    continue;
                }
                match live.next(worker).await {
                    Ok(Got::Task(given)) => return Ok(Got::Task(given)),
                    Ok(_) => {}
                    // One job that cannot be worked on does not hold up the others.
                    Err(error) => {
                        tracing::warn!(job = live.id().as_str(), %error, "no task could be claimed");
                    }
                }
            }
            return Ok(Got::Wait);
        };
        Ok(self.get(id).await?.next(worker).await?)
    }
}
