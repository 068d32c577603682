//! DVID's messages: label indices and mappings in Protocol Buffers. Maps are written by key, so answers are repeatable.
//!
//! Compatible implementations: DVID (`datatype/common/proto/labelops.proto`, `entries.proto`).

use std::collections::BTreeMap;

use chunkyard_array::codec::label_block::value::{Compression, wrap_onto};
use chunkyard_engine::Result;
use chunkyard_engine::format::dvid::LabelIndex;
use prost::Message;

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
}

#[derive(Clone, PartialEq, Message)]
struct Counts {
    #[prost(btree_map = "uint64, uint32", tag = "1")]
    counts: BTreeMap<u64, u32>,
}

/// Mappings to be set.
#[derive(Clone, PartialEq, Message)]
pub(super) struct MappingOps {
    /// Them.
    #[prost(message, repeated, tag = "1")]
    pub(super) mappings: Vec<MappingOp>,
}

/// Supervoxels that are mapped to one body.
#[derive(Clone, PartialEq, Message)]
pub(super) struct MappingOp {
    /// A number that the client chose.
    #[prost(uint64, tag = "1")]
    pub(super) mutid: u64,
    /// The body.
    #[prost(uint64, tag = "2")]
    pub(super) mapped: u64,
    /// The supervoxels.
    #[prost(uint64, repeated, tag = "3")]
    pub(super) original: Vec<u64>,
}

/// An index as a message.
pub(super) fn index(index: LabelIndex) -> Vec<u8> {
    let block = |(at, counts)| (pack(at), Counts { counts });
    let message = Index {
        blocks: index.blocks.into_iter().map(block).collect(),
        label: index.label,
        last_mutid: index.mutation,
        last_mod_time: index.time,
        last_mod_user: index.user,
    };
    message.encode_to_vec()
}

/// An index as one of the list that `indices` answers; a body that is not there has its label alone.
pub(super) fn listed_index(label: u64, found: Option<LabelIndex>) -> Result<Vec<u8>> {
    let message = index(found.unwrap_or(LabelIndex { label, ..LabelIndex::default() }));
    let mut out = vec![0x0a];
    prost::encoding::encode_varint(message.len() as u64, &mut out);
    out.extend(message);
    Ok(out)
}

/// An index as `indices-compressed` answers it: length, label, and the value that DVID would store, LZ4.
pub(super) fn packed_index(label: u64, found: Option<LabelIndex>) -> Result<Vec<u8>> {
    let mut packed = Vec::new();
    if let Some(found) = found {
        wrap_onto(&index(found), Compression::Lz4, false, &mut packed)?;
    }
    let mut out = (packed.len() as u64).to_le_bytes().to_vec();
    out.extend(label.to_le_bytes());
    out.extend(packed);
    Ok(out)
}

/// A position along z, y, x as one number. Coordinates beyond 20 bits are cut off, as DVID does.
fn pack(at: [i32; 3]) -> u64 {
    at.iter().fold(0, |packed, at| {
        let sign = if *at < 0 { SIGN } else { 0 };
        packed << AXIS_BITS | sign | u64::from(at.unsigned_abs()) & (SIGN - 1)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_are_three_signed_fields() {
        assert_eq!(pack([3, 2, 1]), 0x0c00_0040_0001);
        assert_eq!(pack([0, 0, -1]), 0x10_0001);
    }

    #[test]
    fn an_index_is_read_as_it_was_written() {
        let counts = BTreeMap::from([(7, 5), (9, 1)]);
        let written = LabelIndex {
            label: 7,
            blocks: BTreeMap::from([([-3, 2, 1], counts)]),
            mutation: 4,
            time: "2026-01-02T03:04:05Z".to_owned(),
            user: "me".to_owned(),
        };
        let read = LabelIndex::parse("test", &index(written.clone())).unwrap();
        assert_eq!(read, written);
        let packed = packed_index(7, Some(written.clone())).unwrap();
        assert_eq!(LabelIndex::parse_value("test", &packed[16..]).unwrap(), written);
        assert_eq!(packed_index(9, None).unwrap().len(), 16);
    }
}
