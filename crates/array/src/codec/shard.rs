//! Shards: chunks of chunks, with an index of where each inner one lies.
//!
//! Specification: Zarr v3 `sharding_indexed`. Read here rather than by `zarrs`, so that a read
//! decodes only the inner chunks it wants, straight from the borrowed shard, and so that no entry
//! of the index is believed before it is checked. Where index and inner chunks carry checksums of
//! their own, a reader may also fetch only those [`Part`]s. Writing is left to `zarrs`.

use std::ops::Range;

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

/// A part of an encoded chunk that can be fetched and decoded without the rest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    place: Region,
    bytes: Option<Range<u64>>,
}

impl Part {
    /// Where its bytes lie in the encoded chunk; `None` when it holds the fill value only.
    pub fn bytes(&self) -> Option<&Range<u64>> {
        self.bytes.as_ref()
    }

    /// Its place in the chunk.
    pub(super) fn place(&self) -> &Region {
        &self.place
    }
}

/// What it takes to read the shards of an array.
#[derive(Debug)]
pub(super) struct Shard {
    inner: Codecs,
    index: Codecs,
    grid: Grid,
    index_bytes: usize,
    index_location: ShardingIndexLocation,
    checks_itself: bool,
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
        let checked =
            |codecs: &[MetadataV3]| codecs.last().is_some_and(|codec| codec.name() == "crc32c");
        Ok(Some(Self {
            checks_itself: checked(&configuration.codecs) && checked(&configuration.index_codecs),
            index_location: configuration.index_location,
            inner,
            index,
            grid,
            index_bytes,
        }))
    }

    /// Whether index and inner chunks each end with a checksum, so that a part of a shard can be
    /// believed without the rest.
    pub(super) fn checks_itself(&self) -> bool {
        self.checks_itself
    }

    /// How many inner chunks a shard has.
    pub(super) fn parts_count(&self) -> u64 {
        self.grid.grid_shape().iter().product()
    }

    /// How many of them hold elements of `wanted`.
    pub(super) fn parts_wanted(&self, wanted: &Region) -> u64 {
        self.grid.chunks_in(wanted).count() as u64
    }

    /// Where the index lies in a shard of `len` bytes.
    pub(super) fn index_range(&self, len: u64) -> Result<Range<u64>> {
        let index_bytes = self.index_bytes as u64;
        let start = match self.index_location {
            ShardingIndexLocation::Start => 0,
            ShardingIndexLocation::End => len.saturating_sub(index_bytes),
        };
        if len < index_bytes {
            let expected = format!("an index of {index_bytes} bytes");
            return Err(Error::corrupt("shard", expected, format!("{len} bytes")));
        }
        Ok(start..start + index_bytes)
    }

    /// The inner chunks that hold elements of `wanted`, by the encoded index of a shard of `len`
    /// bytes.
    pub(super) fn parts(&self, index: &[u8], len: u64, wanted: &Region) -> Result<Vec<Part>> {
        let mut entries = super::scratch::zeroed(self.index.fixed_chunk_bytes()?)?;
        self.index.decode_into(index, &mut entries)?;
        self.grid
            .chunks_in(wanted)
            .map(|cell| {
                let place = self.grid.chunk_region(&cell);
                Ok(Part { place, bytes: self.locate(&entries, &cell, len)? })
            })
            .collect()
    }

    /// Decodes the inner chunks that hold elements of `wanted` and hands each of them on, with its
    /// place in the shard.
    pub(super) fn decode(
        &self,
        shard: &[u8],
        wanted: &Region,
        mut deliver: impl FnMut(Piece<'_>, &Region) -> Result<()>,
    ) -> Result<()> {
        let len = shard.len() as u64;
        let index = slice(shard, &self.index_range(len)?).unwrap_or_default();
        for part in self.parts(index, len, wanted)? {
            let encoded = part.bytes().and_then(|range| slice(shard, range));
            self.decode_part(encoded, &part, &mut deliver)?;
        }
        Ok(())
    }

    /// Decodes one inner chunk, whose bytes are those the part asked for.
    pub(super) fn decode_part(
        &self,
        encoded: Option<&[u8]>,
        part: &Part,
        mut deliver: impl FnMut(Piece<'_>, &Region) -> Result<()>,
    ) -> Result<()> {
        let Some(encoded) = encoded else { return deliver(Piece::Fill, part.place()) };
        with_scratch(self.inner.fixed_chunk_bytes()?, |scratch| {
            self.inner.decode_into(encoded, scratch)?;
            deliver(Piece::Elements(scratch), part.place())
        })
    }

    /// Where an inner chunk lies, or `None` where it is not stored.
    fn locate(&self, index: &[u8], cell: &[u64], shard_bytes: u64) -> Result<Option<Range<u64>>> {
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
        match offset.checked_add(len) {
            Some(end) if end <= shard_bytes => Ok(Some(offset..end)),
            _ => Err(Error::corrupt(
                format!("index of a shard, entry {cell:?}"),
                format!("a range within {shard_bytes} bytes"),
                format!("{len} bytes at {offset}"),
            )),
        }
    }
}

fn slice<'a>(shard: &'a [u8], range: &Range<u64>) -> Option<&'a [u8]> {
    shard.get(usize::try_from(range.start).ok()?..usize::try_from(range.end).ok()?)
}
