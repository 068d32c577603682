//! Running until told to stop.

use std::future::Future;

use chunkyard_engine::{Error, Result};
use tokio::net::TcpListener;

use crate::State;
use crate::http;

/// Where the server listens.
#[derive(Debug)]
pub struct Listeners {
    /// HTTP.
    pub http: TcpListener,
    /// Arrow Flight.
    pub flight: TcpListener,
}

impl Listeners {
    /// Binds both; port 0 chooses one that is free.
    pub async fn bind(state: &State) -> Result<Self> {
        let config = state.config();
        let bind = async |address| {
            TcpListener::bind(address).await.map_err(|error| Error::Store {
                op: "listen on",
                path: format!("{address}"),
                source: error.into(),
            })
        };
        Ok(Self { http: bind(config.http).await?, flight: bind(config.flight).await? })
    }
}

/// Serves until `shutdown` is ready, then lets requests under way end.
pub async fn serve(
    listeners: Listeners,
    state: State,
    shutdown: impl Future<Output = ()> + Send + 'static,
) -> Result<()> {
    let router = http::router(state);
    let served = axum::serve(listeners.http, router).with_graceful_shutdown(shutdown).await;
    served.map_err(|error| Error::Store {
        op: "serve",
        path: "http".to_owned(),
        source: error.into(),
    })
}
