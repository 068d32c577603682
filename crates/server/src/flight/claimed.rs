//! The stream of a claim: units one after the other, each with its marker.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arrow_flight::FlightData;
use chunkyard_engine::{Error, Result};

use super::message::of_schema;
use super::streams::{HungUp, Sender};
use super::{blocks, index};
use crate::State;
use crate::jobs::{Begun, End, Failed, Live, Marker, Named, Task};

/// Where the messages of a task go.
pub(super) struct Feed<'a> {
    sender: &'a Sender,
    sent_bytes: &'a AtomicU64,
    /// Whose claim it is, and the number of the stream; nothing for streams that are only read.
    claim: Option<(&'a Live, &'a Named, u64)>,
}

impl<'a> Feed<'a> {
    /// A stream that is only read.
    pub(super) fn unclaimed(sender: &'a Sender, sent_bytes: &'a AtomicU64) -> Self {
        Self { sender, sent_bytes, claim: None }
    }

    pub(super) async fn send(&mut self, message: FlightData) -> Result<(), HungUp> {
        let bytes = message.data_body.len() as u64;
        self.sender.send(message).await?;
        self.sent_bytes.fetch_add(bytes, Ordering::Relaxed);
        Ok(())
    }

    /// Sends the last message of a unit.
    pub(super) async fn mark(&mut self, message: FlightData, marker: Marker) -> Result<(), HungUp> {
        // A marker has nothing that JSON cannot say.
        let said = serde_json::to_vec(&marker).unwrap_or_default();
        // Noted first: the client may acknowledge the unit as soon as it has the message.
        if let Some((live, named, stream)) = self.claim {
            live.sent(named, stream, marker);
        }
        self.send(FlightData { app_metadata: said.into(), ..message }).await
    }
}

/// Sends a task; `Ok(Err(_))` if the client has hung up.
pub(super) async fn send_task(
    feed: &mut Feed<'_>,
    state: &State,
    live: &Live,
    task: &Task,
) -> Result<Result<(), HungUp>> {
    let exporter = live.exporter(state).await?;
    match task {
        Task::Blocks(shards) => {
            for shard in shards {
                if let Err(hung_up) = blocks::send(feed, exporter, shard).await? {
                    return Ok(Err(hung_up));
                }
            }
            Ok(Ok(()))
        }
        Task::Index(part) => {
            let map = exporter.labelmap().await?.ok_or_else(|| {
                Error::unsupported("a part of an index of something that is no labelmap")
            })?;
            index::send(feed, &map, part).await
        }
    }
}

/// Sends what a claim is for, until it is sent, the client hangs up, or the claim ends.
pub(super) async fn run(state: State, live: Arc<Live>, named: Named, begun: Begun, sender: Sender) {
    let Begun { task, number, mut end, sent_bytes } = begun;
    let mut feed =
        Feed { sender: &sender, sent_bytes: &sent_bytes, claim: Some((&live, &named, number)) };
    let schema = match &*task {
        Task::Blocks(_) => blocks::schema(),
        Task::Index(_) => index::schema(),
    };
    let sending = async {
        if feed.send(of_schema(&schema)).await.is_err() {
            return Ok(Err(HungUp));
        }
        send_task(&mut feed, &state, &live, &task).await
    };
    let ended = async {
        // An error says that the claim is gone without a word: it was acknowledged, or its job is.
        match end.wait_for(Option::is_some).await.map(|why| *why) {
            Ok(Some(why)) => why,
            _ => End::Lost,
        }
    };
    let failed = tokio::select! {
        biased;
        () = sender.hung_up() => None,
        why = ended => Some(failure(&named, why)),
        sent = sending => match sent {
            Ok(_) => None,
            Err(error) => Some(Failed::from(error)),
        },
    };
    if let Some(failed) = failed {
        sender.fail(failed).await;
    }
}

fn failure(named: &Named, why: End) -> Failed {
    let Named { job, task, .. } = named;
    match why {
        End::Replaced => Failed::Replaced(format!(
            "another stream of task {task} of job {job} has taken the place of this one"
        )),
        End::Lost => Failed::Gone(format!(
            "task {task} of job {job} is no longer held with epoch {}",
            named.epoch
        )),
        End::Cancelled => Failed::Cancelled(format!("job {job} was cancelled")),
    }
}
