//! The codecs of an array's chunks, clipped edge chunks included.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use chunkyard_array::codec::packed::Packing;
use chunkyard_array::{Codecs, Grid, Region, View};
use chunkyard_store::Result;

use super::dataset::{ArrayNode, Edges};

/// Codecs bound to the shape that each chunk really has. Cheap to clone.
#[derive(Debug, Clone)]
pub struct ChunkCodecs {
    whole: Codecs,
    grid: Grid,
    edges: Edges,
    /// Codecs of clipped chunks by shape; there are at most 2^rank of these.
    clipped: Arc<Mutex<HashMap<Vec<u64>, Codecs>>>,
    /// Codecs of chunks that were also packed one by one.
    packed: Arc<[OnceLock<Option<ChunkCodecs>>; 2]>,
}

impl ChunkCodecs {
    /// Binds the codecs of an array.
    pub fn new(node: &ArrayNode) -> Result<Self> {
        Ok(Self { edges: node.edges, ..Self::padded(Codecs::new(&node.spec)?, node.grid()?) })
    }

    /// Codecs that are the same for all chunks of a grid.
    pub fn padded(whole: Codecs, grid: Grid) -> Self {
        Self { whole, grid, edges: Edges::Padded, clipped: Arc::default(), packed: Arc::default() }
    }

    /// The codecs of chunks that no edge clips.
    pub fn whole(&self) -> &Codecs {
        &self.whole
    }

    /// The grid of the chunks.
    pub fn grid(&self) -> &Grid {
        &self.grid
    }

    /// The elements that a stored chunk holds.
    pub fn stored_region(&self, index: &[u64]) -> Region {
        match self.edges {
            Edges::Padded => self.grid.chunk_region(index),
            Edges::Clipped => self.grid.clipped_region(index),
        }
    }

    /// The codecs of one chunk, and whether it is smaller than others.
    pub fn of(&self, index: &[u64]) -> Result<(Codecs, bool)> {
        if self.edges == Edges::Padded {
            return Ok((self.whole.clone(), false));
        }
        let region = self.grid.clipped_region(index);
        if region.shape() == self.grid.chunk_shape() {
            return Ok((self.whole.clone(), false));
        }
        let mut clipped = self.clipped.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(codecs) = clipped.get(region.shape()) {
            return Ok((codecs.clone(), true));
        }
        let codecs = self.whole.with_chunk_shape(region.shape())?;
        clipped.insert(region.shape().to_vec(), codecs.clone());
        Ok((codecs, true))
    }

    /// The codecs, packing included, of chunks that each fill a [block](chunkyard_store::Block) alone;
    /// `None` where it is better to unpack such a block first.
    pub(crate) fn packed_by(&self, packing: &str) -> Option<&Self> {
        let (at, packing) = match packing {
            "lz4" => (0, Packing::Lz4),
            "zstd" => (1, Packing::Zstd),
            _ => return None,
        };
        let bind = || {
            let whole = self.whole.packed_by(packing).ok()??;
            Some(Self { edges: self.edges, ..Self::padded(whole, self.grid.clone()) })
        };
        self.packed.get(at)?.get_or_init(bind).as_ref()
    }

    /// Decodes what a view wants of a chunk; no bytes mean the fill value.
    pub fn decode_view(&self, index: &[u64], bytes: Option<&[u8]>, view: &mut View) -> Result<()> {
        self.decode_views(index, bytes, std::slice::from_mut(view))
    }

    /// Decodes what several views want of a chunk, once for all; no bytes mean the fill value.
    pub fn decode_views(
        &self,
        index: &[u64],
        bytes: Option<&[u8]>,
        views: &mut [View],
    ) -> Result<()> {
        let Some(bytes) = bytes else {
            let element = self.whole.fill_element();
            return Ok(views.iter_mut().try_for_each(|view| view.fill(element))?);
        };
        let (codecs, clipped) = self.of(index)?;
        if clipped {
            views.iter_mut().try_for_each(|view| view.clip(codecs.chunk_shape()))?;
        }
        Ok(codecs.decode_views(bytes, views)?)
    }
}
