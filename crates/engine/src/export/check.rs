//! Whether an export is complete and undamaged: the shards that should be there, against those that are.
//!
//! A number of files says nothing: shards whose blocks are all label 0 have none. So every shard that the source reaches into
//! must have a line, and every file of a line the size and the checksum that the line says.

use std::collections::BTreeSet;

use chunkyard_store::{Error, Result, Store};
use futures::{StreamExt, TryStreamExt, stream};
use serde::Serialize;
use serde_json::Value;

use super::exporter::Exporter;
use super::lines::{Line, Lines};
use super::plan::Emit;
use super::report::LOG;
use super::run::INFO;
use super::segments;

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

/// What a look at a shard finds.
enum Look {
    Missing(ShardName),
    Empty,
    There(Vec<Difference>),
}

impl Exporter {
    /// Compares the target with what the source says must be there. Every file is read.
    pub async fn check(&self) -> Result<Checked> {
        let lines = Lines::open(self.target()).await?;
        let mut checked = Checked::default();
        for scale in 0..self.num_scales() {
            let shards = self.shards(scale).await?;
            let looks = stream::iter(shards.iter()).map(|shard| {
                let lines = &lines;
                async move {
                    let Some(line) = lines.get(scale, shard.number).await? else {
                        return Ok(Look::Missing(ShardName { scale, shard: shard.number }));
                    };
                    if line.blocks == 0 {
                        return Ok(Look::Empty);
                    }
                    differences(self.target(), &line).await.map(Look::There)
                }
            });
            let mut looks = looks.buffered(self.limits().packs_in_flight.max(1));
            while let Some(look) = looks.try_next().await? {
                checked.expected += 1;
                match look {
                    Look::Missing(name) => checked.missing.push(name),
                    Look::Empty => checked.empty += 1,
                    Look::There(differences) => {
                        checked.present += u64::from(differences.is_empty());
                        checked.damaged.extend(differences);
                    }
                }
            }
        }
        checked.damaged.extend(self.ends().await?);
        checked.unexpected = self.unexpected(&lines).await?;
        Ok(checked)
    }

    /// What is wrong with the files that come when all shards are there.
    async fn ends(&self) -> Result<Vec<Difference>> {
        let mut found = Vec::new();
        let mut differs = |path: &str, what: &str| {
            found.push(Difference { path: path.to_owned(), what: what.to_owned() });
        };
        match json(self.target(), LOG).await? {
            None => differs(LOG, "missing: no run has come to its end"),
            Some(Value::Object(_)) => {}
            Some(_) => differs(LOG, "not the report of an export"),
        }
        if !self.plan().emits(Emit::Precomputed) {
            return Ok(found);
        }
        let Some(mut info) = json(self.target(), INFO).await? else {
            differs(INFO, "missing: no run has come to its end");
            return Ok(found);
        };
        let expected: Value = serde_json::from_slice(&self.plan().info()?.render())
            .map_err(|error| Error::invalid(format!("the specification: {error}")))?;
        // Named by the run itself, where the source lists bodies.
        if expected.get(segments::MEMBER).is_none()
            && let Some(members) = info.as_object_mut()
            && members.remove(segments::MEMBER).is_some()
            && !matches!(json(self.target(), segments::FILE).await?, Some(Value::Object(_)))
        {
            differs(segments::FILE, "missing or damaged");
        }
        if info != expected {
            differs(INFO, "not the volume of export.json");
        }
        Ok(found)
    }

    /// Files in the folders of shards that no line names.
    async fn unexpected(&self, lines: &Lines) -> Result<Vec<String>> {
        let mut named = BTreeSet::new();
        lines.for_each(|line| named.extend(line.files.into_iter().map(|file| file.path))).await?;
        let mut unexpected = Vec::new();
        for folder in self.folders() {
            let found = self.target().list_dir(&folder).await?;
            let paths = found.objects.into_iter().map(|meta| meta.path);
            unexpected.extend(paths.filter(|path| !named.contains(path)));
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

/// A small file, as JSON; `None` if it is not there, and null if it is anything else.
async fn json(store: &Store, path: &str) -> Result<Option<Value>> {
    match store.get(path).await {
        Ok(object) => Ok(Some(serde_json::from_slice(&object.bytes).unwrap_or(Value::Null))),
        Err(Error::NotFound { .. }) => Ok(None),
        Err(error) => Err(error),
    }
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
