//! A dataset of any format that a command changes: opened, committed, reported.

use std::sync::Arc;

use anyhow::Result;
use chunkyard_engine::Error;
use chunkyard_engine::format::container::{ContainerEditor, mapping, parse_packing};
use chunkyard_engine::format::{
    Committed, Edit, EditOptions, Editor, Format, Node, Place, Versions, Writer,
};
use chunkyard_engine::repo::{Repository, Version};
use serde_json::{Map, Value, json};

use crate::args::ChangeArgs;
use crate::context::Context;
use crate::spelling::{Spelling, is_container};
use crate::tip::Tip;
use crate::units::{short, size};

/// What a command is about to change.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Subject<'a> {
    /// How the command was typed.
    pub(crate) spelling: Spelling,
    /// The place, as it was typed.
    pub(crate) url: &'a str,
    /// The node, see [`Spelling::path`].
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
    /// The same, if it is a container: for lists, typed attributes, and names that are no paths.
    pub(crate) container: Option<Arc<ContainerEditor>>,
    /// The same, if it is a branch whose commit is more than an editor's.
    pub(crate) tip: Option<Arc<Tip>>,
    pub(crate) format: &'static dyn Format,
    subject: Subject<'a>,
    message: Option<&'a str>,
    context: &'a Context,
}

impl<'a> Changing<'a> {
    /// Opens a dataset. Refuses what its format cannot do before anything changes.
    pub(crate) async fn begin(
        subject: Subject<'a>,
        branch: Option<&str>,
        args: &'a ChangeArgs,
        new: New<'_>,
        context: &'a Context,
    ) -> Result<Self> {
        let Subject { spelling, url, path, edit } = subject;
        let (place, format, open) = spelling.find(url, new.create, context).await?;
        if !format.edits().contains(&edit) {
            return Err(edit.refused(path, format).into());
        }
        if (branch.is_some() || args.any()) && format.versions() != Versions::Commits {
            let what = "--branch, --message, --rebase and --amend are for repositories";
            return Err(Error::invalid(format!("{what}, and {url} is {}", format.name())).into());
        }
        let packing = new.codec.filter(|_| format.packs_arrays_alike());
        if let Some(packing) = packing {
            // A word that the caller typed, not a codec that a file needs.
            parse_packing(packing).map_err(|error| Error::invalid(error.to_string()))?;
        }
        let options = EditOptions {
            open,
            branch: branch.map(str::to_owned),
            rebase: args.rebase,
            create: new.create,
            packing: packing.map(str::to_owned),
        };
        let (mut container, mut tip) = (None, None);
        let editor: Arc<dyn Editor> = if is_container(format) {
            let opened = Arc::new(ContainerEditor::open(&place, &options).await?);
            container.insert(opened).clone()
        } else if spelling == Spelling::Repo || args.amend {
            tip.insert(Arc::new(tip_of(&place, format, &options, args, context).await?)).clone()
        } else {
            format.edit(&place, &options).await?
        };
        editor.cautions().iter().for_each(|caution| context.output.warn(caution));
        let message = args.message.as_deref();
        Ok(Self { editor, container, tip, format, subject, message, context })
    }

