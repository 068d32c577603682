//! Whether an export is complete and undamaged: the shards that should be there, against those that are.
//!
//! A number of files says nothing: shards whose blocks are all label 0 have none. So every shard that the source reaches into
//! must have a line, and every file of a line the size and the checksum that the line says.

use std::collections::BTreeSet;

use chunkyard_store::{Error, Result, Store};
use futures::{StreamExt, TryStreamExt, stream};
use serde::Serialize;

use super::exporter::Exporter;
use super::lines::{Line, Lines};

/// Bytes of a file that are read at once.
const PIECE: u64 = 8 << 20;

/// What a check found.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Checked {
    /// Shards that the source reaches into.
    pub expected: u64,
    /// Those that are there, whole.
    pub present: u64,
    /// Those whose blocks are all label 0.
    pub empty: u64,
    /// Those that have not been written.
    pub missing: Vec<ShardName>,
    /// Files that are not as they were written.
    pub damaged: Vec<Difference>,
    /// Files among the shards that belong to none.
    pub unexpected: Vec<String>,
}

/// Which shard is meant.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct ShardName {
    /// The scale.
    pub scale: usize,
    /// The number.
    pub shard: u64,
}

/// A file that is not as it was written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// Its path.
    pub path: String,
    /// What is wrong.
    pub what: String,
}

impl Checked {
    /// How many shards are missing, and files damaged or of no shard.
    pub fn errors(&self) -> usize {
        self.missing.len() + self.damaged.len() + self.unexpected.len()
    }
}

impl Exporter {
    /// Compares the target with what the source says must be there. Every file is read.
    pub async fn check(&self) -> Result<Checked> {
        let lines = Lines::open(self.target()).await?;
        let mut checked = Checked::default();
        let mut sound = Vec::new();
        for scale in 0..self.num_scales() {
            let shards = self.shards(scale).await?;
            for shard in shards.iter() {
                checked.expected += 1;
                match lines.get(scale, shard.number) {
                    Some(line) if line.blocks == 0 => checked.empty += 1,
                    Some(line) => sound.push(line),
                    None => checked.missing.push(ShardName { scale, shard: shard.number }),
                }
            }
        }
        let found: Vec<Vec<Difference>> = stream::iter(sound)
            .map(|line| differences(self.target(), line))
            .buffered(self.limits().packs_in_flight.max(1))
            .try_collect()
            .await?;
        for differences in found {
            checked.present += u64::from(differences.is_empty());
            checked.damaged.extend(differences);
        }
        checked.unexpected = self.unexpected(&lines).await?;
        Ok(checked)
    }

    /// Files in the folders of shards that no line names.
    async fn unexpected(&self, lines: &Lines) -> Result<Vec<String>> {
        let named: BTreeSet<&str> =
            lines.all().flat_map(|line| &line.files).map(|file| file.path.as_str()).collect();
        let mut unexpected = Vec::new();
        for folder in self.folders() {
            let found = self.target().list_dir(&folder).await?;
            let paths = found.objects.into_iter().map(|meta| meta.path);
            unexpected.extend(paths.filter(|path| !named.contains(path.as_str())));
        }
        Ok(unexpected)
    }
}

/// What is wrong with the files of a shard.
async fn differences(store: &Store, line: &Line) -> Result<Vec<Difference>> {
    let mut found = Vec::new();
    for file in &line.files {
        let mut differs = |what: String| found.push(Difference { path: file.path.clone(), what });
        match store.head(&file.path).await {
            Err(Error::NotFound { .. }) => differs("missing".to_owned()),
            Err(error) => return Err(error),
            Ok(meta) if meta.size != file.bytes => {
                differs(format!("{} bytes, and {} were written", meta.size, file.bytes));
            }
            Ok(meta) => {
                let crc = checksum(store, &file.path, meta.size).await?;
                if crc != file.crc32c {
                    differs(format!("CRC-32C {crc}, and {} was written", file.crc32c));
                }
            }
        }
    }
    Ok(found)
}

/// The checksum of a file, in bounded memory.
async fn checksum(store: &Store, path: &str, size: u64) -> Result<String> {
    let (mut at, mut crc) = (0, 0);
    while at < size {
        let end = at.saturating_add(PIECE).min(size);
        crc = crc32c::crc32c_append(crc, &store.get_range(path, at..end).await?);
        at = end;
    }
    Ok(format!("{crc:08x}"))
}
