//! `chunkyard af ls`: the arrays of a container.

use anyhow::Result;
use chunkyard_engine::format::Source;
use chunkyard_engine::format::container::ContainerSource;
use clap::Args;

use super::LayerArgs;
use crate::cmd::facts::Facts;
use crate::context::Context;
use crate::output::columns;

/// List arrays: data type, shape, chunks, and how much is stored
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  chunkyard af ls buoys.af
  chunkyard af ls buoys.af --at 3")]
pub(crate) struct Ls {
    /// The container
    file: String,

    #[command(flatten)]
    layer: LayerArgs,
}

impl Ls {
    pub(crate) async fn run(&self, context: &Context) -> Result<()> {
        let container = super::readable(&self.file, self.layer.at, context).await?;
        let source = ContainerSource::new(container).await?;
        let mut arrays = Vec::new();
        for (path, node) in source.dataset().arrays() {
            let mut facts = Facts::of_any(&source, path, node).await?;
            facts.path = super::name(path).to_owned();
            arrays.push(facts);
        }
        for loss in &source.dataset().losses {
            context.output.warn(&format!("{} is not listed: {}", loss.name, loss.what));
        }
        let documents = arrays.iter().map(Facts::document).collect::<Result<Vec<_>>>()?;
        context
            .output
            .result(&documents, || columns(&arrays.iter().map(Facts::row).collect::<Vec<_>>()))
    }
}
