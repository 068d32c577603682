//! `chunkyard blz attrs`: the attributes of a dataset.

use anyhow::Result;
use chunkyard_array::non_finite;
use chunkyard_engine::{Error, Noun};
use clap::Args;
use serde_json::json;

use crate::args::attribute_value;
use crate::context::Context;
use crate::units::parse_pair;

/// Print or change attributes
///
/// Without options prints all as JSON, or only the named one.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  chunkyard blz attrs ticks.blz
  chunkyard blz attrs ticks.blz exchange
  chunkyard blz attrs ticks.blz --set exchange=XETR --set scale=0.01 --remove note")]
pub(crate) struct Attrs {
    /// The dataset
    place: String,

    /// Print this one only
    #[arg(conflicts_with_all = ["set", "remove"])]
    key: Option<String>,

    /// An attribute to set, its value as JSON or plain text; may be repeated
    #[arg(long, value_name = "KEY=VALUE", value_parser = parse_pair)]
    set: Vec<(String, String)>,

    /// An attribute to remove; may be repeated
    #[arg(long, value_name = "KEY")]
    remove: Vec<String>,
}

impl Attrs {
    pub(crate) async fn run(&self, context: &Context) -> Result<()> {
        let dataset = super::open(&self.place, context).await?;
        let mut attributes = dataset.attributes();
        let missing = |key: &str| Error::NotFound { what: Noun::Attribute, name: key.to_owned() };
        if self.set.is_empty() && self.remove.is_empty() {
            non_finite::seal(&mut attributes);
            return match &self.key {
                Some(key) => {
                    context.output.document(attributes.get(key).ok_or_else(|| missing(key))?)
                }
                None => context.output.document(&attributes),
            };
        }
        for key in &self.remove {
            attributes.shift_remove(key).ok_or_else(|| missing(key))?;
        }
        for (key, text) in &self.set {
            attributes.insert(key.clone(), attribute_value(text));
        }
        dataset.set_attributes(attributes).await?;
        let document = json!({"set": self.set.len(), "removed": self.remove.len()});
        context.output.done(&document, || format!("changed the attributes of {}", self.place))
    }
}
