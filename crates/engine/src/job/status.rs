//! What has become of a job, for people.

use std::collections::BTreeSet;

use chunkyard_store::{Result, Uid, clock};
use futures::{StreamExt, TryStreamExt, stream};
use serde::Serialize;
use serde_json::Value;

use super::document::Job;
use super::entry::Entry;
use super::identity::Identity;
use super::lease::Sign;

/// The state of a job.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Status {
    /// Where it is.
    pub job: String,
    /// Its kind.
    pub kind: String,
    /// Tasks in all.
    pub tasks: u64,
    /// Tasks that are done.
    pub done: u64,
    /// Which these are.
    #[serde(skip)]
    pub done_tasks: Vec<u64>,
    /// Tasks that no worker has claimed yet.
    pub free: u64,
    /// The others: claimed or failed.
    pub open: Vec<OpenTask>,
    /// The workers that have joined, the last one first.
    pub workers: Vec<WorkerStatus>,
    /// The outcome, once the job is finished.
    pub outcome: Option<Value>,
}

/// A task that is under way, or was.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct OpenTask {
    /// The task; as many as there are tasks: the end.
    pub task: u64,
    /// Whether it is done now.
    pub state: Open,
    /// The worker of its last step.
    pub worker: Uid,
    /// How often it was claimed or given back before.
    pub epoch: u32,
    /// The message of its failure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// The state of a task that is neither free nor done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Open {
    /// A worker is at it.
    Claimed,
    /// Its worker seems to be gone: the next worker without other work takes over.
    Stale,
    /// It was given back. The next worker without other work tries again.
    Failed,
}

/// A worker as the job knows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct WorkerStatus {
    /// Its random identity.
    pub worker: Uid,
    /// The machine.
    pub host: String,
    /// The process there.
    pub pid: u32,
    /// Tasks it has done, as of its last sign of life.
    pub tasks: u64,
    /// When that was, by the clock of the store, in milliseconds since 1970; 0 where the store does not say.
    pub seen_ms: i64,
    /// Whether it has ended, or seems to.
    pub gone: bool,
}

impl Job {
    /// What has become of the job. Writes nothing. Whether a worker lives is a guess that compares the clock of the store with
    /// the one of this machine; workers themselves decide without clocks.
    pub async fn status(&self) -> Result<Status> {
        let (steps, tasks) = (self.steps(), self.tasks());
        let listed = steps.list().await?;
        let me = Identity::fresh()?;
        let lease_ms = i64::try_from(self.lease().as_millis()).unwrap_or(i64::MAX);
        let now_ms = clock::now_ms();
        let mut workers: Vec<WorkerStatus> = Vec::new();
        for (sign, meta) in Sign::all(self.store()).await? {
            let silent = meta.modified_ms > 0 && now_ms - meta.modified_ms > lease_ms;
            workers.push(WorkerStatus {
                worker: sign.identity.worker,
                host: sign.identity.host.clone(),
                pid: sign.identity.pid,
                tasks: sign.tasks,
                seen_ms: meta.modified_ms,
                gone: sign.left || silent || me.sees_end_of(&sign.identity),
            });
        }
        workers.sort_by_key(|worker| (std::cmp::Reverse(worker.seen_ms), worker.worker));
        let claimed = listed.last.range(..=tasks).filter(|(task, _)| **task < tasks).count() as u64;
        let unclear: Vec<(u64, u32)> = listed
            .last
            .range(..=tasks)
            .map(|(&task, &last)| (task, last))
            .filter(|&(task, last)| task == tasks || !listed.is_done(task, last))
            .collect();
        let looked: Vec<(u64, Option<(u32, Entry)>)> = stream::iter(unclear)
            .map(|(task, last)| {
                let steps = steps.clone();
                async move {
                    Ok::<_, chunkyard_store::Error>((task, steps.last_from(task, last).await?))
                }
            })
            .buffered(self.store().limits().requests.max(1))
            .try_collect()
            .await?;
        let mut open = Vec::new();
        for (task, last) in looked {
            let Some((epoch, entry)) = last else { continue };
            let (worker, error, mut state) = match entry {
                Entry::Done { .. } => continue,
                Entry::Claim { worker } => (worker, None, Open::Claimed),
                Entry::Failed { worker, error } => (worker, Some(error), Open::Failed),
            };
            let gone = workers.iter().all(|known| known.worker != worker || known.gone);
            if state == Open::Claimed && gone {
                state = Open::Stale;
            }
            open.push(OpenTask { task, state, worker, epoch, error });
        }
        let not_done: BTreeSet<u64> = open.iter().map(|open| open.task).collect();
        let done_tasks = listed.last.range(..tasks).map(|(&task, _)| task);
        let done_tasks = done_tasks.filter(|task| !not_done.contains(task)).collect();
        let under_way = open.iter().filter(|open| open.task < tasks).count() as u64;
        Ok(Status {
            job: self.store().url().to_owned(),
            kind: self.kind().to_owned(),
            tasks,
            done: claimed.saturating_sub(under_way),
            done_tasks,
            free: tasks.saturating_sub(claimed),
            open,
            workers,
            outcome: self.outcome().await?,
        })
    }
}
