//! The protobuf messages of a log, as DVID defines them.

use std::collections::HashMap;

use prost::{DecodeError, Message};

use super::Record;

const SPLIT: u16 = 1;
const MERGE: u16 = 2;
const MAPPING: u16 = 5;
const SUPERVOXEL_SPLIT: u16 = 6;
const CLEAVE: u16 = 7;
const RENUMBER: u16 = 8;

#[derive(Clone, PartialEq, Message)]
struct SplitOp {
    #[prost(uint64, tag = "1")]
    mutid: u64,
    #[prost(uint64, tag = "2")]
    target: u64,
    #[prost(uint64, tag = "3")]
    newlabel: u64,
    #[prost(map = "uint64, message", tag = "6")]
    svsplits: HashMap<u64, SupervoxelParts>,
}

#[derive(Clone, Copy, PartialEq, Message)]
struct SupervoxelParts {
    #[prost(uint64, tag = "1")]
    splitlabel: u64,
    #[prost(uint64, tag = "2")]
    remainlabel: u64,
}

#[derive(Clone, PartialEq, Message)]
struct MergeOp {
    #[prost(uint64, tag = "1")]
    mutid: u64,
    #[prost(uint64, tag = "2")]
    target: u64,
    #[prost(uint64, repeated, tag = "3")]
    merged: Vec<u64>,
}

#[derive(Clone, PartialEq, Message)]
struct MappingOp {
    #[prost(uint64, tag = "1")]
    mutid: u64,
    #[prost(uint64, tag = "2")]
    mapped: u64,
    #[prost(uint64, repeated, tag = "3")]
    original: Vec<u64>,
}

#[derive(Clone, Copy, PartialEq, Message)]
struct SupervoxelSplitOp {
    #[prost(uint64, tag = "1")]
    mutid: u64,
    #[prost(uint64, tag = "2")]
    supervoxel: u64,
    #[prost(uint64, tag = "3")]
    splitlabel: u64,
    #[prost(uint64, tag = "4")]
    remainlabel: u64,
}

#[derive(Clone, PartialEq, Message)]
struct CleaveOp {
    #[prost(uint64, tag = "1")]
    mutid: u64,
    #[prost(uint64, tag = "2")]
    target: u64,
    #[prost(uint64, tag = "3")]
    cleavedlabel: u64,
    #[prost(uint64, repeated, tag = "4")]
    cleaved: Vec<u64>,
}

#[derive(Clone, Copy, PartialEq, Message)]
struct RenumberOp {
    #[prost(uint64, tag = "1")]
    mutid: u64,
    #[prost(uint64, tag = "2")]
    target: u64,
    #[prost(uint64, tag = "3")]
    newlabel: u64,
}

/// The record that the content of a kind is.
pub(super) fn parse(kind: u16, content: &[u8]) -> Result<Record, DecodeError> {
    Ok(match kind {
        SPLIT => {
            let op = SplitOp::decode(content)?;
            let parts = |parts: SupervoxelParts| (parts.splitlabel, parts.remainlabel);
            let supervoxels = op.svsplits.into_iter().map(|(id, ids)| (id, parts(ids))).collect();
            let (mutation, body, new_body) = (op.mutid, op.target, op.newlabel);
            Record::Split { mutation, body, new_body, supervoxels }
        }
        MERGE => {
            let op = MergeOp::decode(content)?;
            Record::Merge { mutation: op.mutid, target: op.target, merged: op.merged }
        }
        MAPPING => {
            let op = MappingOp::decode(content)?;
            Record::Mapping { mutation: op.mutid, body: op.mapped, supervoxels: op.original }
        }
        SUPERVOXEL_SPLIT => {
            let op = SupervoxelSplitOp::decode(content)?;
            let (mutation, supervoxel) = (op.mutid, op.supervoxel);
            let (part, rest) = (op.splitlabel, op.remainlabel);
            Record::SupervoxelSplit { mutation, supervoxel, part, rest }
        }
        CLEAVE => {
            let op = CleaveOp::decode(content)?;
            let (mutation, body, new_body) = (op.mutid, op.target, op.cleavedlabel);
            Record::Cleave { mutation, body, new_body, supervoxels: op.cleaved }
        }
        RENUMBER => {
            let op = RenumberOp::decode(content)?;
            Record::Renumber { mutation: op.mutid, body: op.target, new_body: op.newlabel }
        }
        kind => Record::Other { kind },
    })
}
