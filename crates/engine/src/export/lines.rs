//! What is known of finished shards: a line for each in `export.jsonl`.
//!
//! A line is written when its shard is durable, never before. On a file system it is appended; a line that a crash cut
//! short counts for nothing, and its shard is written again, to the same bytes. In an object store new lines are objects of
//! their own from time to time, and become one file at the end: so each line is written twice, however many there are.
//!
//! Memory holds where each line is, not the lines.

use std::collections::BTreeMap;
use std::sync::PoisonError;
use std::time::{Duration, Instant};

use bytes::Bytes;
use chunkyard_store::{Error, Kind, Result, Store, Uid};
use serde::{Deserialize, Serialize};
use tokio::sync::Mutex;

use super::files::{Growing, NewFile};

/// The file of lines.
pub const LINES: &str = "export.jsonl";
/// The folder of lines that are not in the file yet, where it cannot be appended to.
const PARTS: &str = "export.lines/";
/// Lines wait this long there, or until they are this many bytes.
const PART_AFTER: Duration = Duration::from_secs(5);
const PART_BYTES: usize = 4 << 20;
/// Bytes of lines that are read at once.
const PIECE: u64 = 4 << 20;

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

/// A shard: its scale and its number.
type ShardId = (usize, u64);

/// The lines of an export: where each one is.
#[derive(Debug)]
pub struct Lines {
    store: Store,
    known: BTreeMap<ShardId, At>,
    /// The objects that have lines. The file of all comes first, whether it is there or not.
    parts: Vec<String>,
    /// Bytes of sound lines in that file.
    len: u64,
    /// Lines that are not written yet, where the file cannot be appended to.
    waiting: Waiting,
    put: Instant,
}

/// Where a line is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct At {
    part: u32,
    bytes: u32,
    start: u64,
}

/// An object of lines that is read piece by piece.
#[derive(Debug)]
struct Part {
    path: String,
    number: u32,
    size: u64,
    /// Bytes that were read, and where the next line begins.
    read: u64,
    start: u64,
    /// What was read of it.
    text: Vec<u8>,
    torn: bool,
}

impl Part {
    /// The next lines; `None` at the end, or where one is torn.
    async fn next(&mut self, store: &Store) -> Result<Option<Vec<(Line, At)>>> {
        if self.torn || self.read >= self.size {
            return Ok(None);
        }
        let end = self.read.saturating_add(PIECE).min(self.size);
        self.text.extend_from_slice(&store.get_range(&self.path, self.read..end).await?);
        self.read = end;
        let (mut found, mut done) = (Vec::new(), 0);
        for text in self.text.split_inclusive(|byte| *byte == b'\n') {
            if !text.ends_with(b"\n") {
                break;
            }
            let line = serde_json::from_slice::<Line>(text).ok();
            let Some((line, bytes)) = line.zip(u32::try_from(text.len()).ok()) else {
                self.torn = true;
                break;
            };
            found.push((line, At { part: self.number, bytes, start: self.start }));
            self.start += u64::from(bytes);
            done += text.len();
        }
        self.text.drain(..done);
        Ok(Some(found))
    }
}

/// Lines on their way, with whose they are.
#[derive(Debug, Default)]
struct Waiting {
    text: Vec<u8>,
    shards: Vec<(ShardId, u32)>,
}

impl Waiting {
    fn add(&mut self, line: &Line) -> Result<()> {
        let text = line.render()?;
        let too_long = |_| Error::unsupported("a line of 4 GiB about a shard");
        let bytes = u32::try_from(text.len()).map_err(too_long)?;
        self.shards.push(((line.scale, line.shard), bytes));
        self.text.extend(text);
        Ok(())
    }

    /// All of them, and where they will be.
    fn take(&mut self, part: u32, mut start: u64) -> (Bytes, Vec<(ShardId, At)>) {
        let Self { text, shards } = std::mem::take(self);
        let place = |(shard, bytes): (ShardId, u32)| {
            let at = At { part, bytes, start };
            start += u64::from(bytes);
            (shard, at)
        };
        (text.into(), shards.into_iter().map(place).collect())
    }
}

