//! What is known of finished shards: a line for each in `export.jsonl`.
//!
//! A line is written when its shard is durable, never before. On a file system it is appended; a line that a crash cut
//! short counts for nothing, and its shard is written again, to the same bytes. An object store replaces the whole file from
//! time to time.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use bytes::Bytes;
use chunkyard_store::{Error, Kind, Result, Store};
use serde::{Deserialize, Serialize};

use super::files::{NewFile, put_new};

/// The file of lines.
pub const LINES: &str = "export.jsonl";
/// The file is replaced this long after the last time, where it cannot be appended to.
const REPLACE_AFTER: Duration = Duration::from_secs(5);

/// A finished shard.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Line {
    /// The scale.
    pub scale: usize,
    /// The number of the shard.
    pub shard: u64,
    /// Its first voxel along x, y and z.
    pub origin: [i64; 3],
    /// Blocks in it. Without any, it has no files.
    pub blocks: u64,
    /// Blocks that are all label 0 and were left out.
    pub empty: u64,
    /// Bytes of its files.
    pub bytes: u64,
    /// Labels of all blocks together, each counted once in a block.
    pub labels: u64,
    /// Supervoxels of all blocks together, each counted once in a block.
    pub supervoxels: u64,
    /// Its files.
    pub files: Vec<NewFile>,
    /// How large its blocks are, and how many labels they have.
    pub sizes: Sizes,
}

/// How large blocks are, and how many labels they have.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Sizes {
    /// Bytes of label blocks.
    pub plain: Spread,
    /// Bytes of the same in Arrow shards and tables.
    pub packed: Spread,
    /// Bytes of the same in a Neuroglancer volume.
    pub chunk: Spread,
    /// Supervoxels of a block.
    pub supervoxels: Spread,
    /// Labels of a block.
    pub labels: Spread,
}

/// How numbers are spread.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spread {
    /// How many there are.
    pub count: u64,
    /// Their sum.
    pub total: u64,
    /// The least.
    pub min: u64,
    /// The greatest.
    pub max: u64,
    /// How many have so many bits: 0; 1; 2 and 3; 4 to 7; …
    pub by_bits: BTreeMap<u32, u64>,
}

impl Spread {
    /// Adds a number.
    pub fn add(&mut self, value: u64) {
        self.min = if self.count == 0 { value } else { self.min.min(value) };
        self.max = self.max.max(value);
        self.count += 1;
        self.total = self.total.saturating_add(value);
        *self.by_bits.entry(u64::BITS - value.leading_zeros()).or_insert(0) += 1;
    }

    /// Adds the numbers of another one.
    pub fn merge(&mut self, other: &Self) {
        if other.count == 0 {
            return;
        }
        self.min = if self.count == 0 { other.min } else { self.min.min(other.min) };
        self.max = self.max.max(other.max);
        self.count += other.count;
        self.total = self.total.saturating_add(other.total);
        for (bits, count) in &other.by_bits {
            *self.by_bits.entry(*bits).or_insert(0) += count;
        }
    }

    /// Their mean.
    pub fn mean(&self) -> f64 {
        if self.count == 0 { 0.0 } else { self.total as f64 / self.count as f64 }
    }
}

impl Sizes {
    /// Adds other sizes.
    pub fn merge(&mut self, other: &Self) {
        self.plain.merge(&other.plain);
        self.packed.merge(&other.packed);
        self.chunk.merge(&other.chunk);
        self.supervoxels.merge(&other.supervoxels);
        self.labels.merge(&other.labels);
    }
}

impl Line {
    /// The line as it is written.
    pub fn render(&self) -> Result<Vec<u8>> {
        let mut text =
            serde_json::to_vec(self).map_err(|error| Error::invalid(error.to_string()))?;
        text.push(b'\n');
        Ok(text)
    }
}

