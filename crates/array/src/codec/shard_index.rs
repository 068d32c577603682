//! The index of a shard: where each of its inner chunks lies.
//!
//! Specification: Zarr v3 `sharding_indexed`, §"Binary shard format": an array of shape
//! `[inner chunks per shard…, 2]` of `uint64`, offset and length of each inner chunk in row-major
//! order, both 2⁶⁴-1 where a chunk is not stored. Offsets count from the start of the shard, also
//! where the index comes first.
//!
//! ```
//! use chunkyard_array::{ArraySpec, Codecs, Elements, ElementsBuf, Sharding};
//! use chunkyard_array::codec::{ShardEntries, ShardIndex};
//!
//! let chunks = ArraySpec::builder(&[4], &[2], "uint8").build()?;
//! let sharding = Sharding::new(&[4]);
//! let mut shard = Codecs::new(&chunks)?.encode(Elements::Fixed(&[1, 2]))?;
//!
//! let index = ShardIndex::new(&sharding, &[2])?;
//! let mut entries = ShardEntries::empty(&index)?;
//! entries.set(&[1], 0..shard.len() as u64)?;
//! shard.extend_from_slice(&index.encode(&entries)?);
//!
//! let codecs = Codecs::new(&chunks.sharded(&sharding)?)?;
//! assert_eq!(codecs.decode(&shard)?, ElementsBuf::Fixed(vec![0, 0, 1, 2]));
//! # Ok::<(), chunkyard_array::Error>(())
//! ```

use std::ops::Range;

use serde_json::json;
use zarrs::metadata::v3::MetadataV3;

use super::shard::ends_with_checksum;
use super::{Codecs, Elements};
use crate::{DType, Error, Grid, Result, Sharding};

/// Offset and length of an inner chunk that is not stored.
const MISSING: u64 = u64::MAX;

/// Bytes of an entry of the index: offset and length.
const ENTRY_BYTES: usize = 16;

/// Encodes and decodes the indices of the shards of an array. Cheap to clone.
#[derive(Clone, Debug)]
pub struct ShardIndex {
    codecs: Codecs,
    grid: Grid,
    encoded_bytes: u64,
    at_start: bool,
    is_checked: bool,
}

impl ShardIndex {
    /// The index of shards of chunks of `chunk_shape`.
    pub fn new(sharding: &Sharding, chunk_shape: &[u64]) -> Result<Self> {
        let grid = sharding.grid(chunk_shape)?;
        let shape = [&grid.grid_shape()[..], &[2]].concat();
        let dtype = DType::parse(&json!("uint64"))?;
        let chain: Vec<MetadataV3> = serde_json::from_value(json!(sharding.index_codecs))
            .map_err(|cause| Error::invalid("codecs of the index of a shard").because(cause))?;
        let codecs = Codecs::bind(dtype, MISSING.to_le_bytes().to_vec(), &shape, &chain)?;
        let Some(encoded_bytes) = codecs.encoded_bytes()? else {
            return Err(Error::invalid("the index of a shard must be encoded in a fixed size"));
        };
        let encoded_bytes = encoded_bytes as u64;
        let is_checked = ends_with_checksum(&chain);
        Ok(Self { codecs, grid, encoded_bytes, at_start: sharding.index_at_start, is_checked })
    }

    /// The grid of the chunks in a shard.
    pub fn grid(&self) -> &Grid {
        &self.grid
    }

    /// Bytes of an encoded index.
    pub fn encoded_bytes(&self) -> u64 {
        self.encoded_bytes
    }

    /// Whether the index lies before the chunks.
    pub fn at_start(&self) -> bool {
        self.at_start
    }

    /// Whether the index ends with a checksum, so that it can be trusted without the chunks.
    pub fn is_checked(&self) -> bool {
        self.is_checked
    }

    /// Where the index lies in a shard of `object_len` bytes.
    pub fn range(&self, object_len: u64) -> Result<Range<u64>> {
        let Some(before) = object_len.checked_sub(self.encoded_bytes) else {
            let expected = format!("an index of {} bytes", self.encoded_bytes);
            return Err(Error::corrupt("shard", expected, format!("{object_len} bytes")));
        };
        Ok(if self.at_start { 0..self.encoded_bytes } else { before..object_len })
    }

