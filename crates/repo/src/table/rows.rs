//! How the rows of a table stand in a run: one file for one table, with the table's own columns.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::DataType;
use chunkyard_store::Result;
use parquet::arrow::ProjectionMask;
use parquet::file::page_index::column_index::ColumnIndexMetaData;

use super::block::Block;
use super::key::{escape, flip32, flip64};
use super::spec::{REMOVED, TableSpec};
use crate::parquet_file::Footer;
use crate::run::{self, Files, Keys, Opened, Pages, Rows, partition};

/// The runs of all tables of a repository.
pub(crate) type TableFiles = Files<TableRows>;

/// The rows of a table, or some columns of them.
#[derive(Debug, Clone)]
pub(crate) struct TableRows {
    pub(crate) spec: Arc<TableSpec>,
    /// The columns that a walk decodes, the key first; all, if `None`.
    wanted: Option<Arc<[usize]>>,
    all: Arc<[usize]>,
}

impl TableRows {
    pub(crate) fn new(spec: Arc<TableSpec>) -> Self {
        let all = (0..spec.schema().fields().len()).collect();
        Self { spec, wanted: None, all }
    }

    /// With the key and these columns alone.
    pub(crate) fn only(spec: Arc<TableSpec>, columns: &[usize]) -> Self {
        let key = spec.key();
        let mut wanted: Vec<usize> = (0..key).chain(columns.iter().copied()).collect();
        wanted.sort_unstable();
        wanted.dedup();
        let wanted = Some(wanted.into());
        Self { wanted, ..Self::new(spec) }
    }

    /// The columns of a block that a walk decodes.
    pub(crate) fn wanted(&self) -> &[usize] {
        self.wanted.as_deref().unwrap_or(&self.all)
    }

    /// Where column `at` of the table is in a block, which has all columns or the wanted ones.
    pub(crate) fn place(&self, block: &Block, at: usize) -> usize {
        match &self.wanted {
            Some(wanted) if block.columns().len() < self.all.len() => {
                wanted.iter().position(|known| *known == at).unwrap_or(at)
            }
            _ => at,
        }
    }
}

impl Rows for TableRows {
    type Block = Block;
    type Index = PageKeys;
    const FORMAT: &'static str = "table";

    fn block(&self, file: &Arc<str>, first_row: u64, batch: &RecordBatch) -> Result<Block> {
        // A lookup decodes all columns, whatever a walk wants.
        let marks = usize::from(batch.column_by_name(REMOVED).is_some());
        let columns = match batch.num_columns() - marks >= self.all.len() {
            true => &self.all,
            false => self.wanted.as_ref().unwrap_or(&self.all),
        };
        Block::decode(&self.spec, columns, file, first_row, batch)
    }

    fn end(&self, blocks: &Arc<Vec<Block>>, _: u64) -> u64 {
        blocks.iter().map(|block| run::Block::len(block) as u64).sum()
    }

    fn index(&self, footer: &Footer) -> Result<PageKeys> {
        Ok(PageKeys::new(&self.spec, footer))
    }

    fn weigh(index: &PageKeys) -> usize {
        index.pages.iter().map(|page| page.lower.len() + page.upper.len() + 96).sum()
    }

    fn find(&self, opened: &Opened<PageKeys>, rows: Range<u64>, keys: Keys<'_>) -> Pages {
        opened.index.find(rows, keys)
    }

    fn columns(&self, footer: &Footer) -> ProjectionMask {
        let Some(wanted) = &self.wanted else { return ProjectionMask::all() };
        let schema = footer.parquet().file_metadata().schema_descr();
        let fields = self.spec.schema().fields();
        let named = |name: &str| {
            name == REMOVED
                || wanted.iter().any(|at| fields.get(*at).is_some_and(|f| f.name() == name))
        };
        let roots = schema.root_schema().get_fields().iter().enumerate();
        ProjectionMask::roots(
            schema,
            roots.filter(|(_, root)| named(root.name())).map(|(at, _)| at),
        )
    }
}

/// Bounds of the keys of each page of a file.
#[derive(Debug)]
pub(crate) struct PageKeys {
    /// Empty if the file has no usable index.
    pages: Vec<PageKey>,
}

#[derive(Debug)]
struct PageKey {
    /// No key of the page is below.
    lower: Vec<u8>,
    /// No key of the page begins with anything above.
    upper: Vec<u8>,
    first_row: u64,
    end: u64,
}

impl PageKeys {
    /// A page has bounds for each column. If the first column of the key has one value in a page, the
    /// bounds of the second tell more, and so on.
    fn new(spec: &TableSpec, footer: &Footer) -> Self {
        let mut pages = Vec::new();
        let mut group_start = 0;
        for (row_group, count) in footer.row_groups().into_iter().enumerate() {
            match Self::of_group(spec, footer, row_group, group_start, count as u64) {
                Some(found) => pages.extend(found),
                None => return Self { pages: Vec::new() },
            }
            group_start += count as u64;
        }
        // Rows are sorted, so no page begins below the one before it, or ends above the one after it.
        for at in 1..pages.len() {
            let (before, after) = pages.split_at_mut(at);
            if let (Some(before), Some(after)) = (before.last(), after.first_mut())
                && after.lower < before.lower
            {
                after.lower.clone_from(&before.lower);
            }
        }
        for at in (1..pages.len()).rev() {
            let (before, after) = pages.split_at_mut(at);
            if let (Some(before), Some(after)) = (before.last_mut(), after.first())
                && is_above(&before.upper, &after.upper)
            {
                before.upper.clone_from(&after.upper);
            }
        }
        Self { pages }
    }

