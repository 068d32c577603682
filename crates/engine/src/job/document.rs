//! `job.json`: what a job is. Created once, when everything it refers to is durable.

use std::time::Duration;

use bytes::Bytes;
use chunkyard_store::atomic::{Content, Outcome, SameBytes, Step};
use chunkyard_store::{Error, Noun, Result, Store, TEMP_PREFIX, Uid};
use futures::{Stream, StreamExt, stream};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::entry::Entry;
use super::steps::Steps;
use super::tasks;

const DOCUMENT: &str = "job.json";
const FORMAT: &str = "chunkyard.job";
const VERSION: u32 = 1;
/// Tasks of a job at most: a worker keeps eight bytes for each.
const TASKS_MAX: u64 = 1 << 28;
/// Leases, in milliseconds.
const LEASE_MS: std::ops::RangeInclusive<u64> = 100..=86_400_000;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Document {
    format: String,
    version: u32,
    id: Uid,
    kind: String,
    work: Value,
    tasks: u64,
    list: String,
    lease_ms: u64,
}

/// What a new job is to be.
#[derive(Debug, Clone)]
pub struct Planned {
    /// The kind of work, for the program that carries it out.
    pub kind: String,
    /// The work itself, in the words of its kind. Holds no secrets: it is as readable as the job.
    pub work: Value,
    /// How long the count of a worker may stand still.
    pub lease: Duration,
}

/// A job in a store. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Job {
    store: Store,
    document: Document,
}

impl Job {
    /// Makes a job of tasks, or finds the one that is there. The second value says which. A job that is there and
    /// does other work is [`Error::AlreadyExists`].
    pub async fn create(
        store: Store,
        planned: Planned,
        tasks: impl Iterator<Item = Result<Bytes>> + Send,
    ) -> Result<(Self, bool)> {
        let lease_ms = u64::try_from(planned.lease.as_millis()).unwrap_or(u64::MAX);
        if !LEASE_MS.contains(&lease_ms) {
            return Err(Error::invalid(format!(
                "a lease of {lease_ms} ms; between {} ms and {} ms make sense",
                LEASE_MS.start(),
                LEASE_MS.end()
            )));
        }
        if let Some(job) = Self::same(&store, &planned).await? {
            return Ok((job, false));
        }
        let id = Uid::fresh()?;
        let list = format!("tasks/{id}");
        let tasks = tasks::write(&store, &list, tasks).await?;
        if tasks > TASKS_MAX {
            tasks::discard(&store, &list).await;
            return Err(Error::unsupported(format!(
                "a job of {tasks} tasks; the most is {TASKS_MAX}"
            )));
        }
        let (format, kind, work) = (FORMAT.to_owned(), planned.kind.clone(), planned.work.clone());
        let document = Document {
            format,
            version: VERSION,
            id,
            kind,
            work,
            tasks,
            list: list.clone(),
            lease_ms,
        };
        let mut bytes = serde_json::to_vec_pretty(&document)
            .map_err(|error| Error::invalid(format!("the plan of a job: {error}")))?;
        bytes.push(b'\n');
        let bytes = Bytes::from(bytes);
        let witness = SameBytes { store: &store, path: DOCUMENT, expected: None, bytes: &bytes };
        let step = Step::new(&store, DOCUMENT, witness);
        let aside = format!("{TEMP_PREFIX}{id}");
        match step.create(Content::Parts(vec![bytes.clone()]), &aside).await? {
            Outcome::Done(_) => Ok((Self { store, document }, true)),
            Outcome::Lost => {
                tasks::discard(&store, &list).await;
                match Self::same(&store, &planned).await? {
                    Some(job) => Ok((job, false)),
                    None => {
                        Err(Error::store("create", store.object_url(DOCUMENT), "it comes and goes"))
                    }
                }
            }
            Outcome::Unknown(source) => Err(Error::OutcomeUnknown {
                what: format!("creating {}", store.object_url(DOCUMENT)),
                source: Box::new(source),
            }),
        }
    }

