//! The rows of a row group that was read, and the blocks in them.

use std::ops::RangeInclusive;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, UInt8Type, UInt16Type, UInt32Type, UInt64Type};
use arrow_array::{
    Array, ArrowPrimitiveType, BinaryArray, ListArray, PrimitiveArray, RecordBatch, StringArray,
};
use chunkyard_array::codec::packed::zstd_unpacked;
use chunkyard_array::codec::{gunzip, label_block};
use chunkyard_store::{Error, Result};

use super::cells::{CELLS, Part, join};

/// The columns of the places where a row is, checked: as many values each, and none of them null.
#[derive(Debug)]
struct Columns {
    morton: PrimitiveArray<UInt64Type>,
    part: PrimitiveArray<UInt16Type>,
    parts: PrimitiveArray<UInt16Type>,
    at: [PrimitiveArray<Int32Type>; 3],
    labels: ListArray,
    supervoxels: ListArray,
    nbytes: PrimitiveArray<UInt32Type>,
    raw_nbytes: PrimitiveArray<UInt32Type>,
    codec: StringArray,
    crc32c: PrimitiveArray<UInt32Type>,
    bins: Vec<BinaryArray>,
}

/// The rows of a row group, found by the number of their block.
#[derive(Debug)]
pub(super) struct Group {
    columns: Vec<Columns>,
    /// Number of the block, part, batch, row.
    rows: Vec<(u64, u16, usize, usize)>,
    /// What it takes in memory, about.
    pub(super) bytes: usize,
}

/// A row.
#[derive(Debug, Clone, Copy)]
pub(super) struct Row<'a> {
    columns: &'a Columns,
    at: usize,
}

/// Which numbers are wanted of the voxels of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Column {
    Labels,
    Supervoxels,
}

/// What a block must be.
#[derive(Debug, Clone, Copy)]
pub(super) struct Expected {
    /// Its first voxel.
    pub(super) origin: [i64; 3],
    /// Its voxels along x, y and z.
    pub(super) size: [u32; 3],
    /// Whether its label list is left out of it, where the file says so.
    pub(super) stripped: Option<bool>,
}

impl Group {
    /// Checks the rows of a row group of the table of a shard, whose footer says which blocks it has.
    pub(super) fn new(
        file: &str,
        (scale, shard): (u8, u64),
        blocks: Option<&RangeInclusive<u64>>,
        batches: &[RecordBatch],
    ) -> Result<Self> {
        let (mut columns, mut rows, mut bytes) = (Vec::new(), Vec::new(), 0);
        for (number, batch) in batches.iter().enumerate() {
            bytes += batch.get_array_memory_size();
            let scales = primitive::<UInt8Type>(file, batch, "scale")?;
            if let Some(found) = scales.values().iter().find(|found| **found != scale) {
                return Err(corrupt(file, "scale of a row", scale, found));
            }
            let shards = primitive::<UInt64Type>(file, batch, "shard_id")?;
            if let Some(found) = shards.values().iter().find(|found| **found != shard) {
                return Err(corrupt(file, "shard_id of a row", shard, found));
            }
            let own = Columns::new(file, batch)?;
            for (at, (morton, part)) in
                own.morton.values().iter().zip(own.part.values()).enumerate()
            {
                if !blocks.is_some_and(|blocks| blocks.contains(morton)) {
                    let expected = format!("{blocks:?}, which the footer says");
                    return Err(corrupt(file, "morton of a row", expected, morton));
                }
                rows.push((*morton, *part, number, at));
            }
            columns.push(own);
        }
        rows.sort_unstable();
        Ok(Self { columns, rows, bytes })
    }

    /// The rows of a block, in the order of their parts.
    pub(super) fn rows(&self, morton: u64) -> impl Iterator<Item = Row<'_>> {
        let first = self.rows.partition_point(|row| row.0 < morton);
        let rows = self.rows.get(first..).unwrap_or_default();
        rows.iter()
            .take_while(move |row| row.0 == morton)
            .filter_map(|&(.., batch, at)| Some(Row { columns: self.columns.get(batch)?, at }))
    }

    /// The numbers of its blocks, ascending.
    pub(super) fn blocks(&self) -> Vec<u64> {
        let mut blocks: Vec<u64> = self.rows.iter().map(|row| row.0).collect();
        blocks.dedup();
        blocks
    }
}

