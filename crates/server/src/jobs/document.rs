//! What a job is, as it is kept: the request, the plan, and the tasks.

use chunkyard_engine::export::{Plan, Shard};
use chunkyard_engine::job::Job;
use chunkyard_engine::labels::Ids;
use chunkyard_engine::{Error, Result};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::request::Request;

/// The kind of job that workers fetch over Arrow Flight.
pub(crate) const KIND: &str = "export-flight";

/// The work of a job.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Work {
    /// What was asked for.
    pub(crate) request: Request,
    /// The export: of one version, whatever becomes of the branch.
    pub(crate) plan: Plan,
    /// What workers are told.
    pub(crate) about: About,
    /// When the job was made, in milliseconds since 1970.
    pub(crate) created_ms: i64,
}

/// What workers are told of a job, once per claim.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct About {
    pub(crate) source: String,
    pub(crate) at: Option<String>,
    pub(crate) path: Option<String>,
    pub(crate) ids: Ids,
    pub(crate) codec: String,
    pub(crate) stripped: bool,
    pub(crate) index: bool,
    pub(crate) shards: u64,
    pub(crate) tasks: u64,
    pub(crate) scales: Vec<AboutScale>,
    pub(crate) spec: Value,
}

/// A scale of a job.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct AboutScale {
    pub(crate) scale: usize,
    pub(crate) key: String,
    pub(crate) size: [u64; 3],
    pub(crate) voxel_offset: [i64; 3],
    pub(crate) chunk_size: [u64; 3],
    pub(crate) resolution: [f64; 3],
    pub(crate) shards: u64,
}

impl Work {
    /// The work of a job of ours.
    pub(crate) fn of(job: &Job) -> Result<Self> {
        if job.kind() != KIND {
            return Err(Error::unsupported(format!(
                "{}, a job of kind {:?}, over Arrow Flight",
                job.store().url(),
                job.kind()
            )));
        }
        serde_json::from_value(job.work().clone())
            .map_err(|error| corrupt(job, "the work of a job", &error))
    }
}

/// What one claim gives.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) enum Task {
    /// Shards of blocks, one after the other.
    Blocks(Vec<Shard>),
    /// A part of the label index.
    Index(IndexPart),
}

/// Bodies of the label index.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct IndexPart {
    pub(crate) part: u64,
    /// The first body, and the last one.
    pub(crate) first: u64,
    pub(crate) last: u64,
    /// About how many rows there are.
    pub(crate) weight: u64,
}

/// What a stream holds, and what is acknowledged: a shard, or a part of the index.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "stream", rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) enum Unit {
    Blocks { scale: usize, shard: u64 },
    Index { part: u64 },
}

/// The end of a unit, as the stream tells it and as the worker says it back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "stream", rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) enum Marker {
    Blocks { scale: usize, shard: u64, rows: u64, bytes: u64, crc32c: u32 },
    Index { part: u64, rows: u64, bytes: u64, crc32c: u32 },
}

impl Marker {
    pub(crate) fn unit(&self) -> Unit {
        match self {
            Self::Blocks { scale, shard, .. } => Unit::Blocks { scale: *scale, shard: *shard },
            Self::Index { part, .. } => Unit::Index { part: *part },
        }
    }

    pub(crate) fn rows(&self) -> u64 {
        match self {
            Self::Blocks { rows, .. } | Self::Index { rows, .. } => *rows,
        }
    }

    pub(crate) fn bytes(&self) -> u64 {
        match self {
            Self::Blocks { bytes, .. } | Self::Index { bytes, .. } => *bytes,
        }
    }
}

impl Task {
    pub(crate) fn parse(job: &Job, bytes: &[u8]) -> Result<Self> {
        serde_json::from_slice(bytes).map_err(|error| corrupt(job, "a task of a job", &error))
    }

    /// What the stream holds, in its order.
    pub(crate) fn units(&self) -> Vec<Unit> {
        match self {
            Self::Blocks(shards) => {
                let unit = |shard: &Shard| Unit::Blocks { scale: shard.scale, shard: shard.number };
                shards.iter().map(unit).collect()
            }
            Self::Index(part) => vec![Unit::Index { part: part.part }],
        }
    }
}

/// The result of a task: who acknowledged what.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Acked {
    pub(crate) worker: String,
    pub(crate) epoch: u32,
    pub(crate) shards: Vec<Marker>,
}

impl Acked {
    pub(crate) fn parse(job: &Job, bytes: &[u8]) -> Result<Self> {
        serde_json::from_slice(bytes).map_err(|error| corrupt(job, "the result of a task", &error))
    }
}

fn corrupt(job: &Job, what: &str, error: &serde_json::Error) -> Error {
    Error::Corrupt {
        file: job.store().url().to_owned(),
        what: what.to_owned(),
        expected: "what this server writes there".to_owned(),
        found: error.to_string(),
    }
}
