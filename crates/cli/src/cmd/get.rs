//! `chunkyard get`: any region of an array of any format, as a NumPy file or as JSON.

use std::path::PathBuf;

use anyhow::Result;
use chunkyard_array::{DType, Region};
use chunkyard_engine::Error;
use chunkyard_engine::format::container::{ContainerArray, ContainerSource, mapping};
use chunkyard_engine::format::{Format, OpenOptions, Reader, Source};
use clap::Args;
use serde_json::{Value, json};

use super::af;
use crate::args::VersionArgs;
use crate::change::name_of;
use crate::context::Context;
use crate::elements;
use crate::npy::Writer;
use crate::spelling::{Spelling, is_container};
use crate::transfer;
use crate::units::{count, shape, short, size};

/// Read an array of any format, or a region of one, into a NumPy file
///
/// The file appears when it is complete; a failed get leaves an older file as it is. Of a repository and
/// of a container any version can be read. JSON, for a file that ends in .json, also has strings and
/// bytes (base64), and the lists of a container; `-o - --json` prints what a .npy file cannot hold. Rows
/// of BLZ tables as CSV: `chunkyard blz get`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  chunkyard get sea.nc /temperature -o now.npy --region 0:10,5:20
  chunkyard get weather /t -o - --as-of '2026-01-31 12:00' | python3 plot.py
  chunkyard get buoys.af /names -o names.json --at 3
  chunkyard get field.blz -o field.npy                        the array is the root")]
pub(crate) struct Get {
    /// The place
    url: String,

    /// The array
    #[arg(default_value = "/")]
    path: String,

    /// The .npy or .json file to write, or - for standard output
    #[arg(long, short, value_name = "FILE")]
    output: PathBuf,

    /// Read only this region: start:end per dimension, negative from the end
    #[arg(long, value_name = "REGION", allow_hyphen_values = true)]
    region: Option<String>,

    #[command(flatten)]
    version: VersionArgs,
}

/// The array that is read.
struct Found {
    format: &'static dyn Format,
    /// Its version, where the format tells it.
    version: Option<String>,
    dtype: DType,
    extents: Vec<u64>,
    reader: Reader,
    /// The same, if it is in a container: its elements may be lists.
    container: Option<ContainerArray>,
}

impl Get {
    pub(crate) async fn run(&self, spelling: Spelling, context: &Context) -> Result<()> {
        let path = spelling.path(&self.path)?;
        let found = self.open(spelling, &path, context).await?;
        let region = transfer::region(self.region.as_deref(), &found.extents)?;
        let is_standard = self.output.as_os_str() == "-";
        let numpy = found.dtype.to_numpy().is_some();
        // A pipe that takes .npy gets it, --json or not, except from the older spelling for containers.
        let prints =
            is_standard && context.output.is_json() && (spelling == Spelling::Af || !numpy);
        let bytes = if elements::is_json(&self.output) || prints {
            self.write_json(&found, &region).await?;
            None
        } else if numpy {
            Some(self.write_npy(&found, &region, context).await?)
        } else {
            return Err(self.no_numpy(&path, &found).into());
        };
        if is_standard {
            // Standard output holds the data: no document may follow.
            return Ok(());
        }
        self.report(spelling, &path, &found, &region, bytes, context)
    }

    async fn open(&self, spelling: Spelling, path: &str, context: &Context) -> Result<Found> {
        if spelling == Spelling::Af {
            let (_, format, _) = spelling.find(&self.url, false, context).await?;
            let at = self.version.layer(&self.url, context).await?;
            let container = af::readable(&self.url, at, context).await?;
            return found(format, None, container.array(path).await?);
        }
        let (place, format, options) = spelling.find(&self.url, false, context).await?;
        let version = self.version.of_any(format, &self.url, context).await?;
        let options = OpenOptions { version, ..options };
        if is_container(format) {
            let source = ContainerSource::open(&place, &options).await?;
            source.cautions().iter().for_each(|caution| context.output.warn(caution));
            source.dataset().array(path)?;
            let array = source.container().array(mapping::name_of(path)).await?;
            return found(format, source.version().as_ref().map(name_of), array);
        }
        let source = context.open_source(&place, format, &options).await?;
        let spec = &source.dataset().array(path)?.spec;
        Ok(Found {
            format,
            version: source.version().as_ref().map(name_of),
            dtype: spec.dtype()?,
            extents: spec.shape().to_vec(),
            reader: Reader::new(&source, path)?,
            container: None,
        })
    }

    async fn write_npy(&self, found: &Found, region: &Region, context: &Context) -> Result<u64> {
        let bytes = region.num_bytes(found.reader.item_size()?)? as u64;
        let (writer, target) = Writer::create(&self.output, &found.dtype, region.shape())?;
        transfer::read(&found.reader, region, writer, context).await?;
        target.appear()?;
        Ok(bytes)
    }

    async fn write_json(&self, found: &Found, region: &Region) -> Result<()> {
        let leaf = match &found.container {
            Some(array) => elements::leaf_of_container(array),
            None => elements::leaf_of(&found.dtype)?,
        };
        let (writer, target) = Writer::begin(&self.output, b"")?;
        let writer = elements::write(&found.reader, &leaf, region, writer).await?;
        tokio::task::spawn_blocking(move || writer.finish()).await??;
        Ok(target.appear()?)
    }

    /// The error for elements that a .npy file cannot hold.
    fn no_numpy(&self, path: &str, found: &Found) -> Error {
        let way = match found.container.is_some() || elements::leaf_of(&found.dtype).is_ok() {
            true => "-o FILE.json takes them, and so does -o - --json".to_owned(),
            false => format!("Python reads them, with chunkyard.open({:?})", self.url),
        };
        Error::unsupported(format!("{path}: elements of {} in a .npy file; {way}", found.dtype))
    }

    fn report(
        &self,
        spelling: Spelling,
        path: &str,
        found: &Found,
        region: &Region,
        bytes: Option<u64>,
        context: &Context,
    ) -> Result<()> {
        let mut document = json!({
            "format": found.format.name(),
            "snapshot": found.version,
            "path": path,
            "file": self.output,
            "region": region.to_string(),
            "shape": region.shape(),
            "bytes": bytes,
        });
        let mut version = String::new();
        match (spelling, &found.version) {
            (Spelling::Repo, Some(id)) => {
                document["snapshot-id"] = Value::from(id.as_str());
                version = format!(" at {}", short(id));
            }
            (Spelling::Af, _) => document["name"] = Value::from(path),
            _ => {}
        }
        context.output.done(&document, || {
            let (file, extents) = (self.output.display(), shape(region.shape()));
            match bytes {
                Some(bytes) => format!("{file}: {path} of {extents} ({}){version}", size(bytes)),
                None => format!(
                    "{file}: {} of {path}{version}",
                    count(region.num_elements(), "element")
                ),
            }
        })
    }
}

fn found(
    format: &'static dyn Format,
    version: Option<String>,
    array: ContainerArray,
) -> Result<Found> {
    let (spec, reader) = (&array.node()?.spec, array.reader()?.clone());
    let (dtype, extents) = (spec.dtype()?, spec.shape().to_vec());
    Ok(Found { format, version, dtype, extents, reader, container: Some(array) })
}
