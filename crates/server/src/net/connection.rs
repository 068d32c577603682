//! One connection, from its first byte to its end.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::graceful::Watcher;
use hyper_util::service::TowerToHyperService;
use rustls::ServerConfig;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;

use super::Protocol;
use super::stall::Stall;
use crate::config::Limits;

/// How often the peer of a silent HTTP/2 connection is asked whether it is still there, and how long it may take to answer.
const PING: Duration = Duration::from_secs(20);

/// What a connection is served with.
#[derive(Debug, Clone)]
pub(super) struct Serving {
    pub(super) protocol: Protocol,
    pub(super) tls: Option<Arc<ServerConfig>>,
    pub(super) router: Router,
    pub(super) limits: Limits,
}

/// A connection is ended; why is no error of the server.
type Ended = Result<(), Box<dyn std::error::Error + Send + Sync>>;

impl Serving {
    /// Serves a connection until it ends.
    pub(super) async fn serve(self, stream: TcpStream, watcher: Watcher) {
        if let Err(error) = self.secure(stream, watcher).await {
            tracing::debug!("a connection ended: {error}");
        }
    }

    /// Shakes hands, if need be, and serves.
    async fn secure(self, stream: TcpStream, watcher: Watcher) -> Ended {
        // Answers are written whole: waiting for more would only delay them.
        stream.set_nodelay(true)?;
        let Some(tls) = self.tls.clone() else { return self.speak(stream, watcher).await };
        let patience = self.limits.header_time();
        let stream =
            tokio::time::timeout(patience, TlsAcceptor::from(tls).accept(stream)).await??;
        self.speak(stream, watcher).await
    }

    async fn speak(
        self,
        stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
        watcher: Watcher,
    ) -> Ended {
        let service = TowerToHyperService::new(self.router);
        let io = TokioIo::new(Stall::new(stream, self.limits.stall_time()));
        match self.protocol {
            Protocol::Http => {
                let mut server = http1::Builder::new();
                server.timer(TokioTimer::new()).header_read_timeout(self.limits.header_time());
                watcher.watch(server.serve_connection(io, service)).await?;
            }
            Protocol::Grpc => {
                let mut server = http2::Builder::new(TokioExecutor::new());
                server.timer(TokioTimer::new()).keep_alive_interval(PING).keep_alive_timeout(PING);
                watcher.watch(server.serve_connection(io, service)).await?;
            }
        }
        Ok(())
    }
}
