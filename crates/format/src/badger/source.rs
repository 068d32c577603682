//! The places that keys come from, each in the order of its keys: a memtable, or tables that follow
//! one another.

use std::cmp::Ordering;
use std::sync::Arc;

use bytes::Bytes;
use chunkyard_store::Result;

use super::Inner;
use super::block::{self, Block};
use super::damage::Skipped;
use super::key::{self, KeyRange};
use super::memtable::Memtable;
use super::record::Record;
use super::table::Table;
use super::wire::corrupt;

/// The first read of a scan, and what it grows to while the scan goes on.
const RUN_BYTES: u64 = 64 << 10;
const RUN_BYTES_MAX: u64 = 1 << 20;

/// A version of a key that a source has next.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) user: Vec<u8>,
    pub(super) version: u64,
    /// The position of its source; newer data comes first.
    pub(super) rank: usize,
    pub(super) record: Record,
}

impl Ord for Head {
    /// By key, newer versions first, newer sources first.
    fn cmp(&self, other: &Self) -> Ordering {
        let order = self.user.cmp(&other.user);
        order.then(other.version.cmp(&self.version)).then(self.rank.cmp(&other.rank))
    }
}

impl PartialOrd for Head {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// A place that keys come from.
#[derive(Debug)]
pub(super) enum Source {
    Memory { table: Arc<Memtable>, at: usize },
    Tables(Box<Tables>),
}

impl Source {
    pub(super) fn memory(table: &Arc<Memtable>, range: &KeyRange) -> Self {
        let at = table.entries.partition_point(|entry| *entry.user < *range.start());
        Self::Memory { table: table.clone(), at }
    }

    /// The next version, if one is in the range. The rank is left to the caller.
    pub(super) async fn next(&mut self, inner: &Inner, range: &KeyRange) -> Result<Option<Head>> {
        match self {
            Self::Memory { table, at } => {
                let next = table.entries.get(*at).filter(|entry| !range.is_before(&entry.user));
                *at += 1;
                Ok(next.map(|entry| Head {
                    user: entry.user.clone(),
                    version: entry.version,
                    rank: 0,
                    record: entry.record.clone(),
                }))
            }
            Self::Tables(tables) => tables.next(inner, range).await,
        }
    }
}

/// Tables whose keys do not overlap, in the order of their keys.
#[derive(Debug)]
pub(super) struct Tables {
    tables: Arc<[Table]>,
    table: usize,
    block: usize,
    /// The block that is read, and its next entry.
    current: Option<(Block, usize)>,
    /// Stored bytes from an offset of the table on.
    run: Option<(u64, Bytes)>,
    run_bytes: u64,
    /// The key that came last, with its time.
    last: Vec<u8>,
}

impl Tables {
    /// From the first table and block that may have a key of the range. A scan reads further ahead
    /// than a caller that wants one key.
    pub(super) fn new(tables: &Arc<[Table]>, range: &KeyRange, is_scan: bool) -> Self {
        let first = |table: &Table| table.index.first_key(0).map(key::user) < Some(range.start());
        let table = tables.partition_point(first).saturating_sub(1);
        let block = tables.get(table).map_or(0, |table| table.index.seek(range.start()));
        Self {
            tables: tables.clone(),
            table,
            block,
            current: None,
            run: None,
            run_bytes: if is_scan { RUN_BYTES } else { 0 },
            last: Vec::new(),
        }
    }

    async fn next(&mut self, inner: &Inner, range: &KeyRange) -> Result<Option<Head>> {
        let tables = self.tables.clone();
        loop {
            let Some(table) = tables.get(self.table) else { return Ok(None) };
            if self.block >= table.index.len() {
                (self.table, self.block, self.run) = (self.table + 1, 0, None);
                continue;
            }
            let found = match self.current.take() {
                None => {
                    let first = table.index.first_key(self.block).map(key::user);
                    if first.is_none_or(|first| range.is_before(first)) {
                        return Ok(None);
                    }
                    self.read(inner, table, range).await
                }
                Some((block, at)) if at < block.len() => {
                    let entry = block.entry(at).and_then(|entry| {
                        self.check_order(table, &entry.key)?;
                        Ok(entry)
                    });
                    match entry {
                        Ok(entry) => {
                            self.current = Some((block, at + 1));
                            // The key was checked to have a time.
                            let Some((user, version)) = key::split(&entry.key) else { continue };
                            if user < range.start() {
                                self.last = entry.key;
                                continue;
                            }
                            if range.is_before(user) {
                                return Ok(None);
                            }
                            let user = user.to_vec();
                            self.last = entry.key;
                            let record = entry.record;
                            return Ok(Some(Head { user, version, rank: 0, record }));
                        }
                        Err(error) => Err(error),
                    }
                }
                Some(_) => {
                    self.block += 1;
                    continue;
                }
            };
            if let Err(error) = found {
                let user = |at| table.index.first_key(at).map(|key| key::user(key).to_vec());
                inner.damage.meet(
                    error,
                    Skipped {
                        bytes: table.index.block(self.block),
                        first_key: user(self.block),
                        end_key: user(self.block + 1),
                        ..Skipped::file(&table.path)
                    },
                )?;
                self.current = None;
                self.block += 1;
            }
        }
    }

    /// Makes the block at hand the current one.
    async fn read(&mut self, inner: &Inner, table: &Table, range: &KeyRange) -> Result<()> {
        let Some(at) = table.index.block(self.block) else { return Ok(()) };
        let held = |run: &Option<(u64, Bytes)>| {
            let (start, bytes) = run.as_ref()?;
            let from = usize::try_from(at.start.checked_sub(*start)?).ok()?;
            let to = usize::try_from(at.end.checked_sub(*start)?).ok()?;
            (from <= to && to <= bytes.len()).then(|| bytes.slice(from..to))
        };
        let stored = match held(&self.run) {
            Some(stored) => stored,
            None => {
                let mut end = at.end;
                for next in self.block + 1..table.index.len() {
                    let Some(block) = table.index.block(next) else { break };
                    let first = table.index.first_key(next).map(key::user);
                    let wanted = first.is_some_and(|first| !range.is_before(first));
                    // Badger leaves no gaps between blocks.
                    if !wanted || block.start != end || block.end - at.start > self.run_bytes {
                        break;
                    }
                    end = block.end;
                }
                let bytes = inner.store.get_range(&table.path, at.start..end).await?;
                self.run = Some((at.start, bytes));
                self.run_bytes = (self.run_bytes * 2).min(RUN_BYTES_MAX);
                held(&self.run).unwrap_or_default()
            }
        };
        let block = block::read(&table.path, at.start, stored, table.compression, true)?;
        if block.len() > 0 {
            let entry = block.entry(0)?;
            if Some(&entry.key[..]) != table.index.first_key(self.block) {
                let what = format!("the first key of the block at offset {}", at.start);
                return Err(corrupt(&table.path, what, "the one in the index", "another"));
            }
        }
        self.current = Some((block, 0));
        Ok(())
    }

    fn check_order(&self, table: &Table, key: &[u8]) -> Result<()> {
        if self.last.is_empty() || key::is_ascending(&self.last, key) {
            return Ok(());
        }
        let at = table.index.block(self.block).map_or(0, |block| block.start);
        let what = format!("order of keys in the block at offset {at}");
        Err(corrupt(&table.path, what, "greater keys than before", "a smaller one"))
    }
}
