//! The spellings of a command: `chunkyard set`, and `chunkyard repo set`, `af set`, `blz set`.
//!
//! One code does the work of all. The older ones, which name a format, take what is there for that
//! format without a look, and add to the report what they have always told.

use anyhow::Result;
use chunkyard_engine::format::container::{ContainerFormat, mapping};
use chunkyard_engine::format::superchunk::BlzFormat;
use chunkyard_engine::format::{Format, OpenOptions, Place, normalise_path};
use chunkyard_engine::open::format_of_target;
use chunkyard_engine::repo::RepoFormat;
use chunkyard_engine::store::Limits;

use crate::context::Context;

/// The place of a dataset, its format, and how it is opened.
pub(crate) type Found = (Place, &'static dyn Format, OpenOptions);

/// How a command was typed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Spelling {
    /// For any format: `chunkyard set`.
    Any,
    /// For repositories: `chunkyard repo set`.
    Repo,
    /// For containers: `chunkyard af set`.
    Af,
    /// For BLZ: `chunkyard blz resize`.
    Blz,
}

impl Spelling {
    /// The format that it names.
    fn format(self) -> Option<&'static dyn Format> {
        match self {
            Self::Any => None,
            Self::Repo => Some(&RepoFormat),
            Self::Af => Some(&ContainerFormat),
            Self::Blz => Some(&BlzFormat),
        }
    }

    /// The path of a node as messages and the engine take it. In a container the name of an array need
    /// not be a path.
    pub(crate) fn path(self, typed: &str) -> Result<String> {
        match self {
            Self::Af => Ok(mapping::name_of(typed).to_owned()),
            _ => Ok(normalise_path(typed)?),
        }
    }

    /// The dataset at a URL, and how it is opened. With `create` there may be none yet.
    pub(crate) async fn find(self, url: &str, create: bool, context: &Context) -> Result<Found> {
        if self == Self::Any && !create {
            return context.recognise(url, Limits::default()).await;
        }
        if let Some(format) = self.format() {
            context.about_format(url, format);
        }
        let store = context.store_options(Limits::default());
        let place = Place::new(url, &store)?;
        let format = match self.format() {
            Some(format) => format,
            None => format_of_target(&place).await?,
        };
        context.about_format(url, format);
        let allowed = context.options().allowed;
        Ok((place, format, OpenOptions { store, allowed, ..OpenOptions::default() }))
    }
}

/// Whether a format is the one of containers, which can do more than others: lists, typed attributes.
pub(crate) fn is_container(format: &dyn Format) -> bool {
    format.name() == ContainerFormat.name()
}
