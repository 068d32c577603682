//! Accepting connections until the server stops.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper_util::server::graceful::GracefulShutdown;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use super::connection;
use crate::config::Limits;
use crate::state::Stopping;

/// What is spoken on a listener.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Protocol {
    /// HTTP/1.1.
    Http,
    /// gRPC, which is HTTP/2.
    Grpc,
}

/// A socket, and what answers there.
#[derive(Debug)]
pub(crate) struct Listener {
    /// The socket.
    pub(crate) socket: TcpListener,
    /// What is spoken.
    pub(crate) protocol: Protocol,
    /// What answers.
    pub(crate) router: Router,
    /// Bounds on connections and their time.
    pub(crate) limits: Limits,
}

/// How long a failed accept is not repeated: it fails for want of file descriptors, and they come back as connections end.
const PAUSE: Duration = Duration::from_millis(50);

impl Listener {
    /// Accepts and serves until the server stops; then waits for requests under way, as long as they may take.
    pub(crate) async fn run(self, mut stopping: Stopping) {
        let Self { socket, protocol, router, limits } = self;
        let places = Arc::new(Semaphore::new(limits.connections));
        let graceful = GracefulShutdown::new();
        let mut running = JoinSet::new();
        loop {
            let accepted = tokio::select! {
                accepted = accept(&socket, &places) => accepted,
                Some(_) = running.join_next() => continue,
                () = stopping.wait() => break,
            };
            let Some((stream, place)) = accepted else { continue };
            let (router, limits, watcher) = (router.clone(), limits.clone(), graceful.watcher());
            running.spawn(async move {
                connection::serve(stream, protocol, router, &limits, watcher).await;
                drop(place);
            });
        }
        drop(socket);
        let grace = Duration::from_secs(limits.grace_seconds);
        if tokio::time::timeout(grace, graceful.shutdown()).await.is_err() {
            tracing::warn!("requests did not end in {grace:?} and are cut off");
        }
        running.shutdown().await;
    }
}

/// The next connection, once there is a place for it; `None` if it was lost or cannot be had now.
async fn accept(
    socket: &TcpListener,
    places: &Arc<Semaphore>,
) -> Option<(TcpStream, tokio::sync::OwnedSemaphorePermit)> {
    let place = places.clone().acquire_owned().await.ok()?;
    match socket.accept().await {
        Ok((stream, _)) => Some((stream, place)),
        Err(error) => {
            tracing::warn!("cannot accept a connection: {error}");
            tokio::time::sleep(PAUSE).await;
            None
        }
    }
}
