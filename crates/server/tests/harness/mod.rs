//! A server that runs for a test.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::Duration;

use chunkyard_server::metrics::Gauge;
use chunkyard_server::{Config, Listeners, State, serve};
use tokio::net::TcpStream;
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
    /// What the server keeps, its counts among it.
    pub(crate) state: State,
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
        let state = State::new(config).unwrap();
        let served = state.clone();
        let (stop, stopped) = oneshot::channel::<()>();
        let (tell, told) = mpsc::channel();
        let run = move || {
            let runtime = tokio::runtime::Runtime::new().unwrap();
            runtime.block_on(async {
                let listeners = Listeners::bind(&served).await.unwrap();
                tell.send(listeners.urls().unwrap()).unwrap();
                serve(listeners, served, async { drop(stopped.await) }).await.unwrap();
            });
        };
        let thread = std::thread::Builder::new().name("server".to_owned()).spawn(run).unwrap();
        let (url, flight) = told.recv().unwrap();
        // `reqwest` asks the process for its provider; the second test finds that of the first.
        drop(rustls::crypto::ring::default_provider().install_default());
        let client = reqwest::Client::builder().no_proxy().build().unwrap();
        Self { url, flight, client, state, stop: Some(stop), thread: Some(thread) }
    }

    /// The URL of a path.
    pub(crate) fn at(&self, path: &str) -> String {
        format!("{}{path}", self.url)
    }

    /// A connection to HTTP, without a word said on it.
    pub(crate) async fn connect(&self) -> TcpStream {
        let (_, address) = self.url.split_once("://").unwrap();
        TcpStream::connect(address).await.unwrap()
    }

    /// Waits until a gauge has a value, which must come.
    pub(crate) async fn until(&self, gauge: Gauge, value: u64) {
        let came = async {
            while self.state.metrics().now(gauge) != value {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        let came = tokio::time::timeout(Duration::from_secs(60), came).await;
        let now = self.state.metrics().now(gauge);
        came.unwrap_or_else(|_| panic!("{gauge:?} is {now} and does not become {value}"));
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
