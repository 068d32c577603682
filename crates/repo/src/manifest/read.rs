//! Decoding manifests.

use std::sync::Arc;

use arrow_array::{Array, BinaryArray, Int64Array, RecordBatch, StringArray, UInt64Array};
use bytes::Bytes;
use chunkyard_store::Result;

use super::{Native, Payload, Row, Virtual};
use crate::columns::Columns;
use crate::coord::Coord;
use crate::id;
use crate::parquet_file::{self, Footer, Label, Tail, corrupt};

/// Some consecutive rows of a manifest, decoded into columns.
#[derive(Debug)]
pub(crate) struct Block {
    file: Arc<str>,
    /// Position of the first row in the file.
    pub(crate) first_row: u64,
    /// Whether the file is of the bare draft, which does not require rows in order.
    pub(crate) is_bare: bool,
    /// The places of the rows, where they were not in order.
    order: Option<Box<[usize]>>,
    array_ids: UInt64Array,
    coords: BinaryArray,
    inline: BinaryArray,
    files: StringArray,
    offsets: UInt64Array,
    lengths: UInt64Array,
    crcs: UInt64Array,
    etags: StringArray,
    modified: Int64Array,
}

impl Block {
    pub(crate) fn new(file: &Arc<str>, first_row: u64, batch: &RecordBatch) -> Result<Self> {
        let columns = Columns::of_batch(file, batch);
        let block = Self {
            file: file.clone(),
            first_row,
            is_bare: false,
            order: None,
            array_ids: columns.uints("array_id")?,
            coords: columns.binaries("coord")?,
            inline: columns.binaries("inline_data")?,
            files: columns.strings("chunk_file")?,
            offsets: columns.uints("offset")?,
            lengths: columns.uints("length")?,
            crcs: columns.uints("crc32c")?,
            etags: columns.strings("etag")?,
            modified: columns.ints("last_modified_ms")?,
        };
        for (name, nulls) in [
            ("array_id", block.array_ids.null_count()),
            ("coord", block.coords.null_count()),
            ("length", block.lengths.null_count()),
        ] {
            if nulls > 0 {
                return Err(columns.error(name, "no nulls", &format!("{nulls} nulls")));
            }
        }
        Ok(block)
    }

    pub(crate) fn len(&self) -> usize {
        self.coords.len()
    }

    /// Bytes held, for a cache.
    pub(crate) fn bytes_held(&self) -> usize {
        self.coords.get_array_memory_size()
            + self.inline.get_array_memory_size()
            + self.files.get_array_memory_size()
            + self.len() * 48
            + self.order.as_ref().map_or(0, |order| size_of_val(&**order))
    }

    /// Puts the rows of each array in the order of their coordinates. `row` of an entry stays true:
    /// the rows of an array stay together.
    fn sort(&mut self) -> Result<()> {
        let mut order: Vec<usize> = (0..self.len()).collect();
        let id = |at: &usize| self.array_ids.value(*at);
        let coord = |at: &usize| self.coords.value(*at);
        for rows in order.chunk_by_mut(|a, b| id(a) == id(b)) {
            rows.sort_by_key(|at| coord(at));
            if let Some(twice) = rows.windows(2).find(|pair| coord(&pair[0]) == coord(&pair[1])) {
                let found = format!("{:02x?} twice", coord(&twice[0]));
                return Err(self.wrong(twice[1], "one row for each chunk", &found));
            }
        }
        if !order.is_sorted() {
            self.order = Some(order.into());
        }
        Ok(())
    }

    /// Where a row is in the columns.
    fn place(&self, at: usize) -> usize {
        self.order.as_ref().and_then(|order| order.get(at).copied()).unwrap_or(at)
    }

    pub(crate) fn array_id(&self, at: usize) -> u64 {
        self.array_ids.value(self.place(at))
    }

    pub(crate) fn coord(&self, at: usize) -> &[u8] {
        self.coords.value(self.place(at))
    }

