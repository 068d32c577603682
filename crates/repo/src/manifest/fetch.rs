//! Fetching manifests: whole when small, page by page when large, and caching what was decoded.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use chunkyard_store::{ByteCache, Limits, Request, Result, Store};
use parquet::file::page_index::column_index::ColumnIndexMetaData;

use super::read::{Block, decode_file};
use crate::node::Inventory;
use crate::parquet_file::{Footer, Label, corrupt};

/// Files up to this size are fetched and decoded whole. A reference may take as little as a byte,
/// so this is some ten thousand of them.
const WHOLE_MAX: u64 = 16 << 10;

/// The manifests of a repository. Files never change, so what is cached never goes stale.
#[derive(Debug, Clone)]
pub(crate) struct Manifests {
    store: Store,
    dataset_id: Arc<str>,
    limits: Limits,
    footers: ByteCache<Arc<str>, Arc<Footer>>,
    blocks: ByteCache<BlockKey, Arc<Vec<Block>>>,
    /// Small files as they were written. The next commit looks into the manifests of the last one,
    /// and on an object store reading them back is a round trip.
    written: ByteCache<Arc<str>, Bytes>,
}

/// A file and the rows of it that a cached block holds.
type BlockKey = (Arc<str>, u64, u64);

/// Rows of one array inside a decoded block.
#[derive(Debug, Clone)]
pub(crate) struct Part {
    pub(crate) blocks: Arc<Vec<Block>>,
    /// Rows of the file.
    pub(crate) rows: Range<u64>,
}

impl Part {
    /// The blocks with the rows of each that belong to the part.
    pub(crate) fn pieces(&self) -> impl Iterator<Item = (&Block, Range<usize>)> {
        self.blocks.iter().filter_map(|block| {
            let end = block.first_row + block.len() as u64;
            let from = self.rows.start.clamp(block.first_row, end) - block.first_row;
            let to = self.rows.end.clamp(block.first_row, end) - block.first_row;
            (from < to).then_some((block, from as usize..to as usize))
        })
    }
}

impl Manifests {
    pub(crate) fn new(
        store: Store,
        dataset_id: Arc<str>,
        limits: Limits,
        cache_bytes_max: u64,
    ) -> Self {
        let weigh = |_: &BlockKey, blocks: &Arc<Vec<Block>>| {
            blocks.iter().map(|block| block.bytes_held() + 128).sum()
        };
        let footers = ByteCache::new(cache_bytes_max / 4, |_, footer: &Arc<Footer>| {
            footer.parquet().memory_size() + 1024
        });
        let blocks = ByteCache::new(cache_bytes_max, weigh);
        let written = ByteCache::new(cache_bytes_max / 8, |_, bytes: &Bytes| bytes.len() + 128);
        Self { store, dataset_id, limits, footers, blocks, written }
    }

    /// Writes a new manifest.
    pub(crate) async fn put(&self, file: &Arc<str>, bytes: &Bytes) -> Result<()> {
        self.store.backend().put(&path_of(file), vec![bytes.clone()]).await?;
        if bytes.len() as u64 <= WHOLE_MAX {
            self.written.insert(file.clone(), bytes.clone());
        }
        Ok(())
    }

    /// All rows of an inventory entry.
    pub(crate) async fn entry(&self, entry: &Inventory, array_id: u32) -> Result<Part> {
        let Some(rows) = entry.rows.filter(|_| is_paged(entry)) else {
            return self.whole(entry, array_id).await;
        };
        let footer = self.footer(entry).await?;
        let rows = entry.row..entry.row.saturating_add(rows);
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
        check_rows(entry, &rows, group_start)?;
        let mut blocks = Vec::with_capacity(parts.len());
        for (row_group, group_start, rows) in parts {
            blocks.extend(self.decode_rows(&footer, row_group, group_start, rows).await?);
        }
        Ok(Part { blocks: Arc::new(blocks), rows })
    }

