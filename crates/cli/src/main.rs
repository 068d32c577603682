//! The `chunkyard` command.
//!
//! ```text
//!  args ──▶ cmd/<subcommand> ──▶ engine          arguments, one command each, the work
//!                │
//!                ├─▶ output, progress            data on stdout, talk on stderr
//!                │     └─▶ printable            text that a terminal does not obey
//!                ├─▶ change ─▶ tip              opens any format to change it, commits, reports
//!                │     └─▶ spelling             `set`, and `repo set`, `af set`: the same command
//!                ├─▶ transfer ─▶ npy, slabs     NumPy files in and out, in bounded memory
//!                ├─▶ elements                   files of JSON in and out
//!                └─▶ rows ─▶ npy                rows of arrays and tables, also as text
//! ```
//!
//! No command holds logic of the repository: each turns arguments into one or two calls of the
//! engine and their result into text or JSON.

#![forbid(unsafe_code)]

mod args;
mod attributes;
mod change;
mod cmd;
mod context;
mod elements;
mod failure;
mod graph;
mod log;
mod npy;
mod output;
mod printable;
mod progress;
mod rows;
mod slabs;
mod spelling;
mod tip;
mod transfer;
mod units;

use std::io;
use std::os::unix::net::UnixStream;
use std::process::ExitCode;

use anyhow::Result;
use clap::Parser;

use self::args::Cli;
use self::context::Context;
use self::failure::Interrupted;

fn main() -> ExitCode {
    let Cli { global, command } = Cli::parse();
    let context = Context::new(&global);
    let builder = || tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = match check_descriptors().and_then(|()| builder()) {
        Ok(runtime) => runtime,
        Err(error) => return failure::report(&error.into(), &context),
    };
    let outcome: Result<()> = runtime.block_on(async {
        tokio::select! {
            outcome = command.run(&context) => outcome,
            () = interrupt(), if !command.hears_interrupts() => Err(Interrupted.into()),
        }
    });
    // A blocked read, of a pipe for instance, must not keep the process alive.
    runtime.shutdown_background();
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => failure::report(&error, &context),
    }
}

/// Fails if the process may open hardly any files. Tokio needs about six descriptors for itself, and
/// panics if it does not get those for signals.
fn check_descriptors() -> io::Result<()> {
    let _room = (0..4).map(|_| UnixStream::pair()).collect::<io::Result<Vec<_>>>()?;
    Ok(())
}

/// Returns at Ctrl-C. If no handler can be installed, the system itself ends the process.
async fn interrupt() {
    if tokio::signal::ctrl_c().await.is_err() {
        std::future::pending::<()>().await;
    }
}