impl Lines {
    /// Finds the lines of a target; none if it has no file of them.
    pub async fn open(store: &Store) -> Result<Self> {
        let mut parts: Vec<String> =
            store.list_dir(PARTS).await?.objects.into_iter().map(|meta| meta.path).collect();
        parts.sort();
        parts.insert(0, LINES.to_owned());
        let (known, len, waiting) = (BTreeMap::new(), 0, Waiting::default());
        let put = Instant::now();
        let mut lines = Self { store: store.clone(), known, parts, len, waiting, put };
        for part in 0..lines.parts.len() {
            let mut known = std::mem::take(&mut lines.known);
            let end = lines
                .read(part, |line, at| {
                    known.insert((line.scale, line.shard), at);
                })
                .await?;
            lines.known = known;
            lines.len = if part == 0 { end } else { lines.len };
        }
        Ok(lines)
    }

    /// Reads the lines of an object up to the first that is torn, and says where that is.
    async fn read(&self, part: usize, mut each: impl FnMut(Line, At)) -> Result<u64> {
        let Some(mut part) = self.part(part).await? else { return Ok(0) };
        while let Some(some) = part.next(&self.store).await? {
            some.into_iter().for_each(|(line, at)| each(line, at));
        }
        Ok(part.start)
    }

    /// An object of lines; `None` if it is not there.
    async fn part(&self, number: usize) -> Result<Option<Part>> {
        let Some(path) = self.parts.get(number) else { return Ok(None) };
        let size = match self.store.head(path).await {
            Ok(meta) => meta.size,
            Err(Error::NotFound { .. }) => return Ok(None),
            Err(error) => return Err(error),
        };
        let (path, number) = (path.clone(), u32::try_from(number).unwrap_or(u32::MAX));
        Ok(Some(Part { path, number, size, read: 0, start: 0, text: Vec::new(), torn: false }))
    }

    /// Whether a line is the one that counts for its shard.
    fn counts(&self, (line, at): &(Line, At)) -> bool {
        self.known.get(&(line.scale, line.shard)) == Some(at)
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
    pub async fn get(&self, scale: usize, shard: u64) -> Result<Option<Line>> {
        let Some(at) = self.known.get(&(scale, shard)) else { return Ok(None) };
        let Some(path) = self.parts.get(at.part as usize) else { return Ok(None) };
        let end = at.start.saturating_add(u64::from(at.bytes));
        let text = match self.store.get_range(path, at.start..end).await {
            Ok(text) => text,
            // Another run has made the parts one file: the shard counts as not finished.
            Err(Error::NotFound { .. }) => return Ok(None),
            Err(error) => return Err(error),
        };
        let line: Option<Line> = serde_json::from_slice(&text).ok();
        Ok(line.filter(|line| (line.scale, line.shard) == (scale, shard)))
    }

    /// All lines, one after the other.
    pub async fn for_each(&self, mut each: impl FnMut(Line)) -> Result<()> {
        for part in 0..self.parts.len() {
            let Some(mut part) = self.part(part).await? else { continue };
            while let Some(some) = part.next(&self.store).await? {
                let some = some.into_iter().filter(|found| self.counts(found));
                some.for_each(|(line, _)| each(line));
            }
        }
        Ok(())
    }

    /// Writes down finished shards. The later of two lines about a shard counts.
    pub async fn note(&mut self, lines: &[Line]) -> Result<()> {
        for line in lines {
            self.waiting.add(line)?;
        }
        if self.store.kind() == Kind::Local {
            return self.append().await;
        }
        if self.put.elapsed() >= PART_AFTER || self.waiting.text.len() >= PART_BYTES {
            self.flush().await?;
        }
        Ok(())
    }

    async fn append(&mut self) -> Result<()> {
        let (text, places) = self.waiting.take(0, self.len);
        if text.is_empty() {
            return Ok(());
        }
        let len = text.len() as u64;
        self.store.write_at(LINES, self.len, vec![text]).await?;
        self.store.sync_content(&[LINES.to_owned()]).await?;
        self.len += len;
        self.known.extend(places);
        Ok(())
    }

    /// Writes down what is not yet.
    pub async fn flush(&mut self) -> Result<()> {
        if self.waiting.text.is_empty() {
            return Ok(());
        }
        let part = u32::try_from(self.parts.len()).unwrap_or(u32::MAX);
        let (text, places) = self.waiting.take(part, 0);
        // Another run into the same place must not take the name.
        let path = format!("{PARTS}{part:08}-{}.jsonl", Uid::fresh()?);
        self.store.put(&path, vec![text]).await?;
        self.parts.push(path);
        self.known.extend(places);
        self.put = Instant::now();
        Ok(())
    }

    /// Makes all lines one file, if they are not.
    pub(super) async fn complete(mut self) -> Result<Self> {
        self.flush().await?;
        if self.parts.len() == 1 {
            return Ok(self);
        }
        let mut all = NewLines::begin(&self.store).await?;
        for part in 0..self.parts.len() {
            let Some(mut part) = self.part(part).await? else { continue };
            while let Some(some) = part.next(&self.store).await? {
                let some = some.into_iter().filter(|found| self.counts(found));
                let some: Vec<Line> = some.map(|(line, _)| line).collect();
                all.push(&some).await?;
            }
        }
        all.finish().await
    }
}

/// The file of lines, written anew: it replaces what is there when it is complete.
#[derive(Debug)]
pub(super) struct NewLines {
    store: Store,
    file: Growing,
    known: BTreeMap<ShardId, At>,
    len: u64,
}

impl NewLines {
    pub(super) async fn begin(store: &Store) -> Result<Self> {
        let file = Growing::begin(store, LINES).await?;
        Ok(Self { store: store.clone(), file, known: BTreeMap::new(), len: 0 })
    }

