//! `chunkyard worker`: the workers of an export, which are a part of the Python package.

use std::ffi::OsString;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};

use anyhow::Result;
use chunkyard_engine::Error;
use clap::Args;

use crate::context::Context;

/// The variable that names the interpreter.
const PYTHON: &str = "CHUNKYARD_PYTHON";

/// Fetch exports from a server, and write them as Parquet or into VastDB
///
/// Runs `python3 -m chunkyard.worker` with the same arguments; the environment variable CHUNKYARD_PYTHON names another
/// interpreter. It needs the Python package: `pip install 'chunkyard[worker]'`. `chunkyard worker --help` lists the options.
#[derive(Debug, Args)]
#[command(
    disable_help_flag = true,
    after_help = "\
Examples:
  chunkyard worker grpc://host:8002 --sink parquet:/data/brain
  chunkyard worker grpc://host:8002 --sink parquet:/data/brain --workers 8 --once"
)]
pub(crate) struct Worker {
    /// What the worker is told
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGUMENTS")]
    arguments: Vec<OsString>,
}

impl Worker {
    /// Becomes the Python program; returns only if there is none.
    pub(crate) fn run(&self, context: &Context) -> Result<()> {
        let python = std::env::var_os(PYTHON).unwrap_or_else(|| "python3".into());
        let name = python.to_string_lossy().into_owned();
        let look = "import sys, importlib.util as found; sys.exit(found.find_spec('chunkyard.worker') is None)";
        let mut probe = Command::new(&python);
        probe.args(["-c", look]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let there = probe
            .status()
            .map_err(|error| Error::unsupported(format!("workers, which are a Python program: {name}: {error}; {PYTHON} names an interpreter")))?;
        if !there.success() {
            return Err(Error::unsupported(format!(
                "workers, which are a part of the Python package that {name} does not have: {name} -m pip install \
                 'chunkyard[worker]', or name another interpreter by {PYTHON}"
            ))
            .into());
        }
        let mut command = Command::new(&python);
        command.args(["-m", "chunkyard.worker"]).args(&self.arguments);
        if context.output.is_json() {
            command.arg("--json");
        }
        if !context.output.is_json() && !context.output.talks() {
            command.arg("--quiet");
        }
        let failed = command.exec();
        Err(Error::store("run", name, failed).into())
    }
}
