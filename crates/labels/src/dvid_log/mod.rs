//! DVID's mutation logs: what changed the mapping of a version, record by record.
//!
//! A log is one file per data instance and version. It has no header and no checksum:
//!
//! ```text
//!  u16 kind │ u32 length │ length bytes of protobuf │ u16 kind │ …        little-endian
//! ```
//!
//! A server that dies leaves a torn record at the end. Everything before it counts, and
//! [`Replay::torn_at`] says where it begins.

mod wire;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use chunkyard_store::{Error, Result};

/// Bytes before the content of a record.
const HEAD: usize = 6;

/// One record of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Record {
    /// Voxels of a body became another body.
    Split {
        /// The mutation.
        mutation: u64,
        /// The body that was split.
        body: u64,
        /// The new body.
        new_body: u64,
        /// For each supervoxel that was cut: the ids of the part and of the rest.
        supervoxels: BTreeMap<u64, (u64, u64)>,
    },
    /// Bodies were merged into one.
    Merge {
        /// The mutation.
        mutation: u64,
        /// The body that stays.
        target: u64,
        /// The bodies that went into it.
        merged: Vec<u64>,
    },
    /// Supervoxels were given to a body; 0 retires them.
    Mapping {
        /// The mutation.
        mutation: u64,
        /// The body.
        body: u64,
        /// The supervoxels.
        supervoxels: Vec<u64>,
    },
    /// A supervoxel was cut in two.
    SupervoxelSplit {
        /// The mutation.
        mutation: u64,
        /// The supervoxel, whose id is retired.
        supervoxel: u64,
        /// The part that was cut out.
        part: u64,
        /// What was left.
        rest: u64,
    },
    /// Supervoxels left a body and became one of their own.
    Cleave {
        /// The mutation.
        mutation: u64,
        /// The body they left.
        body: u64,
        /// The new body.
        new_body: u64,
        /// The supervoxels.
        supervoxels: Vec<u64>,
    },
    /// A body got another id.
    Renumber {
        /// The mutation.
        mutation: u64,
        /// The id it had.
        body: u64,
        /// The id it has.
        new_body: u64,
    },
    /// A kind of record that says nothing about bodies.
    Other {
        /// The number of the kind.
        kind: u16,
    },
}

/// The records of a log, in the order they were written.
#[derive(Debug, Clone)]
pub struct Records<'a> {
    file: &'a str,
    bytes: &'a [u8],
    at: usize,
    torn_at: Option<u64>,
}

impl<'a> Records<'a> {
    /// The records of the bytes of a log; `file` is what errors call it.
    pub fn new(file: &'a str, bytes: &'a [u8]) -> Self {
        Self { file, bytes, at: 0, torn_at: None }
    }

    /// Where the torn record at the end begins, if there is one; known when all were read.
    pub fn torn_at(&self) -> Option<u64> {
        self.torn_at
    }

    fn take(&mut self) -> Option<(u16, usize, &'a [u8])> {
        let rest = self.bytes.get(self.at..)?;
        if rest.is_empty() {
            return None;
        }
        let record = rest.split_first_chunk::<HEAD>().and_then(|(head, rest)| {
            let kind = u16::from_le_bytes([head[0], head[1]]);
            let length = u32::from_le_bytes([head[2], head[3], head[4], head[5]]) as usize;
            Some((kind, self.at, rest.get(..length)?))
        });
        match record {
            Some((_, _, content)) => self.at += HEAD + content.len(),
            None => {
                self.torn_at = Some(self.at as u64);
                self.at = self.bytes.len();
            }
        }
        record
    }
}

impl Iterator for Records<'_> {
    type Item = Result<Record>;

    fn next(&mut self) -> Option<Self::Item> {
        let (kind, at, content) = self.take()?;
        Some(wire::parse(kind, content).map_err(|error| Error::Corrupt {
            file: self.file.to_owned(),
            what: format!("record of kind {kind} at byte {at}"),
            expected: "a protobuf message of that kind".into(),
            found: error.to_string(),
        }))
    }
}

/// What a log does to the mapping.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Replay {
    /// The body of each supervoxel that the log maps; 0 for retired ids.
    pub mapping: BTreeMap<u64, u64>,
    /// How many records were read.
    pub records: u64,
    /// Where a torn record at the end begins.
    pub torn_at: Option<u64>,
}

impl Replay {
    /// Reads a log from its beginning to its end; `file` is what errors call it. Later records win.
    pub fn of(file: &str, bytes: &[u8]) -> Result<Self> {
        let mut replay = Self::default();
        let mut records = Records::new(file, bytes);
        let mut renumbered = BTreeSet::new();
        for record in &mut records {
            replay.records += 1;
            match record? {
                Record::Mapping { body, supervoxels, .. } => {
                    replay.mapping.extend(supervoxels.into_iter().map(|id| (id, body)));
                }
                Record::Split { supervoxels, .. } => {
                    replay.mapping.extend(supervoxels.into_keys().map(|id| (id, 0)));
                }
                Record::SupervoxelSplit { supervoxel, .. } => {
                    replay.mapping.insert(supervoxel, 0);
                }
                Record::Cleave { new_body, .. } => {
                    replay.mapping.insert(new_body, 0);
                }
                Record::Renumber { new_body, .. } => {
                    renumbered.insert(new_body);
                }
                Record::Merge { .. } | Record::Other { .. } => {}
            }
        }
        // DVID 1.0 retires the new id of a body without a record of the mapping; later versions write one.
        for id in renumbered {
            replay.mapping.entry(id).or_insert(0);
        }
        replay.torn_at = records.torn_at();
        Ok(replay)
    }
}
