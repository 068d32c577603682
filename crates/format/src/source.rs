//! Reading: which arrays there are, and where each chunk is.

use std::any::Any;

use async_trait::async_trait;
use chunkyard_array::{ChunkIndex, Grid, Region};
use chunkyard_store::{self, ChunkRef, Error, Fetcher, Meta, Result};
use futures::future::{self, BoxFuture, FutureExt};
use futures::stream::{self, BoxStream, StreamExt};

use super::dataset::Dataset;
use crate::{Finding, Level, Version};

/// Stored chunks, each with where it is.
pub type ChunkStream<'a> = BoxStream<'a, Result<(ChunkIndex, ChunkRef)>>;

/// Where in an array there are stored chunks: see [`Source::occupied`].
pub enum Occupied<'a> {
    /// Everywhere, or so nearly that going through all chunks is as good; or the source cannot tell.
    All,
    /// In these cells, and nowhere else.
    Cells {
        /// The grid that they are cells of: the grid of the chunks, or one of boxes of whole chunks.
        grid: Grid,
        /// Their indices, in no order. A cell may come twice.
        cells: BoxStream<'a, Result<ChunkIndex>>,
    },
}

/// How something is opened.
#[derive(Debug, Clone, Default)]
pub struct OpenOptions {
    /// How its store is opened.
    pub store: chunkyard_store::Options,
    /// URL prefixes that references may lead to. A dataset alone never makes us read anything outside them.
    pub allowed: Vec<String>,
    /// Which version, for formats that keep several.
    pub version: Option<Version>,
    /// Whether damage to what a format keeps besides chunks is left out and [listed](Source::left_out) instead of
    /// being an error, where the rest can be read without it.
    pub skip_corrupt: bool,
}

impl OpenOptions {
    /// Refuses a version, for formats that keep one only.
    pub(crate) fn refuse_version(&self, format: &str) -> Result<()> {
        match &self.version {
            None => Ok(()),
            Some(version) => Err(Error::invalid(format!(
                "{format} keeps one version only, so there is no {version}"
            ))),
        }
    }
}

/// Knows where chunks are, which is all that reading a region needs.
#[async_trait]
pub trait Locate: std::fmt::Debug + Send + Sync {
    /// Where chunks are, in the order asked; `None` for those that hold the fill value only. Costs
    /// the reading of an index at most, never of a chunk.
    async fn locate(&self, array: &str, chunks: &[ChunkIndex]) -> Result<Vec<Option<ChunkRef>>>;

    /// Fetches located chunks.
    fn fetcher(&self) -> &Fetcher;

    /// The real reason of a failed fetch, for sources that can find it out.
    async fn explain(&self, error: Error) -> Error {
        error
    }
}

/// Something that holds arrays. It locates chunks; its [`Fetcher`] fetches them.
///
/// A caller that wants more than this trait has, such as the layers of a container, casts it to
/// [`Any`] and asks for the type of the format.
pub trait Source: Locate + Any {
    /// Its groups and arrays.
    fn dataset(&self) -> &Dataset;

    /// Tells this state of the source from a later one when work on it is resumed: the id of a snapshot,
    /// the etags of the metadata.
    fn identity(&self) -> String;

    /// The name by which another process finds this very state, for formats that keep several.
    fn version(&self) -> Option<Version> {
        None
    }

    /// The stored chunks of an array that hold elements of `within`, in no order, each with the
    /// exact range where it is and, where the store tells, a guard. This may list all objects of the
    /// array. The chunks of one object follow one another; damage is an error in their place, after
    /// which the rest follows.
    fn chunks<'a>(&'a self, array: &'a str, within: &'a Region) -> ChunkStream<'a>;

    /// Which parts of an array hold stored chunks, so that the cost of work follows the stored chunks
    /// and not the size of the grid. Unlike [`Source::chunks`] it only lists names and opens nothing:
    /// a shard is one cell, whatever is in it.
    fn occupied(&self, _array: &str) -> Result<Occupied<'_>> {
        Ok(Occupied::All)
    }

    /// The codecs that an array should have elsewhere by default, as
    /// [`parse_shorthand`](chunkyard_array::codec::parse_shorthand) reads them: for formats that pack more
    /// than single chunks, and encode those in a way of their own. `None`: the codecs it has.
    fn codecs_elsewhere(&self, _array: &str) -> Option<String> {
        None
    }

    /// How many chunks are located at a time at most. Fewer where a reference is the chunk itself, made for the caller.
    fn located_max(&self) -> usize {
        usize::MAX
    }

    /// Whether the chunks of an array are its elements, plain and in memory already: then a part of
    /// a chunk costs what the part costs, however large the chunk is.
    fn is_memory(&self, _array: &str) -> bool {
        false
    }

    /// Warnings for the reader: all data it gets is right, but something that should be there is missing.
    fn cautions(&self) -> Vec<String> {
        Vec::new()
    }

    /// Damage that no chunk shows, for formats that keep more than chunks. Looks as deep as `level` says;
    /// an error means that it could not look.
    fn inspect(&self, _level: Level) -> BoxStream<'_, Result<Finding>> {
        stream::empty().boxed()
    }

    /// What was left out so far because it is damaged, of a source that was opened to
    /// [skip](OpenOptions::skip_corrupt) it. Chunks that cannot be read are no part of it.
    fn left_out(&self) -> Vec<Finding> {
        Vec::new()
    }

    /// Meta files without a checksum, for formats whose meta files can have one: their content is trusted.
    fn unchecked_files(&self) -> Vec<String> {
        Vec::new()
    }

    /// Where a chunk is that is given as [`ChunkRef::Inline`], although it was made from stored bytes.
    fn origin<'a>(
        &'a self,
        _array: &'a str,
        _chunk: &'a ChunkIndex,
    ) -> BoxFuture<'a, Result<Option<ChunkRef>>> {
        future::ready(Ok(None)).boxed()
    }

    /// Objects in its place that belong to no part of it, for formats that own all their objects.
    fn strays(&self) -> BoxStream<'_, Result<Meta>> {
        stream::empty().boxed()
    }
}
