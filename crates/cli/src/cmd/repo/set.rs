//! `chunkyard repo set`: a NumPy file becomes an array, or a region of one, in one commit.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context as _, Result};
use chunkyard_array::{ArraySpec, DType, Region, codec};
use chunkyard_engine::Error;
use chunkyard_engine::repo::{Array, Session, normalise_path};
use clap::Args;
use serde_json::Value;

use super::{commit, writable};
use crate::args::CommitArgs;
use crate::context::Context;
use crate::failure::Input;
use crate::npy::{Header, Reader};
use crate::slabs::{SLAB_BYTES, cut, slow_axis};
use crate::units::parse_shape;

/// Commit a NumPy file, or a region of one
///
/// A new path becomes an array of the file's shape and type. For an existing array the file must
/// have its type, and its shape or that of the region.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  chunkyard repo set weather /t day.npy --chunks 250,250 --codec zstd:3 -m 'first day'
  chunkyard repo set weather /t fix.npy --region 0:10,5:20 -m 'mask a broken sensor'")]
pub(crate) struct Set {
    /// The repository
    repo: String,

    /// The array, such as /ocean/temperature
    path: String,

    /// A .npy file, or - for standard input
    file: PathBuf,

    /// Write here instead of everywhere: start:end per dimension, negative from the end
    #[arg(long, value_name = "REGION", allow_hyphen_values = true)]
    region: Option<String>,

    /// Chunk shape of a new array, such as 250,250; about 1 MiB if not given
    #[arg(long, value_name = "SHAPE")]
    chunks: Option<String>,

    /// Codecs of a new array: none, zstd:3, gzip:5, blosc:lz4:5:shuffle, zstd:3+crc32c
    #[arg(long, value_name = "CODEC")]
    codec: Option<String>,

    /// Fill value of a new array, such as 0 or NaN
    #[arg(long, value_name = "VALUE", allow_hyphen_values = true)]
    fill: Option<String>,

    /// Dimension names of a new array, such as time,lat,lon
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    dims: Option<Vec<String>>,

    #[command(flatten)]
    commit: CommitArgs,
}

impl Set {
    pub(crate) async fn run(&self, context: &Context) -> Result<()> {
        let repo = context.open(&self.repo).await?;
        let file = self.file.clone();
        // A pipe may let us wait; waiting must not keep Ctrl-C from being heard.
        let opening = tokio::task::spawn_blocking(move || Reader::open(&file));
        let reader = opening.await?.context(Input)?;
        let session = writable(&repo, &self.commit).await?;
        let (array, region) = self.target(&session, reader.header(), reader.item_size()).await?;
        write(&array, &region, reader, context).await?;
        let message = match &self.region {
            Some(region) => format!("set {} at {region}", array.node().path),
            None => format!("set {}", array.node().path),
        };
        commit(&session, &self.commit, message, context).await?;
        Ok(())
    }

    /// The array and the region to write, created or checked.
    async fn target(
        &self,
        session: &Arc<Session>,
        header: &Header,
        item_size: usize,
    ) -> Result<(Array, Region)> {
        let path = normalise_path(&self.path)?;
        let exists = session.tree().get(&path).is_some();
        if !exists && self.region.is_none() {
            let array = session.create_array(&path, self.spec(header, item_size)?).await?;
            return Ok((array, Region::whole(&header.shape)));
        }
        if !exists {
            let name = format!("{path}; without --region the file would become one");
            return Err(Error::NotFound { what: "array", name }.into());
        }
        let array = session.array(&path).await?;
        if self.chunks.is_some()
            || self.codec.is_some()
            || self.fill.is_some()
            || self.dims.is_some()
        {
            return Err(Error::invalid(format!(
                "{path} exists: its chunks, codecs, fill value and dimension names are given"
            ))
            .into());
        }
        let spec = array.spec();
        let region = match &self.region {
            Some(text) => Region::parse(text, spec.shape())?,
            None => Region::whole(spec.shape()),
        };
        check_type(&path, &spec.dtype()?, header)?;
        if !alike(region.shape(), &header.shape) {
            let (what, wanted) = match &self.region {
                Some(_) => (format!("the region {region}"), region.shape()),
                None => (path, spec.shape()),
            };
            return Err(Error::invalid(format!(
                "{what} has shape {wanted:?}, the file has {:?}",
                header.shape
            ))
            .into());
        }
        Ok((array, region))
    }

    /// The specification of a new array.
    fn spec(&self, header: &Header, item_size: usize) -> Result<ArraySpec> {
        let chunks = match &self.chunks {
            Some(text) => parse_shape(text)?,
            None => chunkyard_array::guess_chunks(&header.shape, item_size),
        };
        let dtype = serde_json::to_value(header.dtype.metadata())?;
        let mut builder = ArraySpec::builder(&header.shape, &chunks, dtype);
        if let Some(codec) = &self.codec {
            builder = builder.codecs(codec::parse_shorthand(codec, &header.dtype)?);
        }
        if let Some(fill) = &self.fill {
            let value = serde_json::from_str(fill).unwrap_or_else(|_| Value::from(fill.as_str()));
            builder = builder.fill_value(value);
        }
        if let Some(names) = &self.dims {
            builder = builder.dimension_names(names.iter().cloned());
        }
        Ok(builder.build()?)
    }
}

fn check_type(path: &str, dtype: &DType, header: &Header) -> Result<()> {
    // Compared as NumPy sees them: a name of Zarr may have several spellings.
    if dtype.to_numpy() == header.dtype.to_numpy() {
        return Ok(());
    }
    Err(Error::invalid(format!(
        "{path} has data type {dtype}, the file has {} ({})",
        header.dtype, header.descr
    ))
    .into())
}

/// Whether two shapes hold the same elements in the same order: axes of length one do not count.
fn alike(a: &[u64], b: &[u64]) -> bool {
    let long = |shape: &[u64]| shape.iter().copied().filter(|&n| n != 1).collect::<Vec<_>>();
    long(a) == long(b)
}

/// Reads slab after slab, the next one while the last one is written.
async fn write(
    array: &Array,
    region: &Region,
    mut reader: Reader,
    context: &Context,
) -> Result<()> {
    let item_size = reader.item_size();
    let axis = slow_axis(region.shape(), reader.header().fortran);
    let slabs = cut(region, array.grid().chunk_shape(), axis, item_size, SLAB_BYTES)?;
    let bar = context.progress(&array.node().path, region.num_bytes(item_size)? as u64);
    let (sender, mut receiver) = tokio::sync::mpsc::channel(1);
    let reading = tokio::task::spawn_blocking(move || {
        for slab in slabs {
            let bytes = reader.read_slab(slab.shape())?;
            if sender.blocking_send((slab, bytes)).is_err() {
                // The writing side gave up and says why.
                break;
            }
        }
        Ok::<_, Error>(())
    });
    while let Some((slab, bytes)) = receiver.recv().await {
        let size = bytes.len() as u64;
        array.write_region(&slab, bytes.into()).await?;
        bar.advance(size);
    }
    reading.await?.context(Input)?;
    Ok(())
}
