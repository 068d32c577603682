//! A server that runs for a test.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::mpsc;
use std::thread::JoinHandle;

use chunkyard_server::{Config, Listeners, State, serve};
use tokio::sync::oneshot;

/// A server with places of its own, on ports that were free; it stops when it is dropped.
///
/// It has threads of its own, so that a test that waits does not hold it up.
pub(crate) struct Server {
    /// The URL of HTTP, without a slash at its end.
    pub(crate) url: String,
    /// The URL of Arrow Flight, `grpc://…`.
    pub(crate) flight: String,
    /// A client that knows no proxy.
    pub(crate) client: reqwest::Client,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// Serves places: names, and the path of each.
    pub(crate) fn start(places: &[(&str, &Path)]) -> Self {
        Self::with(places, |_| ())
    }

    /// Serves places, with what `change` changes in the configuration.
    pub(crate) fn with(places: &[(&str, &Path)], change: impl FnOnce(&mut Config)) -> Self {
        let mut config = Config {
            http: SocketAddr::from(([127, 0, 0, 1], 0)),
            flight: SocketAddr::from(([127, 0, 0, 1], 0)),
            ..Config::default()
        };
        for (name, path) in places {
            config.places.insert((*name).to_owned(), path.to_str().unwrap().to_owned());
        }
        change(&mut config);
        let (stop, stopped) = oneshot::channel::<()>();
        let (tell, told) = mpsc::channel();
        let run = move || {
            let runtime = tokio::runtime::Runtime::new().unwrap();
            runtime.block_on(async {
                let state = State::new(config).unwrap();
                let listeners = Listeners::bind(&state).await.unwrap();
                tell.send(listeners.urls().unwrap()).unwrap();
                serve(listeners, state, async { drop(stopped.await) }).await.unwrap();
            });
        };
        let thread = std::thread::Builder::new().name("server".to_owned()).spawn(run).unwrap();
        let (url, flight) = told.recv().unwrap();
        // `reqwest` asks the process for its provider; the second test finds that of the first.
        drop(rustls::crypto::ring::default_provider().install_default());
        let client = reqwest::Client::builder().no_proxy().build().unwrap();
        Self { url, flight, client, stop: Some(stop), thread: Some(thread) }
    }

    /// The URL of a path.
    pub(crate) fn at(&self, path: &str) -> String {
        format!("{}{path}", self.url)
    }

    /// The answer to a GET.
    pub(crate) async fn get(&self, path: &str) -> reqwest::Response {
        self.client.get(self.at(path)).send().await.unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.stop.take());
        let ended = self.thread.take().map(JoinHandle::join);
        // A second panic would hide the first.
        if !std::thread::panicking() {
            ended.unwrap().unwrap();
        }
    }
}
