//! Chunks of labels as label blocks.
//!
//! Specification: a chunk of `uint64` or `uint32` with three axes, in C order, is one label block: the
//! last axis is x, the one before it y, the first z. Each extent is a multiple of 8, at most 1024.
//! There is nothing to configure; a `transpose` before the codec serves other orders of axes.
//! Compatible implementations: none yet for Zarr; the bytes of a chunk are a DVID label block.
//!
//! ```json
//! {"name": "chunkyard.label_block"}
//! ```

use std::borrow::Cow;

use serde_json::{Value, json};
use zarrs::array::codec::api::{CodecRuntimePluginV3, register_codec_v3};
use zarrs::array::{
    ArrayBytes, ArrayBytesRaw, BytesRepresentation, CodecError, CodecMetadataOptions, CodecOptions,
};
use zarrs::metadata::Configuration;
use zarrs::metadata::v3::MetadataV3;
use zarrs::plugin::{PluginCreateError, ZarrVersion};

use super::{Block, encode, encoded_bytes_max, grid_of};
use crate::codec::whole::{self, ArrayCodec, Content, Described, other};
use crate::codec::zeroed;
use crate::{DType, Error, Result};

/// The name of the codec whose chunks are label blocks.
pub const NAME: &str = "chunkyard.label_block";

/// How the voxels of a chunk lie in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::codec) struct Layout {
    /// Voxels along x, y and z.
    size: [u32; 3],
    /// Bytes of a voxel, 4 or 8.
    item: usize,
}

impl Layout {
    /// The layout of chunks of a type and shape that the codec takes.
    fn new(dtype: &str, shape: &[u64]) -> Result<Self> {
        let item = match dtype {
            "uint64" => 8,
            "uint32" => 4,
            _ => {
                return Err(Error::invalid(format!(
                    "{NAME} takes labels of uint64 or uint32, not {dtype}"
                )));
            }
        };
        let &[z, y, x] = shape else {
            return Err(Error::invalid(format!(
                "{NAME} takes chunks with the axes z, y and x, not with {}",
                shape.len()
            )));
        };
        let size = [x, y, z].map(|extent| u32::try_from(extent).unwrap_or(u32::MAX));
        grid_of(size).map_err(|cause| {
            Error::invalid(format!("{NAME} cannot take chunks of shape {shape:?}: {cause}"))
        })?;
        Ok(Self { size, item })
    }

    /// The layout, if the codec is this one.
    pub(in crate::codec) fn recognise(
        codec: &MetadataV3,
        dtype: &DType,
        shape: &[u64],
    ) -> Option<Self> {
        if codec.name() != NAME {
            return None;
        }
        Self::new(dtype.name(), shape).ok()
    }

    /// The most bytes of an encoded chunk.
    pub(in crate::codec) fn encoded_bytes_max(&self) -> Result<usize> {
        encoded_bytes_max(self.size)
    }

    /// Checks that bytes are a block of this size.
    pub(in crate::codec) fn check(&self, encoded: &[u8]) -> Result<()> {
        self.parse(encoded).map(drop)
    }

    fn parse<'a>(&self, encoded: &'a [u8]) -> Result<Block<'a>> {
        let block = Block::parse(encoded)?;
        if block.size() == self.size {
            return Ok(block);
        }
        let (expected, found) = (format!("{:?} voxels", self.size), format!("{:?}", block.size()));
        Err(super::corrupt(expected, found))
    }

    /// Decodes a chunk into its voxels, little-endian.
    pub(in crate::codec) fn decode_into(&self, encoded: &[u8], out: &mut [u8]) -> Result<()> {
        let block = self.parse(encoded)?;
        match self.item {
            4 => block.decode_into(out.as_chunks_mut::<4>().0),
            _ => block.decode_into(out.as_chunks_mut::<8>().0),
        }
    }

    /// Appends the encoded chunk of some voxels, little-endian, to `out`.
    pub(in crate::codec) fn encode_onto(&self, decoded: &[u8], out: &mut Vec<u8>) -> Result<()> {
        match self.item {
            4 => encode(decoded.as_chunks::<4>().0, self.size, out),
            _ => encode(decoded.as_chunks::<8>().0, self.size, out),
        }
    }

    /// Between the order of the machine and little-endian.
    fn to_little_endian(self, bytes: &mut [u8]) {
        if cfg!(target_endian = "big") {
            bytes.chunks_exact_mut(self.item).for_each(<[u8]>::reverse);
        }
    }
}

/// Refuses a chain whose label blocks the array cannot have, with a reason that `zarrs` has no error
/// for.
pub(in crate::codec) fn check(codecs: &[MetadataV3], dtype: &DType, shape: &[u64]) -> Result<()> {
    match codecs {
        [first, ..] if first.name() == NAME => Layout::new(dtype.name(), shape).map(drop),
        _ => Ok(()),
    }
}

/// The codec as typed on a command line.
pub(in crate::codec) fn shorthand(dtype: &DType) -> Result<Value> {
    Layout::new(dtype.name(), &[8, 8, 8])?;
    Ok(json!({"name": NAME}))
}

/// Makes `zarrs` know the codec.
pub(in crate::codec) fn register() {
    register_codec_v3(CodecRuntimePluginV3::new(
        |name| name == NAME,
        |metadata| {
            if metadata.configuration_is_none_or_empty() {
                return Ok(whole::of_elements(LabelBlock));
            }
            Err(PluginCreateError::Other(format!("{NAME} has no configuration, found {metadata}")))
        },
    ));
}

#[derive(Debug)]
struct LabelBlock;

impl Described for LabelBlock {
    fn name(&self, _version: ZarrVersion) -> Option<Cow<'static, str>> {
        Some(NAME.into())
    }

    fn configuration(
        &self,
        _version: ZarrVersion,
        _options: &CodecMetadataOptions,
    ) -> Option<Configuration> {
        Some(Configuration::default())
    }
}

impl ArrayCodec for LabelBlock {
    fn encoded_size(&self, content: Content<'_>) -> Result<BytesRepresentation, CodecError> {
        let layout = layout(content)?;
        let bytes_max = layout.encoded_bytes_max().map_err(other)?;
        Ok(BytesRepresentation::BoundedSize(bytes_max as u64))
    }

    fn encode<'a>(
        &self,
        bytes: ArrayBytes<'a>,
        content: Content<'_>,
        _options: &CodecOptions,
    ) -> Result<ArrayBytesRaw<'a>, CodecError> {
        let layout = layout(content)?;
        let mut decoded = bytes.into_fixed()?;
        if cfg!(target_endian = "big") {
            layout.to_little_endian(decoded.to_mut());
        }
        let mut out = Vec::new();
        layout.encode_onto(&decoded, &mut out).map_err(other)?;
        Ok(Cow::Owned(out))
    }

    fn decode<'a>(
        &self,
        bytes: ArrayBytesRaw<'a>,
        content: Content<'_>,
        _options: &CodecOptions,
    ) -> Result<ArrayBytes<'a>, CodecError> {
        let layout = layout(content)?;
        let voxels: usize = layout.size.iter().map(|&n| n as usize).product();
        let mut out = zeroed(voxels * layout.item).map_err(other)?;
        layout.decode_into(&bytes, &mut out).map_err(other)?;
        layout.to_little_endian(&mut out);
        Ok(ArrayBytes::new_flen(out))
    }
}

fn layout(content: Content<'_>) -> Result<Layout, CodecError> {
    let name = content.data_type.name_v3().unwrap_or_default();
    Layout::new(&name, &content.shape()).map_err(other)
}
