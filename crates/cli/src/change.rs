//! A dataset of any format that a command changes: opened, committed, reported.

use std::sync::Arc;

use anyhow::Result;
use chunkyard_engine::Error;
use chunkyard_engine::format::{
    self, Committed, Edit, EditOptions, Editor, Format, OpenOptions, Place, Versions,
};
use chunkyard_engine::open::format_of_target;
use chunkyard_engine::repo::Version;
use chunkyard_engine::store::Limits;
use serde_json::{Map, Value};

use crate::args::ChangeArgs;
use crate::context::Context;
use crate::units::short;

/// What a command is about to change.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Subject<'a> {
    /// The place, as it was typed.
    pub(crate) url: &'a str,
    /// The node, as it was typed.
    pub(crate) path: &'a str,
    /// The change.
    pub(crate) edit: Edit,
}

/// How a new dataset and new chunks are made.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct New<'a> {
    /// Create the dataset if there is none.
    pub(crate) create: bool,
    /// How chunks are packed, as it was typed.
    pub(crate) codec: Option<&'a str>,
}

/// A change under way.
pub(crate) struct Changing<'a> {
    pub(crate) editor: Arc<dyn Editor>,
    pub(crate) format: &'static dyn Format,
    url: &'a str,
    message: Option<&'a str>,
    context: &'a Context,
}

impl<'a> Changing<'a> {
    /// Opens a dataset. Refuses what its format cannot do before anything changes.
    pub(crate) async fn begin(
        subject: Subject<'a>,
        branch: Option<String>,
        args: &'a ChangeArgs,
        new: New<'_>,
        context: &'a Context,
    ) -> Result<Self> {
        let Subject { url, path, edit } = subject;
        let (place, format, open) = found(url, new.create, context).await?;
        if !format.edits().contains(&edit) {
            return Err(edit.refused(path, format).into());
        }
        let commits = branch.is_some() || args.message.is_some() || args.rebase;
        if commits && format.versions() != Versions::Commits {
            let what = "--branch, --message and --rebase are for repositories";
            return Err(Error::invalid(format!("{what}, and {url} is {}", format.name())).into());
        }
        let packing = new.codec.filter(|_| format.packs_arrays_alike()).map(str::to_owned);
        let options =
            EditOptions { open, branch, rebase: args.rebase, create: new.create, packing };
        let editor = format.edit(&place, &options).await?;
        editor.cautions().iter().for_each(|caution| context.output.warn(caution));
        Ok(Self { editor, format, url, message: args.message.as_deref(), context })
    }

    /// Commits what was changed and reports it, or takes it back if the change failed. `done` is the
    /// sentence about it, such as "set /t", which is also the message if the user gives none; `facts`
    /// go into the document.
    pub(crate) async fn end(self, changed: Result<Value>, done: &str) -> Result<()> {
        let facts = match changed {
            Ok(facts) => facts,
            Err(error) => {
                if let Err(left) = self.editor.discard().await {
                    self.context.output.warn(&format!("some of the change may be left: {left}"));
                }
                return Err(error);
            }
        };
        let message = self.message.unwrap_or(done);
        let Committed { version, cautions } = self.editor.commit(Some(message)).await?;
        cautions.iter().for_each(|caution| self.context.output.warn(caution));
        let mut document = Map::new();
        document.insert("format".into(), self.format.name().into());
        document.insert("snapshot".into(), version.as_ref().map(name_of).into());
        if let Value::Object(facts) = facts {
            document.extend(facts);
        }
        self.context.output.done(&document, || {
            let step = version.as_ref().map(|version| match self.format.versions() {
                Versions::Layers => format!("; layer {}", name_of(version)),
                _ => format!("; snapshot {}", short(&name_of(version))),
            });
            format!("{}: {done}{}", self.url, step.unwrap_or_default())
        })
    }
}

/// The dataset at a URL, and how it is opened.
async fn found(
    url: &str,
    create: bool,
    context: &Context,
) -> Result<(Place, &'static dyn Format, format::OpenOptions)> {
    if !create {
        return context.recognise(url, Limits::default()).await;
    }
    let store = context.store_options(Limits::default());
    let place = Place::new(url, &store)?;
    let format = format_of_target(&place).await?;
    context.about_format(url, format);
    Ok((place, format, OpenOptions { store, allowed: context.options().allowed, version: None }))
}

/// The id of a snapshot, or the number of a layer: what `--snapshot` takes.
pub(crate) fn name_of(version: &Version) -> String {
    match version {
        Version::Snapshot(id) => id.clone(),
        other => other.to_string(),
    }
}