    fn of_group(
        spec: &TableSpec,
        footer: &Footer,
        row_group: usize,
        group_start: u64,
        count: u64,
    ) -> Option<Vec<PageKey>> {
        let group = footer.parquet().row_group(row_group);
        let index = footer.parquet().page_index_for_row_group(row_group);
        let leaf = |name: &str| {
            let path =
                |parts: &[String]| parts.len() == 1 && parts.first().is_some_and(|p| p == name);
            group.columns().iter().position(|column| path(column.column_path().parts()))
        };
        let fields: Vec<_> = spec.schema().fields().iter().take(spec.key()).collect();
        let leaves: Vec<usize> = fields.iter().map(|f| leaf(f.name())).collect::<Option<_>>()?;
        // Pages of several columns need not have the same rows; ours do.
        let rows_of = |leaf: usize| {
            let offsets = index.offset_index(leaf)?;
            Some(
                offsets
                    .page_locations()
                    .iter()
                    .map(|page| page.first_row_index)
                    .collect::<Vec<_>>(),
            )
        };
        let first_rows = rows_of(*leaves.first()?)?;
        let mut pages = Vec::with_capacity(first_rows.len());
        for (page, first) in first_rows.iter().enumerate() {
            let (mut lower, mut upper) = (Vec::new(), Vec::new());
            for (field, leaf) in fields.iter().zip(&leaves) {
                let location = index.offset_index(*leaf).and_then(|p| p.page_locations().get(page));
                if location.is_none_or(|location| location.first_row_index != *first) {
                    break;
                }
                let bounds = index.column_index(*leaf)?;
                let (low, high) = bounds_of(bounds, field.data_type(), page)?;
                lower.extend_from_slice(&low);
                upper.extend_from_slice(&high);
                if low != high {
                    break;
                }
            }
            let end = first_rows.get(page + 1).map_or(count, |row| row.unsigned_abs());
            pages.push(PageKey {
                lower,
                upper,
                first_row: group_start + first.unsigned_abs(),
                end: group_start + end,
            });
        }
        Some(pages)
    }

    fn find(&self, rows: Range<u64>, keys: Keys<'_>) -> Pages {
        if self.pages.is_empty() {
            return Pages::Unknown;
        }
        let page = |at: usize| self.pages.get(at);
        let first = partition(self.pages.len(), |at| {
            page(at).is_some_and(|p| is_above(keys.from, &p.upper))
        });
        let end =
            partition(self.pages.len(), |at| page(at).is_some_and(|p| !keys.end_before(&p.lower)));
        let (Some(from), Some(last)) = (page(first), end.checked_sub(1).and_then(page)) else {
            return Pages::Absent;
        };
        let found = from.first_row.max(rows.start)..last.end.min(rows.end);
        if found.is_empty() { Pages::Absent } else { Pages::Found(found) }
    }
}

/// Whether a key is above everything that begins with `upper`.
fn is_above(key: &[u8], upper: &[u8]) -> bool {
    key.get(..upper.len()).unwrap_or(key) > upper
}

/// The encoded bounds of a page of one column; `None` where the file has none.
fn bounds_of(
    index: &ColumnIndexMetaData,
    kind: &DataType,
    page: usize,
) -> Option<(Vec<u8>, Vec<u8>)> {
    let (low, high) = match (index, kind) {
        (ColumnIndexMetaData::INT64(index), DataType::UInt64 | DataType::Int64) => {
            let flip = |value: &i64| match kind {
                DataType::Int64 => flip64(*value),
                _ => value.cast_unsigned(),
            };
            let encode = |value: &i64| flip(value).to_be_bytes().to_vec();
            (encode(index.min_value(page)?), encode(index.max_value(page)?))
        }
        (ColumnIndexMetaData::INT32(index), DataType::UInt32 | DataType::Int32) => {
            let flip = |value: &i32| match kind {
                DataType::Int32 => flip32(*value),
                _ => value.cast_unsigned(),
            };
            let encode = |value: &i32| flip(value).to_be_bytes().to_vec();
            (encode(index.min_value(page)?), encode(index.max_value(page)?))
        }
        (ColumnIndexMetaData::BYTE_ARRAY(index), DataType::Utf8 | DataType::Binary) => {
            let encode = |value: &[u8]| {
                let mut bytes = Vec::with_capacity(value.len() + 2);
                escape(value, &mut bytes);
                bytes
            };
            (encode(index.min_value(page)?), encode(index.max_value(page)?))
        }
        _ => return None,
    };
    Some((low, high))
}
