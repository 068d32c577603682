//! Every script with every codec, in blocks of several sizes.

use std::path::Path;

use chunkyard_array_format::{Script, cases};
use tempfile::TempDir;

/// The names of all codecs.
pub(crate) const CODECS: [&str; 3] = ["none", "lz4", "zstd"];

/// Target sizes of blocks: one per chunk, a few chunks each, all in one.
pub(crate) const BLOCKS: [usize; 3] = [1, 64, 8 << 20];

/// A script, and how its blocks are made.
pub(crate) struct Case {
    /// Its topic, for messages.
    pub(crate) name: String,
    pub(crate) script: Script,
    pub(crate) codec: &'static str,
    pub(crate) block: usize,
    directory: TempDir,
}

impl Case {
    /// A directory of its own.
    pub(crate) fn directory(&self) -> &Path {
        self.directory.path()
    }
}

/// All scripts, all codecs, all sizes.
pub(crate) fn every() -> Vec<Case> {
    cases::all().into_iter().flat_map(|(name, script)| with_all(name, &script)).collect()
}

/// A script with all codecs and all sizes.
pub(crate) fn with_all(name: &str, script: &Script) -> Vec<Case> {
    let pairs = CODECS.into_iter().flat_map(|codec| BLOCKS.map(|block| (codec, block)));
    pairs
        .map(|(codec, block)| Case {
            name: format!("{name}, {codec}, blocks of {block}"),
            script: script.clone(),
            codec,
            block,
            directory: tempfile::tempdir().unwrap(),
        })
        .collect()
}