    /// The node at a path; `None` if there is none.
    pub(crate) async fn node(&self, path: &str) -> Result<Option<Node>> {
        if let Some(container) = &self.container {
            match container.container().array(mapping::name_of(path)).await {
                Ok(array) => return Ok(Some(Node::Array(array.node()?.clone()))),
                Err(Error::NotFound { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(self.editor.node(path).await?)
    }

    /// Writes an array.
    pub(crate) async fn writer(&self, path: &str) -> Result<Writer> {
        match &self.container {
            Some(container) => {
                Ok(container.container().array(mapping::name_of(path)).await?.writer()?)
            }
            None => Ok(self.editor.writer(path).await?),
        }
    }

    /// Changes the shape of an array. The older spelling for containers counts the dimensions of lists
    /// to the type, as a container does.
    pub(crate) async fn resize(&self, path: &str, shape: &[u64]) -> Result<()> {
        match (&self.container, self.subject.spelling) {
            (Some(container), Spelling::Af) => {
                Ok(container.container().resize(path, shape).await?)
            }
            _ => Ok(self.editor.resize(path, shape).await?),
        }
    }

    /// Removes an array, or a group and everything below it.
    pub(crate) async fn remove(&self, path: &str) -> Result<()> {
        if let Some(container) = &self.container {
            // Try the name as it is first: it need not be a path.
            match container.container().delete(mapping::name_of(path)).await {
                Err(Error::NotFound { .. }) => {}
                done => return Ok(done?),
            }
        }
        Ok(self.editor.remove(path).await?)
    }

    /// The error for an option that only a container has a meaning for.
    pub(crate) fn not_a_container(&self, option: &str) -> Error {
        let (url, format) = (self.subject.url, self.format.name());
        Error::invalid(format!("{option} is for containers, and {url} is {format}"))
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
        let mut document = Map::new();
        document.insert("format".into(), self.format.name().into());
        document.extend(object(facts));
        let (of_spelling, text) = match &self.container {
            Some(container) if self.subject.spelling == Spelling::Af => {
                self.flush(container, done).await?
            }
            _ => self.commit(done).await?,
        };
        document.extend(object(of_spelling));
        self.context.output.done(&document, || text)
    }

    /// Commits. Gives what the document says about it, and the text.
    async fn commit(&self, done: &str) -> Result<(Value, String)> {
        let message = self.message.unwrap_or(done);
        let Committed { version, cautions } = self.editor.commit(Some(message)).await?;
        cautions.iter().for_each(|caution| self.context.output.warn(caution));
        let version = version.as_ref().map(name_of);
        let committed = self.tip.as_ref().and_then(|tip| Some((tip, tip.committed()?)));
        if let Some((tip, snapshot)) = committed
            && self.subject.spelling == Spelling::Repo
        {
            let mut document = object(serde_json::to_value(snapshot)?);
            document.insert("snapshot".into(), version.into());
            return Ok((document.into(), tip.describe(snapshot)));
        }
        let step = version.as_deref().map(|version| match self.format.versions() {
            Versions::Layers => format!("; layer {version}"),
            _ => format!("; snapshot {}", short(version)),
        });
        let text = format!("{}: {done}{}", self.subject.url, step.unwrap_or_default());
        Ok((json!({"snapshot": version}), text))
    }

    /// The same for the older spelling for containers, which tells the size of the layer.
    async fn flush(&self, container: &ContainerEditor, done: &str) -> Result<(Value, String)> {
        let Some(flushed) = container.container().flush().await? else {
            return Ok((json!({"layer": null, "snapshot": null}), "nothing to change".to_owned()));
        };
        if let Some(note) = &flushed.note {
            self.context.output.warn(note);
        }
        let (layer, bytes) = (flushed.layer, flushed.bytes);
        let document = json!({"layer": layer, "bytes": bytes, "snapshot": layer.to_string()});
        Ok((document, format!("{done}: layer {layer} ({})", size(bytes))))
    }
}

/// The tip of a branch, for the repository at a place.
async fn tip_of(
    place: &Place,
    format: &dyn Format,
    options: &EditOptions,
    args: &ChangeArgs,
    context: &Context,
) -> Result<Tip> {
    if options.create {
        // Creates the repository if there is none.
        format.edit(place, options).await?;
    }
    let repo = Repository::open_in(place.directory().clone(), context.options()).await?;
    Tip::open(&repo, options.branch.as_deref(), args).await
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(object) => object,
        _ => Map::new(),
    }
}

/// The id of a snapshot, or the number of a layer: what `--snapshot` takes.
pub(crate) fn name_of(version: &Version) -> String {
    match version {
        Version::Snapshot(id) => id.clone(),
        other => other.to_string(),
    }
}
