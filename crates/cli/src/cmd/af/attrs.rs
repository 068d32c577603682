//! `chunkyard af attrs`: the attributes of an array or a group.

use anyhow::Result;
use chunkyard_engine::Error;
use chunkyard_engine::format::container::ContainerEditor;
use clap::Args;

use super::LayerArgs;
use crate::args::attribute_value;
use crate::context::Context;
use crate::units::parse_pair;

/// Print or change attributes
///
/// Without options prints them as JSON.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  chunkyard af attrs buoys.af north/temperature
  chunkyard af attrs buoys.af north/temperature --set units=K --set offset=273.15 --remove note")]
pub(crate) struct Attrs {
    /// The container
    file: String,

    /// The array or group; / is the root
    name: String,

    /// An attribute to set, its value as JSON or plain text; may be repeated
    #[arg(long, value_name = "KEY=VALUE", value_parser = parse_pair, conflicts_with = "at")]
    set: Vec<(String, String)>,

    /// An attribute to remove; may be repeated
    #[arg(long, value_name = "KEY", conflicts_with = "at")]
    remove: Vec<String>,

    #[command(flatten)]
    layer: LayerArgs,
}

impl Attrs {
    pub(crate) async fn run(&self, context: &Context) -> Result<()> {
        if self.set.is_empty() && self.remove.is_empty() {
            let container = super::readable(&self.file, &self.layer, context).await?;
            let attributes = ContainerEditor::new(container).attributes(&self.name).await?;
            return context.output.document(&attributes);
        }
        let editor = super::writable(&self.file, None, context).await?;
        let mut attributes = editor.plain_attributes(&self.name).await?;
        for key in &self.remove {
            if attributes.shift_remove(key).is_none() {
                return Err(Error::NotFound { what: "attribute", name: key.clone() }.into());
            }
        }
        for (key, text) in &self.set {
            attributes.insert(key.clone(), attribute_value(text));
        }
        editor.set_attributes(&self.name, attributes).await?;
        super::flush(&editor, &format!("changed the attributes of {}", self.name), context).await
    }
}
