//! The index beside a shard: which record is which chunk.

use std::fmt::Write as _;
use std::ops::Range;

use serde::{Deserialize, Serialize};

/// The form of an index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum IndexKind {
    /// `"x_y_z": record`, in voxels.
    Json,
    /// `x,y,z,offset,size,batch_idx`, in chunks, with the bytes of the batch of each record.
    Csv,
}

impl IndexKind {
    /// The ending of its file.
    pub(super) fn ending(self) -> &'static str {
        match self {
            Self::Json => "json",
            Self::Csv => "csv",
        }
    }
}

/// An index under way.
#[derive(Debug)]
pub(super) struct Index {
    pub(super) kind: IndexKind,
    text: String,
    records: u64,
}

impl Index {
    /// An empty index of a shard with this many bytes before its first batch.
    pub(super) fn new(kind: IndexKind, head_bytes: u64) -> Self {
        let text = match kind {
            IndexKind::Json => "{".to_owned(),
            IndexKind::Csv => {
                format!("# schema_size={head_bytes}\nx,y,z,offset,size,batch_idx\n")
            }
        };
        Self { kind, text, records: 0 }
    }

    /// Adds the next record: where it is in voxels and in chunks, and the bytes of its batch with its number there.
    pub(super) fn push(
        &mut self,
        voxel: [i64; 3],
        chunk: [i32; 3],
        bytes: &Range<u64>,
        number: usize,
    ) {
        // Writing to a string cannot fail.
        let _written = match self.kind {
            IndexKind::Json => {
                let [x, y, z] = voxel;
                let comma = if self.records == 0 { "" } else { "," };
                write!(self.text, "{comma}\n  \"{x}_{y}_{z}\": {}", self.records)
            }
            IndexKind::Csv => {
                let ([x, y, z], size) = (chunk, bytes.end - bytes.start);
                writeln!(self.text, "{x},{y},{z},{},{size},{number}", bytes.start)
            }
        };
        self.records += 1;
    }

    /// The content of its file.
    pub(super) fn finish(mut self) -> Vec<u8> {
        if self.kind == IndexKind::Json {
            self.text.push_str("\n}\n");
        }
        self.text.into_bytes()
    }
}
