//! What the server says of each request, on standard error.

use clap::ValueEnum;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, Registry, fmt};

/// How log lines look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// For people
    Text,
    /// A JSON object per line
    Json,
    /// Warnings alone, for people
    Quiet,
}

/// Prints what the server logs from here on.
pub(crate) fn install(format: LogFormat) {
    // Of the libraries below, only what may be our defect.
    let level = if format == LogFormat::Quiet { LevelFilter::WARN } else { LevelFilter::INFO };
    let wanted =
        Targets::new().with_default(LevelFilter::ERROR).with_target("chunkyard_server", level);
    let lines = fmt::layer().with_writer(std::io::stderr).with_ansi(false).with_target(false);
    let lines: Box<dyn Layer<Registry> + Send + Sync> = match format {
        LogFormat::Json => Box::new(lines.json().flatten_event(true).with_filter(wanted)),
        LogFormat::Text | LogFormat::Quiet => Box::new(lines.with_filter(wanted)),
    };
    // A second one in the same process cannot be; there is one command.
    drop(tracing_subscriber::registry().with(lines).try_init());
}
