//! Converts between the chunks of the container and of the data model.
//!
//! They are the same, with two exceptions. Lists of fixed size are one element here and further
//! dimensions there, so chunk indices have trailing zeros there. Other lists are rearranged: see
//! [`crate::container::elements`].

use std::sync::Arc;

use bytes::Bytes;
use chunkyard_array::{ChunkIndex, Grid, Region};
use chunkyard_store::{ChunkRef, Fetcher, Result};
use futures::StreamExt;
use futures::stream::{self, BoxStream};

use crate::container::bytes::elements;
use crate::container::model::DType;
use crate::container::read::array_state::ArrayState;
use crate::container::write::changes::Description;

/// An index of the model as an index of the container.
pub(crate) fn trimmed(described: &Description, index: &ChunkIndex) -> ChunkIndex {
    index.iter().copied().take(described.meta.shape.len()).collect()
}

/// An index of the container as an index of the model, whose arrays have this rank.
pub(crate) fn extended(mut index: ChunkIndex, rank: usize) -> ChunkIndex {
    index.resize(rank, 0);
    index
}

/// The stored chunks of an array, by index of the model, whose arrays have this rank. A chunk that
/// several layers have comes several times.
pub(crate) async fn occupied(
    state: Option<Arc<ArrayState>>,
    rank: usize,
) -> Result<BoxStream<'static, Result<ChunkIndex>>> {
    let Some(state) = state else { return Ok(stream::empty().boxed()) };
    let positions = state.positions().await?;
    let cells = positions.into_iter().map(move |at| Ok(extended(state.index(at), rank)));
    Ok(stream::iter(cells).boxed())
}

/// A region of the container as a region of the model, whose arrays have this shape.
pub(crate) fn region_for_model(region: &Region, shape: &[u64]) -> Result<Region> {
    let (mut origin, mut extents) = (region.origin().to_vec(), region.shape().to_vec());
    extents.extend(shape.iter().skip(extents.len()));
    origin.resize(extents.len(), 0);
    Ok(Region::new(origin, extents)?)
}

/// A reference to a chunk of the model. Lists are fetched for it: there is no other way to
/// rearrange them.
pub(crate) async fn for_model(
    fetcher: &Fetcher,
    described: &Description,
    index: &ChunkIndex,
    reference: Option<ChunkRef>,
) -> Result<Option<ChunkRef>> {
    let (DType::List { child }, Some(reference)) = (&described.meta.dtype, &reference) else {
        return Ok(reference);
    };
    let bytes = fetcher.fetch(&[reference]).await?.pop().flatten().unwrap_or_default();
    let count = grid_of(described)?.clipped_region(index).num_elements();
    Ok(Some(ChunkRef::Inline(elements::list_chunk_to_offsets_bytes(child, count, &bytes)?.into())))
}

/// The bytes of a model chunk as the container stores them.
pub(crate) fn for_container(
    described: &Description,
    index: &ChunkIndex,
    bytes: Bytes,
) -> Result<Bytes> {
    let DType::List { child } = &described.meta.dtype else { return Ok(bytes) };
    let count = grid_of(described)?.clipped_region(index).num_elements();
    Ok(elements::list_chunk_from_offsets_bytes(child, count, &bytes)?.into())
}

/// The grid of an array's chunks.
pub(crate) fn grid_of(described: &Description) -> Result<Grid> {
    let meta = &described.meta;
    let shape: Vec<u64> = meta.shape.iter().map(|&extent| extent.into()).collect();
    let chunks: Vec<u64> = meta.chunk_shape.iter().map(|&extent| extent.max(1).into()).collect();
    Ok(Grid::new(&shape, &chunks)?)
}
