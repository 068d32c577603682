//! `chunkyard af set`: writes a NumPy or JSON file into an array, or a region of one, as one layer.

use std::path::PathBuf;

use anyhow::Result;
use chunkyard_array::Region;
use chunkyard_engine::Error;
use chunkyard_engine::format::container::{ContainerArray, ContainerEditor, mapping};
use clap::Args;

use super::{CodecArgs, define, elements};
use crate::args::NewArrayArgs;
use crate::context::Context;
use crate::npy::Reader;
use crate::transfer;

/// Write a NumPy file, or a file of JSON, into an array, or into a region of one
///
/// A new name becomes an array of the file's shape and type. For an existing array the file must
/// have its type, and the shape of the array or of the region. The change is one more layer.
///
/// A file of JSON ends in .json and holds lists within lists, one for each dimension: numbers, strings,
/// bytes in base64, times such as "2026-01-31T12:00:00Z", or lists. A new array needs --dtype.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  chunkyard af set buoys.af north/temperature day.npy --chunks 250,250 --codec zstd:9
  chunkyard af set buoys.af north/temperature fix.npy --region 0:10,5:20
  chunkyard af set buoys.af names names.json --dtype string
  chunkyard af set buoys.af readings readings.json --dtype 'list<float32>'")]
pub(crate) struct Set {
    /// The container
    file: String,

    /// The array, such as north/temperature
    name: String,

    /// A .npy or .json file, or - for .npy on standard input
    input: PathBuf,

    /// The type of a new array from a .json file, as `af define` takes it
    #[arg(long, value_name = "TYPE")]
    dtype: Option<String>,

    /// Write only this region: start:end per dimension, negative from the end
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
        if elements::is_json(&self.input) {
            self.set_json(&editor).await?;
            let done = format!("set {}", super::name(&self.name));
            return super::flush(&editor, &done, context).await;
        }
        if self.dtype.is_some() {
            let what = "--dtype is for .json files: a .npy file says what it holds";
            return Err(Error::invalid(what).into());
        }
        let reader = transfer::open(&self.input).await?;
        let (array, region) = self.target(&editor, &reader).await?;
        transfer::write(&array.writer()?, &region, reader, context).await?;
        super::flush(&editor, &format!("set {}", super::name(&self.name)), context).await
    }

    /// Writes the elements of a JSON file.
    async fn set_json(&self, editor: &ContainerEditor) -> Result<()> {
        let (name, value) = (super::name(&self.name), elements::read(&self.input).await?);
        let array = match editor.container().array(name).await {
            Err(Error::NotFound { .. }) if self.region.is_none() => {
                let Some(typed) = &self.dtype else {
                    let what = format!("{name} is new: say with --dtype of what type it is");
                    return Err(Error::invalid(what).into());
                };
                let dtype = mapping::parse_type(typed)?;
                let rank = elements::rank_of(&value, &dtype)?;
                let (shape, _) = elements::flatten(&value, rank)?;
                define::create(editor, &self.name, typed, &shape, &self.new).await?;
                editor.array(&self.name).await?
            }
            Err(Error::NotFound { .. }) => {
                let advice = "; without --region the file would become one";
                return Err(super::no_array(&self.name, advice));
            }
            Ok(_) if self.new.any() || self.dtype.is_some() => return Err(self.given().into()),
            other => other?,
        };
        let shape = array.node()?.spec.shape();
        let region = transfer::region(self.region.as_deref(), shape)?;
        let (found, items) = elements::flatten(&value, region.shape().len())?;
        if found != region.shape() {
            return Err(Error::invalid(format!(
                "{name} takes {:?} elements here, the file has {found:?}",
                region.shape()
            ))
            .into());
        }
        let leaf = elements::leaf_of(&array.described().meta.dtype);
        let found = elements::elements_of(leaf, &items)?;
        Ok(array.writer()?.write_elements(&region, found).await?)
    }

    fn given(&self) -> Error {
        let name = super::name(&self.name);
        Error::invalid(format!(
            "{name} exists: its type, chunks, fill value and dimension names are given"
        ))
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
            return Err(self.given().into());
        }
        let spec = &array.node()?.spec;
        let has = (&spec.dtype()?, spec.shape());
        let region = transfer::target_region(name, has, self.region.as_deref(), header)?;
        Ok((array, region))
    }
}
