//! `chunkyard set`: a file becomes an array, or a region of one, of any format that can change.

use std::path::PathBuf;

use anyhow::Result;
use chunkyard_array::{ArrayBuilder, ArraySpec, DType, ElementsBuf, Region, codec};
use chunkyard_engine::format::container::{mapping, model};
use chunkyard_engine::format::{ArrayNode, Edit, Node};
use chunkyard_engine::{Error, Noun};
use clap::Args;
use serde_json::{Value, json};

use super::af;
use crate::args::{CommitArgs, NewArrayArgs};
use crate::change::{Changing, New, Subject};
use crate::context::Context;
use crate::elements;
use crate::npy::Reader;
use crate::spelling::Spelling;
use crate::transfer;

/// Write a NumPy file into an array, or into a region of one
///
/// A new path becomes an array of the file's shape and type. For an existing array the file must have
/// its type, and the shape of the array or of the region. In a repository and a container the change
/// is one step, a commit or a layer; in plain Zarr each chunk is one, so that a command that is killed
/// leaves some chunks changed.
///
/// A file of JSON ends in .json and holds lists within lists, one for each dimension: numbers, strings,
/// bytes in base64, in a container also times such as "2026-01-31T12:00:00Z" and lists. A new array
/// needs --dtype.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  chunkyard set sea.zarr /t day.npy --chunks 250,250 --codec zstd:3
  chunkyard set sea.zarr /t fix.npy --region 0:10,5:20
  chunkyard set new.zarr /t day.npy --create
  chunkyard set weather /t day.npy -m 'first day'
  chunkyard set buoys.af /names names.json --dtype string
  chunkyard set buoys.af /readings readings.json --dtype 'list<float32>'
  chunkyard set field.blz / fix.npy --region 10:20,:,:        the array is the root")]
pub(crate) struct Set {
    /// The place
    url: String,

    /// The array, such as /ocean/temperature
    path: String,

    /// A .npy or .json file, or - for .npy on standard input
    file: PathBuf,

    /// The type of a new array from a .json file, as `chunkyard af define` takes it
    #[arg(long, value_name = "TYPE")]
    dtype: Option<String>,

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

    #[command(flatten)]
    commit: CommitArgs,
}

/// What is written.
enum Input {
    Npy(Reader),
    Json(Value),
}

/// Where it is written.
struct Target {
    region: Region,
    /// Whether the array was created for it.
    is_new: bool,
}

impl Set {
    pub(crate) async fn run(&self, spelling: Spelling, context: &Context) -> Result<()> {
        let path = spelling.path(&self.path)?;
        let input = self.input().await?;
        let subject = Subject { spelling, url: &self.url, path: &path, edit: Edit::Write };
        let new = New { create: self.create, codec: self.codec.as_deref() };
        let CommitArgs { branch, change } = &self.commit;
        let changing = Changing::begin(subject, branch.as_deref(), change, new, context).await?;
        let written = self.write(&changing, &path, input, context).await;
        let done = match &self.region {
            Some(region) => format!("set {path} at {region}"),
            None => format!("set {path}"),
        };
        changing.end(written, &done).await
    }

    async fn input(&self) -> Result<Input> {
        if elements::is_json(&self.file) {
            return Ok(Input::Json(elements::read(&self.file).await?));
        }
        if self.dtype.is_some() {
            let what = "--dtype is for .json files: a .npy file says what it holds";
            return Err(Error::invalid(what).into());
        }
        Ok(Input::Npy(transfer::open(&self.file).await?))
    }

    /// Writes the file. A new array that could not be filled is taken away again.
    async fn write(
        &self,
        changing: &Changing<'_>,
        path: &str,
        input: Input,
        context: &Context,
    ) -> Result<Value> {
        let Target { region, is_new } = self.target(changing, path, &input).await?;
        let written = async {
            match input {
                Input::Npy(reader) => {
                    let bytes = region.num_bytes(reader.item_size())? as u64;
                    let writer = changing.writer(path).await?;
                    transfer::write(&writer, &region, reader, context).await?;
                    Ok(bytes)
                }
                Input::Json(value) => write_json(changing, path, &region, &value).await,
            }
        };
        let bytes = match written.await {
            Ok(bytes) => bytes,
            Err(error) => {
                if is_new && let Err(left) = changing.editor.remove(path).await {
                    context.output.warn(&format!("{path} is incomplete, and stays: {left}"));
                }
                return Err(error);
            }
        };
        Ok(json!({
            "path": path,
            "region": region.to_string(),
            "shape": region.shape(),
            "bytes": bytes,
            "created": is_new,
        }))
    }