impl Columns {
    fn new(file: &str, batch: &RecordBatch) -> Result<Self> {
        let bins = (1..=CELLS).map(|number| {
            let name = format!("bin{number}");
            let column =
                batch.column_by_name(&name).and_then(|column| column.as_binary_opt::<i32>());
            column.cloned().ok_or_else(|| other_type(file, batch, &name, "binary"))
        });
        Ok(Self {
            morton: primitive(file, batch, "morton")?,
            part: primitive(file, batch, "part")?,
            parts: primitive(file, batch, "parts")?,
            at: [
                primitive(file, batch, "x")?,
                primitive(file, batch, "y")?,
                primitive(file, batch, "z")?,
            ],
            labels: list(file, batch, "labels")?,
            supervoxels: list(file, batch, "supervoxels")?,
            nbytes: primitive(file, batch, "nbytes")?,
            raw_nbytes: primitive(file, batch, "raw_nbytes")?,
            codec: {
                let column = batch.column_by_name("codec");
                let column = column.and_then(|column| column.as_string_opt::<i32>());
                let column = column.ok_or_else(|| other_type(file, batch, "codec", "utf8"))?;
                whole(file, column, "codec")?;
                column.clone()
            },
            crc32c: primitive(file, batch, "crc32c")?,
            bins: bins.collect::<Result<_>>()?,
        })
    }
}

impl Row<'_> {
    pub(super) fn part(&self) -> Part<'_> {
        let (own, at) = (self.columns, self.at);
        let mut cells = [None; CELLS];
        for (cell, bin) in cells.iter_mut().zip(&own.bins) {
            *cell = bin.is_valid(at).then(|| bin.value(at));
        }
        Part {
            part: own.part.value(at),
            parts: own.parts.value(at),
            bytes: own.nbytes.value(at),
            crc32c: own.crc32c.value(at),
            cells,
        }
    }

    /// What all rows of a block agree about, besides the payload.
    fn same(&self) -> ([i32; 3], u32, &str) {
        let (own, at) = (self.columns, self.at);
        let origin = own.at.each_ref().map(|axis| axis.value(at));
        (origin, own.raw_nbytes.value(at), own.codec.value(at))
    }

    fn list(&self, column: Column) -> Vec<u64> {
        let lists = match column {
            Column::Labels => &self.columns.labels,
            Column::Supervoxels => &self.columns.supervoxels,
        };
        lists.value(self.at).as_primitive::<UInt64Type>().values().to_vec()
    }
}

