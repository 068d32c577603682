//! What all commands share: how to open a place and how to print.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use anyhow::Result;
use chunkyard_engine::Meter;
use chunkyard_engine::format::{self, Format, Place, Source, Versions};
use chunkyard_engine::open::recognise;
use chunkyard_engine::repo::{OpenOptions, Repository};
use chunkyard_engine::store::{Limits, Options};

use crate::args::Global;
use crate::output::Output;
use crate::progress::{Progress, Watch};

/// The global options, and the facts about the running command that hints need.
pub(crate) struct Context {
    /// Where results go.
    pub(crate) output: Output,
    options: OpenOptions,
    /// The place a command is about, for hints.
    place: OnceLock<String>,
    /// The format of that place, once it is known.
    format: OnceLock<&'static dyn Format>,
    /// The place that a command writes to, and its format, if that is another place.
    target: OnceLock<(String, &'static dyn Format)>,
    /// Whether the same command, run again, continues where this one ended.
    resumable: AtomicBool,
    /// Whether options of the command settle what two branches disagree about.
    settles: AtomicBool,
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
            format: OnceLock::new(),
            target: OnceLock::new(),
            resumable: AtomicBool::new(false),
            settles: AtomicBool::new(false),
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

    /// Finds out which format is at a URL, and remembers both.
    pub(crate) async fn recognise(
        &self,
        url: &str,
        limits: Limits,
    ) -> Result<(Place, &'static dyn Format, format::OpenOptions)> {
        self.about(url);
        let store = self.store_options(limits);
        let place = Place::new(url, &store)?;
        let format = recognise(&place).await?;
        self.format.get_or_init(|| format);
        let allowed = self.options.allowed.clone();
        let options = format::OpenOptions { store, allowed, ..format::OpenOptions::default() };
        Ok((place, format, options))
    }

    /// Says that from here on the same command, run again, continues where this one ended.
    pub(crate) fn resumable(&self) {
        self.resumable.store(true, Ordering::Relaxed);
    }

    /// Whether the same command, run again, continues where this one ended.
    pub(crate) fn is_resumable(&self) -> bool {
        self.resumable.load(Ordering::Relaxed)
    }

    /// Says that `--ours` and `--theirs` of the command settle what two branches disagree about.
    pub(crate) fn settles(&self) {
        self.settles.store(true, Ordering::Relaxed);
    }

    /// Whether `--ours` and `--theirs` settle a conflict.
    pub(crate) fn does_settle(&self) -> bool {
        self.settles.load(Ordering::Relaxed)
    }

    /// Opens a place that was recognised, and prints its cautions.
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

    /// Says which place the command is about, and its format.
    pub(crate) fn about_format(&self, url: &str, format: &'static dyn Format) {
        self.about(url);
        self.format.get_or_init(|| format);
    }

    /// Says which place the command writes to, if it reads another one.
    pub(crate) fn writes_to(&self, url: &str, format: &'static dyn Format) {
        self.target.get_or_init(|| (url.to_owned(), format));
    }

    /// The place that the command writes to, as it was typed, and which versions it keeps.
    pub(crate) fn target(&self) -> Option<(&str, Versions)> {
        match self.target.get() {
            Some((url, format)) => Some((url.as_str(), format.versions())),
            None => Some((self.place()?, self.versions())),
        }
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

    /// A bar that follows a long operation of the engine, until it is dropped.
    pub(crate) fn watch(&self, what: &str) -> Watch {
        Watch::new(what, self.options.meter.clone(), self.output.talks())
    }

    /// Whether the command is about a repository.
    pub(crate) fn is_repo(&self) -> bool {
        self.versions() == Versions::Commits
    }

    /// The versions of the place the command is about; a repository's until its format is known.
    fn versions(&self) -> Versions {
        self.format.get().map_or(Versions::Commits, |format| format.versions())
    }

    /// A bar that counts to `bytes`.
    pub(crate) fn progress(&self, what: &str, bytes: u64) -> Progress {
        Progress::new(what, bytes, self.output.talks())
    }
}
