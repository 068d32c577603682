//! How tests and fuzzers reach the parsers of this crate: one function each, and no other door.
//!
//! The files of a repository are read behind checksums that the state file and the inventories
//! keep. A fuzzer that stops at a checksum tests nothing, so these functions start below it, as
//! does an attacker who can compute a CRC-32C. Each parser has its writer beside it: parsed content
//! must come out the same. Not part of the interface, and free to change.

use std::collections::HashSet;
use std::sync::Arc;

use bytes::Bytes;
use chunkyard_store::{Error, Result};
use parquet::arrow::ProjectionMask;
use serde_json::{Map, Value};

use super::config::Compat;
use super::coord::Coord;
use super::maintain::collection_list;
use super::manifest::{self, Payload, RunBuilder};
use super::node::{AttributesRef, Node};
use super::pack::{self, PackEntry};
use super::parquet_file::{self, Footer, Label, Tail};
use super::run::{Opened, Pages, Rows as _};
use super::structure::{self, SnapshotLabel};
use super::table::{self, TableRows, TableSpec};
use super::tree::Tree;
use super::{State, attributes, id, run, state, swap};

pub use super::history::{reread_history_index, reread_history_snapshots, reread_history_writes};

/// Name of the file in errors.
pub const FILE: &str = "hostile";

/// A state file with its checksum.
pub fn parse_state(bytes: &[u8]) -> Result<State> {
    swap::parse_state(bytes, FILE)
}

/// A state file, with its checksum.
pub fn seal_state(state: &State) -> Result<Bytes> {
    swap::seal_state(state)
}

/// All nodes of a structure file.
pub fn parse_structure(dataset_id: &str, bytes: &Bytes) -> Result<Vec<Arc<Node>>> {
    let (tree, _) = structure::parse(FILE, dataset_id, bytes)?;
    Ok(tree.nodes().cloned().collect())
}

/// A structure file of these nodes.
pub fn render_structure(dataset_id: &str, nodes: &[Arc<Node>]) -> Result<Bytes> {
    let mut tree = Tree::default();
    nodes.iter().for_each(|node| tree.put(node.clone()));
    let label = SnapshotLabel {
        snapshot_id: FILE,
        parent_snapshot_id: None,
        timestamp_ms: 0,
        message: "",
        change_file: None,
        branch: None,
    };
    Ok(structure::render(&tree, dataset_id, &label, Compat::Wide)?.bytes)
}

/// A row of a manifest: handle of the array, encoded chunk index, and where the chunk is.
pub type ManifestRow = (u32, Vec<u8>, Payload);

/// All rows of a manifest or change file.
pub fn parse_manifest(dataset_id: &str, bytes: &Bytes) -> Result<Vec<ManifestRow>> {
    let blocks = manifest::decode_file(&FILE.into(), dataset_id, bytes, None)?;
    let rows = blocks.iter().flat_map(|block| (0..block.len()).map(|at| block.row(at)));
    rows.map(|row| row.map(|row| (row.array_id, row.coord.as_bytes().to_vec(), row.payload)))
        .collect()
}

/// A manifest of these rows, which must be in order. Every array has rank `rank`.
pub fn render_manifest(dataset_id: &str, rank: usize, rows: &[ManifestRow]) -> Result<Bytes> {
    let mut builder = RunBuilder::new(Compat::Wide);
    for array in rows.chunk_by(|a, b| a.0 == b.0) {
        let Some((array_id, ..)) = array.first() else { continue };
        let rows = array.iter().map(|(_, coord, payload)| Ok((coord.clone(), payload.clone())));
        builder.push_array(*array_id, rank, array.len(), rows)?;
    }
    let label = Label { format: "manifest", dataset_id, created_ms: 0 };
    Ok(builder.finish(label)?.sealed.bytes)
}

/// Reads some rows of every row group as a lookup of single pages does: footer first, then only the
/// ranges that hold the rows. `tail` bytes are the footer's. Returns how many rows came out.
pub fn read_pages(dataset_id: &str, bytes: &Bytes, tail: usize, coord: &[u8]) -> Result<usize> {
    let label = Label { format: "manifest", dataset_id, created_ms: 0 };
    let size = bytes.len() as u64;
    let end = bytes.slice(bytes.len().saturating_sub(tail)..);
    let tail = Tail { size: end.len() as u64, crc32c: crc32c::crc32c(&end) };
    let footer = Footer::parse(FILE, &label, &end, size, Some(tail))?;
    let rows: u64 = footer.row_groups().into_iter().map(|rows| rows as u64).sum();
    let Some(rows) = manifest::locate_page(&footer, rows, coord) else { return Ok(0) };
    let all = ProjectionMask::all();
    let mut count = 0;
    for (row_group, _, rows) in run::within_groups(&footer, &rows)? {
        let pieces = footer
            .ranges(row_group, &rows, &all)
            .into_iter()
            .map(|range| {
                let piece = bytes.get(range.start as usize..range.end as usize);
                Ok((range.start, Bytes::copy_from_slice(piece.ok_or_else(|| outside(&range))?)))
            })
            .collect::<Result<_>>()?;
        let batches = footer.decode(&footer.assemble(pieces)?, row_group, rows, &all)?;
        count += batches.iter().map(|batch| batch.num_rows()).sum::<usize>();
    }
    Ok(count)
}

