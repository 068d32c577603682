//! Codecs that make chunks of labels, and what goes from one to the other without a look at the voxels.

use std::borrow::Cow;

use zarrs::metadata::v3::MetadataV3;

use super::label_block::zarr::Layout as BlockLayout;
use super::label_block::{Block, from_segmentation};
use super::segmentation::Layout as SegmentationLayout;
use crate::{DType, Result};

/// How chunks of labels are encoded.
#[derive(Clone, Copy, Debug)]
pub(super) enum Labels {
    /// As label blocks.
    Blocks(BlockLayout),
    /// As Neuroglancer's `compressed_segmentation`.
    Segmentation(SegmentationLayout),
}

impl Labels {
    /// How chunks are encoded, if the codec is one of these.
    pub(super) fn recognise(codec: &MetadataV3, dtype: &DType, shape: &[u64]) -> Option<Self> {
        let blocks = || BlockLayout::recognise(codec, dtype, shape).map(Self::Blocks);
        let segmentation =
            || SegmentationLayout::recognise(codec, dtype, shape).map(Self::Segmentation);
        blocks().or_else(segmentation)
    }

    /// The most bytes of an encoded chunk.
    pub(super) fn encoded_bytes_max(&self) -> Result<usize> {
        match self {
            Self::Blocks(blocks) => blocks.encoded_bytes_max(),
            Self::Segmentation(segmentation) => segmentation.encoded_bytes_max(),
        }
    }

    /// Decodes a chunk into its voxels, little-endian.
    pub(super) fn decode_into(&self, encoded: &[u8], out: &mut [u8]) -> Result<()> {
        match self {
            Self::Blocks(blocks) => blocks.decode_into(encoded, out),
            Self::Segmentation(segmentation) => segmentation.decode_into(encoded, out),
        }
    }

    /// Appends the encoded chunk of some voxels, little-endian.
    pub(super) fn encode_onto(&self, decoded: &[u8], out: &mut Vec<u8>) -> Result<()> {
        match self {
            Self::Blocks(blocks) => blocks.encode_onto(decoded, out),
            Self::Segmentation(segmentation) => segmentation.encode_onto(decoded, out),
        }
    }

    /// Whether chunks become label blocks, and label blocks chunks, without a look at the voxels.
    pub(super) fn are_label_blocks(&self) -> bool {
        match self {
            Self::Blocks(_) => true,
            Self::Segmentation(segmentation) => segmentation.as_label_block().is_some(),
        }
    }

    /// Whether a label block that is larger than a chunk becomes that chunk.
    pub(super) fn clip(&self) -> bool {
        matches!(self, Self::Segmentation(layout) if layout.as_label_block().is_some())
    }

    /// The label block that a chunk is, checked.
    pub(super) fn block_of(&self, encoded: &[u8]) -> Result<Vec<u8>> {
        match self {
            Self::Blocks(blocks) => blocks.check(encoded).map(|()| encoded.to_vec()),
            Self::Segmentation(segmentation) => {
                let extent = segmentation.as_label_block().ok_or_else(super::no_label_blocks)?;
                let mut block = Vec::new();
                from_segmentation(encoded, extent, &mut block)?;
                Ok(block)
            }
        }
    }

    /// The chunk that a label block is.
    pub(super) fn chunk_of<'a>(&self, block: &'a [u8]) -> Result<Cow<'a, [u8]>> {
        match self {
            Self::Blocks(blocks) => blocks.check(block).map(|()| Cow::Borrowed(block)),
            Self::Segmentation(segmentation) => {
                let extent = segmentation.as_label_block().ok_or_else(super::no_label_blocks)?;
                let mut chunk = Vec::new();
                Block::parse(block)?.segmentation_onto(extent, &mut chunk)?;
                Ok(Cow::Owned(chunk))
            }
        }
    }
}
