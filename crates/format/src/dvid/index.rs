//! Label indices: which supervoxels a body has in which block, and how many voxels of each.
//!
//! Compatible implementations: DVID (`datatype/common/proto/labelops.proto`).

use std::collections::BTreeMap;

use chunkyard_array::codec::label_block::value;
use chunkyard_store::{Error, Result};
use prost::Message;

/// Bytes of an index, which hold some nine million supervoxels in blocks.
const INDEX_BYTES_MAX: usize = 256 << 20;
/// What a byte can stand for where the server packs indices (LZ4), and for short ones.
const RATIO_MAX: usize = 255;
const SLACK_BYTES: usize = 1 << 10;
/// Bits of a coordinate: a sign and a magnitude.
const AXIS_BITS: u32 = 21;
const SIGN: u64 = 1 << (AXIS_BITS - 1);

#[derive(Clone, PartialEq, Message)]
struct Index {
    #[prost(btree_map = "uint64, message", tag = "1")]
    blocks: BTreeMap<u64, Counts>,
    #[prost(uint64, tag = "2")]
    label: u64,
    #[prost(uint64, tag = "3")]
    last_mutid: u64,
    #[prost(string, tag = "4")]
    last_mod_time: String,
    #[prost(string, tag = "5")]
    last_mod_user: String,
    #[prost(string, tag = "6")]
    last_mod_app: String,
}

#[derive(Clone, PartialEq, Message)]
struct Counts {
    #[prost(btree_map = "uint64, uint32", tag = "1")]
    counts: BTreeMap<u64, u32>,
}

/// What DVID stored about a body.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LabelIndex {
    /// The body.
    pub label: u64,
    /// For each block, by its position along z, y, x: the voxels of each supervoxel.
    pub blocks: BTreeMap<[i32; 3], BTreeMap<u64, u32>>,
    /// The last mutation of the body.
    pub mutation: u64,
    /// When that was, as DVID wrote it (RFC 3339).
    pub time: String,
    /// By whom.
    pub user: String,
}

impl LabelIndex {
    /// Reads the stored value of an index; `what` is what errors call it.
    pub fn parse_value(what: &str, bytes: &[u8]) -> Result<Self> {
        let plausible = bytes.len().saturating_mul(RATIO_MAX).saturating_add(SLACK_BYTES);
        let plain = value::unwrap(bytes, plausible.min(INDEX_BYTES_MAX))?;
        Self::parse(what, &plain)
    }

    /// Reads the message alone.
    pub fn parse(what: &str, bytes: &[u8]) -> Result<Self> {
        let index = Index::decode(bytes).map_err(|error| Error::Corrupt {
            file: what.to_owned(),
            what: "label index".into(),
            expected: "a protobuf message LabelIndex".into(),
            found: error.to_string(),
        })?;
        let block = |(key, value): (u64, Counts)| (unpack(key), value.counts);
        Ok(Self {
            label: index.label,
            blocks: index.blocks.into_iter().map(block).collect(),
            mutation: index.last_mutid,
            time: index.last_mod_time,
            user: index.last_mod_user,
        })
    }

    /// When the last mutation was, in milliseconds since 1970, if it is known.
    pub fn time_ms(&self) -> Option<i64> {
        self.time.parse::<jiff::Timestamp>().ok().map(jiff::Timestamp::as_millisecond)
    }

    /// Voxels of the body.
    pub fn voxels(&self) -> u64 {
        self.blocks.values().flat_map(BTreeMap::values).map(|count| u64::from(*count)).sum()
    }
}

/// A position along z, y, x from its three fields in one number.
fn unpack(key: u64) -> [i32; 3] {
    let axis = |number: u32| {
        let field = key >> (number * AXIS_BITS) & ((1 << AXIS_BITS) - 1);
        let magnitude = (field & (SIGN - 1)) as i32;
        if field & SIGN == 0 { magnitude } else { -magnitude }
    };
    [axis(2), axis(1), axis(0)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_are_three_signed_fields() {
        assert_eq!(unpack(0x0c00_0040_0001), [3, 2, 1]);
        assert_eq!(unpack(0x10_0001), [0, 0, -1]);
    }

    #[test]
    fn an_index_is_read() {
        let counts = Counts { counts: BTreeMap::from([(7, 5), (9, 1)]) };
        let index = Index { blocks: BTreeMap::from([(1, counts)]), label: 7, ..Index::default() };
        let read = LabelIndex::parse("test", &index.encode_to_vec()).unwrap();
        assert_eq!((read.label, read.voxels()), (7, 6));
        assert_eq!(read.blocks[&[0, 0, 1]], BTreeMap::from([(7, 5), (9, 1)]));
        assert!(LabelIndex::parse("test", &[0x0a, 0xff]).is_err());
    }

    /// LZ4 of zeros takes a byte for 255; a length beyond that is not what was packed.
    #[test]
    fn a_length_that_so_few_bytes_cannot_have_is_refused_before_memory_is_taken() {
        let stored = [&[0x80][..], &(200u32 << 20).to_le_bytes(), &[0; 100]].concat();
        let error = LabelIndex::parse_value("test", &stored).unwrap_err().to_string();
        assert!(error.contains(&(200u32 << 20).to_string()), "{error}");
    }
}
