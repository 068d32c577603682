//! How a volume will store a given dataset.
//!
//! Labels become `compressed_segmentation`, unless they are wished without any codec; all else is `raw`. Chunks keep
//! their shape. Shards are those nearest to the wished shape, and then chunks are gzip; without shards each chunk is a
//! file that web servers hand out as it is, so it is not compressed again.

use std::sync::Arc;

use chunkyard_array::Codecs;
use chunkyard_store::{Error, Result};

use super::codecs;
use super::volume::{Volume, shards, understood};
use crate::{ArrayNode, Dataset, Edges, Node};

/// The dataset as a volume will hold it, or why it cannot.
pub(super) fn express(mut dataset: Dataset) -> Result<Dataset> {
    for (path, array) in dataset.arrays() {
        check(array).map_err(|error| Error::for_array(path, error))?;
    }
    let volume = Volume::of(&dataset)?;
    for (path, (number, axes)) in &volume.arrays {
        let (Some(Node::Array(array)), Some(scale)) =
            (dataset.nodes.get_mut(path), volume.info.scales.get(*number))
        else {
            continue;
        };
        let num_channels = volume.info.num_channels;
        let chunk = axes.arrange(scale.chunk_size(), num_channels);
        let made = || -> Result<ArrayNode> {
            let spec = array.spec.with_chunk_shape(&chunk)?;
            let spec = spec.with_codecs(codecs::chain(scale, axes, volume.info.data_type))?;
            // Refuses blocks and shapes that the encoding does not take.
            Codecs::new(&spec)?;
            let sharding = shards(scale, axes, num_channels)?;
            Ok(ArrayNode { spec, sharding, edges: Edges::Clipped })
        };
        let made = made().map_err(|error| Error::for_array(path, error))?;
        *array = Arc::new(made);
    }
    Ok(dataset)
}

fn check(array: &ArrayNode) -> Result<()> {
    understood(&array.spec)?;
    let dtype = array.spec.dtype()?;
    let fill = chunkyard_array::fill_element(&dtype, &array.spec.metadata().fill_value)?;
    if fill.iter().any(|byte| *byte != 0) {
        return Err(Error::unsupported(format!(
            "the fill value {} in a precomputed volume, where a chunk that is not stored is 0",
            array.spec.metadata().fill_value
        )));
    }
    if array.spec.shape().contains(&0) {
        return Err(Error::unsupported(format!(
            "a precomputed volume of shape {:?}, without any voxel",
            array.spec.shape()
        )));
    }
    Ok(())
}
