//! `chunkyard blz attrs`: the attributes of a dataset, which has one set of them.

use anyhow::Result;
use chunkyard_engine::format::Edit;
use clap::Args;

use super::super::attrs;
use crate::args::ChangeArgs;
use crate::attributes::{AttributeArgs, missing};
use crate::change::Subject;
use crate::context::Context;
use crate::spelling::Spelling;

/// Print or change attributes
///
/// Without options prints all as JSON, or only the named one.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  chunkyard blz attrs ticks.blz
  chunkyard blz attrs ticks.blz exchange
  chunkyard blz attrs ticks.blz --set exchange=XETR --set scale=0.01 --unset note")]
pub(crate) struct Attrs {
    /// The dataset
    place: String,

    /// Print this one only
    #[arg(conflicts_with_all = ["set", "unset"])]
    key: Option<String>,

    #[command(flatten)]
    attributes: AttributeArgs,
}

impl Attrs {
    pub(crate) async fn run(&self, context: &Context) -> Result<()> {
        let spelling = Spelling::Blz;
        if self.attributes.any() {
            let (url, edit) = (&self.place, Edit::Attributes);
            let subject = Subject { spelling, url, path: "/", edit };
            let args = ChangeArgs::default();
            return attrs::change(subject, None, &self.attributes, &args, context).await;
        }
        let found = spelling.find(&self.place, false, context).await?;
        let all = attrs::read(found, None, "/", context).await?;
        match &self.key {
            Some(key) => context.output.document(all.get(key).ok_or_else(|| missing(key))?),
            None => context.output.document(&all),
        }
    }
}
