//! Arrow Flight: exports to workers, and arrays as record batches. docs/flight.md is the protocol.
//!
//! ```text
//!  DoAction ──▶ action ──▶ jobs                     start, claim, beat, ack, fail, status, list, cancel
//!  DoGet ──▶ ticket ──▶ claimed ──┬─ blocks         shards as record batches, each with its marker
//!                │                └─ index          parts of the label index
//!                └────▶ array                       a region of any array
//!  DoPut ──▶ put                                    boxes into an array, label blocks into a new labelmap
//!                          │
//!                       streams                     two messages ready at most; as many streams as configured
//! ```
//!
//! A stream is made by a task of its own, which waits whenever the client does not take what is ready, and ends when the client
//! is gone. Every call is checked for its token first.

mod action;
mod array;
mod blocks;
mod claimed;
mod index;
mod info;
mod message;
mod put;
mod streams;
mod ticket;

use std::pin::Pin;

use arrow_flight::flight_service_server::{FlightService, FlightServiceServer};
use arrow_flight::{
    Action, ActionType, Criteria, Empty, FlightData, FlightDescriptor, FlightInfo,
    HandshakeRequest, HandshakeResponse, PollInfo, PutResult, SchemaResult, Ticket as RawTicket,
};
use async_trait::async_trait;
use axum::Router;
use futures::{Stream, StreamExt, stream};
use tonic::metadata::MetadataMap;
use tonic::service::Routes;
use tonic::{Request, Response, Status, Streaming};

use self::streams::Messages;
pub(crate) use self::streams::Streams;
use self::ticket::Ticket;
use crate::State;
use crate::access::Role;
use crate::jobs::{Failed, JobId, refused};

/// Bytes of a message that a client may send: a batch of 64 MiB, and what is around it.
const MESSAGE_BYTES_MAX: usize = 65 << 20;

/// What answers on the port of Arrow Flight.
pub(crate) fn router(state: State) -> Router {
    let service = FlightServiceServer::new(Flight { state })
        .max_decoding_message_size(MESSAGE_BYTES_MAX)
        .max_encoding_message_size(usize::MAX);
    Routes::new(service).into_axum_router()
}

/// The calls of Arrow Flight.
#[derive(Debug)]
struct Flight {
    state: State,
}

type Answers<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

impl Flight {
    fn require(&self, role: Role, metadata: &MetadataMap) -> Result<(), Status> {
        let token = metadata.get("authorization").map(|value| value.as_bytes());
        self.state.access().require(role, token).map_err(refused)
    }

    async fn get(&self, ticket: Ticket) -> Result<Messages, Failed> {
        match ticket {
            Ticket::Claim(named) => {
                let live = self.state.jobs().get(&JobId::parse(&named.job)?).await?;
                let (sender, messages) = self.state.streams().begin()?;
                let begun = live.begin(&named).await?;
                tokio::spawn(claimed::run(self.state.clone(), live, named, begun, sender));
                Ok(messages)
            }
            Ticket::Read(reading) => {
                let live = self.state.jobs().get(&JobId::parse(&reading.job)?).await?;
                let (sender, messages) = self.state.streams().begin()?;
                tokio::spawn(info::read(self.state.clone(), live, reading, sender));
                Ok(messages)
            }
            Ticket::Array(wanted) => {
                let (sender, messages) = self.state.streams().begin()?;
                let opened = array::Opened::of(&self.state, &wanted).await?;
                tokio::spawn(array::run(opened, sender));
                Ok(messages)
            }
        }
    }
}

#[async_trait]
impl FlightService for Flight {
    type HandshakeStream = Answers<HandshakeResponse>;
    type ListFlightsStream = Answers<FlightInfo>;
    type DoGetStream = Messages;
    type DoPutStream = Answers<PutResult>;
    type DoExchangeStream = Messages;
    type DoActionStream = Answers<arrow_flight::Result>;
    type ListActionsStream = Answers<ActionType>;

    async fn handshake(
        &self,
        _: Request<Streaming<HandshakeRequest>>,
    ) -> Result<Response<Self::HandshakeStream>, Status> {
        Err(Status::unimplemented("a handshake; a token comes with each call"))
    }

    async fn list_flights(
        &self,
        request: Request<Criteria>,
    ) -> Result<Response<Self::ListFlightsStream>, Status> {
        self.require(Role::Read, request.metadata())?;
        let state = self.state.clone();
        let flights = stream::iter(info::all(&state).await?).then(move |descriptor| {
            let state = state.clone();
            async move { Ok(info::of(&state, descriptor).await?) }
        });
        Ok(Response::new(flights.boxed()))
    }

    async fn get_flight_info(
        &self,
        request: Request<FlightDescriptor>,
    ) -> Result<Response<FlightInfo>, Status> {
        self.require(Role::Read, request.metadata())?;
        Ok(Response::new(info::of(&self.state, request.into_inner()).await?))
    }

    async fn poll_flight_info(
        &self,
        _: Request<FlightDescriptor>,
    ) -> Result<Response<PollInfo>, Status> {
        Err(Status::unimplemented("polling; the action export.status tells of an export"))
    }

    async fn get_schema(
        &self,
        request: Request<FlightDescriptor>,
    ) -> Result<Response<SchemaResult>, Status> {
        self.require(Role::Read, request.metadata())?;
        let command = info::command(request.get_ref())?;
        let schema = info::schema(&self.state, command).await?;
        Ok(Response::new(SchemaResult { schema }))
    }

    async fn do_get(
        &self,
        request: Request<RawTicket>,
    ) -> Result<Response<Self::DoGetStream>, Status> {
        let ticket = Ticket::parse(&request.get_ref().ticket);
        let role = match &ticket {
            Ok(Ticket::Claim(_)) => Role::Write,
            _ => Role::Read,
        };
        self.require(role, request.metadata())?;
        Ok(Response::new(self.get(ticket?).await?))
    }

    async fn do_put(
        &self,
        request: Request<Streaming<FlightData>>,
    ) -> Result<Response<Self::DoPutStream>, Status> {
        self.require(Role::Write, request.metadata())?;
        Ok(Response::new(put::begin(&self.state, request.into_inner()).await?))
    }

    async fn do_exchange(
        &self,
        _: Request<Streaming<FlightData>>,
    ) -> Result<Response<Self::DoExchangeStream>, Status> {
        Err(Status::unimplemented("exchanging; DoGet reads and DoPut writes"))
    }

    async fn do_action(
        &self,
        request: Request<Action>,
    ) -> Result<Response<Self::DoActionStream>, Status> {
        let Action { r#type: name, body } = request.get_ref();
        // Who may not even read learns no names of actions.
        self.require(action::role(name).unwrap_or(Role::Read), request.metadata())?;
        let body = action::run(&self.state, name, body).await?;
        let answer = stream::once(async { Ok(arrow_flight::Result { body }) });
        Ok(Response::new(answer.boxed()))
    }

    async fn list_actions(
        &self,
        request: Request<Empty>,
    ) -> Result<Response<Self::ListActionsStream>, Status> {
        self.require(Role::Read, request.metadata())?;
        Ok(Response::new(stream::iter(action::offered().map(Ok)).boxed()))
    }
}