    /// The content of a row; any combination of columns that is not one of the four kinds is
    /// corrupt.
    pub(crate) fn payload(&self, at: usize) -> Result<Payload> {
        let at = self.place(at);
        let length = self.lengths.value(at);
        let crc = match self.crcs.is_valid(at).then(|| self.crcs.value(at)) {
            None => None,
            Some(crc) => Some(
                u32::try_from(crc)
                    .map_err(|_| self.wrong(at, "crc32c of 32 bits", &crc.to_string()))?,
            ),
        };
        let inline = self.inline.is_valid(at).then(|| self.inline.value(at));
        let file = self.files.is_valid(at).then(|| self.files.value(at));
        let offset = self.offsets.is_valid(at).then(|| self.offsets.value(at));
        match (inline, file, offset, length) {
            (Some(bytes), None, None, 1..) if bytes.len() as u64 == length => {
                if let Some(crc) = crc {
                    let what = format!("inline data of row {}", self.first_row + at as u64);
                    parquet_file::check_crc(&self.file, &what, crc, bytes)?;
                }
                Ok(Payload::Inline { bytes: Bytes::copy_from_slice(bytes) })
            }
            (None, None, None, 0) => Ok(Payload::Removed),
            (None, Some(file), Some(offset), 1..) if offset.checked_add(length).is_some() => {
                if file.contains("://") {
                    return Ok(Payload::Virtual(Box::new(Virtual {
                        url: file.into(),
                        offset,
                        length,
                        etag: self.etags.is_valid(at).then(|| self.etags.value(at).to_owned()),
                        last_modified_ms: self
                            .modified
                            .is_valid(at)
                            .then(|| self.modified.value(at)),
                        crc32c: crc,
                    })));
                }
                if !id::is_file_name(file) {
                    return Err(self.wrong(at, "a chunk file name or URL", &format!("{file:?}")));
                }
                Ok(Payload::Native(Native { file: file.into(), offset, length, crc32c: crc }))
            }
            _ => {
                let found = format!(
                    "inline_data {}, chunk_file {file:?}, offset {offset:?}, length {length}",
                    inline.map_or("null".into(), |bytes| format!("of {} bytes", bytes.len())),
                );
                Err(self.wrong(at, "an inline, native, virtual or removed chunk", &found))
            }
        }
    }

    pub(crate) fn row(&self, at: usize) -> Result<Row> {
        let id = self.array_id(at);
        Ok(Row {
            array_id: u32::try_from(id)
                .map_err(|_| self.wrong(at, "an array_id of 32 bits", &id.to_string()))?,
            coord: Coord::from_bytes(self.coord(at)),
            payload: self.payload(at)?,
        })
    }

    fn wrong(&self, at: usize, expected: &str, found: &str) -> chunkyard_store::Error {
        corrupt(&self.file, &format!("row {}", self.first_row + at as u64), expected, found)
    }
}

/// Decodes all rows of a manifest in memory, as one block per row group.
pub(crate) fn decode_file(
    file: &Arc<str>,
    dataset_id: &str,
    bytes: &Bytes,
    tail: Option<Tail>,
) -> Result<Vec<Block>> {
    let label = Label { format: "manifest", dataset_id, created_ms: 0 };
    let (footer, batches) = parquet_file::read_whole(file, &label, bytes, tail)?;
    blocks(&footer, &batches)
}

/// All rows of a file, as one block per row group; in order, also where the draft does not require it.
pub(super) fn blocks(footer: &Footer, batches: &[RecordBatch]) -> Result<Vec<Block>> {
    let mut blocks: Vec<Block> = Vec::with_capacity(batches.len());
    let mut first_row = 0;
    for batch in batches {
        let mut block = Block::new(footer.file(), first_row, batch)?;
        first_row += block.len() as u64;
        if footer.is_bare() {
            block.sort()?;
            check_order(blocks.last(), &block)?;
        }
        blocks.push(block);
    }
    Ok(blocks)
}

/// Rows of one array must stay in order across row groups: a search would miss chunks otherwise.
fn check_order(before: Option<&Block>, after: &Block) -> Result<()> {
    let Some(before) = before.filter(|before| before.len() > 0 && after.len() > 0) else {
        return Ok(());
    };
    let last = before.len() - 1;
    if before.array_id(last) == after.array_id(0) && before.coord(last) >= after.coord(0) {
        let expected = "the chunks of an array in order from one row group to the next";
        return Err(after.wrong(0, expected, &format!("{:02x?}", after.coord(0))));
    }
    Ok(())
}
