//! What all commands share: how to open what they are about and how to print.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use anyhow::Result;
use chunkyard_engine::Meter;
use chunkyard_engine::format::{self, Format, Place, Source};
use chunkyard_engine::open::recognise;
use chunkyard_engine::repo::{OpenOptions, RepoFormat, Repository};
use chunkyard_engine::store::{Limits, Options};

use crate::args::Global;
use crate::output::Output;
use crate::progress::{Progress, Watch};

/// The global options, as they are meant.
#[derive(Debug)]
pub(crate) struct Context {
    /// Where results go.
    pub(crate) output: Output,
    options: OpenOptions,
    /// The place a command is about, for hints.
    place: OnceLock<String>,
    /// Whether a repository is there.
    repo: AtomicBool,
    /// Whether the same command, run again, goes on where this one ended.
    resumable: AtomicBool,
}

impl Context {
    pub(crate) fn new(global: &Global) -> Self {
        let store =
            Options { values: global.storage.iter().cloned().collect(), ..Options::default() };
        let options =
            OpenOptions { store, allowed: global.allow.clone(), ..OpenOptions::default() };
        Self {
            output: Output::new(global.json, global.quiet),
            options,
            place: OnceLock::new(),
            repo: AtomicBool::new(true),
            resumable: AtomicBool::new(false),
        }
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

    /// How stores are opened, within limits.
    pub(crate) fn store_options(&self, limits: Limits) -> Options {
        Options { limits, ..self.options.store.clone() }
    }

    /// Finds out what is at a URL, and remembers where it is.
    pub(crate) async fn recognise(
        &self,
        url: &str,
        limits: Limits,
    ) -> Result<(Place, &'static dyn Format, format::OpenOptions)> {
        self.about(url);
        let store = self.store_options(limits);
        let place = Place::new(url, &store)?;
        let format = recognise(&place).await?;
        self.repo.store(format.name() == RepoFormat.name(), Ordering::Relaxed);
        let allowed = self.options.allowed.clone();
        Ok((place, format, format::OpenOptions { store, allowed, version: None }))
    }

    /// Says that what is done from here on is found again by the same command.
    pub(crate) fn resumable(&self) {
        self.resumable.store(true, Ordering::Relaxed);
    }

    /// Whether the same command, run again, goes on where this one ended.
    pub(crate) fn is_resumable(&self) -> bool {
        self.resumable.load(Ordering::Relaxed)
    }

    /// Opens what was recognised, and says what its reader should know.
    pub(crate) async fn open_source(
        &self,
        place: &Place,
        format: &'static dyn Format,
        options: &format::OpenOptions,
    ) -> Result<Arc<dyn Source>> {
        let source = format.open(place, options).await?;
        source.cautions().iter().for_each(|caution| self.output.warn(caution));
        Ok(source)
    }

    /// Says which container the command is about.
    pub(crate) fn about_container(&self, url: &str) {
        self.about(url);
        self.repo.store(false, Ordering::Relaxed);
    }

    /// Says which place the command is about.
    pub(crate) fn about(&self, url: &str) {
        self.place.get_or_init(|| url.to_owned());
    }

    /// The place the command is about, as it was typed.
    pub(crate) fn place(&self) -> Option<&str> {
        self.place.get().map(String::as_str)
    }

    /// What the bar of [`Context::watch`] reads.
    pub(crate) fn meter(&self) -> &Meter {
        &self.options.meter
    }

    /// A bar that follows the engine through a long work, until it is dropped.
    pub(crate) fn watch(&self, what: &str) -> Watch {
        Watch::new(what, self.options.meter.clone(), self.output.talks())
    }

    /// Whether the command is about a repository, or must be taken to be.
    pub(crate) fn is_repo(&self) -> bool {
        self.repo.load(Ordering::Relaxed)
    }

    /// A bar that counts to `bytes`.
    pub(crate) fn progress(&self, what: &str, bytes: u64) -> Progress {
        Progress::new(what, bytes, self.output.talks())
    }
}
