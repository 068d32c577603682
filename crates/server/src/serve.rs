//! Running until told to stop.

use std::future::Future;
use std::sync::Arc;

use chunkyard_engine::{Error, Result};
use rustls::ServerConfig;
use tokio::net::TcpListener;

use crate::State;
use crate::net::{Listener, Protocol, encryption};
use crate::{flight, http};

/// Where the server listens.
#[derive(Debug)]
pub struct Listeners {
    /// HTTP.
    pub http: TcpListener,
    /// Arrow Flight.
    pub flight: TcpListener,
    /// The certificate and the like of the first and the second, if connections are encrypted.
    tls: Option<(Arc<ServerConfig>, Arc<ServerConfig>)>,
}

impl Listeners {
    /// Binds both; port 0 chooses one that is free.
    pub async fn bind(state: &State) -> Result<Self> {
        let config = state.config();
        let bind = async |address| {
            let bound = TcpListener::bind(address).await;
            bound.map_err(|error| Error::store("listen on", format!("{address}"), error))
        };
        let tls = match &config.tls {
            Some(tls) => Some((encryption(tls, Protocol::Http)?, encryption(tls, Protocol::Grpc)?)),
            None => None,
        };
        Ok(Self { http: bind(config.http).await?, flight: bind(config.flight).await?, tls })
    }

    /// The URLs of both, with the ports that were chosen.
    pub fn urls(&self) -> Result<(String, String)> {
        let address = |socket: &TcpListener| {
            let address = socket.local_addr();
            address.map_err(|error| Error::store("look at", "the address of a socket", error))
        };
        let (http, flight) = (address(&self.http)?, address(&self.flight)?);
        Ok(match &self.tls {
            Some(_) => (format!("https://{http}"), format!("grpc+tls://{flight}")),
            None => (format!("http://{http}"), format!("grpc://{flight}")),
        })
    }
}

/// Serves until `shutdown` is ready, then lets requests under way end.
pub async fn serve(
    listeners: Listeners,
    state: State,
    shutdown: impl Future<Output = ()> + Send,
) -> Result<()> {
    let Listeners { http, flight, tls } = listeners;
    let (http_tls, flight_tls) = tls.unzip();
    let http = Listener {
        socket: http,
        protocol: Protocol::Http,
        tls: http_tls,
        router: http::router(state.clone()),
    };
    let flight = Listener {
        socket: flight,
        protocol: Protocol::Grpc,
        tls: flight_tls,
        router: flight::router(state.clone()),
    };
    let stop = async {
        shutdown.await;
        state.stop();
    };
    tokio::join!(http.run(&state), flight.run(&state), stop);
    Ok(())
}
