//! Commits: of references, of few chunks, of many tiny ones, one after another.

mod change;
mod history;
mod references;
mod tiny;

use std::error::Error;

use chunkyard_array::ArraySpec;
use chunkyard_engine::repo::{CreateOptions, OpenOptions, Repository};
use serde_json::json;

pub use change::{change, open_chunk};
pub use history::history;
pub use references::{bulk, prepare, stage};
pub use tiny::tiny;

/// Bytes of a chunk of the arrays of references.
pub const CHUNK: usize = 1000;

/// A new repository.
pub async fn create(directory: &str) -> Result<Repository, Box<dyn Error>> {
    Ok(Repository::create(directory, OpenOptions::default(), CreateOptions::default()).await?)
}

/// An array of a number of chunks of 1,000 bytes.
pub fn spec(refs: u64) -> Result<ArraySpec, Box<dyn Error>> {
    let codecs = vec![json!({"name": "bytes"})];
    Ok(ArraySpec::builder(&[refs.div_ceil(1000), 1000, 1000], &[1, 1, 1000], "uint8")
        .codecs(codecs)
        .build()?)
}

/// The index of its n-th chunk.
pub fn index(at: u64) -> Vec<u64> {
    vec![at / 1000, at % 1000, 0]
}