    /// Reads the index of a shard of `object_len` bytes.
    pub fn decode(&self, encoded: &[u8], object_len: u64) -> Result<ShardEntries> {
        // Metadata may promise an index of any size: memory is only taken for existing bytes.
        if encoded.len() as u64 != self.encoded_bytes {
            return Err(Error::corrupt(
                "index of a shard",
                format!("{} bytes", self.encoded_bytes),
                format!("{}", encoded.len()),
            ));
        }
        let mut bytes = super::scratch::zeroed(self.codecs.fixed_chunk_bytes()?)?;
        self.codecs.decode_into(encoded, &mut bytes)?;
        Ok(ShardEntries { grid_shape: self.grid.grid_shape(), bytes, object_len })
    }

    /// The encoded index of a shard.
    pub fn encode(&self, entries: &ShardEntries) -> Result<Vec<u8>> {
        if entries.grid_shape != self.grid.grid_shape() {
            return Err(Error::invalid(format!(
                "an index of {:?} chunks cannot be that of shards of {:?} chunks",
                entries.grid_shape,
                self.grid.grid_shape()
            )));
        }
        let encoded = self.codecs.encode(Elements::Fixed(&entries.bytes))?;
        // A reader finds the index by this size only.
        if encoded.len() as u64 != self.encoded_bytes {
            return Err(Error::invalid("the index of a shard must be encoded in a fixed size"));
        }
        Ok(encoded)
    }
}

/// Where the chunks of one shard lie in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShardEntries {
    grid_shape: Vec<u64>,
    /// Offset and length of each chunk, little-endian, as the codecs of the index take them.
    bytes: Vec<u8>,
    object_len: u64,
}

impl ShardEntries {
    /// The entries of a shard in which nothing is stored yet.
    pub fn empty(index: &ShardIndex) -> Result<Self> {
        let mut bytes = super::scratch::zeroed(index.codecs.fixed_chunk_bytes()?)?;
        bytes.fill(0xff);
        Ok(Self { grid_shape: index.grid.grid_shape(), bytes, object_len: u64::MAX })
    }

    /// Where the chunk at `cell` of the shard lies, or `None` where it is not stored.
    pub fn get(&self, cell: &[u64]) -> Result<Option<Range<u64>>> {
        let place = self.place(cell)?;
        let entry = self.bytes.get(place).and_then(|entry| {
            let (offset, len) = (entry.first_chunk::<8>()?, entry.last_chunk::<8>()?);
            Some((u64::from_le_bytes(*offset), u64::from_le_bytes(*len)))
        });
        let (offset, len) = entry.ok_or_else(|| self.outside(cell))?;
        if (offset, len) == (MISSING, MISSING) {
            return Ok(None);
        }
        match offset.checked_add(len) {
            Some(end) if end <= self.object_len => Ok(Some(offset..end)),
            _ => Err(Error::corrupt(
                format!("index of a shard, entry {cell:?}"),
                format!("a range within {} bytes", self.object_len),
                format!("{len} bytes at {offset}"),
            )),
        }
    }

    /// Notes where the chunk at `cell` of the shard lies.
    pub fn set(&mut self, cell: &[u64], range: Range<u64>) -> Result<()> {
        let Some(len) = range.end.checked_sub(range.start) else {
            return Err(Error::invalid(format!("a chunk cannot lie at {range:?}")));
        };
        let place = self.place(cell)?;
        let outside = self.outside(cell);
        let entry = self.bytes.get_mut(place).ok_or(outside)?;
        let (offset_bytes, len_bytes) = entry.split_at_mut(ENTRY_BYTES / 2);
        offset_bytes.copy_from_slice(&range.start.to_le_bytes());
        len_bytes.copy_from_slice(&len.to_le_bytes());
        Ok(())
    }

