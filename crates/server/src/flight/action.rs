//! Actions: one JSON object in, one out.

use std::sync::Arc;
use std::time::Duration;

use arrow_flight::{ActionType, CancelFlightInfoRequest, CancelFlightInfoResult, CancelStatus};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use chunkyard_engine::Error;
use prost::Message;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::info;
use super::ticket::{Command, Ticket};
use crate::State;
use crate::access::Role;
use crate::jobs::{Failed, Given, Got, JobId, Live, Marker, Named, Outcome, Request, Task};

/// Bytes of the body of an action at most.
const BODY_BYTES_MAX: usize = 4 << 20;
/// Milliseconds that a claim waits at most.
const WAIT_MS_MAX: u64 = 30_000;
/// Bytes of the name of a worker at most.
const WORKER_BYTES_MAX: usize = 256;

/// The standard action, whose body is no JSON.
const CANCEL_FLIGHT: &str = "CancelFlightInfo";

/// The actions, what they need and what they do.
const ACTIONS: [(&str, Role, &str); 9] = [
    ("export.start", Role::Admin, "Starts an export, or finds the one of the same key."),
    ("export.claim", Role::Write, "Claims a task of an export; waits for one."),
    ("export.beat", Role::Write, "Renews the lease of a claim."),
    ("export.ack", Role::Write, "Acknowledges the shards of a task, durably."),
    ("export.fail", Role::Write, "Gives a task back."),
    ("export.status", Role::Read, "Tells what has become of an export."),
    ("export.list", Role::Read, "Tells what has become of all exports."),
    ("export.cancel", Role::Admin, "Cancels an export."),
    (CANCEL_FLIGHT, Role::Admin, "Cancels the export of a flight."),
];

/// The actions that are offered.
pub(super) fn offered() -> impl Iterator<Item = ActionType> {
    ACTIONS.into_iter().map(|(name, _, about)| ActionType {
        r#type: name.to_owned(),
        description: about.to_owned(),
    })
}