    /// The rows of an entry that can hold `coord`.
    pub(crate) async fn page_for(
        &self,
        entry: &Inventory,
        array_id: u32,
        coord: &[u8],
    ) -> Result<Option<Part>> {
        let Some(rows) = entry.rows.filter(|_| is_paged(entry)) else {
            return self.whole(entry, array_id).await.map(Some);
        };
        let footer = self.footer(entry).await?;
        match find_page(&footer, entry.row, rows, coord) {
            PageSearch::Absent => Ok(None),
            PageSearch::Unknown => self.cached_entry(entry, array_id).await.map(Some),
            PageSearch::Found { row_group, group_start, rows } => {
                let key = (entry.file.clone(), group_start + rows.start as u64, rows.len() as u64);
                let absolute = key.1..key.1 + key.2;
                if let Some(blocks) = self.blocks.get(&key) {
                    return Ok(Some(Part { blocks, rows: absolute }));
                }
                let blocks = self.decode_rows(&footer, row_group, group_start, rows).await?;
                let blocks = Arc::new(blocks);
                self.blocks.insert(key, blocks.clone());
                Ok(Some(Part { blocks, rows: absolute }))
            }
        }
    }

    async fn cached_entry(&self, entry: &Inventory, array_id: u32) -> Result<Part> {
        let rows = entry.rows.unwrap_or(0);
        let key = (entry.file.clone(), entry.row, rows);
        if let Some(blocks) = self.blocks.get(&key) {
            return Ok(Part { blocks, rows: entry.row..entry.row + rows });
        }
        let part = self.entry(entry, array_id).await?;
        self.blocks.insert(key, part.blocks.clone());
        Ok(part)
    }

    async fn decode_rows(
        &self,
        footer: &Arc<Footer>,
        row_group: usize,
        group_start: u64,
        rows: Range<usize>,
    ) -> Result<Vec<Block>> {
        let path: Arc<str> = path_of(footer.file()).into();
        let ranges = footer.ranges(row_group, &rows);
        let requests: Vec<_> = ranges
            .iter()
            .map(|range| Request { path: path.clone(), range: range.clone(), guard: None })
            .collect();
        let bytes = self.store.fetch(&requests, &self.limits).await?;
        let pieces = ranges.iter().map(|range| range.start).zip(bytes).collect();
        let pieces = footer.assemble(pieces)?;
        let mut first_row = group_start + rows.start as u64;
        footer
            .decode(&pieces, row_group, rows)?
            .iter()
            .map(|batch| {
                let block = Block::new(footer.file(), first_row, batch)?;
                first_row += block.len() as u64;
                Ok(block)
            })
            .collect()
    }

    /// A small file, or one of the bare draft, where only the rows tell the row count.
    async fn whole(&self, entry: &Inventory, array_id: u32) -> Result<Part> {
        let key = (entry.file.clone(), 0, u64::MAX);
        let blocks = match self.blocks.get(&key) {
            Some(blocks) => blocks,
            None => {
                let bytes = match self.written.get(&entry.file) {
                    Some(bytes) => bytes,
                    None => self.get(&entry.file, entry.file_size).await?,
                };
                let file = &entry.file;
                let blocks = decode_file(file, &self.dataset_id, &bytes, entry.tail)?;
                let blocks = Arc::new(blocks);
                self.blocks.insert(key, blocks.clone());
                self.written.remove(file);
                blocks
            }
        };
        let total: u64 = blocks.iter().map(|block| block.len() as u64).sum();
        let end = match entry.rows {
            Some(rows) => entry.row.saturating_add(rows),
            None => {
                let following = Part { blocks: blocks.clone(), rows: entry.row..total };
                let mut end = entry.row;
                'rows: for (block, rows) in following.pieces() {
                    for at in rows {
                        if block.array_id(at) != u64::from(array_id) {
                            break 'rows;
                        }
                        end += 1;
                    }
                }
                end
            }
        };
        check_rows(entry, &(entry.row..end), total)?;
        Ok(Part { blocks, rows: entry.row..end })
    }

    /// The bytes of a manifest; a wrong size is corruption, found before anything is decoded.
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

    async fn footer(&self, entry: &Inventory) -> Result<Arc<Footer>> {
        if let Some(footer) = self.footers.get(&entry.file) {
            return Ok(footer);
        }
        let (Some(size), Some(tail)) = (entry.file_size, entry.tail) else {
            return Err(corrupt(&entry.file, "inventory entry", "file and tail size", "none"));
        };
        let start = size
            .checked_sub(tail.size)
            .ok_or_else(|| corrupt(&entry.file, "tail size", "at most the file's", "more"))?;
        let bytes = self.store.get_range(&path_of(&entry.file), start..size).await?;
        let label = Label { format: "manifest", dataset_id: &self.dataset_id, created_ms: 0 };
        let footer = Arc::new(Footer::parse(&entry.file, &label, &bytes, size, Some(tail))?);
        self.footers.insert(entry.file.clone(), footer.clone());
        Ok(footer)
    }
}

