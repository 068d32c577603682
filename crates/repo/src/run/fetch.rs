//! Fetching runs: whole when small, page by page when large, and caching what was decoded.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use chunkyard_store::{ByteCache, Limits, Request, Result, Store};
use parquet::arrow::ProjectionMask;

use super::{Block, Keys, Pages, Rows};
use crate::node::Inventory;
use crate::parquet_file::{self, Footer, Label, corrupt};

/// Files up to this size are fetched and decoded whole. A row may take as little as a byte, so this
/// is some ten thousand of them.
const WHOLE_MAX: u64 = 16 << 10;

/// The run files of a repository, of one kind. Files never change, so what is cached never goes
/// stale.
#[derive(Debug)]
pub(crate) struct Files<R: Rows> {
    store: Store,
    dataset_id: Arc<str>,
    limits: Limits,
    footers: ByteCache<Arc<str>, Arc<Opened<R::Index>>>,
    blocks: ByteCache<BlockKey, Arc<Vec<R::Block>>>,
    /// Small files as they were written. The next commit looks into the runs of the last one, and on
    /// an object store reading them back is a round trip.
    written: ByteCache<Arc<str>, Bytes>,
}

// Not derived: that would ask for blocks that can be cloned.
impl<R: Rows> Clone for Files<R> {
    fn clone(&self) -> Self {
        Self {
            store: self.store.clone(),
            dataset_id: self.dataset_id.clone(),
            limits: self.limits,
            footers: self.footers.clone(),
            blocks: self.blocks.clone(),
            written: self.written.clone(),
        }
    }
}

/// A file and the rows of it that a cached block holds.
type BlockKey = (Arc<str>, u64, u64);

/// The parsed end of a file.
#[derive(Debug)]
pub(crate) struct Opened<I> {
    pub(crate) footer: Footer,
    pub(crate) index: I,
}

/// Rows of one entry inside decoded blocks.
#[derive(Debug)]
pub(crate) struct Part<B> {
    pub(crate) blocks: Arc<Vec<B>>,
    /// Rows of the file.
    pub(crate) rows: Range<u64>,
}

impl<B: Block> Part<B> {
    /// The blocks with the rows of each that belong to the part.
    pub(crate) fn pieces(&self) -> impl Iterator<Item = (&B, Range<usize>)> {
        self.blocks.iter().filter_map(|block| {
            let first_row = block.first_row();
            let end = first_row + block.len() as u64;
            let from = self.rows.start.clamp(first_row, end) - first_row;
            let to = self.rows.end.clamp(first_row, end) - first_row;
            (from < to).then_some((block, from as usize..to as usize))
        })
    }

    /// Whether a key lies between the first and the last one.
    pub(super) fn covers(&self, key: &[u8]) -> bool {
        let first = self.pieces().next().map(|(block, rows)| block.key(rows.start) <= key);
        let last = self.pieces().last().map(|(block, rows)| block.key(rows.end - 1) >= key);
        first == Some(true) && last == Some(true)
    }
}

impl<R: Rows> Files<R> {
    pub(crate) fn new(
        store: Store,
        dataset_id: Arc<str>,
        limits: Limits,
        cache_bytes_max: u64,
    ) -> Self {
        let weigh = |_: &BlockKey, blocks: &Arc<Vec<R::Block>>| {
            blocks.iter().map(|block| block.bytes_held() + 128).sum()
        };
        let footers = ByteCache::new(cache_bytes_max / 4, |_, opened: &Arc<Opened<R::Index>>| {
            opened.footer.parquet().memory_size() + R::weigh(&opened.index) + 1024
        });
        let blocks = ByteCache::new(cache_bytes_max, weigh);
        let written = ByteCache::new(cache_bytes_max / 8, |_, bytes: &Bytes| bytes.len() + 128);
        Self { store, dataset_id, limits, footers, blocks, written }
    }

    /// Writes a new file.
    pub(crate) async fn put(&self, file: &Arc<str>, bytes: &Bytes) -> Result<()> {
        self.store.backend().put(&path_of(file), vec![bytes.clone()]).await?;
        if bytes.len() as u64 <= WHOLE_MAX {
            self.written.insert(file.clone(), bytes.clone());
        }
        Ok(())
    }

