//! How references stand in a run: several arrays share a file, each with rows of its own.

use std::ops::{Bound, Range};
use std::sync::Arc;

use arrow_array::RecordBatch;
use chunkyard_store::Result;
use parquet::file::page_index::column_index::ColumnIndexMetaData;

use super::read::{self, Block};
use crate::node::Node;
use crate::parquet_file::Footer;
use crate::run::{self, Files, Keys, Opened, Pages, Part, Rows, partition};

/// The manifests of a repository.
pub(crate) type Manifests = Files<References>;

/// The references of one array.
#[derive(Debug, Clone, Copy)]
pub(crate) struct References {
    array_id: u32,
}

impl References {
    /// The references of a node.
    pub(crate) fn of(node: &Node) -> Self {
        Self { array_id: node.id }
    }
}

impl Rows for References {
    type Block = Block;
    type Index = ();
    const FORMAT: &'static str = "manifest";

    fn block(&self, file: &Arc<str>, first_row: u64, batch: &RecordBatch) -> Result<Block> {
        Block::new(file, first_row, batch)
    }

    fn blocks(&self, footer: &Footer, batches: &[RecordBatch]) -> Result<Vec<Block>> {
        read::blocks(footer, batches)
    }

    fn end(&self, blocks: &Arc<Vec<Block>>, row: u64) -> u64 {
        let total: u64 = blocks.iter().map(|block| block.len() as u64).sum();
        let following = Part { blocks: blocks.clone(), rows: row..total };
        let mut end = row;
        for (block, rows) in following.pieces() {
            for at in rows {
                if block.array_id(at) != u64::from(self.array_id) {
                    return end;
                }
                end += 1;
            }
        }
        end
    }

    fn index(&self, _: &Footer) -> Result<()> {
        Ok(())
    }

    fn weigh(_: &()) -> usize {
        0
    }

    fn find(&self, opened: &Opened<()>, rows: Range<u64>, keys: Keys<'_>) -> Pages {
        find_pages(&opened.footer, rows, keys)
    }
}

impl run::Block for Block {
    fn first_row(&self) -> u64 {
        self.first_row
    }

    fn len(&self) -> usize {
        Block::len(self)
    }

    fn key(&self, at: usize) -> &[u8] {
        self.coord(at)
    }

    fn bytes_held(&self) -> usize {
        Block::bytes_held(self)
    }
}

/// Finds the pages by the bounds in the column index. Usable only where the entry's rows are whole
/// row groups: a page that also holds another array's rows has bounds that say nothing about ours.
fn find_pages(footer: &Footer, entry: Range<u64>, keys: Keys<'_>) -> Pages {
    let metadata = footer.parquet();
    let mut group_start = 0u64;
    let mut found: Option<Range<u64>> = None;
    for (row_group, count) in footer.row_groups().into_iter().enumerate() {
        let group_end = group_start + count as u64;
        if group_end <= entry.start || group_start >= entry.end {
            group_start = group_end;
            continue;
        }
        let Some(leaf) = metadata.row_group(row_group).columns().iter().position(|column| {
            column.column_path().parts().first().is_some_and(|name| name == "coord")
        }) else {
            return Pages::Unknown;
        };
        let pages = metadata.page_index_for_row_group(row_group);
        let bounds = pages.column_index(leaf).zip(pages.offset_index(leaf));
        let (Some((ColumnIndexMetaData::BYTE_ARRAY(index), offsets)), true) =
            (bounds, group_start >= entry.start && group_end <= entry.end)
        else {
            return Pages::Unknown;
        };
        let locations = offsets.page_locations();
        let ends_below = |page: usize| index.max_value(page).is_some_and(|max| max < keys.from);
        let begins_above =
            |page: usize| index.min_value(page).is_some_and(|min| keys.end_before(min));
        // From the first page whose upper bound does not exclude the keys on.
        let first = partition(locations.len(), ends_below);
        let end = partition(locations.len(), |page| !begins_above(page)).max(first);
        if first < end {
            let row_of = |page: usize| {
                let row = locations.get(page).map_or(count, |page| page.first_row_index as usize);
                group_start + row as u64
            };
            let start = found.as_ref().map_or(row_of(first), |found| found.start);
            found = Some(start..row_of(end));
        }
        if end < locations.len() {
            break;
        }
        group_start = group_end;
    }
    found.map_or(Pages::Absent, Pages::Found)
}

/// Among `rows` rows from the first on, the page that can hold `coord`.
pub(crate) fn locate_page(footer: &Footer, rows: u64, coord: &[u8]) -> Option<Range<u64>> {
    let keys = Keys { from: coord, to: Bound::Included(coord) };
    match find_pages(footer, 0..rows, keys) {
        Pages::Found(rows) => Some(rows),
        Pages::Absent | Pages::Unknown => None,
    }
}