fn is_paged(entry: &Inventory) -> bool {
    entry.tail.is_some() && entry.file_size.is_some_and(|size| size > WHOLE_MAX)
}

fn path_of(file: &str) -> String {
    format!("i/{file}")
}

fn check_rows(entry: &Inventory, rows: &Range<u64>, total: u64) -> Result<()> {
    if rows.end <= total {
        return Ok(());
    }
    let expected = format!("rows up to {}", rows.end);
    Err(corrupt(&entry.file, "row count", &expected, &total.to_string()))
}

enum PageSearch {
    Absent,
    /// The file has no usable index; read the entry.
    Unknown,
    Found {
        row_group: usize,
        group_start: u64,
        rows: Range<usize>,
    },
}

/// Finds the page by the bounds in the column index. Usable only where the entry's rows are whole
/// row groups: a page that also holds another array's rows has bounds that say nothing about ours.
fn find_page(footer: &Footer, row: u64, rows: u64, coord: &[u8]) -> PageSearch {
    let metadata = footer.parquet();
    let end = row.saturating_add(rows);
    let mut group_start = 0u64;
    for (row_group, count) in footer.row_groups().into_iter().enumerate() {
        let group_end = group_start + count as u64;
        if group_end <= row || group_start >= end {
            group_start = group_end;
            continue;
        }
        let Some(leaf) = metadata.row_group(row_group).columns().iter().position(|column| {
            column.column_path().parts().first().is_some_and(|name| name == "coord")
        }) else {
            return PageSearch::Unknown;
        };
        let pages = metadata.page_index_for_row_group(row_group);
        let bounds = pages.column_index(leaf).zip(pages.offset_index(leaf));
        let (Some((ColumnIndexMetaData::BYTE_ARRAY(index), offsets)), true) =
            (bounds, group_start >= row && group_end <= end)
        else {
            return PageSearch::Unknown;
        };
        let locations = offsets.page_locations();
        let after = |page: usize| index.max_value(page).is_none_or(|max| coord <= max);
        // The first page whose upper bound does not exclude the coordinate.
        let page = partition(locations.len(), |page| !after(page));
        if page < locations.len() {
            if index.min_value(page).is_some_and(|min| coord < min) {
                return PageSearch::Absent;
            }
            let from = locations.get(page).map_or(0, |page| page.first_row_index as usize);
            let to = locations.get(page + 1).map_or(count, |next| next.first_row_index as usize);
            return PageSearch::Found { row_group, group_start, rows: from..to };
        }
        group_start = group_end;
    }
    PageSearch::Absent
}

/// Among `rows` rows from `row` on, the page that can hold `coord`: its row group and its rows
/// there.
pub(crate) fn locate_page(
    footer: &Footer,
    row: u64,
    rows: u64,
    coord: &[u8],
) -> Option<(usize, Range<usize>)> {
    match find_page(footer, row, rows, coord) {
        PageSearch::Found { row_group, rows, .. } => Some((row_group, rows)),
        PageSearch::Absent | PageSearch::Unknown => None,
    }
}

fn partition(count: usize, before: impl Fn(usize) -> bool) -> usize {
    let (mut low, mut high) = (0, count);
    while low < high {
        let middle = low + (high - low) / 2;
        if before(middle) { low = middle + 1 } else { high = middle }
    }
    low
}