/// The store's error for a range outside the file.
fn outside(range: &std::ops::Range<u64>) -> Error {
    Error::store("read", FILE, format!("{range:?} is not within the file"))
}

/// A table whose files tests and fuzzers make up.
pub fn table_spec() -> Result<TableSpec> {
    use arrow_schema::{DataType, Field, Schema};
    let fields = vec![
        Field::new("name", DataType::Utf8, false),
        Field::new("at", DataType::Int64, false),
        Field::new("members", DataType::new_list(DataType::UInt32, true), true),
        Field::new("size", DataType::UInt64, true),
    ];
    TableSpec::new(Arc::new(Schema::new(fields)), 2)
}

/// Reads a file of that table as a walk and as a lookup of one key does: whole, and only the pages that
/// can hold the key. Returns how many rows each came upon.
pub fn read_table(dataset_id: &str, bytes: &Bytes, key: &[u8]) -> Result<(usize, usize)> {
    let kind = TableRows::new(Arc::new(table_spec()?));
    let label = Label { format: "table", dataset_id, created_ms: 0 };
    let (footer, batches) = parquet_file::read_whole(FILE, &label, bytes, None)?;
    let blocks = kind.blocks(&footer, &batches)?;
    let count = |blocks: &[_]| blocks.iter().map(run::Block::len).sum::<usize>();
    let rows = count(&blocks);
    let opened = Opened { index: kind.index(&footer)?, footer };
    let footer = &opened.footer;
    let found = match kind.find(&opened, 0..rows as u64, run::Keys::only(key)) {
        Pages::Found(rows) => rows,
        Pages::Unknown => 0..rows as u64,
        Pages::Absent => 0..0,
    };
    let pieces = footer.assemble_whole(bytes.clone())?;
    let mut near = 0;
    for (row_group, start, rows) in run::within_groups(footer, &found)? {
        for batch in footer.decode(&pieces, row_group, rows, &ProjectionMask::all())? {
            near += run::Block::len(&kind.block(footer.file(), start, &batch)?);
        }
    }
    Ok((rows, near))
}

/// A file of that table with these columns, to which `_removed` may belong.
pub fn render_table(dataset_id: &str, rows: &arrow_array::RecordBatch) -> Result<Bytes> {
    let label = Label { format: "table", dataset_id, created_ms: 0 };
    let properties = table::properties(&table_spec()?, Some(rows));
    Ok(parquet_file::seal(label, rows, properties, &[])?.bytes)
}

/// The documents of an attributes file.
pub fn parse_attributes(dataset_id: &str, bytes: &Bytes) -> Result<Vec<Arc<Map<String, Value>>>> {
    let reference = AttributesRef { file: FILE.into(), row: 0, flags: 0, file_crc32c: None };
    attributes::parse(&reference, dataset_id, bytes)
}

/// An attributes file of these documents.
pub fn render_attributes(dataset_id: &str, documents: &[Vec<u8>]) -> Result<Bytes> {
    let label = Label { format: "attributes", dataset_id, created_ms: 0 };
    Ok(attributes::seal(documents, label)?.bytes)
}

/// The names in the list of an announced collection.
pub fn parse_collection(dataset_id: &str, bytes: &Bytes) -> Result<HashSet<String>> {
    collection_list::parse(FILE, dataset_id, bytes)
}

/// The list of a collection.
pub fn render_collection(dataset_id: &str, files: &[String]) -> Result<Bytes> {
    Ok(collection_list::render(files, dataset_id, 0)?.bytes)
}

/// The entries of a pack's trailer: identity, encoded chunk index, offset, length, checksum.
pub type Entry = (chunkyard_store::Uid, Vec<u8>, u64, u64, u32);

/// The trailer of a pack, if there is one.
pub fn parse_pack(bytes: &[u8]) -> Result<Option<Vec<Entry>>> {
    let entries = pack::parse_trailer(FILE, bytes)?;
    let plain = |e: PackEntry| (e.uid, e.coord.as_bytes().to_vec(), e.offset, e.length, e.crc32c);
    Ok(entries.map(|entries| entries.into_iter().map(plain).collect()))
}

/// The trailer of a pack with these entries.
pub fn render_pack(entries: &[Entry]) -> Bytes {
    let entry = |(uid, coord, offset, length, crc32c): &Entry| PackEntry {
        uid: *uid,
        coord: Coord::from_bytes(coord),
        offset: *offset,
        length: *length,
        crc32c: *crc32c,
    };
    pack::render_trailer(&entries.iter().map(entry).collect::<Vec<_>>())
}

/// Whether a name may stand for a file in metadata.
pub fn is_file_name(name: &str) -> bool {
    id::is_file_name(name)
}

/// Whether a branch or tag may have this name.
pub fn check_reference_name(name: &str) -> Result<()> {
    state::check_reference_name(name)
}