    /// Where the entry of a chunk lies in the decoded index.
    fn place(&self, cell: &[u64]) -> Result<Range<usize>> {
        let inside = cell.len() == self.grid_shape.len()
            && cell.iter().zip(&self.grid_shape).all(|(coordinate, extent)| coordinate < extent);
        if !inside {
            return Err(self.outside(cell));
        }
        // The index is in memory, so positions in it do not overflow.
        let linear = cell.iter().zip(&self.grid_shape).fold(0, |linear, (&i, n)| linear * n + i);
        let start = linear as usize * ENTRY_BYTES;
        Ok(start..start + ENTRY_BYTES)
    }

    fn outside(&self, cell: &[u64]) -> Error {
        Error::invalid(format!("a shard of {:?} chunks has none at {cell:?}", self.grid_shape))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{ShardEntries, ShardIndex};
    use crate::{ArraySpec, Codecs, Elements, ElementsBuf, Error, Grid, Region, Sharding};

    const SHARD: [u64; 2] = [4, 6];
    const CHUNK: [u64; 2] = [2, 3];

    fn index(at_start: bool) -> ShardIndex {
        let sharding = Sharding { index_at_start: at_start, ..Sharding::new(&SHARD) };
        ShardIndex::new(&sharding, &CHUNK).unwrap()
    }

    /// A shard put together by hand, with one chunk missing and the others in reverse order, and
    /// what it holds.
    fn build(sharding: &Sharding, chunks: &ArraySpec) -> (Vec<u8>, Vec<u8>) {
        let index = ShardIndex::new(sharding, &CHUNK).unwrap();
        let codecs = Codecs::new(chunks).unwrap();
        let grid = Grid::new(&SHARD, &CHUNK).unwrap();
        let mut entries = ShardEntries::empty(&index).unwrap();
        let mut decoded = [7u16; 24];
        let mut shard =
            if index.at_start() { vec![0; index.encoded_bytes() as usize] } else { Vec::new() };
        let cells: Vec<_> = grid.chunks_in(&Region::whole(&SHARD)).collect();
        for cell in cells.into_iter().skip(1).rev() {
            let region = grid.chunk_region(&cell);
            let values: Vec<u16> =
                (0..6).map(|i| (cell[0] * 100 + cell[1] * 10 + i) as u16).collect();
            for (i, value) in values.iter().enumerate() {
                let (y, x) = (region.origin()[0] + i as u64 / 3, region.origin()[1] + i as u64 % 3);
                decoded[(y * 6 + x) as usize] = *value;
            }
            let start = shard.len() as u64;
            let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
            shard.extend(codecs.encode(Elements::Fixed(&bytes)).unwrap());
            entries.set(&cell, start..shard.len() as u64).unwrap();
        }
        let encoded = index.encode(&entries).unwrap();
        if index.at_start() {
            shard[..encoded.len()].copy_from_slice(&encoded);
        } else {
            shard.extend(encoded);
        }
        (shard, decoded.iter().flat_map(|value| value.to_le_bytes()).collect())
    }

    #[test]
    fn a_shard_made_with_it_is_read_by_all_ways() {
        let little = json!({"name": "bytes", "configuration": {"endian": "little"}});
        let big = json!({"name": "bytes", "configuration": {"endian": "big"}});
        for at_start in [false, true] {
            for index_codecs in [vec![little.clone(), json!("crc32c")], vec![big.clone()]] {
                let mut sharding = Sharding::new(&SHARD);
                (sharding.index_at_start, sharding.index_codecs) = (at_start, index_codecs);
                let chunks =
                    ArraySpec::builder(&[8, 6], &CHUNK, "uint16").fill_value(7).build().unwrap();
                let index = ShardIndex::new(&sharding, &CHUNK).unwrap();
                assert_eq!(index.is_checked(), sharding.index_codecs.len() == 2);
                let (shard, expected) = build(&sharding, &chunks);
                let codecs = Codecs::new(&chunks.sharded(&sharding).unwrap()).unwrap();
                let expected = ElementsBuf::Fixed(expected);
                assert_eq!(codecs.decode(&shard).unwrap(), expected, "here");
                assert_eq!(codecs.decode_by_zarrs(&shard).unwrap(), expected, "by zarrs");
            }
        }
    }

    #[test]
    fn entries_round_trip() {
        for at_start in [false, true] {
            let index = index(at_start);
            assert_eq!(index.encoded_bytes(), 4 * 16 + 4);
            let place = if at_start { 0..68 } else { 32..100 };
            assert_eq!(index.range(100).unwrap(), place);
            let mut entries = ShardEntries::empty(&index).unwrap();
            entries.set(&[0, 1], 10..20).unwrap();
            entries.set(&[1, 1], 0..0).unwrap();
            let encoded = index.encode(&entries).unwrap();
            let found = index.decode(&encoded, 100).unwrap();
            assert_eq!(found.get(&[0, 0]).unwrap(), None);
            assert_eq!(found.get(&[0, 1]).unwrap(), Some(10..20));
            assert_eq!(found.get(&[1, 1]).unwrap(), Some(0..0));
        }
    }

    #[test]
    fn an_index_that_lies_is_corrupt() {
        let index = index(false);
        assert!(matches!(index.range(67), Err(Error::Corrupt { .. })));
        let encoded = index.encode(&ShardEntries::empty(&index).unwrap()).unwrap();
        for len in [0, 4, 67] {
            let short = index.decode(&encoded[..len], 100);
            assert!(matches!(short, Err(Error::Corrupt { .. })));
        }
        let mut flipped = encoded.clone();
        flipped[0] ^= 1;
        assert!(matches!(index.decode(&flipped, 100), Err(Error::Corrupt { .. })));
        for (offset, len) in [(0, u64::MAX), (u64::MAX, 1), (95, 6), (1 << 40, 1)] {
            let mut forged = encoded[..64].to_vec();
            forged[..8].copy_from_slice(&u64::to_le_bytes(offset));
            forged[8..16].copy_from_slice(&u64::to_le_bytes(len));
            forged.extend(crc32c::crc32c(&forged).to_le_bytes());
            let entries = index.decode(&forged, 100).unwrap();
            assert!(matches!(entries.get(&[0, 0]), Err(Error::Corrupt { .. })), "{offset} {len}");
            assert_eq!(entries.get(&[0, 1]).unwrap(), None);
        }
    }

    #[test]
    fn cells_outside_of_a_shard_are_refused() {
        let index = index(false);
        let mut entries = ShardEntries::empty(&index).unwrap();
        for cell in [&[2, 0][..], &[0, 2], &[0], &[0, 0, 0], &[u64::MAX, u64::MAX]] {
            assert!(entries.get(cell).is_err() && entries.set(cell, 0..1).is_err(), "{cell:?}");
        }
        #[expect(clippy::reversed_empty_ranges, reason = "that it is refused is what is tested")]
        let backwards = 5..4;
        assert!(entries.set(&[0, 0], backwards).is_err());
        let other = ShardIndex::new(&Sharding::new(&[2, 3]), &CHUNK).unwrap();
        assert!(other.encode(&entries).is_err());
    }

    #[test]
    fn an_index_needs_a_fixed_size_and_a_sane_one() {
        let mut sharding = Sharding::new(&SHARD);
        sharding.index_codecs.push(json!({"name": "gzip", "configuration": {"level": 1}}));
        assert!(ShardIndex::new(&sharding, &CHUNK).is_err());
        assert!(ShardIndex::new(&Sharding::new(&[1 << 62, 1 << 62]), &[1, 1]).is_err());
        let large = ShardIndex::new(&Sharding::new(&[1 << 50]), &[1]).unwrap();
        assert!(matches!(large.decode(&[0; 64], 64), Err(Error::Corrupt { .. })));
    }

    #[test]
    fn a_shard_of_no_dimensions_has_one_chunk() {
        let index = ShardIndex::new(&Sharding::new(&[]), &[]).unwrap();
        let mut entries = ShardEntries::empty(&index).unwrap();
        assert_eq!(entries.get(&[]).unwrap(), None);
        entries.set(&[], 1..3).unwrap();
        assert_eq!(entries.get(&[]).unwrap(), Some(1..3));
    }
}