    /// All rows of an entry.
    pub(crate) async fn entry(&self, kind: &R, entry: &Inventory) -> Result<Part<R::Block>> {
        let Some(rows) = paged_rows(entry) else { return self.whole(kind, entry).await };
        let opened = self.open(kind, entry).await?;
        let columns = kind.columns(&opened.footer);
        let blocks = self.decode(kind, &opened.footer, rows.clone(), &columns).await?;
        Ok(Part { blocks: Arc::new(blocks), rows })
    }

    /// The rows of an entry that can hold `key`.
    pub(super) async fn page_for(
        &self,
        kind: &R,
        entry: &Inventory,
        key: &[u8],
    ) -> Result<Option<Part<R::Block>>> {
        let Some(rows) = paged_rows(entry) else { return self.whole(kind, entry).await.map(Some) };
        let opened = self.open(kind, entry).await?;
        let rows = match kind.find(&opened, rows.clone(), Keys::only(key)) {
            Pages::Absent => return Ok(None),
            Pages::Unknown => rows,
            Pages::Found(rows) => rows,
        };
        let cached = (entry.file.clone(), rows.start, rows.end - rows.start);
        if let Some(blocks) = self.blocks.get(&cached) {
            return Ok(Some(Part { blocks, rows }));
        }
        let all = ProjectionMask::all();
        let blocks = Arc::new(self.decode(kind, &opened.footer, rows.clone(), &all).await?);
        self.blocks.insert(cached, blocks.clone());
        Ok(Some(Part { blocks, rows }))
    }

    /// Windows of the rows of an entry that can hold keys, each within a row group; `None` for a
    /// file that is read whole.
    pub(super) async fn windows(
        &self,
        kind: &R,
        entry: &Inventory,
        keys: Keys<'_>,
    ) -> Result<Option<Windows<R>>> {
        let Some(rows) = paged_rows(entry) else { return Ok(None) };
        let opened = self.open(kind, entry).await?;
        let bounded = !keys.from.is_empty() || keys.to != std::ops::Bound::Unbounded;
        let rows = match bounded.then(|| kind.find(&opened, rows.clone(), keys)) {
            Some(Pages::Absent) => rows.start..rows.start,
            Some(Pages::Found(found)) => found,
            Some(Pages::Unknown) | None => rows,
        };
        let windows = within_groups(&opened.footer, &rows)?;
        Ok(Some((
            opened,
            windows.into_iter().map(|(_, start, rows)| absolute(start, &rows)).collect(),
        )))
    }

    /// Decodes one window.
    pub(super) async fn window(
        &self,
        kind: &R,
        opened: &Opened<R::Index>,
        rows: Range<u64>,
    ) -> Result<Part<R::Block>> {
        let columns = kind.columns(&opened.footer);
        let blocks = self.decode(kind, &opened.footer, rows.clone(), &columns).await?;
        Ok(Part { blocks: Arc::new(blocks), rows })
    }

    async fn decode(
        &self,
        kind: &R,
        footer: &Footer,
        rows: Range<u64>,
        columns: &ProjectionMask,
    ) -> Result<Vec<R::Block>> {
        let path: Arc<str> = path_of(footer.file()).into();
        let mut blocks = Vec::new();
        for (row_group, group_start, rows) in within_groups(footer, &rows)? {
            let ranges = footer.ranges(row_group, &rows, columns);
            let requests: Vec<_> = ranges
                .iter()
                .map(|range| Request { path: path.clone(), range: range.clone(), guard: None })
                .collect();
            let bytes = self.store.fetch(&requests, &self.limits).await?;
            let pieces = ranges.iter().map(|range| range.start).zip(bytes).collect();
            let pieces = footer.assemble(pieces)?;
            let mut first_row = group_start + rows.start as u64;
            for batch in footer.decode(&pieces, row_group, rows, columns)? {
                let block = kind.block(footer.file(), first_row, &batch)?;
                first_row += block.len() as u64;
                blocks.push(block);
            }
        }
        Ok(blocks)
    }

