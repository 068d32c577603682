//! `chunkyard attrs`: the attributes of an array or a group of any format.

use anyhow::Result;
use chunkyard_array::Attributes;
use chunkyard_engine::format::container::ContainerEditor;
use chunkyard_engine::format::container::mapping::{attribute_json, name_of};
use chunkyard_engine::format::{Edit, Node, OpenOptions, Version};
use chunkyard_engine::{Error, Noun};
use clap::Args;
use serde_json::{Map, Value, json};

use super::af;
use crate::args::{ChangeArgs, VersionArgs};
use crate::attributes::AttributeArgs;
use crate::change::{Changing, New, Subject};
use crate::context::Context;
use crate::spelling::{Found, Spelling, is_container};

/// Print or change attributes
///
/// Without --set and --unset prints them as JSON, of any format and any version. Other attributes keep
/// their value. NaN, Infinity and -Infinity, which JSON does not have, may be set as Python writes them;
/// they print as text. In a container a new value is Int64, Float64, String or Bool, unless --type says
/// otherwise; null, lists and objects are kept as text.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  chunkyard attrs sea.nc /t
  chunkyard attrs sea.zarr /t --set units=K --set 'valid=[0, 330]' --unset note
  chunkyard attrs weather /t --set '{\"units\": \"K\"}' -m 'name the units'
  chunkyard attrs buoys.af /t --set valid_min=-5 --type Int8
  chunkyard attrs buoys.af /t --types")]
pub(crate) struct Attrs {
    /// The place
    url: String,

    /// The array or group; / is the root
    #[arg(default_value = "/")]
    path: String,

    #[command(flatten)]
    attributes: AttributeArgs,

    /// Print each with its type and its stored form, of a container
    #[arg(long, conflicts_with_all = ["set", "unset"])]
    types: bool,

    #[command(flatten)]
    version: VersionArgs,

    #[command(flatten)]
    change: ChangeArgs,
}

impl Attrs {
    pub(crate) async fn run(&self, spelling: Spelling, context: &Context) -> Result<()> {
        let path = spelling.path(&self.path)?;
        if !self.attributes.any() {
            return self.print(spelling, &path, context).await;
        }
        let branch = self.version.branch_to_change()?;
        let subject = Subject { spelling, url: &self.url, path: &path, edit: Edit::Attributes };
        change(subject, branch, &self.attributes, &self.change, context).await
    }

    async fn print(&self, spelling: Spelling, path: &str, context: &Context) -> Result<()> {
        if self.change.any() {
            let what = "--message, --rebase and --amend are for --set and --unset";
            return Err(Error::invalid(what).into());
        }
        let found = spelling.find(&self.url, false, context).await?;
        let format = found.1;
        if !is_container(format) {
            if self.types {
                let what = format!("--types is for containers, and {} is", self.url);
                return Err(Error::invalid(format!("{what} {}", format.name())).into());
            }
            let version = self.version.of_any(format, &self.url, context).await?;
            return context.output.document(&read(found, version, path, context).await?);
        }
        let at = self.version.layer(&self.url, context).await?;
        let container = af::readable(&self.url, at, context).await?;
        let mixed = container.mixed(name_of(path)).await?;
        mixed.iter().for_each(|mixed| context.output.warn(mixed));
        let editor = ContainerEditor::new(container);
        if !self.types {
            return context.output.document(&editor.attributes(path).await?);
        }
        let stored = editor.typed_attributes(path).await?;
        let typed = stored.iter().map(|(key, value)| {
            (key.clone(), json!({"type": value.type_word(), "value": attribute_json(value)}))
        });
        context.output.document(&typed.collect::<Map<String, Value>>())
    }
}

/// Changes attributes, commits and reports.
pub(super) async fn change(
    subject: Subject<'_>,
    branch: Option<&str>,
    attributes: &AttributeArgs,
    args: &ChangeArgs,
    context: &Context,
) -> Result<()> {
    let changing = Changing::begin(subject, branch, args, New::default(), context).await?;
    let changed = attributes.change(&changing, subject.path).await;
    changing.end(changed, &format!("change the attributes of {}", subject.path)).await
}

/// The attributes of a node as its document has them, at any version.
pub(super) async fn read(
    (place, format, options): Found,
    version: Option<Version>,
    path: &str,
    context: &Context,
) -> Result<Attributes> {
    let source = context.open_source(&place, format, &OpenOptions { version, ..options }).await?;
    match source.dataset().nodes.get(path) {
        Some(Node::Array(array)) => Ok(array.spec.attributes().clone()),
        Some(Node::Group(group)) => Ok(group.attributes().clone()),
        None => Err(Error::NotFound { what: Noun::Node, name: path.to_owned() }.into()),
    }
}
