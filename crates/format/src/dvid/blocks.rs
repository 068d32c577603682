//! The blocks of an instance at one version: where each is, and where its value is.
//!
//! A block takes 40 bytes, and its value if that is short enough to lie beside its key (some 50 bytes of a block
//! of one label). A store with 10⁸ blocks takes 4 GB.

use std::collections::HashMap;
use std::sync::Arc;

use chunkyard_store::{Check, ChunkRef, Error, Result};

use super::dag::{Dag, Resolver, Stored};
use super::keys::{BlockAt, DataKey, Key};
use crate::badger::Entry;

/// Values that lie elsewhere than in a file: in memory, in a form of their own, and nowhere, because two
/// versions have different ones or because what was written is lost.
const INLINE: u32 = u32::MAX;
const OTHER: u32 = u32::MAX - 1;
const CONFLICT: u32 = u32::MAX - 2;
const LOST: u32 = u32::MAX - 3;

/// The blocks of all scales at one version.
#[derive(Debug, Default)]
pub struct Blocks {
    scales: Vec<Vec<Row>>,
    files: Vec<Arc<str>>,
    inline: Vec<u8>,
    others: Vec<ChunkRef>,
    conflicts: Vec<Clash>,
    /// Entries of other forms, which were left out.
    strange: u64,
    /// The last transaction that wrote one of them.
    newest: u64,
}

/// A block that two parents changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Clash {
    /// The block.
    pub block: BlockAt,
    /// The versions that have it.
    pub versions: Vec<u32>,
}

impl Clash {
    /// As an error.
    pub fn error(&self, dag: &Dag) -> Error {
        let name = |id: &u32| dag.get(*id).map_or_else(|| id.to_string(), |node| node.uuid.clone());
        let versions: Vec<String> = self.versions.iter().map(name).collect();
        let [z, y, x] = self.block.at;
        Error::Corrupt {
            file: "DVID's versions".into(),
            what: format!("block z={z} y={y} x={x} of scale {}", self.block.scale),
            expected: "one parent that changed it".into(),
            found: format!("the versions {}", versions.join(" and ")),
        }
    }
}

/// A block and its value.
#[derive(Debug, Clone, Copy)]
struct Row {
    at: [i32; 3],
    version: u32,
    file: u32,
    len: u32,
    start: u64,
    head: u32,
    before: u16,
    known: u16,
}

/// What is stored for a block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// The position along z, y, x.
    pub at: [i32; 3],
    /// The version that wrote it, or the reason why there is none.
    pub version: Result<u32, Clash>,
    /// Where its value is; `None` if there is none, or if what the version wrote is damaged and was left out.
    pub value: Option<ChunkRef>,
}

impl Blocks {
    /// How many scales there are, empty ones included.
    pub fn scales(&self) -> usize {
        self.scales.len()
    }

    /// How many blocks a scale has.
    pub fn count(&self, scale: usize) -> usize {
        self.scales.get(scale).map_or(0, Vec::len)
    }

    /// The bytes of all values of a scale, as they are stored.
    pub fn stored_bytes(&self, scale: usize) -> u64 {
        self.rows(scale).iter().map(|row| u64::from(row.len)).sum()
    }

    /// Bytes of memory.
    pub fn bytes(&self) -> usize {
        let rows: usize = self.scales.iter().map(Vec::capacity).sum();
        rows * size_of::<Row>() + self.inline.capacity()
    }

    /// The blocks that have no value because two parents changed them.
    pub fn conflicts(&self) -> &[Clash] {
        &self.conflicts
    }

    /// Keys of blocks that could not be read.
    pub fn strange(&self) -> u64 {
        self.strange
    }

    /// The last transaction that wrote a block.
    pub fn newest(&self) -> u64 {
        self.newest
    }

    /// The least and the greatest position of a block of a scale along each axis; `None` if it has none.
    pub fn extent(&self, scale: usize) -> Option<([i32; 3], [i32; 3])> {
        let rows = self.rows(scale);
        let first = rows.first()?.at;
        let widen = |(low, high): ([i32; 3], [i32; 3]), row: &Row| {
            (
                std::array::from_fn(|axis| low[axis].min(row.at[axis])),
                std::array::from_fn(|axis| high[axis].max(row.at[axis])),
            )
        };
        Some(rows.iter().fold((first, first), widen))
    }

    fn rows(&self, scale: usize) -> &[Row] {
        self.scales.get(scale).map_or(&[], Vec::as_slice)
    }

    /// The block at a position.
    pub fn find(&self, scale: usize, at: [i32; 3]) -> Option<Found> {
        let rows = self.rows(scale);
        let place = rows.binary_search_by_key(&at, |row| row.at).ok()?;
        rows.get(place).map(|row| self.found(scale, row))
    }

    /// The blocks of a scale whose position along z is within bounds, in the order z, y, x.
    pub fn between(
        &self,
        scale: usize,
        z: std::ops::RangeInclusive<i32>,
    ) -> impl Iterator<Item = Found> {
        let rows = self.rows(scale);
        let start = rows.partition_point(|row| row.at[0] < *z.start());
        let end = rows.partition_point(|row| row.at[0] <= *z.end()).max(start);
        rows.get(start..end).unwrap_or_default().iter().map(move |row| self.found(scale, row))
    }

    /// All blocks of a scale.
    pub fn all(&self, scale: usize) -> impl Iterator<Item = Found> {
        self.between(scale, i32::MIN..=i32::MAX)
    }

    /// The positions of all blocks of a scale, with the version that wrote each; none for conflicts.
    pub fn positions(&self, scale: usize) -> impl Iterator<Item = ([i32; 3], Option<u32>)> {
        self.rows(scale).iter().map(|row| (row.at, (row.file != CONFLICT).then_some(row.version)))
    }