    /// A small file, or one of the bare draft, where only the rows tell the row count.
    pub(super) async fn whole(&self, kind: &R, entry: &Inventory) -> Result<Part<R::Block>> {
        let key = (entry.file.clone(), 0, u64::MAX);
        let blocks = match self.blocks.get(&key) {
            Some(blocks) => blocks,
            None => {
                let bytes = match self.written.get(&entry.file) {
                    Some(bytes) => bytes,
                    None => self.get(&entry.file, entry.file_size).await?,
                };
                let file = &entry.file;
                let label = self.label();
                let (footer, batches) = parquet_file::read_whole(file, &label, &bytes, entry.tail)?;
                let blocks = Arc::new(kind.blocks(&footer, &batches)?);
                self.blocks.insert(key, blocks.clone());
                self.written.remove(file);
                blocks
            }
        };
        let total: u64 = blocks.iter().map(|block| block.len() as u64).sum();
        let end = match entry.rows {
            Some(rows) => entry.row.saturating_add(rows),
            None => kind.end(&blocks, entry.row),
        };
        check_rows(&entry.file, &(entry.row..end), total)?;
        Ok(Part { blocks, rows: entry.row..end })
    }

    fn label(&self) -> Label<'_> {
        Label { format: R::FORMAT, dataset_id: &self.dataset_id, created_ms: 0 }
    }

    /// The bytes of a file; a wrong size is corruption, found before anything is decoded.
    pub(crate) async fn get(&self, file: &Arc<str>, size: Option<u64>) -> Result<Bytes> {
        let object = self.store.backend().get(&path_of(file)).await?;
        let found = object.bytes.len() as u64;
        match size {
            Some(size) if size != found => {
                Err(corrupt(file, "file size", &size.to_string(), &found.to_string()))
            }
            _ => Ok(object.bytes),
        }
    }

    async fn open(&self, kind: &R, entry: &Inventory) -> Result<Arc<Opened<R::Index>>> {
        if let Some(opened) = self.footers.get(&entry.file) {
            return Ok(opened);
        }
        let (Some(size), Some(tail)) = (entry.file_size, entry.tail) else {
            return Err(corrupt(&entry.file, "inventory entry", "file and tail size", "none"));
        };
        let start = size
            .checked_sub(tail.size)
            .ok_or_else(|| corrupt(&entry.file, "tail size", "at most the file's", "more"))?;
        let bytes = self.store.get_range(&path_of(&entry.file), start..size).await?;
        let footer = Footer::parse(&entry.file, &self.label(), &bytes, size, Some(tail))?;
        let index = kind.index(&footer)?;
        let opened = Arc::new(Opened { footer, index });
        self.footers.insert(entry.file.clone(), opened.clone());
        Ok(opened)
    }
}

/// An open file, and the rows of it that a walk decodes one after the other.
pub(super) type Windows<R> = (Arc<Opened<<R as Rows>::Index>>, Vec<Range<u64>>);

/// The rows of an entry whose file is read page by page.
fn paged_rows(entry: &Inventory) -> Option<Range<u64>> {
    let paged = entry.tail.is_some() && entry.file_size.is_some_and(|size| size > WHOLE_MAX);
    let rows = entry.rows.filter(|_| paged)?;
    Some(entry.row..entry.row.saturating_add(rows))
}

/// Where the file of a run is.
pub(crate) fn path_of(file: &str) -> String {
    format!("i/{file}")
}

fn check_rows(file: &str, rows: &Range<u64>, total: u64) -> Result<()> {
    if rows.end <= total {
        return Ok(());
    }
    let expected = format!("rows up to {}", rows.end);
    Err(corrupt(file, "row count", &expected, &total.to_string()))
}

/// Rows of a file as row groups, the first row of each, and the rows in it.
pub(crate) fn within_groups(
    footer: &Footer,
    rows: &Range<u64>,
) -> Result<Vec<(usize, u64, Range<usize>)>> {
    let mut parts = Vec::new();
    let mut group_start = 0u64;
    for (row_group, count) in footer.row_groups().into_iter().enumerate() {
        let group_end = group_start + count as u64;
        let from = rows.start.clamp(group_start, group_end) - group_start;
        let to = rows.end.clamp(group_start, group_end) - group_start;
        if from < to {
            parts.push((row_group, group_start, from as usize..to as usize));
        }
        group_start = group_end;
    }
    check_rows(footer.file(), rows, group_start)?;
    Ok(parts)
}

fn absolute(group_start: u64, rows: &Range<usize>) -> Range<u64> {
    group_start + rows.start as u64..group_start + rows.end as u64
}
