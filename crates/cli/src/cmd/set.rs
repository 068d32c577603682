//! `chunkyard set`: a NumPy file becomes an array, or a region of one, of any format that can change.

use std::path::PathBuf;

use anyhow::Result;
use chunkyard_array::{ArraySpec, Region, codec};
use chunkyard_engine::format::{Edit, Node, normalise_path};
use chunkyard_engine::{Error, Noun};
use clap::Args;
use serde_json::{Value, json};

use crate::args::{ChangeArgs, NewArrayArgs};
use crate::change::{Changing, New, Subject};
use crate::context::Context;
use crate::npy::{Header, Reader};
use crate::transfer;

/// Write a NumPy file into an array, or into a region of one
///
/// A new path becomes an array of the file's shape and type. For an existing array the file must have
/// its type, and the shape of the array or of the region. In a repository and a container the change
/// is one step, a commit or a layer; in plain Zarr each chunk is one, so that a command that is killed
/// leaves some chunks changed.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  chunkyard set sea.zarr /t day.npy --chunks 250,250 --codec zstd:3
  chunkyard set sea.zarr /t fix.npy --region 0:10,5:20
  chunkyard set new.zarr /t day.npy --create
  chunkyard set weather /t day.npy -m 'first day'
  chunkyard set field.blz / fix.npy --region 10:20,:,:        the array is the root")]
pub(crate) struct Set {
    /// The place
    url: String,

    /// The array, such as /ocean/temperature
    path: String,

    /// A .npy file, or - for standard input
    file: PathBuf,

    /// Write only this region: start:end per dimension, negative from the end
    #[arg(long, value_name = "REGION", allow_hyphen_values = true)]
    region: Option<String>,

    /// Codecs of a new array: none, zstd:3, gzip:5, blosc:lz4:5:shuffle, zstd:3+crc32c; in a container
    /// of all that is written: none, lz4, zstd:3
    #[arg(long, value_name = "CODEC")]
    codec: Option<String>,

    #[command(flatten)]
    new: NewArrayArgs,

    /// If there is nothing at the place, create a dataset of the format that its name ends with
    #[arg(long)]
    create: bool,

    /// Commit to this branch of a repository instead of the default one
    #[arg(long, value_name = "NAME")]
    branch: Option<String>,

    #[command(flatten)]
    change: ChangeArgs,
}

impl Set {
    pub(crate) async fn run(&self, context: &Context) -> Result<()> {
        let path = normalise_path(&self.path)?;
        let reader = transfer::open(&self.file).await?;
        let subject = Subject { url: &self.url, path: &path, edit: Edit::Write };
        let new = New { create: self.create, codec: self.codec.as_deref() };
        let branch = self.branch.clone();
        let changing = Changing::begin(subject, branch, &self.change, new, context).await?;
        let written = self.write(&changing, &path, reader, context).await;
        let done = match &self.region {
            Some(region) => format!("set {path} at {region}"),
            None => format!("set {path}"),
        };
        changing.end(written, &done).await
    }

    /// Writes the file. A new array that could not be filled is taken away again.
    async fn write(
        &self,
        changing: &Changing<'_>,
        path: &str,
        reader: Reader,
        context: &Context,
    ) -> Result<Value> {
        let editor = &changing.editor;
        let (region, is_new) = self.target(changing, path, &reader).await?;
        let bytes = region.num_bytes(reader.item_size())? as u64;
        let written = async {
            let writer = editor.writer(path).await?;
            transfer::write(&writer, &region, reader, context).await
        };
        if let Err(error) = written.await {
            if is_new && let Err(left) = editor.remove(path).await {
                context.output.warn(&format!("{path} is incomplete, and stays: {left}"));
            }
            return Err(error);
        }
        Ok(json!({
            "path": path,
            "region": region.to_string(),
            "shape": region.shape(),
            "bytes": bytes,
            "created": is_new,
        }))
    }

    /// The region to write, of an array that is created or checked; and whether it is new.
    async fn target(
        &self,
        changing: &Changing<'_>,
        path: &str,
        reader: &Reader,
    ) -> Result<(Region, bool)> {
        let (editor, header) = (&changing.editor, reader.header());
        let typed = self.region.as_deref();
        let array = match (editor.node(path).await?, typed) {
            (None, None) => {
                if !changing.format.edits().contains(&Edit::Create) {
                    return Err(Edit::Create.refused(path, changing.format).into());
                }
                let spec = self.spec(changing, header, reader.item_size())?;
                editor.create_array(path, &spec).await?;
                return Ok((Region::whole(&header.shape), true));
            }
            (None, Some(_)) => {
                let name = format!("{path}; without --region the file would become one");
                return Err(Error::NotFound { what: Noun::Array, name }.into());
            }
            (Some(Node::Group(_)), _) => {
                let name = format!("{path} (it is a group)");
                return Err(Error::NotFound { what: Noun::Array, name }.into());
            }
            (Some(Node::Array(array)), _) => array,
        };
        let packs = changing.format.packs_arrays_alike();
        if self.new.any() || (self.codec.is_some() && !packs) {
            return Err(Error::invalid(format!(
                "{path} exists: its chunks, codecs, fill value and dimension names are given"
            ))
            .into());
        }
        let has = (&array.spec.dtype()?, array.spec.shape());
        Ok((transfer::target_region(path, has, typed, header)?, false))
    }

    /// The specification of a new array.
    fn spec(
        &self,
        changing: &Changing<'_>,
        header: &Header,
        item_size: usize,
    ) -> Result<ArraySpec> {
        let dtype = serde_json::to_value(header.dtype.metadata())?;
        let mut builder = self.new.builder(&header.shape, dtype, item_size)?;
        if let Some(codec) = self.codec.as_deref().filter(|_| !changing.format.packs_arrays_alike())
        {
            builder = builder.codecs(codec::parse_shorthand(codec, &header.dtype)?);
        }
        Ok(builder.build()?)
    }
}
