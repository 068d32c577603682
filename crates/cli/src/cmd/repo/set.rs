//! `chunkyard repo set`: a NumPy file becomes an array, or a region of one, in one commit.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Result;
use chunkyard_array::{ArraySpec, Region, codec};
use chunkyard_engine::repo::{Array, Session, normalise_path};
use chunkyard_engine::{Error, Noun};
use clap::Args;

use super::{commit, writable};
use crate::args::{CommitArgs, NewArrayArgs};
use crate::context::Context;
use crate::npy::Header;
use crate::transfer;

/// Commit a NumPy file, or a region of one
///
/// A new path becomes an array of the file's shape and type. For an existing array the file must
/// have its type, and the shape of the array or of the region.
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

    /// Write only this region: start:end per dimension, negative from the end
    #[arg(long, value_name = "REGION", allow_hyphen_values = true)]
    region: Option<String>,

    /// Codecs of a new array: none, zstd:3, gzip:5, blosc:lz4:5:shuffle, zstd:3+crc32c
    #[arg(long, value_name = "CODEC")]
    codec: Option<String>,

    #[command(flatten)]
    new: NewArrayArgs,

    #[command(flatten)]
    commit: CommitArgs,
}

impl Set {
    pub(crate) async fn run(&self, context: &Context) -> Result<()> {
        let repo = context.open(&self.repo).await?;
        let reader = transfer::open(&self.file).await?;
        let session = writable(&repo, &self.commit).await?;
        let (array, region) = self.target(&session, reader.header(), reader.item_size()).await?;
        transfer::write(array.writer(), &region, reader, context).await?;
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
            return Err(Error::NotFound { what: Noun::Array, name }.into());
        }
        let array = session.array(&path).await?;
        if self.new.any() || self.codec.is_some() {
            return Err(Error::invalid(format!(
                "{path} exists: its chunks, codecs, fill value and dimension names are given"
            ))
            .into());
        }
        let (spec, typed) = (array.spec(), self.region.as_deref());
        let has = (&spec.dtype()?, spec.shape());
        let region = transfer::target_region(&path, has, typed, header)?;
        Ok((array, region))
    }

    /// The specification of a new array.
    fn spec(&self, header: &Header, item_size: usize) -> Result<ArraySpec> {
        let dtype = serde_json::to_value(header.dtype.metadata())?;
        let mut builder = self.new.builder(&header.shape, dtype, item_size)?;
        if let Some(codec) = &self.codec {
            builder = builder.codecs(codec::parse_shorthand(codec, &header.dtype)?);
        }
        Ok(builder.build()?)
    }
}