/// What a caller of an action must be; none if there is no such action.
pub(super) fn role(name: &str) -> Option<Role> {
    ACTIONS.iter().find(|(own, ..)| *own == name).map(|(_, role, _)| *role)
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Claim {
    worker: String,
    #[serde(default)]
    job: Option<String>,
    #[serde(default)]
    wait_ms: u64,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Ack {
    worker: String,
    job: String,
    task: u64,
    epoch: u32,
    shards: Vec<Marker>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Fail {
    worker: String,
    job: String,
    task: u64,
    epoch: u32,
    error: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct OfJob {
    job: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Nothing {}

/// Does what an action asks for, and says what came of it.
pub(super) async fn run(state: &State, name: &str, body: &Bytes) -> Outcome<Bytes> {
    let answer = match name {
        "export.start" => {
            let request = parse::<Request>(name, body)?;
            render(&state.jobs().start(state, request, None).await?)
        }
        "export.claim" => claim(state, parse(name, body)?).await,
        "export.beat" => {
            let named = parse::<Named>(name, body)?;
            let cancelled = job(state, &named.job).await?.beat(&named).await?;
            render(&json!({ "ok": true, "cancelled": cancelled }))
        }
        "export.ack" => {
            let Ack { worker, job, task, epoch, shards } = parse(name, body)?;
            let named = Named { worker, job, task, epoch };
            let live = self::job(state, &named.job).await?;
            // Done to its end, even if the worker hangs up.
            let acked = tokio::spawn(async move { live.ack(&named, shards).await });
            let acked = acked.await.map_err(stopped)??;
            render(&json!({ "acked": acked, "done": true }))
        }
        "export.fail" => {
            let Fail { worker, job, task, epoch, error } = parse(name, body)?;
            let named = Named { worker, job, task, epoch };
            let live = self::job(state, &named.job).await?;
            let failed = tokio::spawn(async move { live.fail(&named, &error).await });
            failed.await.map_err(stopped)??;
            render(&json!({ "ok": true }))
        }
        "export.status" => {
            let of: OfJob = parse(name, body)?;
            render(&job(state, &of.job).await?.told().await?)
        }
        "export.list" => {
            let Nothing {} = parse(name, body)?;
            let mut jobs = Vec::new();
            for live in state.jobs().all().await? {
                jobs.push(live.told().await?);
            }
            render(&json!({ "jobs": jobs }))
        }
        "export.cancel" => {
            let of: OfJob = parse(name, body)?;
            render(&json!({ "cancelled": cancel(state, &of.job).await? }))
        }
        CANCEL_FLIGHT => cancel_flight(state, body).await,
        other => Err(Error::unsupported(format!("the action {other:?}")).into()),
    };
    answer.map(Bytes::from)
}

/// Cancels a job.
pub(super) async fn cancel(state: &State, id: &str) -> Outcome<bool> {
    let live = job(state, id).await?;
    tokio::spawn(async move { live.cancel().await }).await.map_err(stopped)?
}

/// Cancels the job that the descriptor of a flight names.
async fn cancel_flight(state: &State, body: &Bytes) -> Outcome<Vec<u8>> {
    let request = CancelFlightInfoRequest::decode(body.clone()).map_err(|error| {
        Failed::from(Error::invalid(format!("the body of {CANCEL_FLIGHT}: {error}")))
    })?;
    let descriptor = request.info.and_then(|info| info.flight_descriptor).unwrap_or_default();
    let status = match info::command(&descriptor)? {
        Command::Job { job, .. } if cancel(state, &job).await? => CancelStatus::Cancelled,
        _ => CancelStatus::NotCancellable,
    };
    Ok(CancelFlightInfoResult { status: status.into() }.encode_to_vec())
}

async fn job(state: &State, id: &str) -> Outcome<Arc<Live>> {
    state.jobs().get(&JobId::parse(id)?).await
}

async fn claim(state: &State, asked: Claim) -> Outcome<Vec<u8>> {
    let Claim { worker, job, wait_ms } = asked;
    if !(1..=WORKER_BYTES_MAX).contains(&worker.len()) {
        return Err(Failed::from(Error::invalid(format!(
            "the name of a worker has 1 to {WORKER_BYTES_MAX} bytes, not {}",
            worker.len()
        ))));
    }
    if wait_ms > WAIT_MS_MAX {
        return Err(Failed::from(Error::invalid(format!(
            "a claim waits up to {WAIT_MS_MAX} ms, not {wait_ms}"
        ))));
    }
    let id = job.as_deref().map(JobId::parse).transpose()?;
    let wait = Duration::from_millis(wait_ms);
    let stopping = state.stopping();
    let answer = match state.jobs().claim(&worker, id.as_ref(), wait, stopping).await? {
        Got::Task(given) => claimed(worker, given)?,
        Got::Wait => json!({ "state": "wait", "retry_ms": if wait_ms > 0 { 0 } else { 1000 } }),
        Got::Over => json!({ "state": "over", "job": job }),
        Got::Cancelled => json!({ "state": "cancelled", "job": job }),
    };
    render(&answer)
}

fn claimed(worker: String, given: Given) -> Outcome<Value> {
    let Given { live, task, epoch, content } = given;
    let job = live.id().as_str().to_owned();
    let ticket = Ticket::Claim(Named { worker, job: job.clone(), task, epoch }).render()?;
    let shards: Vec<Value> = match &*content {
        Task::Blocks(shards) => shards
            .iter()
            .map(|shard| {
                json!({ "stream": "blocks", "scale": shard.scale, "shard": shard.number, "weight": shard.weight })
            })
            .collect(),
        Task::Index(part) => {
            vec![json!({ "stream": "index", "part": part.part, "weight": part.weight })]
        }
    };
    let lease_ms = u64::try_from(live.lease().as_millis()).unwrap_or(u64::MAX);
    Ok(json!({
        "state": "claimed", "job": job, "task": task, "epoch": epoch, "ticket": BASE64_STANDARD.encode(ticket),
        "lease_ms": lease_ms, "shards": shards, "about": live.about(),
    }))
}

fn parse<T: DeserializeOwned>(name: &str, body: &Bytes) -> Outcome<T> {
    if body.len() > BODY_BYTES_MAX {
        return Err(Failed::from(Error::invalid(format!(
            "the body of {name} has {} bytes; the most is {BODY_BYTES_MAX}",
            body.len()
        ))));
    }
    let body: &[u8] = if body.is_empty() { b"{}" } else { body };
    serde_json::from_slice(body)
        .map_err(|error| Failed::from(Error::invalid(format!("the body of {name}: {error}"))))
}

fn render(answer: &impl Serialize) -> Outcome<Vec<u8>> {
    serde_json::to_vec(answer)
        .map_err(|error| Failed::from(Error::invalid(format!("an answer: {error}"))))
}

/// A task of ours that did not end: the server is going down.
fn stopped(error: tokio::task::JoinError) -> Failed {
    Failed::from(Error::store("finish", "a request", error))
}
