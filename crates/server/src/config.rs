//! What is served, to whom, and with how much of the machine.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::time::Duration;

use chunkyard_engine::{Error, Noun, Result, store};
use serde::Deserialize;
use tokio::sync::Semaphore;

use crate::access::Token;

/// The port of HTTP, unless another is named.
pub const HTTP_PORT: u16 = 8000;
/// The port of Arrow Flight, unless another is named.
pub const FLIGHT_PORT: u16 = 8002;

/// The longest time that a limit can be, a day: longer ones are none.
const SECONDS_MAX: u64 = 86_400;

/// The configuration of a server, as `chunkyard.toml` has it.
#[derive(Debug, Clone, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Config {
    /// Where HTTP listens.
    pub http: SocketAddr,
    /// Where Arrow Flight listens.
    pub flight: SocketAddr,
    /// What is served: names, and the URL or path that each stands for.
    pub places: BTreeMap<String, String>,
    /// URL prefixes that references of served data may lead to.
    pub allow: Vec<String>,
    /// Settings of object stores.
    pub storage: BTreeMap<String, String>,
    /// The directory that keeps export jobs, on any store; without it exports cannot be started.
    pub jobs: Option<String>,
    /// The directory of the client of Neuroglancer, which is served as it is; without it there is no viewer.
    pub neuroglancer: Option<String>,
    /// Who may do what. Without tokens every caller that reaches the server is an administrator.
    pub tokens: Vec<Token>,
    /// Certificate and key, for HTTPS and TLS.
    pub tls: Option<Tls>,
    /// Origins whose pages may read, and change what is served; `*` lets any page read.
    pub origins: Vec<String>,
    /// Names of this machine; without tokens, requests to other names are refused.
    pub hosts: Vec<String>,
    /// How much of the machine is used.
    pub limits: Limits,
}

/// Files with a certificate chain and its key, both PEM.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tls {
    /// The certificate chain.
    pub certificate: String,
    /// The private key.
    pub key: String,
}

/// Bounds on what clients can make the server do.
#[derive(Debug, Clone, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Limits {
    /// Connections at a time; further ones wait to be accepted.
    pub connections: usize,
    /// Requests that are worked on at a time; further ones are answered 503.
    pub requests: usize,
    /// Bytes of the body of a request.
    pub body_bytes_max: usize,
    /// Bytes of an answer that has to be made as a whole, such as voxels of a box.
    pub answer_bytes_max: usize,
    /// Bytes of chunks that are kept for the next request.
    pub cache_bytes_max: usize,
    /// Bytes of answers that wait for their clients; while there are more, further requests are answered 503.
    pub waiting_bytes_max: usize,
    /// Seconds that a request may take until its answer begins.
    pub request_seconds: u64,
    /// Seconds in which the head of a request must have come.
    pub header_seconds: u64,
    /// Seconds after which a client that takes nothing of its answer is cut off.
    pub stall_seconds: u64,
    /// Seconds that requests under way have to end when the server stops.
    pub grace_seconds: u64,
    /// Streams of Arrow Flight at a time; further ones are `RESOURCE_EXHAUSTED`.
    pub streams: usize,
    /// Milliseconds for which a worker of an export may show no sign of life.
    pub lease_ms: u64,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            http: SocketAddr::from((Ipv4Addr::LOCALHOST, HTTP_PORT)),
            flight: SocketAddr::from((Ipv4Addr::LOCALHOST, FLIGHT_PORT)),
            places: BTreeMap::new(),
            allow: Vec::new(),
            storage: BTreeMap::new(),
            jobs: None,
            neuroglancer: None,
            tokens: Vec::new(),
            tls: None,
            origins: vec!["*".to_owned()],
            hosts: Vec::new(),
            limits: Limits::default(),
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 1024,
            requests: 256,
            body_bytes_max: 256 << 20,
            answer_bytes_max: 256 << 20,
            cache_bytes_max: 256 << 20,
            waiting_bytes_max: 1 << 30,
            request_seconds: 60,
            header_seconds: 10,
            stall_seconds: 60,
            grace_seconds: 10,
            streams: 64,
            lease_ms: 60_000,
        }
    }
}

impl Config {
    /// The configuration in a file.
    pub async fn read(path: &Path) -> Result<Self> {
        let name = path.display().to_string();
        let text = match tokio::fs::read_to_string(path).await {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => {
                return Err(Error::NotFound { what: Noun::File, name });
            }
            Err(error) => return Err(Error::store("read", name, error)),
        };
        Self::parse(&text).map_err(|error| Error::invalid(format!("{name}: {error}")))
    }

    /// The configuration in a text.
    pub fn parse(text: &str) -> std::result::Result<Self, toml::de::Error> {
        toml::from_str(text)
    }

    /// Refuses what must not run.
    pub(crate) fn check(&self) -> Result<()> {
        for (what, address) in [("http", self.http), ("flight", self.flight)] {
            if !address.ip().is_loopback() && self.tokens.is_empty() {
                return Err(Error::invalid(format!(
                    "without tokens, {what} may listen on a loopback address only, found {address}: every caller \
                     would be an administrator; add [[tokens]] to the configuration"
                )));
            }
        }
        if let Some(at) = self.tokens.iter().position(|token| !is_header_safe(&token.token)) {
            return Err(Error::invalid(format!(
                "token {} cannot be sent: a token is 1 or more visible ASCII characters",
                at + 1
            )));
        }
        let limits = &self.limits;
        for (name, value) in [("connections", limits.connections), ("requests", limits.requests)] {
            if value == 0 || value > Semaphore::MAX_PERMITS {
                return Err(Error::invalid(format!("limits.{name} cannot be {value}")));
            }
        }
        let times = [
            ("header", limits.header_seconds),
            ("request", limits.request_seconds),
            ("stall", limits.stall_seconds),
        ];
        for (name, value) in times {
            if !(1..=SECONDS_MAX).contains(&value) {
                let what = format!("limits.{name}-seconds is 1 to {SECONDS_MAX}, found {value}");
                return Err(Error::invalid(what));
            }
        }
        Ok(())
    }

    /// How stores are opened.
    pub fn store_options(&self) -> store::Options {
        let values = self.storage.iter().map(|(key, value)| (key.clone(), value.clone())).collect();
        store::Options { values, ..store::Options::default() }
    }
}

/// Whether a token can be part of a header as it is.
fn is_header_safe(token: &str) -> bool {
    !token.is_empty() && token.bytes().all(|byte| byte.is_ascii_graphic())
}

impl Limits {
    /// How long the head of a request may take.
    pub(crate) fn header_time(&self) -> Duration {
        Duration::from_secs(self.header_seconds)
    }

    /// How long a client may take nothing of its answer.
    pub(crate) fn stall_time(&self) -> Duration {
        Duration::from_secs(self.stall_seconds)
    }

    /// How long a request may take until its answer begins.
    pub(crate) fn request_time(&self) -> Duration {
        Duration::from_secs(self.request_seconds)
    }

    /// How long a worker of an export may show no sign of life.
    pub fn lease(&self) -> Duration {
        Duration::from_millis(self.lease_ms)
    }
}
