//! Accepting connections until the server stops.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper_util::server::graceful::GracefulShutdown;
use rustls::ServerConfig;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;

use super::connection::Serving;
use crate::State;
use crate::metrics::Gauge;

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
    /// The certificate and the like, if connections are encrypted.
    pub(crate) tls: Option<Arc<ServerConfig>>,
    /// What answers.
    pub(crate) router: Router,
}

/// How long a failed accept is not repeated: it fails for want of file descriptors, and they come back as connections end.
const PAUSE: Duration = Duration::from_millis(50);

impl Listener {
    /// Accepts and serves until the server stops; then waits for requests under way, as long as they may take.
    pub(crate) async fn run(self, state: &State) {
        let Self { socket, protocol, tls, router } = self;
        let limits = state.config().limits.clone();
        let grace = Duration::from_secs(limits.grace_seconds);
        let places = Arc::new(Semaphore::new(limits.connections));
        let serving = Serving { protocol, tls, router, limits };
        let gauge = match protocol {
            Protocol::Http => Gauge::Http,
            Protocol::Grpc => Gauge::Flight,
        };
        let graceful = GracefulShutdown::new();
        let mut stopping = state.stopping();
        let mut running = JoinSet::new();
        loop {
            let accepted = tokio::select! {
                accepted = accept(&socket, &places) => accepted,
                Some(_) = running.join_next() => continue,
                () = stopping.wait() => break,
            };
            let Some((stream, place)) = accepted else { continue };
            let (serving, watcher) = (serving.clone(), graceful.watcher());
            let open = state.metrics().open(gauge, 1);
            running.spawn(async move {
                serving.serve(stream, watcher).await;
                // The gauge first: what waits for the place is counted at once.
                drop((open, place));
            });
        }
        drop(socket);
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
) -> Option<(TcpStream, OwnedSemaphorePermit)> {
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
