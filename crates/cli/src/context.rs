//! What all commands share: how to open a repository and how to print.

use std::sync::OnceLock;

use anyhow::Result;
use chunkyard_engine::repo::{OpenOptions, Repository};
use chunkyard_engine::store::Options;

use crate::args::Global;
use crate::output::Output;
use crate::progress::{Progress, Watch};

/// The global options, as they are meant.
#[derive(Debug)]
pub(crate) struct Context {
    /// Where results go.
    pub(crate) output: Output,
    options: OpenOptions,
    /// The repository a command is about, for hints.
    place: OnceLock<String>,
}

impl Context {
    pub(crate) fn new(global: &Global) -> Self {
        let store =
            Options { values: global.storage.iter().cloned().collect(), ..Options::default() };
        let options =
            OpenOptions { store, allowed: global.allow.clone(), ..OpenOptions::default() };
        Self { output: Output::new(global.json, global.quiet), options, place: OnceLock::new() }
    }

    /// How repositories are opened and created.
    pub(crate) fn options(&self) -> OpenOptions {
        self.options.clone()
    }

    /// Opens a repository and remembers where it is.
    pub(crate) async fn open(&self, url: &str) -> Result<Repository> {
        self.about(url);
        Ok(Repository::open(url, self.options()).await?)
    }

    /// Says which repository the command is about.
    pub(crate) fn about(&self, url: &str) {
        self.place.get_or_init(|| url.to_owned());
    }

    /// The repository the command is about, as it was typed.
    pub(crate) fn place(&self) -> Option<&str> {
        self.place.get().map(String::as_str)
    }

    /// A bar that follows the engine through a long work, until it is dropped.
    pub(crate) fn watch(&self, what: &str) -> Watch {
        Watch::new(what, self.options.meter.clone(), self.output.talks())
    }

    /// A bar that counts to `bytes`.
    pub(crate) fn progress(&self, what: &str, bytes: u64) -> Progress {
        Progress::new(what, bytes, self.output.talks())
    }
}
