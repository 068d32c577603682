//! One connection, from its first byte to its end.

use std::time::Duration;

use axum::Router;
use hyper::server::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::graceful::Watcher;
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpStream;

use super::Protocol;
use crate::config::Limits;

/// How often the peer of a silent HTTP/2 connection is asked whether it is still there, and how long it may take to answer.
const PING: Duration = Duration::from_secs(20);

/// Serves a connection until it ends. How it ends is no error of the server.
pub(super) async fn serve(
    stream: TcpStream,
    protocol: Protocol,
    router: Router,
    limits: &Limits,
    watcher: Watcher,
) {
    // Answers are written whole: waiting for more would only delay them.
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!("cannot switch off Nagle's algorithm: {error}");
    }
    let service = TowerToHyperService::new(router);
    let io = TokioIo::new(stream);
    let ended = match protocol {
        Protocol::Http => {
            let mut server = http1::Builder::new();
            server.timer(TokioTimer::new()).header_read_timeout(limits.header_time());
            watcher.watch(server.serve_connection(io, service)).await
        }
        Protocol::Grpc => {
            let mut server = http2::Builder::new(TokioExecutor::new());
            server.timer(TokioTimer::new()).keep_alive_interval(PING).keep_alive_timeout(PING);
            watcher.watch(server.serve_connection(io, service)).await
        }
    };
    if let Err(error) = ended {
        tracing::debug!("a connection ended: {error}");
    }
}
