//! `chunkyard af set`: a NumPy file becomes an array, or a region of one, in one layer.

use std::path::PathBuf;

use anyhow::Result;
use chunkyard_array::Region;
use chunkyard_engine::Error;
use chunkyard_engine::format::container::{ContainerArray, ContainerEditor};
use clap::Args;

use super::CodecArgs;
use crate::args::NewArrayArgs;
use crate::context::Context;
use crate::npy::Reader;
use crate::transfer;

/// Write a NumPy file into an array, or into a region of one
///
/// A new name becomes an array of the file's shape and type. For an existing array the file must
/// have its type, and its shape or that of the region. All of it is one more layer.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  chunkyard af set buoys.af north/temperature day.npy --chunks 250,250 --codec zstd:9
  chunkyard af set buoys.af north/temperature fix.npy --region 0:10,5:20")]
pub(crate) struct Set {
    /// The container
    file: String,

    /// The array, such as north/temperature
    name: String,

    /// A .npy file, or - for standard input
    input: PathBuf,

    /// Write here instead of everywhere: start:end per dimension, negative from the end
    #[arg(long, value_name = "REGION", allow_hyphen_values = true)]
    region: Option<String>,

    #[command(flatten)]
    new: NewArrayArgs,

    #[command(flatten)]
    codec: CodecArgs,
}

impl Set {
    pub(crate) async fn run(&self, context: &Context) -> Result<()> {
        let editor = super::writable(&self.file, self.codec.codec.as_ref(), context).await?;
        let reader = transfer::open(&self.input).await?;
        let (array, region) = self.target(&editor, &reader).await?;
        transfer::write(&array.writer()?, &region, reader, context).await?;
        super::flush(&editor, &format!("set {}", super::name(&self.name)), context).await
    }

    /// The array and the region to write, created or checked.
    async fn target(
        &self,
        editor: &ContainerEditor,
        reader: &Reader,
    ) -> Result<(ContainerArray, Region)> {
        let (name, header) = (super::name(&self.name), reader.header());
        let array = match editor.container().array(name).await {
            Ok(array) => array,
            Err(Error::NotFound { .. }) if self.region.is_none() => {
                let dtype = serde_json::to_value(header.dtype.metadata())?;
                let spec = self.new.builder(&header.shape, dtype, reader.item_size())?.build()?;
                editor.create_array(&self.name, &spec).await?;
                return Ok((editor.array(&self.name).await?, Region::whole(&header.shape)));
            }
            Err(Error::NotFound { .. }) => {
                let advice = "; without --region the file would become one";
                return Err(super::no_array(&self.name, advice));
            }
            Err(error) => return Err(error.into()),
        };
        if self.new.any() {
            return Err(Error::invalid(format!(
                "{name} exists: its chunks, fill value and dimension names are given"
            ))
            .into());
        }
        let spec = &array.node()?.spec;
        let has = (&spec.dtype()?, spec.shape());
        let region = transfer::target_region(name, has, self.region.as_deref(), header)?;
        Ok((array, region))
    }
}