    fn found(&self, scale: usize, row: &Row) -> Found {
        let start = usize::try_from(row.start).unwrap_or(usize::MAX);
        let value = match row.file {
            CONFLICT => {
                let block = BlockAt { scale: u8::try_from(scale).unwrap_or(u8::MAX), at: row.at };
                let clash = self.conflicts.get(start).cloned();
                let clash = clash.unwrap_or(Clash { block, versions: Vec::new() });
                return Found { at: row.at, version: Err(clash), value: None };
            }
            INLINE => {
                let end = start.saturating_add(row.len as usize);
                let bytes = self.inline.get(start..end).unwrap_or_default();
                Some(ChunkRef::Inline(bytes::Bytes::copy_from_slice(bytes)))
            }
            OTHER => self.others.get(start).cloned(),
            LOST => None,
            file => self.files.get(file as usize).map(|path| ChunkRef::Object {
                path: path.clone(),
                range: row.start..row.start.saturating_add(row.len.into()),
                guard: None,
                check: Some(Check::Entry {
                    before: row.before.into(),
                    known: row.known.into(),
                    head: row.head,
                }),
            }),
        };
        Found { at: row.at, version: Ok(row.version), value }
    }
}

/// Takes the entries of blocks in the order of their keys, and keeps those that count.
#[derive(Debug)]
pub(super) struct BlocksBuilder<'a> {
    resolver: &'a Resolver,
    blocks: Blocks,
    numbers: HashMap<Arc<str>, u32>,
    group: Option<BlockAt>,
    stored: Vec<Stored>,
    entries: Vec<Entry>,
}

impl<'a> BlocksBuilder<'a> {
    pub(super) fn new(resolver: &'a Resolver) -> Self {
        Self {
            resolver,
            blocks: Blocks::default(),
            numbers: HashMap::new(),
            group: None,
            stored: Vec::new(),
            entries: Vec::new(),
        }
    }

    pub(super) fn add(&mut self, entry: Entry) -> Result<()> {
        self.blocks.newest = self.blocks.newest.max(entry.version);
        let block = match Key::parse(&entry.key) {
            Some(Key::Data(DataKey { rest, version, tombstone, client: 0, .. })) => {
                BlockAt::parse(rest).map(|block| (block, Stored { version, tombstone }))
            }
            _ => None,
        };
        let Some((block, stored)) = block else {
            self.blocks.strange += 1;
            return Ok(());
        };
        if self.group != Some(block) {
            self.flush()?;
            self.group = Some(block);
        }
        // Versions that are no ancestors do not count, and need no memory.
        if self.resolver.covers(stored.version) {
            self.stored.push(stored);
            self.entries.push(entry);
        }
        Ok(())
    }

    pub(super) fn finish(mut self) -> Result<Blocks> {
        self.flush()?;
        Ok(self.blocks)
    }

    fn flush(&mut self) -> Result<()> {
        let stored = std::mem::take(&mut self.stored);
        let mut entries = std::mem::take(&mut self.entries);
        let Some(block) = self.group.take() else { return Ok(()) };
        let row = match self.resolver.resolve(&stored) {
            Ok(None) => return Ok(()),
            Ok(Some(at)) if at < entries.len() => {
                let version = stored.get(at).map_or(0, |stored| stored.version);
                self.row(block, version, entries.swap_remove(at))
            }
            Ok(Some(_)) => return Ok(()),
            Err(versions) => {
                let start = self.blocks.conflicts.len() as u64;
                self.blocks.conflicts.push(Clash { block, versions });
                Row { start, ..empty(block.at, 0, CONFLICT) }
            }
        };
        let scale = usize::from(block.scale);
        if self.blocks.scales.len() <= scale {
            self.blocks.scales.resize_with(scale + 1, Vec::new);
        }
        self.blocks.scales[scale].push(row);
        Ok(())
    }

    fn row(&mut self, block: BlockAt, version: u32, entry: Entry) -> Row {
        match &entry.value {
            None => empty(block.at, version, LOST),
            Some(ChunkRef::Inline(bytes)) => {
                let start = self.blocks.inline.len() as u64;
                self.blocks.inline.extend_from_slice(bytes);
                // A value beside its key is short.
                Row { start, len: bytes.len() as u32, ..empty(block.at, version, INLINE) }
            }
            Some(ChunkRef::Object {
                path,
                range,
                guard: None,
                check: Some(Check::Entry { before, known, head }),
            }) => {
                let fields = (
                    u32::try_from(range.end.saturating_sub(range.start)),
                    u16::try_from(*before),
                    u16::try_from(*known),
                );
                let (Ok(len), Ok(before), Ok(known)) = fields else {
                    return self.other(block, version, entry);
                };
                let next = self.blocks.files.len() as u32;
                let file = *self.numbers.entry(path.clone()).or_insert_with(|| {
                    self.blocks.files.push(path.clone());
                    next
                });
                Row {
                    len,
                    start: range.start,
                    head: *head,
                    before,
                    known,
                    ..empty(block.at, version, file)
                }
            }
            _ => self.other(block, version, entry),
        }
    }

    fn other(&mut self, block: BlockAt, version: u32, entry: Entry) -> Row {
        let start = self.blocks.others.len() as u64;
        let len = u32::try_from(entry.value_len).unwrap_or(u32::MAX);
        self.blocks.others.extend(entry.value);
        Row { start, len, ..empty(block.at, version, OTHER) }
    }
}

fn empty(at: [i32; 3], version: u32, file: u32) -> Row {
    Row { at, version, file, len: 0, start: 0, head: 0, before: 0, known: 0 }
}