/// The lines of an export.
#[derive(Debug)]
pub struct Lines {
    store: Store,
    known: BTreeMap<(usize, u64), Line>,
    /// Bytes of sound lines in the file, where it is appended to.
    len: u64,
    replaced: Instant,
    stale: bool,
}

impl Lines {
    /// Reads the lines of a target; none if it has no file of them.
    pub async fn open(store: &Store) -> Result<Self> {
        let bytes = match store.get(LINES).await {
            Ok(object) => Some(object.bytes),
            Err(Error::NotFound { .. }) => None,
            Err(error) => return Err(error),
        };
        let (known, len) = parse(bytes.as_deref().unwrap_or_default());
        Ok(Self { store: store.clone(), known, len, replaced: Instant::now(), stale: false })
    }

    /// Makes these the lines of a target, in one step.
    pub(super) async fn replace(store: &Store, lines: Vec<Line>) -> Result<Self> {
        let known: BTreeMap<(usize, u64), Line> =
            lines.into_iter().map(|line| ((line.scale, line.shard), line)).collect();
        let text = render(&known)?;
        let len = text.len() as u64;
        put_new(store, LINES, text.into()).await?;
        Ok(Self { store: store.clone(), known, len, replaced: Instant::now(), stale: false })
    }

    /// Makes the file ready for more lines: a torn end goes.
    pub async fn begin(&mut self) -> Result<()> {
        if self.store.kind() != Kind::Local {
            return Ok(());
        }
        match self.store.head(LINES).await {
            Ok(meta) if meta.size == self.len => return Ok(()),
            Ok(_) => self.store.truncate(LINES, self.len).await?,
            Err(Error::NotFound { .. }) => self.store.put(LINES, vec![Bytes::new()]).await?,
            Err(error) => return Err(error),
        }
        self.store.sync(&[LINES.to_owned()]).await
    }

    /// The line of a shard, if it is finished.
    pub fn get(&self, scale: usize, shard: u64) -> Option<&Line> {
        self.known.get(&(scale, shard))
    }

    /// All lines, by scale and number.
    pub fn all(&self) -> impl Iterator<Item = &Line> {
        self.known.values()
    }

    /// Writes down a finished shard. The later of two lines about a shard counts.
    pub async fn note(&mut self, line: Line) -> Result<()> {
        if self.store.kind() == Kind::Local {
            let text = line.render()?;
            let len = text.len() as u64;
            self.store.write_at(LINES, self.len, vec![text.into()]).await?;
            self.store.sync_content(&[LINES.to_owned()]).await?;
            self.len += len;
        } else {
            self.stale = true;
        }
        self.known.insert((line.scale, line.shard), line);
        if self.stale && self.replaced.elapsed() >= REPLACE_AFTER {
            self.flush().await?;
        }
        Ok(())
    }

    /// Writes down what is not yet.
    pub async fn flush(&mut self) -> Result<()> {
        if !self.stale {
            return Ok(());
        }
        self.store.put(LINES, vec![render(&self.known)?.into()]).await?;
        (self.stale, self.replaced) = (false, Instant::now());
        Ok(())
    }
}

/// A file of lines, by scale and number.
fn render(known: &BTreeMap<(usize, u64), Line>) -> Result<Vec<u8>> {
    let mut text = Vec::new();
    for line in known.values() {
        text.extend(line.render()?);
    }
    Ok(text)
}

/// The lines at the beginning of a file, up to the first that is torn, and their bytes.
fn parse(bytes: &[u8]) -> (BTreeMap<(usize, u64), Line>, u64) {
    let (mut known, mut len) = (BTreeMap::new(), 0);
    for text in bytes.split_inclusive(|byte| *byte == b'\n') {
        let whole = text.ends_with(b"\n");
        let Some(line) = serde_json::from_slice::<Line>(text).ok().filter(|_| whole) else { break };
        known.insert((line.scale, line.shard), line);
        len += text.len() as u64;
    }
    (known, len)
}
