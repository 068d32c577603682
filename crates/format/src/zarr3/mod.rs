//! Plain Zarr: version 3 for reading and writing, version 2 for reading.
//!
//! Specification: Zarr v3 core, with `sharding_indexed` as packing and zarr-python's consolidated
//! metadata; Zarr v2. Compatible implementations: zarr-python, TensorStore, zarrs.
//!
//! ```text
//!  zarr.json                a group, or the array itself
//!  <path>/zarr.json         nodes; version 2 has .zgroup, .zarray, .zattrs instead
//!  <path>/c/0/1             a chunk: one object, absent where it holds the fill value only
//!  <path>/c/0/1             or a shard: many chunks and an index of where each lies
//! ```
//!
//! - `hierarchy` reads metadata: from one document, or by walking directories.
//! - `source` locates chunks: a whole object, or by a shard's index, which is read once.
//! - `sink` writes objects; metadata comes last. In a directory, all of it is written aside and
//!   renamed into place in one step.
//! - `edit` changes a hierarchy in place, object by object.

mod edit;
mod hierarchy;
mod shard_writer;
mod sink;
mod source;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use async_trait::async_trait;
use chunkyard_array::{Attributes, GroupSpec};

pub use self::edit::{Zarr3Array, Zarr3Editor};
use self::sink::NamesByArray;
pub use self::sink::Zarr3Sink;
pub use self::source::Zarr3Source;
use chunkyard_store::{Error, Result};

use super::worker_packs::Member;
use super::{
    CreateOptions, Dataset, Edit, EditOptions, Editor, Format, Node, OpenOptions, PackSink, Place,
    Probe, Sink, Source, Ticket, in_zarr3,
};

/// Plain Zarr.
#[derive(Debug, Clone, Copy)]
pub struct Zarr3;

/// Metadata of a node of version 3.
const METADATA: &str = "zarr.json";

#[async_trait]
impl Format for Zarr3 {
    fn name(&self) -> &'static str {
        "zarr3"
    }

    fn extensions(&self) -> &'static [&'static str] {
        &["zarr", "zr3"]
    }

    async fn probe(&self, place: &Place) -> Result<Probe> {
        for name in [METADATA, hierarchy::V2_GROUP, hierarchy::V2_ARRAY] {
            match place.directory().head(name).await {
                Ok(_) => return Ok(Probe::Yes(format!("it has {name}"))),
                Err(Error::NotFound { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(Probe::No(format!("no {METADATA}, {} or {}", hierarchy::V2_GROUP, hierarchy::V2_ARRAY)))
    }

    async fn open(&self, place: &Place, options: &OpenOptions) -> Result<Arc<dyn Source>> {
        options.refuse_version("plain Zarr")?;
        Ok(Arc::new(Zarr3Source::open(place.directory().clone()).await?))
    }

    fn express(&self, dataset: Dataset) -> Result<Dataset> {
        in_zarr3(dataset.with_padded_edges()?)
    }

    async fn create(
        &self,
        place: &Place,
        dataset: Dataset,
        options: CreateOptions,
    ) -> Result<Box<dyn Sink>> {
        Ok(Box::new(Zarr3Sink::create(place, dataset, options).await?))
    }

    async fn join(
        &self,
        place: &Place,
        dataset: &Dataset,
        ticket: &Ticket,
    ) -> Result<Box<dyn PackSink>> {
        Ok(Box::new(Member::join(place, NamesByArray::new(dataset)?, ticket).await?))
    }

    fn edits(&self) -> &'static [Edit] {
        Edit::ALL
    }

    async fn edit(&self, place: &Place, options: &EditOptions) -> Result<Arc<dyn Editor>> {
        options.refuse_versions("plain Zarr")?;
        let store = place.directory().clone();
        let opened = match Zarr3Editor::open(store.clone()).await {
            Err(Error::NotFound { .. }) if options.create => {
                let root = Node::Group(GroupSpec::new(Attributes::new()));
                Zarr3Editor::create(store, root).await
            }
            opened => opened,
        };
        Ok(Arc::new(opened?))
    }
}

/// Where the objects of a node begin: `""` for the root, `a/b/` for `/a/b`.
fn prefix_of(path: &str) -> String {
    match path.trim_matches('/') {
        "" => String::new(),
        inner => format!("{inner}/"),
    }
}
