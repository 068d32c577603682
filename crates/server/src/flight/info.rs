//! What flights there are: parts of jobs that are only read, and arrays.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use arrow_flight::flight_descriptor::DescriptorType;
use arrow_flight::{FlightDescriptor, FlightEndpoint, FlightInfo, Ticket as RawTicket};
use arrow_schema::Schema;
use bytes::Bytes;
use chunkyard_engine::{Error, Result};
use serde_json::{Value, json};

use super::array::Opened;
use super::blocks;
use super::claimed::{Feed, send_task};
use super::message::{of_schema, schema_bytes};
use super::streams::{HungUp, Sender};
use super::ticket::{Command, Reading, Ticket};
use crate::State;
use crate::jobs::{Failed, JobId, Live, Outcome, Phase};

/// The command of a descriptor.
pub(super) fn command(descriptor: &FlightDescriptor) -> Outcome<Command> {
    match descriptor.r#type() {
        DescriptorType::Cmd => Command::parse(&descriptor.cmd),
        _ => Err(Failed::from(Error::invalid(
            "the descriptor of a flight is a command here; docs/flight.md has them",
        ))),
    }
}

/// What a command stands for.
pub(super) async fn of(state: &State, descriptor: FlightDescriptor) -> Outcome<FlightInfo> {
    match command(&descriptor)? {
        Command::Job { job, workers } => {
            let live = state.jobs().get(&JobId::parse(&job)?).await?;
            let left = live.left().await?;
            let mut endpoints = Vec::new();
            for worker in 0..workers {
                let shards = left.iter().filter(|task| *task % workers == worker).count();
                let about = json!({ "worker": worker, "workers": workers, "shards": shards });
                let reading = Reading { job: job.clone(), worker, workers };
                endpoints.push(endpoint(Ticket::Read(reading), Some(about))?);
            }
            made(descriptor, &blocks::schema(), endpoints, -1)
        }
        Command::Array(wanted) => {
            let opened = Opened::of(state, &wanted).await?;
            let endpoint = endpoint(Ticket::Array(wanted), None)?;
            made(descriptor, opened.schema(), vec![endpoint], opened.bytes())
        }
    }
}

/// The schema that a command stands for.
pub(super) async fn schema(state: &State, command: Command) -> Outcome<Bytes> {
    Ok(match command {
        Command::Job { job, .. } => {
            state.jobs().get(&JobId::parse(&job)?).await?;
            schema_bytes(&blocks::schema())?
        }
        Command::Array(wanted) => schema_bytes(Opened::of(state, &wanted).await?.schema())?,
    })
}

/// The commands of all flights: of running jobs, and of the arrays of all places.
pub(super) async fn all(state: &State) -> Outcome<Vec<FlightDescriptor>> {
    let mut commands = Vec::new();
    if state.config().jobs.is_some() {
        let jobs = state.jobs().all().await?;
        let running = jobs.iter().filter(|live| live.phase() == Phase::Running);
        commands.extend(running.map(|live| json!({ "job": live.id(), "workers": 1 })));
    }
    for place in state.places().names() {
        // What cannot be opened now is no flight now.
        match state.places().get(place)?.view(None).await {
            Ok(view) => commands.extend(
                view.source
                    .dataset()
                    .arrays()
                    .map(|(path, _)| json!({ "array": { "source": place, "path": path } })),
            ),
            Err(error) => tracing::warn!(place, %error, "a place that cannot be opened"),
        }
    }
    let descriptor = |command: Value| FlightDescriptor::new_cmd(command.to_string());
    Ok(commands.into_iter().map(descriptor).collect())
}

/// Sends the blocks of a part of a job that are not acknowledged, until they are sent or the client hangs up.
pub(super) async fn read(state: State, live: Arc<Live>, reading: Reading, sender: Sender) {
    let sent_bytes = AtomicU64::new(0);
    let sending = async {
        let mut feed = Feed::unclaimed(&sender, &sent_bytes);
        if feed.send(of_schema(&blocks::schema())).await.is_err() {
            return Ok(Err(HungUp));
        }
        let part = |task: &u64| task % reading.workers.max(1) == reading.worker;
        for task in live.left().await?.into_iter().filter(part) {
            let task = live.task(task).await?;
            if let Err(hung_up) = send_task(&mut feed, &state, &live, &task).await? {
                return Ok(Err(hung_up));
            }
        }
        Ok::<Result<(), HungUp>, Error>(Ok(()))
    };
    let failed = tokio::select! {
        biased;
        () = sender.hung_up() => None,
        sent = sending => sent.err(),
    };
    if let Some(error) = failed {
        sender.fail(error.into()).await;
    }
}

fn endpoint(ticket: Ticket, about: Option<Value>) -> Outcome<FlightEndpoint> {
    let ticket = RawTicket { ticket: ticket.render()?.into() };
    let about = about.map(|about| about.to_string().into_bytes()).unwrap_or_default();
    Ok(FlightEndpoint::new().with_ticket(ticket).with_app_metadata(about))
}

fn made(
    descriptor: FlightDescriptor,
    schema: &Schema,
    endpoints: Vec<FlightEndpoint>,
    bytes: i64,
) -> Outcome<FlightInfo> {
    let info = FlightInfo::new()
        .try_with_schema(schema)
        .map_err(super::message::refused)?
        .with_descriptor(descriptor)
        .with_total_records(-1)
        .with_total_bytes(bytes);
    Ok(endpoints.into_iter().fold(info, FlightInfo::with_endpoint))
}
