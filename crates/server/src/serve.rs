//! Running until told to stop.

use std::future::Future;

use chunkyard_engine::{Error, Result};
use tokio::net::TcpListener;

use crate::State;
use crate::net::{Listener, Protocol};
use crate::{flight, http};

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
            let bound = TcpListener::bind(address).await;
            bound.map_err(|error| Error::store("listen on", format!("{address}"), error))
        };
        Ok(Self { http: bind(config.http).await?, flight: bind(config.flight).await? })
    }

    /// The URLs of both, with the ports that were chosen.
    pub fn urls(&self) -> Result<(String, String)> {
        let address = |socket: &TcpListener| {
            let address = socket.local_addr();
            address.map_err(|error| Error::store("look at", "the address of a socket", error))
        };
        let (http, flight) = (address(&self.http)?, address(&self.flight)?);
        Ok((format!("http://{http}"), format!("grpc://{flight}")))
    }
}

/// Serves until `shutdown` is ready, then lets requests under way end.
pub async fn serve(
    listeners: Listeners,
    state: State,
    shutdown: impl Future<Output = ()> + Send,
) -> Result<()> {
    let limits = &state.config().limits;
    let listener =
        |socket, protocol, router| Listener { socket, protocol, router, limits: limits.clone() };
    let http = listener(listeners.http, Protocol::Http, http::router(state.clone()));
    let flight = listener(listeners.flight, Protocol::Grpc, flight::router(state.clone()));
    let stop = async {
        shutdown.await;
        state.stop();
    };
    tokio::join!(http.run(state.stopping()), flight.run(state.stopping()), stop);
    Ok(())
}
