//! Writing: boxes into an array, or label blocks that become a labelmap.
//!
//! All of a stream is one commit, made when the stream has ended. What was written before is referred to by nothing until then, so
//! of a stream that breaks off nothing is kept; collection takes what it left.

mod boxes;
mod columns;
mod labels;

use arrow_array::RecordBatch;
use arrow_flight::decode::{DecodedPayload, FlightDataDecoder};
use arrow_flight::error::FlightError;
use arrow_flight::{FlightData, PutResult};
use chunkyard_engine::repo::Repository;
use chunkyard_engine::{Error, Result};
use futures::{Stream, StreamExt, TryStreamExt, stream};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::{OwnedSemaphorePermit, mpsc};
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Status, Streaming};

use self::boxes::Boxes;
use self::labels::Blocks;
use super::Answers;
use crate::State;
use crate::jobs::{Failed, Outcome};

/// Bytes of a command at most.
const COMMAND_BYTES_MAX: usize = 64 << 10;

/// What a stream is to be written into.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
enum Command {
    Array(Target),
    Labelmap(NewLabelmap),
}

/// Where in a repository, and what the commit says.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Target {
    source: String,
    branch: String,
    path: String,
    #[serde(default = "message")]
    message: String,
}

/// A labelmap that is to be made.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct NewLabelmap {
    source: String,
    branch: String,
    path: String,
    #[serde(default = "message")]
    message: String,
    /// Voxels along x, y and z.
    size: [u64; 3],
    /// Whether blocks come without their lists of labels.
    #[serde(default = "yes")]
    stripped: bool,
}

fn message() -> String {
    "written over Arrow Flight".to_owned()
}

fn yes() -> bool {
    true
}

/// What takes the batches of a stream.
enum Writer {
    Boxes(Boxes),
    Blocks(Box<Blocks>),
}

impl Writer {
    async fn open(state: &State, command: Command) -> Result<Self> {
        Ok(match command {
            Command::Array(target) => {
                let repository = repository(state, &target.source).await?;
                Self::Boxes(Boxes::open(repository, target).await?)
            }
            Command::Labelmap(target) => {
                let repository = repository(state, &target.source).await?;
                Self::Blocks(Box::new(Blocks::open(repository, target).await?))
            }
        })
    }

    async fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        match self {
            Self::Boxes(boxes) => boxes.write(batch).await,
            Self::Blocks(blocks) => blocks.write(batch).await,
        }
    }

    /// Commits; says which snapshot that made.
    async fn finish(self) -> Result<String> {
        match self {
            Self::Boxes(boxes) => boxes.finish().await,
            Self::Blocks(blocks) => blocks.finish().await,
        }
    }
}

async fn repository<'a>(state: &'a State, source: &str) -> Result<&'a Repository> {
    state
        .places()
        .get(source)?
        .repository()
        .await?
        .ok_or_else(|| Error::unsupported(format!("writing into {source}, which is no repository")))
}

/// Takes a stream.
pub(super) async fn begin(
    state: &State,
    mut messages: Streaming<FlightData>,
) -> Outcome<Answers<PutResult>> {
    let place = state.streams().place()?;
    let first = messages.message().await.map_err(broken)?;
    let first = first.ok_or_else(|| {
        Failed::from(Error::invalid("a stream that writes begins with a descriptor and a schema"))
    })?;
    let command = command(&first)?;
    let writer = Writer::open(state, command).await?;
    let all = stream::once(async { Ok(first) }).chain(messages);
    let (sender, answers) = mpsc::channel(2);
    let run = async move {
        let written = run(writer, all, &sender, place).await;
        if let Err(failed) = written {
            sender.send(Err(Status::from(failed))).await.ok();
        }
    };
    tokio::spawn(run);
    Ok(ReceiverStream::new(answers).boxed())
}

fn command(first: &FlightData) -> Outcome<Command> {
    let command = first.flight_descriptor.as_ref().map(|descriptor| &descriptor.cmd);
    let command = command.filter(|command| !command.is_empty()).ok_or_else(|| {
        Error::invalid(
            "the descriptor of a stream that writes is a command; docs/flight.md has them",
        )
    })?;
    if command.len() > COMMAND_BYTES_MAX {
        return Err(Failed::from(Error::invalid(format!(
            "a command of {} bytes; the most is {COMMAND_BYTES_MAX}",
            command.len()
        ))));
    }
    serde_json::from_slice(command)
        .map_err(|error| Failed::from(Error::invalid(format!("a command to write: {error}"))))
}

async fn run(
    mut writer: Writer,
    messages: impl Stream<Item = std::result::Result<FlightData, Status>> + Send + 'static,
    answers: &mpsc::Sender<std::result::Result<PutResult, Status>>,
    _place: OwnedSemaphorePermit,
) -> Outcome<()> {
    let mut batches =
        FlightDataDecoder::new(messages.map_err(|status| FlightError::Tonic(Box::new(status))));
    let mut received = 0;
    while let Some(data) = batches.try_next().await.map_err(unreadable)? {
        let DecodedPayload::RecordBatch(batch) = data.payload else { continue };
        writer.write(&batch).await?;
        received += batch.num_rows();
        // A client that does not listen still writes; one that is gone breaks the stream off.
        answers.send(answer(&json!({ "received": received, "durable": 0 }))).await.ok();
    }
    let snapshot = writer.finish().await?;
    let said = json!({ "received": received, "durable": received, "snapshot": snapshot });
    answers.send(answer(&said)).await.ok();
    Ok(())
}

fn answer(said: &Value) -> std::result::Result<PutResult, Status> {
    Ok(PutResult { app_metadata: said.to_string().into_bytes().into() })
}

/// A stream that breaks off before anything came.
fn broken(status: Status) -> Failed {
    Failed::from(Error::invalid(format!("the stream broke off: {}", status.message())))
}

/// A stream that breaks off, or is none of Arrow.
fn unreadable(error: FlightError) -> Failed {
    Failed::from(Error::invalid(format!("a stream that cannot be read: {error}")))
}
