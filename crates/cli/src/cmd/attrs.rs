//! `chunkyard attrs`: the attributes of an array or a group of any format.

use anyhow::Result;
use chunkyard_array::Attributes;
use chunkyard_engine::format::{Edit, Node, normalise_path};
use chunkyard_engine::store::Limits;
use chunkyard_engine::{Error, Noun};
use clap::Args;
use serde_json::{Value, json};

use crate::args::{ChangeArgs, VersionArgs, attribute_value};
use crate::change::{Changing, New, Subject};
use crate::context::Context;
use crate::units::parse_pair;

/// Print or change attributes
///
/// Without --set and --unset prints them as JSON, of any format and any version. Other attributes keep
/// their value. NaN, Infinity and -Infinity, which JSON does not have, may be set as Python writes them;
/// they print as text.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  chunkyard attrs sea.nc /t
  chunkyard attrs sea.zarr /t --set units=K --set 'valid=[0, 330]' --unset note
  chunkyard attrs weather /t --set units=K -m 'name the units'")]
pub(crate) struct Attrs {
    /// The place
    url: String,

    /// The array or group; / is the root
    #[arg(default_value = "/")]
    path: String,

    /// An attribute to set, its value as JSON or plain text; may be repeated
    #[arg(long, value_name = "KEY=VALUE", value_parser = parse_pair)]
    set: Vec<(String, String)>,

    /// An attribute to remove; may be repeated
    #[arg(long, value_name = "KEY")]
    unset: Vec<String>,

    #[command(flatten)]
    version: VersionArgs,

    #[command(flatten)]
    change: ChangeArgs,
}

impl Attrs {
    pub(crate) async fn run(&self, context: &Context) -> Result<()> {
        let path = normalise_path(&self.path)?;
        if self.set.is_empty() && self.unset.is_empty() {
            return self.print(&path, context).await;
        }
        let subject = Subject { url: &self.url, path: &path, edit: Edit::Attributes };
        let (branch, new) = (self.version.branch_to_change()?, New::default());
        let changing = Changing::begin(subject, branch, &self.change, new, context).await?;
        let changed = async {
            let attributes = self.changed(changing.editor.attributes(&path).await?)?;
            changing.editor.set_attributes(&path, attributes).await?;
            Ok(json!({"path": path, "set": self.set.len(), "unset": self.unset.len()}))
        };
        let changed: Result<Value> = changed.await;
        changing.end(changed, &format!("change the attributes of {path}")).await
    }

    async fn print(&self, path: &str, context: &Context) -> Result<()> {
        if self.change.message.is_some() || self.change.rebase {
            let what = "--message and --rebase are for --set and --unset";
            return Err(Error::invalid(what).into());
        }
        let (place, format, mut options) = context.recognise(&self.url, Limits::default()).await?;
        options.version = self.version.of_any(format, &self.url, context).await?;
        let source = context.open_source(&place, format, &options).await?;
        match source.dataset().nodes.get(path) {
            Some(Node::Array(array)) => context.output.document(array.spec.attributes()),
            Some(Node::Group(group)) => context.output.document(group.attributes()),
            None => Err(Error::NotFound { what: Noun::Node, name: path.to_owned() }.into()),
        }
    }

    /// The attributes with the wished changes.
    fn changed(&self, mut attributes: Attributes) -> Result<Attributes> {
        for key in &self.unset {
            if attributes.shift_remove(key).is_none() {
                return Err(Error::NotFound { what: Noun::Attribute, name: key.clone() }.into());
            }
        }
        for (key, text) in &self.set {
            attributes.insert(key.clone(), attribute_value(text));
        }
        Ok(attributes)
    }
}
