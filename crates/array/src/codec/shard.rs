//! Shards: chunks of chunks, with an index of where each inner one lies.
//!
//! Specification: Zarr v3 `sharding_indexed`. Read here rather than by `zarrs`, so that a read
//! decodes only the inner chunks it wants, straight from the borrowed shard, and so that no entry
//! of the index is believed before it is checked. Writing is left to `zarrs`.

use serde_json::json;
use zarrs::metadata::v3::MetadataV3;
use zarrs::metadata_ext::codec::sharding::{ShardingCodecConfigurationV1, ShardingIndexLocation};

use super::Codecs;
use super::scratch::with_scratch;
use crate::{DType, Error, Grid, Region, Result};

/// Offset and length of an inner chunk that is not stored.
const MISSING: u64 = u64::MAX;

/// Bytes of an entry of the index: offset and length.
const ENTRY_BYTES: usize = 16;

/// A part of a decoded shard.
pub(super) enum Piece<'a> {
    /// Decoded elements of an inner chunk.
    Elements(&'a [u8]),
    /// An inner chunk that holds the fill value only.
    Fill,
}

/// What it takes to read the shards of an array.
#[derive(Debug)]
pub(super) struct Shard {
    inner: Codecs,
    index: Codecs,
    grid: Grid,
    index_bytes: usize,
    index_location: ShardingIndexLocation,
}

impl Shard {
    /// The reader for a chain that consists of sharding alone, over a type of fixed size. For any
    /// other chain there is none, and the generic way must do.
    pub(super) fn recognise(
        codecs: &[MetadataV3],
        dtype: &DType,
        fill_element: &[u8],
        chunk_shape: &[u64],
    ) -> Result<Option<Self>> {
        let [codec] = codecs else { return Ok(None) };
        if codec.name() != "sharding_indexed" || dtype.item_size().is_none() {
            return Ok(None);
        }
        let Ok(configuration) = codec.to_typed_configuration::<ShardingCodecConfigurationV1>()
        else {
            return Ok(None);
        };
        let inner_shape: Vec<u64> = configuration.chunk_shape.iter().map(|n| n.get()).collect();
        let grid = Grid::new(chunk_shape, &inner_shape)?;
        if chunk_shape.iter().zip(&inner_shape).any(|(n, inner)| !n.is_multiple_of(*inner)) {
            return Err(Error::invalid(format!(
                "inner chunks of shape {inner_shape:?} do not divide shards of {chunk_shape:?}"
            )));
        }
        let index_shape = [&grid.grid_shape()[..], &[2]].concat();
        let index_dtype = DType::parse(&json!("uint64"))?;
        let missing = MISSING.to_le_bytes().to_vec();
        let index = Codecs::bind(index_dtype, missing, &index_shape, &configuration.index_codecs)?;
        let Some(index_bytes) = index.encoded_bytes()? else {
            return Err(Error::invalid("the index of a shard must be encoded in a fixed size"));
        };
        let inner = Codecs::bind(
            dtype.clone(),
            fill_element.to_vec(),
            &inner_shape,
            &configuration.codecs,
        )?;
        let index_location = configuration.index_location;
        Ok(Some(Self { inner, index, grid, index_bytes, index_location }))
    }

    /// Decodes the inner chunks that hold elements of `wanted` and hands each of them on, with its
    /// place in the shard.
    pub(super) fn decode(
        &self,
        shard: &[u8],
        wanted: &Region,
        mut deliver: impl FnMut(Piece<'_>, &Region) -> Result<()>,
    ) -> Result<()> {
        let index = self.decode_index(shard)?;
        let inner_bytes = self.inner.fixed_chunk_bytes()?;
        with_scratch(inner_bytes, |scratch| {
            for cell in self.grid.chunks_in(wanted) {
                let place = self.grid.chunk_region(&cell);
                match self.locate(&index, &cell, shard)? {
                    None => deliver(Piece::Fill, &place)?,
                    Some(encoded) => {
                        self.inner.decode_into(encoded, scratch)?;
                        deliver(Piece::Elements(scratch), &place)?;
                    }
                }
            }
            Ok(())
        })
    }

    fn decode_index(&self, shard: &[u8]) -> Result<Vec<u8>> {
        let encoded = match self.index_location {
            ShardingIndexLocation::Start => shard.get(..self.index_bytes),
            ShardingIndexLocation::End => {
                shard.len().checked_sub(self.index_bytes).and_then(|start| shard.get(start..))
            }
        };
        let Some(encoded) = encoded else {
            let expected = format!("an index of {} bytes", self.index_bytes);
            return Err(Error::corrupt("shard", expected, format!("{} bytes", shard.len())));
        };
        let mut index = super::scratch::zeroed(self.index.fixed_chunk_bytes()?)?;
        self.index.decode_into(encoded, &mut index)?;
        Ok(index)
    }

    /// The bytes of an inner chunk, or `None` where it is not stored.
    fn locate<'a>(&self, index: &[u8], cell: &[u64], shard: &'a [u8]) -> Result<Option<&'a [u8]>> {
        let linear =
            cell.iter().zip(self.grid.grid_shape()).fold(0, |linear, (&i, n)| linear * n + i);
        let entry = (linear as usize)
            .checked_mul(ENTRY_BYTES)
            .and_then(|start| index.get(start..)?.first_chunk::<ENTRY_BYTES>())
            .and_then(|entry| Some((entry.first_chunk::<8>()?, entry.last_chunk::<8>()?)));
        let Some((offset, len)) = entry else {
            return Err(Error::corrupt("shard", format!("an index entry {cell:?}"), "none"));
        };
        let (offset, len) = (u64::from_le_bytes(*offset), u64::from_le_bytes(*len));
        if (offset, len) == (MISSING, MISSING) {
            return Ok(None);
        }
        let range = offset
            .checked_add(len)
            .and_then(|end| shard.get(usize::try_from(offset).ok()?..usize::try_from(end).ok()?));
        range.map(Some).ok_or_else(|| {
            Error::corrupt(
                format!("index of a shard, entry {cell:?}"),
                format!("a range within {} bytes", shard.len()),
                format!("{len} bytes at {offset}"),
            )
        })
    }
}