    /// The region to write, of an array that is created or checked.
    async fn target(&self, changing: &Changing<'_>, path: &str, input: &Input) -> Result<Target> {
        let typed = self.region.as_deref();
        let array = match (changing.node(path).await?, typed) {
            (None, None) => {
                if !changing.format.edits().contains(&Edit::Create) {
                    return Err(Edit::Create.refused(path, changing.format).into());
                }
                let region = self.create(changing, path, input).await?;
                return Ok(Target { region, is_new: true });
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
        if self.new.any() || self.dtype.is_some() || (self.codec.is_some() && !packs) {
            return Err(Error::invalid(format!(
                "{path} exists: its type, chunks, codecs, fill value and dimension names are given"
            ))
            .into());
        }
        let (dtype, shape) = (array.spec.dtype()?, array.spec.shape());
        let region = match input {
            Input::Npy(reader) => {
                transfer::target_region(path, (&dtype, shape), typed, reader.header())?
            }
            Input::Json(_) => transfer::region(typed, shape)?,
        };
        Ok(Target { region, is_new: false })
    }

    /// Creates the array. Gives all of it.
    async fn create(&self, changing: &Changing<'_>, path: &str, input: &Input) -> Result<Region> {
        match input {
            Input::Npy(reader) => {
                let header = reader.header();
                let dtype = serde_json::to_value(header.dtype.metadata())?;
                let builder = self.new.builder(&header.shape, dtype, reader.item_size())?;
                let spec = self.spec(changing, builder, &header.dtype)?;
                changing.editor.create_array(path, &spec).await?;
                Ok(Region::whole(&header.shape))
            }
            Input::Json(value) => {
                let Some(typed) = &self.dtype else {
                    let what = format!("{path} is new: say with --dtype of what type it is");
                    return Err(Error::invalid(what).into());
                };
                let (known, wanted) = (mapping::parse_type(typed)?, af::Wanted::parse(typed)?);
                let rank = elements::rank_of(value, &known)?;
                let (shape, _) = elements::flatten(value, rank)?;
                if let Some(container) = &changing.container {
                    wanted.create(container, path, &shape, &self.new).await?;
                    // Lists of fixed size are further dimensions.
                    return Ok(Region::whole(changing.editor.array(path).await?.spec.shape()));
                }
                if is_list(&known) {
                    let format = changing.format.name();
                    let what = format!("{path}: elements of {typed} in {format}; containers have");
                    return Err(Error::unsupported(format!("{what} lists")).into());
                }
                let builder = wanted.builder(&shape, &self.new)?;
                let dtype = builder.clone().build()?.dtype()?;
                let spec = self.spec(changing, builder, &dtype)?;
                changing.editor.create_array(path, &spec).await?;
                Ok(Region::whole(&shape))
            }
        }
    }

    /// The specification of a new array, with the codecs that were asked for.
    fn spec(
        &self,
        changing: &Changing<'_>,
        mut builder: ArrayBuilder,
        dtype: &DType,
    ) -> Result<ArraySpec> {
        if let Some(codec) = self.codec.as_deref().filter(|_| !changing.format.packs_arrays_alike())
        {
            builder = builder.codecs(codec::parse_shorthand(codec, dtype)?);
        }
        Ok(builder.build()?)
    }
}

/// Writes the elements of a JSON file, and counts their bytes.
async fn write_json(
    changing: &Changing<'_>,
    path: &str,
    region: &Region,
    value: &Value,
) -> Result<u64> {
    let (found, items) = elements::flatten(value, region.shape().len())?;
    if found != region.shape() {
        return Err(Error::invalid(format!(
            "{path} takes {:?} elements here, the file has {found:?}",
            region.shape()
        ))
        .into());
    }
    let leaf = match &changing.container {
        Some(container) => {
            let array = container.container().array(mapping::name_of(path)).await?;
            elements::leaf_of_container(&array)
        }
        None => {
            let array: &ArrayNode = &*changing.editor.array(path).await?;
            elements::leaf_of(&array.spec.dtype()?)?
        }
    };
    let written = elements::elements_of(&leaf, &items)?;
    let bytes = match &written {
        ElementsBuf::Fixed(bytes) | ElementsBuf::Variable { bytes, .. } => bytes.len() as u64,
    };
    changing.writer(path).await?.write_elements(region, written).await?;
    Ok(bytes)
}

fn is_list(dtype: &model::DType) -> bool {
    matches!(dtype, model::DType::List { .. } | model::DType::FixedSizeList { .. })
}