    pub(super) async fn push(&mut self, lines: &[Line]) -> Result<()> {
        let mut waiting = Waiting::default();
        for line in lines {
            waiting.add(line)?;
        }
        let (text, places) = waiting.take(0, self.len);
        self.len += text.len() as u64;
        self.known.extend(places);
        self.file.write(vec![text]).await
    }

    /// Makes it the file of lines, and the only one.
    pub(super) async fn finish(self) -> Result<Lines> {
        let Self { store, file, known, len } = self;
        file.finish().await?;
        let parts = store.list_dir(PARTS).await?.objects;
        let parts: Vec<String> = parts.into_iter().map(|meta| meta.path).collect();
        if !parts.is_empty() {
            store.delete(&parts).await?;
        }
        let (parts, waiting) = (vec![LINES.to_owned()], Waiting::default());
        Ok(Lines { store, known, parts, len, waiting, put: Instant::now() })
    }
}

/// Lines that many shards write at a time. What comes while others are made durable is made so together.
#[derive(Debug)]
pub(super) struct Journal {
    lines: Mutex<Lines>,
    arrived: std::sync::Mutex<Vec<Line>>,
}

impl Journal {
    pub(super) fn new(lines: Lines) -> Self {
        Self { lines: Mutex::new(lines), arrived: std::sync::Mutex::default() }
    }

    pub(super) async fn get(&self, scale: usize, shard: u64) -> Result<Option<Line>> {
        self.lines.lock().await.get(scale, shard).await
    }

    /// Writes down a finished shard. It is durable when this returns, where the file can be appended to.
    pub(super) async fn note(&self, line: Line) -> Result<()> {
        self.arrived.lock().unwrap_or_else(PoisonError::into_inner).push(line);
        let mut lines = self.lines.lock().await;
        // Empty if the one before has written this line as well.
        let arrived =
            std::mem::take(&mut *self.arrived.lock().unwrap_or_else(PoisonError::into_inner));
        lines.note(&arrived).await
    }

    pub(super) fn into_lines(self) -> Lines {
        self.lines.into_inner()
    }
}