    /// The job that is there, if it does this work.
    async fn same(store: &Store, planned: &Planned) -> Result<Option<Self>> {
        match Self::open(store.clone()).await {
            Err(Error::NotFound { what: Noun::Job, .. }) => Ok(None),
            Err(error) => Err(error),
            Ok(job) if job.kind() == planned.kind && *job.work() == planned.work => Ok(Some(job)),
            Ok(_) => Err(Error::AlreadyExists { what: Noun::Job, name: store.url().to_owned() }),
        }
    }

    /// Opens the job in a store.
    pub async fn open(store: Store) -> Result<Self> {
        let object = match store.get(DOCUMENT).await {
            Err(Error::NotFound { what: Noun::Object, .. }) => {
                return Err(Error::NotFound { what: Noun::Job, name: store.url().to_owned() });
            }
            other => other?,
        };
        let corrupt = |what: &str, expected: String, found: String| Error::Corrupt {
            file: store.object_url(DOCUMENT),
            what: what.to_owned(),
            expected,
            found,
        };
        let document: Document = serde_json::from_slice(&object.bytes).map_err(|error| {
            corrupt("the plan of a job", "a JSON document".to_owned(), error.to_string())
        })?;
        if document.format != FORMAT {
            return Err(corrupt("format", FORMAT.to_owned(), document.format));
        }
        if document.version != VERSION {
            let (url, found) = (store.url(), document.version);
            return Err(Error::unsupported(format!(
                "{url}, a job of version {found}; {VERSION} is known"
            )));
        }
        if document.tasks > TASKS_MAX || !LEASE_MS.contains(&document.lease_ms) {
            let found = format!("{} tasks, {} ms", document.tasks, document.lease_ms);
            return Err(corrupt("tasks and lease", "numbers that make sense".to_owned(), found));
        }
        chunkyard_store::check_path(&document.list)?;
        Ok(Self { store, document })
    }

    /// The kind of work.
    pub fn kind(&self) -> &str {
        &self.document.kind
    }

    /// The work, in the words of its kind.
    pub fn work(&self) -> &Value {
        &self.document.work
    }

    /// The number of tasks, without the end.
    pub fn tasks(&self) -> u64 {
        self.document.tasks
    }

    /// How long the count of a worker may stand still.
    pub fn lease(&self) -> Duration {
        Duration::from_millis(self.document.lease_ms)
    }

    /// Where the job is.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// A task.
    pub async fn task(&self, task: u64) -> Result<Bytes> {
        tasks::read(&self.store, &self.document.list, task).await
    }

    pub(super) fn steps(&self) -> Steps {
        Steps::new(self.store.clone())
    }

    /// The results of all tasks, in their order. One that is not done is an error.
    pub async fn results(&self) -> Result<impl Stream<Item = Result<(u64, Bytes)>> + Send + use<>> {
        let (steps, tasks) = (self.steps(), self.tasks());
        let listed = steps.list().await?;
        let requests = self.store.limits().requests.max(1);
        let results = stream::iter(0..tasks).map(move |task| {
            let last = listed.last.get(&task).copied();
            let steps = steps.clone();
            async move {
                let found = match last {
                    Some(last) => steps.last_from(task, last).await?,
                    None => None,
                };
                match found {
                    Some((_, Entry::Done { result, .. })) => Ok((task, result)),
                    _ => Err(Error::invalid(format!("task {task} of {tasks} is not done"))),
                }
            }
        });
        Ok(results.buffered(requests))
    }

    /// The result of a task, once it is done.
    pub async fn result(&self, task: u64) -> Result<Option<Bytes>> {
        match self.steps().last_from(task, 0).await? {
            Some((_, Entry::Done { result, .. })) => Ok(Some(result)),
            _ => Ok(None),
        }
    }

    /// The result of the end, once there is one.
    pub async fn outcome(&self) -> Result<Option<Value>> {
        match self.steps().last_from(self.tasks(), 0).await? {
            Some((_, Entry::Done { result, .. })) => {
                let outcome = serde_json::from_slice(&result).map_err(|error| Error::Corrupt {
                    file: self.store.url().to_owned(),
                    what: "the end of a job".to_owned(),
                    expected: "a JSON document".to_owned(),
                    found: error.to_string(),
                })?;
                Ok(Some(outcome))
            }
            _ => Ok(None),
        }
    }
}
