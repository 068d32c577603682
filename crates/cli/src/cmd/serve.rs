//! `chunkyard serve`: everything that can be opened, over HTTP and Arrow Flight.

use std::io::{self, Write};
use std::net::SocketAddr;
use std::path::PathBuf;

use anyhow::Result;
use chunkyard_engine::Error;
use chunkyard_server::{Config, Listeners, State, serve};
use clap::Args;
use serde_json::json;
use tokio::signal::unix::{SignalKind, signal};

use crate::context::Context;
use crate::failure::Interrupted;
use crate::log::{self, LogFormat};

/// Serve data of any format over HTTP and Arrow Flight
///
/// Each place gets a name, which is a part of its URLs: NAME=PLACE, or PLACE alone, whose last part becomes the name.
/// The first line on standard output says where the server listens, with the ports that were chosen if 0 was asked for.
/// Ctrl-C and SIGTERM let requests under way end; a second one ends the server at once. docs/server.md has the endpoints
/// and the configuration.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  chunkyard serve brain=s3://bucket/brain /data/sea.nc    http://127.0.0.1:8000/data/brain/…, /data/sea.nc/…
  chunkyard serve --config chunkyard.toml                 places, tokens, TLS and limits from a file
  chunkyard serve brain --http 127.0.0.1:0 --flight 127.0.0.1:0 --json
  chunkyard serve brain --jobs /shared/jobs               exports to workers")]
pub(crate) struct Serve {
    /// What is served: NAME=PLACE or PLACE; added to those of the configuration
    #[arg(value_name = "PLACE")]
    places: Vec<String>,

    /// A configuration, as TOML
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,

    /// Where HTTP listens [default: 127.0.0.1:8000]
    #[arg(long, value_name = "ADDRESS")]
    http: Option<SocketAddr>,

    /// Where Arrow Flight listens [default: 127.0.0.1:8002]
    #[arg(long, value_name = "ADDRESS")]
    flight: Option<SocketAddr>,

    /// The directory that keeps exports to workers, on any store; without it there are none
    #[arg(long, value_name = "URL")]
    jobs: Option<String>,

    /// How requests are logged on standard error [default: text; quiet with --quiet]
    #[arg(long, value_name = "FORMAT")]
    log: Option<LogFormat>,
}

impl Serve {
    pub(crate) async fn run(&self, context: &Context) -> Result<()> {
        let usual = if context.output.is_quiet() { LogFormat::Quiet } else { LogFormat::Text };
        log::install(self.log.unwrap_or(usual));
        let state = State::new(self.config(context).await?)?;
        // Before anything can be asked for: a signal from then on ends the server in order.
        let (mut first, mut both) = (Signals::new()?, Signals::new()?);
        let listeners = Listeners::bind(&state).await?;
        let (http, flight) = listeners.urls()?;
        let names: Vec<&str> = state.places().names().collect();
        let line = match context.output.is_json() {
            true => json!({ "http": http, "flight": flight, "places": names }).to_string(),
            false => format!("http={http} flight={flight}"),
        };
        let mut out = io::stdout().lock();
        writeln!(out, "{line}")?;
        out.flush()?;
        drop(out);
        if names.is_empty() {
            context.output.warn("nothing is served: name places, or a configuration that does");
        }
        tokio::select! {
            ended = serve(listeners, state, first.next()) => Ok(ended?),
            () = async { both.next().await; both.next().await } => Err(Interrupted.into()),
        }
    }

    /// The configuration with what the options change.
    async fn config(&self, context: &Context) -> Result<Config> {
        let mut config = match &self.config {
            Some(path) => Config::read(path).await?,
            None => Config::default(),
        };
        for place in &self.places {
            let (name, url) = named(place)?;
            if config.places.insert(name.to_owned(), url.to_owned()).is_some() {
                let what = format!("two places are called {name:?}: name one of them NAME=PLACE");
                return Err(Error::invalid(what).into());
            }
        }
        config.http = self.http.unwrap_or(config.http);
        config.flight = self.flight.unwrap_or(config.flight);
        config.jobs = self.jobs.clone().or(config.jobs);
        let options = context.options();
        config.storage.extend(options.store.values);
        config.allow.extend(options.allowed);
        Ok(config)
    }
}

/// The name and the URL of `NAME=URL`, or of a URL whose last part is the name.
fn named(place: &str) -> Result<(&str, &str)> {
    if let Some((name, url)) = place.split_once('=')
        && !name.contains(['/', ':', '?'])
    {
        return Ok((name, url));
    }
    let end = place.split(['?', '#']).next().unwrap_or_default().trim_end_matches('/');
    match end.rsplit('/').next() {
        Some(name) if !name.is_empty() && !name.contains(':') && !name.starts_with('.') => {
            Ok((name, place))
        }
        _ => {
            Err(Error::invalid(format!("{place:?} has no last part to name it: write NAME=PLACE"))
                .into())
        }
    }
}

/// What tells the server to stop.
struct Signals {
    interrupt: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
}

impl Signals {
    fn new() -> Result<Self> {
        let listen =
            |kind| signal(kind).map_err(|error| Error::store("listen to", "signals", error));
        let (interrupt, terminate) = (SignalKind::interrupt(), SignalKind::terminate());
        Ok(Self { interrupt: listen(interrupt)?, terminate: listen(terminate)? })
    }

    /// Waits for a signal.
    async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}
