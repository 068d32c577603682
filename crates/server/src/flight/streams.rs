//! Streams that are being sent: how many there may be, and how much each may have ready.
//!
//! A task makes messages and a client takes them; between the two are [`READY`] messages at most. When the client is gone, the
//! next message finds no taker and the task ends.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arrow_flight::FlightData;
use futures::{Stream, StreamExt};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio_stream::wrappers::ReceiverStream;
use tonic::Status;

use crate::jobs::{Failed, Outcome};

/// Messages that are ready and not yet taken.
const READY: usize = 2;

/// What a client receives.
pub(super) type Messages = Pin<Box<dyn Stream<Item = Result<FlightData, Status>> + Send>>;

/// The streams of a server.
#[derive(Debug)]
pub(crate) struct Streams {
    most: usize,
    places: Arc<Semaphore>,
    waiting_bytes: Arc<AtomicU64>,
}

/// Where a stream puts its messages.
#[derive(Debug)]
pub(super) struct Sender {
    messages: mpsc::Sender<Ready>,
    waiting_bytes: Arc<AtomicU64>,
    _place: OwnedSemaphorePermit,
}

/// The client has hung up.
#[derive(Debug)]
pub(super) struct HungUp;

impl Streams {
    pub(crate) fn new(most: usize) -> Self {
        Self { most, places: Arc::new(Semaphore::new(most)), waiting_bytes: Arc::default() }
    }

    /// Bytes of messages that are ready and were not taken yet, over all streams.
    pub(crate) fn waiting_bytes(&self) -> u64 {
        self.waiting_bytes.load(Ordering::Relaxed)
    }

    /// Streams that are open.
    pub(crate) fn open(&self) -> usize {
        self.most.saturating_sub(self.places.available_permits())
    }

    /// A place for one more stream, if there may be one.
    pub(super) fn place(&self) -> Outcome<OwnedSemaphorePermit> {
        self.places.clone().try_acquire_owned().map_err(|_| {
            Failed::Busy(format!("{} streams are open already; ask again later", self.most))
        })
    }

    /// Begins a stream, if there may be one more.
    pub(super) fn begin(&self) -> Outcome<(Sender, Messages)> {
        let place = self.place()?;
        let (messages, receiver) = mpsc::channel::<Ready>(READY);
        let waiting_bytes = self.waiting_bytes.clone();
        let stream = ReceiverStream::new(receiver).map(Ready::take);
        Ok((Sender { messages, waiting_bytes, _place: place }, stream.boxed()))
    }
}

impl Sender {
    /// Waits until there is room, and puts a message there.
    pub(super) async fn send(&self, message: FlightData) -> Result<(), HungUp> {
        let room = self.messages.reserve().await.map_err(|_| HungUp)?;
        room.send(Ready::new(Ok(message), &self.waiting_bytes));
        Ok(())
    }

    /// Ends the stream with an error.
    pub(super) async fn fail(&self, failed: Failed) {
        // A client that has hung up needs no reason.
        self.messages.send(Ready::new(Err(failed.into()), &self.waiting_bytes)).await.ok();
    }

    /// Returns when the client has hung up.
    pub(super) async fn hung_up(&self) {
        self.messages.closed().await;
    }
}

/// A message that waits to be taken. It is counted until it is taken, or dropped because the client has hung up.
#[derive(Debug)]
struct Ready {
    message: Option<Result<FlightData, Status>>,
    bytes: u64,
    waiting_bytes: Arc<AtomicU64>,
}

impl Ready {
    fn new(message: Result<FlightData, Status>, waiting_bytes: &Arc<AtomicU64>) -> Self {
        let bytes = message.as_ref().map_or(0, size);
        waiting_bytes.fetch_add(bytes, Ordering::Relaxed);
        Self { message: Some(message), bytes, waiting_bytes: waiting_bytes.clone() }
    }

    fn take(mut self) -> Result<FlightData, Status> {
        // There is one until this takes it.
        self.message.take().unwrap_or_else(|| Err(Status::internal("a message that was taken")))
    }
}

impl Drop for Ready {
    fn drop(&mut self) {
        self.waiting_bytes.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

fn size(message: &FlightData) -> u64 {
    let parts = [&message.data_header, &message.app_metadata, &message.data_body];
    parts.iter().map(|part| part.len() as u64).sum()
}