/// The label block that some rows are, with the numbers of a column in it. `place` says for errors which block it is.
pub(super) fn block(
    place: &str,
    rows: &[Row<'_>],
    expected: &Expected,
    column: Column,
) -> Result<Vec<u8>> {
    let parts: Vec<Part<'_>> = rows.iter().map(Row::part).collect();
    let payload = join(place, &parts)?;
    let Some(first) = rows.first() else { return Err(corrupt(place, "rows", "one at least", 0)) };
    let same = first.same();
    if let Some(other) = rows.iter().find(|row| row.same() != same) {
        let (expected, found) = (format!("{same:?} in all"), format!("{:?}", other.same()));
        return Err(corrupt(place, "position, raw_nbytes and codec of rows", expected, found));
    }
    let (origin, raw_bytes, codec) = same;
    if origin.map(i64::from) != expected.origin {
        let (expected, found) = (format!("{:?}", expected.origin), format!("{origin:?}"));
        return Err(corrupt(place, "x, y, z", expected, found));
    }
    let list = |column| rows.iter().flat_map(|row| row.list(column)).collect::<Vec<u64>>();
    let (labels, supervoxels) = (list(Column::Labels), list(Column::Supervoxels));
    if labels.len() != supervoxels.len() {
        let expected = format!("{}, as many as supervoxels", supervoxels.len());
        return Err(corrupt(place, "labels", expected, labels.len()));
    }
    let most = label_block::encoded_bytes_max(expected.size)?;
    let in_place = |error: chunkyard_array::Error| Error::for_array(place, error.into());
    let plain = match codec {
        "zstd" => zstd_unpacked(&payload, most).map_err(in_place)?,
        "gzip" => gunzip(&payload, most).map_err(in_place)?,
        "none" => payload,
        other => {
            return Err(Error::unsupported(format!("{place}: blocks compressed by {other:?}")));
        }
    };
    if plain.len() as u64 != u64::from(raw_bytes) {
        return Err(corrupt(place, "bytes before compression", raw_bytes, plain.len()));
    }
    let numbers = match column {
        Column::Labels => &labels,
        Column::Supervoxels => &supervoxels,
    };
    match expected.stripped {
        Some(true) => joined(place, &plain, numbers, expected),
        Some(false) => replaced(place, plain, &supervoxels, numbers, expected),
        None => replaced(place, plain.clone(), &supervoxels, numbers, expected)
            .or_else(|_| joined(place, &plain, numbers, expected)),
    }
}

/// Bytes before the label list of a block, of which the last four are its length.
const HEAD_BYTES: usize = 16;

/// A block whose list is left out of it, with a list.
fn joined(place: &str, plain: &[u8], numbers: &[u64], expected: &Expected) -> Result<Vec<u8>> {
    let Some((head, rest)) = plain.split_at_checked(HEAD_BYTES) else {
        return Err(corrupt(place, "block", "a head of 16 bytes", plain.len()));
    };
    let mut block = Vec::with_capacity(plain.len() + numbers.len() * 8);
    block.extend_from_slice(head);
    block.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
    block.extend_from_slice(rest);
    checked(place, block, numbers, expected)
}

/// A whole block with another list.
fn replaced(
    place: &str,
    mut block: Vec<u8>,
    supervoxels: &[u64],
    numbers: &[u64],
    expected: &Expected,
) -> Result<Vec<u8>> {
    let end = HEAD_BYTES + supervoxels.len() * 8;
    let list = block.get_mut(HEAD_BYTES..end).unwrap_or_default().as_chunks_mut::<8>().0;
    let same = list.len() == supervoxels.len()
        && list.iter().zip(supervoxels).all(|(found, one)| u64::from_le_bytes(*found) == *one);
    if !same {
        let expected = format!("the {} supervoxels of the row", supervoxels.len());
        return Err(corrupt(place, "label list of the block", expected, "another one"));
    }
    for (to, number) in list.iter_mut().zip(numbers) {
        *to = number.to_le_bytes();
    }
    checked(place, block, numbers, expected)
}

fn checked(place: &str, block: Vec<u8>, numbers: &[u64], expected: &Expected) -> Result<Vec<u8>> {
    let in_place = |error: chunkyard_array::Error| Error::for_array(place, error.into());
    let parsed = label_block::Block::parse(&block).map_err(in_place)?;
    if parsed.size() != expected.size {
        let (expected, found) = (format!("{:?}", expected.size), format!("{:?}", parsed.size()));
        return Err(corrupt(place, "voxels of the block", expected, found));
    }
    if parsed.labels().len() != numbers.len() {
        return Err(corrupt(place, "labels of the block", numbers.len(), parsed.labels().len()));
    }
    Ok(block)
}

fn primitive<T: ArrowPrimitiveType>(
    file: &str,
    batch: &RecordBatch,
    name: &str,
) -> Result<PrimitiveArray<T>> {
    let column = batch.column_by_name(name).and_then(|column| column.as_primitive_opt::<T>());
    let column = column.ok_or_else(|| other_type(file, batch, name, T::DATA_TYPE))?;
    whole(file, column, name)?;
    Ok(column.clone())
}

fn list(file: &str, batch: &RecordBatch, name: &str) -> Result<ListArray> {
    let column = batch.column_by_name(name).and_then(|column| column.as_list_opt::<i32>());
    let column = column.filter(|list| list.values().as_primitive_opt::<UInt64Type>().is_some());
    let column = column.ok_or_else(|| other_type(file, batch, name, "list of uint64"))?;
    whole(file, column, name)?;
    whole(file, column.values(), name)?;
    Ok(column.clone())
}

/// Refuses nulls.
fn whole(file: &str, column: &dyn Array, name: &str) -> Result<()> {
    match column.null_count() {
        0 => Ok(()),
        nulls => Err(corrupt(file, &format!("column {name}"), "no nulls", nulls)),
    }
}

fn other_type(
    file: &str,
    batch: &RecordBatch,
    name: &str,
    expected: impl std::fmt::Display,
) -> Error {
    let found = batch.column_by_name(name).map(|column| column.data_type().to_string());
    let found = found.unwrap_or_else(|| "no such column".to_owned());
    corrupt(file, &format!("column {name}"), expected, found)
}

pub(super) fn corrupt(
    file: &str,
    what: &str,
    expected: impl std::fmt::Display,
    found: impl std::fmt::Display,
) -> Error {
    Error::Corrupt {
        file: file.to_owned(),
        what: what.to_owned(),
        expected: expected.to_string(),
        found: found.to_string(),
    }
}
