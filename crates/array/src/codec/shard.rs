//! Shards: chunks of chunks, with an index of where each inner one lies.
//!
//! Specification: Zarr v3 `sharding_indexed`. Read here rather than by `zarrs`, so that a read
//! decodes only the inner chunks it wants, straight from the borrowed shard, and so that no entry
//! of the index is believed before it is checked. If index and inner chunks carry checksums of
//! their own, a reader may also fetch only these [`Part`]s. Writing is left to `zarrs`.

use std::ops::Range;

use serde_json::Value;
use zarrs::metadata::v3::MetadataV3;

use super::scratch::with_scratch;
use super::{Codecs, ShardIndex};
use crate::{ChunkIndex, DType, Error, Footprint, Grid, Region, Result, Sharding};

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
    index: ShardIndex,
    checks_itself: bool,
}

impl Shard {
    /// The reader for a chain that consists of sharding alone, over a type of fixed size. Any other
    /// chain has none and uses the generic way.
    pub(super) fn recognise(
        codecs: &[MetadataV3],
        dtype: &DType,
        fill_element: &[u8],
        chunk_shape: &[u64],
    ) -> Result<Option<Self>> {
        if dtype.item_size().is_none() {
            return Ok(None);
        }
        let Some(unpacked) = Sharding::take_off(codecs, chunk_shape)? else { return Ok(None) };
        let inner: Vec<MetadataV3> = serde_json::from_value(Value::Array(unpacked.codecs))
            .map_err(|cause| Error::invalid("codecs inside shards").because(cause))?;
        let index = ShardIndex::new(&unpacked.sharding, &unpacked.chunk_shape)?;
        Ok(Some(Self {
            checks_itself: index.is_checked() && ends_with_checksum(&inner),
            index,
            inner: Codecs::bind(
                dtype.clone(),
                fill_element.to_vec(),
                &unpacked.chunk_shape,
                &inner,
            )?,
        }))
    }

    /// Whether index and inner chunks each end with a checksum, so that a part of a shard can be
    /// trusted without the rest.
    pub(super) fn checks_itself(&self) -> bool {
        self.checks_itself
    }

    /// How many inner chunks a shard has.
    pub(super) fn parts_count(&self) -> u64 {
        self.grid().grid_shape().iter().product()
    }

    /// How many of them hold something wanted.
    pub(super) fn parts_wanted(&self, wanted: &Footprint) -> u64 {
        self.places(wanted).count() as u64
    }

    /// Where the index lies in a shard of `len` bytes.
    pub(super) fn index_range(&self, len: u64) -> Result<Range<u64>> {
        self.index.range(len)
    }

    /// The inner chunks that hold something wanted, from the encoded index of a shard of `len`
    /// bytes.
    pub(super) fn parts(&self, index: &[u8], len: u64, wanted: &Footprint) -> Result<Vec<Part>> {
        self.parts_at(index, len, self.places(wanted))
    }

    /// Decodes the inner chunks that hold something wanted and hands each of them on, with its
    /// place in the shard.
    pub(super) fn decode(
        &self,
        shard: &[u8],
        wanted: &Footprint,
        deliver: impl FnMut(Piece<'_>, &Region) -> Result<()>,
    ) -> Result<()> {
        self.decode_at(shard, self.places(wanted), deliver)
    }

    /// Decodes all inner chunks and hands each of them on, with its place in the shard.
    pub(super) fn decode_all(
        &self,
        shard: &[u8],
        deliver: impl FnMut(Piece<'_>, &Region) -> Result<()>,
    ) -> Result<()> {
        let whole = Region::whole(self.grid().array_shape());
        self.decode_at(shard, self.cells_in(&whole), deliver)
    }

    /// The inner chunks that hold something wanted, each with its place in the shard.
    fn places<'a>(
        &'a self,
        wanted: &'a Footprint,
    ) -> impl Iterator<Item = (ChunkIndex, Region)> + 'a {
        self.cells_in(wanted.bounds()).filter(|(_, place)| wanted.wants(place))
    }

    fn cells_in(&self, region: &Region) -> impl Iterator<Item = (ChunkIndex, Region)> + '_ {
        self.grid().chunks_in(region).map(|cell| {
            let place = self.grid().chunk_region(&cell);
            (cell, place)
        })
    }

    fn parts_at(
        &self,
        index: &[u8],
        len: u64,
        places: impl Iterator<Item = (ChunkIndex, Region)>,
    ) -> Result<Vec<Part>> {
        let entries = self.index.decode(index, len)?;
        places.map(|(cell, place)| Ok(Part { place, bytes: entries.get(&cell)? })).collect()
    }

    fn decode_at(
        &self,
        shard: &[u8],
        places: impl Iterator<Item = (ChunkIndex, Region)>,
        mut deliver: impl FnMut(Piece<'_>, &Region) -> Result<()>,
    ) -> Result<()> {
        let len = shard.len() as u64;
        let index = slice(shard, &self.index_range(len)?).unwrap_or_default();
        for part in self.parts_at(index, len, places)? {
            let encoded = part.bytes().and_then(|range| slice(shard, range));
            self.decode_part(encoded, &part, &mut deliver)?;
        }
        Ok(())
    }

    /// Decodes one inner chunk from the bytes of the part's range.
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

    fn grid(&self) -> &Grid {
        self.index.grid()
    }
}

/// Whether the last codec of a chain detects any change.
pub(super) fn ends_with_checksum(codecs: &[MetadataV3]) -> bool {
    codecs.last().is_some_and(|codec| codec.name() == "crc32c")
}

fn slice<'a>(shard: &'a [u8], range: &Range<u64>) -> Option<&'a [u8]> {
    shard.get(usize::try_from(range.start).ok()?..usize::try_from(range.end).ok()?)
}
