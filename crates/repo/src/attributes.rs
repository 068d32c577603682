//! Attributes files: large attribute documents, outside the structure file.
//!
//! Most attributes are a few hundred bytes and live inline. A document above the limit, or one of
//! the largest when all inline ones together would exceed 1 MiB, goes to an attributes file, so
//! that not every commit and every open pays for it. A commit writes at most one such file, and
//! equal documents are stored once.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::{Array, BinaryArray, RecordBatch, UInt32Array, UInt64Array};
use arrow_schema::{DataType, Field, Schema};
use bytes::Bytes;
use chunkyard_store::{Error, Result};
use serde_json::{Map, Value};

use super::columns::{Columns, required};
use super::config::Config;
use super::id;
use super::node::{Attributes, AttributesRef, Node};
use super::parquet_file::{self, Label, Sealed, corrupt};
use super::tree::Tree;

/// All inline documents of a structure file together stay below this.
const INLINE_TOTAL_MAX: usize = 1 << 20;
/// The document is shared by several nodes.
const SHARED: u32 = 1;

/// Moves documents that are too large out of the tree. Returns the file to write, if any.
pub(super) fn move_out(
    tree: &mut Tree,
    config: &Config,
    label: Label<'_>,
) -> Result<Option<(Arc<str>, Sealed)>> {
    let mut inline: Vec<(usize, String)> = Vec::new();
    for node in tree.nodes() {
        if let Attributes::Inline(map) = &node.attributes
            && !map.is_empty()
        {
            inline.push((render(map)?.len(), node.path.clone()));
        }
    }
    inline.sort_by(|a, b| b.cmp(a));
    let mut total: usize = inline.iter().map(|(size, _)| size).sum();
    let mut leaving = Vec::new();
    for (size, path) in inline {
        if size as u64 > config.inline_attrs_max || total > INLINE_TOTAL_MAX {
            total -= size;
            leaving.push(path);
        }
    }
    if leaving.is_empty() {
        return Ok(None);
    }
    leaving.sort();
    let file: Arc<str> = id::fresh()?.into();
    let mut rows: HashMap<Vec<u8>, (u64, u32)> = HashMap::new();
    let mut documents: Vec<Vec<u8>> = Vec::new();
    for path in &leaving {
        let Attributes::Inline(map) = &tree.require(path)?.attributes else { continue };
        let document = render(map)?;
        let next = documents.len() as u64;
        let (row, users) = rows.entry(document.clone()).or_insert((next, 0));
        *users += 1;
        if *row == next {
            documents.push(document);
        }
    }
    let sealed = seal(&documents, label)?;
    for path in &leaving {
        let node = tree.require(path)?;
        let Attributes::Inline(map) = &node.attributes else { continue };
        let (row, users) = rows.get(&render(map)?).copied().unwrap_or_default();
        let reference = AttributesRef {
            file: file.clone(),
            row,
            flags: if users > 1 { SHARED } else { 0 },
            file_crc32c: Some(sealed.crc32c),
        };
        let moved = Node { attributes: Attributes::File(reference), ..(**node).clone() };
        tree.put(Arc::new(moved));
    }
    Ok(Some((file, sealed)))
}

fn render(map: &Map<String, Value>) -> Result<Vec<u8>> {
    serde_json::to_vec(map).map_err(|error| Error::Invalid { what: error.to_string() })
}

pub(super) fn seal(documents: &[Vec<u8>], label: Label<'_>) -> Result<Sealed> {
    let schema = Arc::new(Schema::new(vec![
        Field::new("row", DataType::UInt64, false),
        Field::new("attrs", DataType::Binary, false),
        Field::new("crc32c", DataType::UInt32, false),
    ]));
    let rows = UInt64Array::from_iter_values(0..documents.len() as u64);
    let attrs = BinaryArray::from_iter_values(documents);
    let crcs = UInt32Array::from_iter_values(documents.iter().map(|d| crc32c::crc32c(d)));
    let batch = RecordBatch::try_new(schema, vec![Arc::new(rows), Arc::new(attrs), Arc::new(crcs)])
        .map_err(|error| Error::Invalid { what: error.to_string() })?;
    let properties = parquet_file::properties(Some(&batch)).set_dictionary_enabled(false).build();
    parquet_file::seal(label, &batch, properties, &[])
}

/// Parses an attributes file into its documents.
pub(super) fn parse(
    reference: &AttributesRef,
    dataset_id: &str,
    bytes: &Bytes,
) -> Result<Vec<Arc<Map<String, Value>>>> {
    let file = &*reference.file;
    if let Some(crc) = reference.file_crc32c {
        parquet_file::check_crc(file, "the file", crc, bytes)?;
    }
    let label = Label { format: "attributes", dataset_id, created_ms: 0 };
    let (_, batches) = parquet_file::read_whole(file, &label, bytes, None)?;
    let mut documents = Vec::new();
    for batch in &batches {
        let columns = Columns::of_batch(file, batch);
        let rows = columns.uints("row")?;
        let attrs = columns.binaries("attrs")?;
        let crcs = columns.uints("crc32c")?;
        for at in 0..batch.num_rows() {
            let row = required(rows.is_valid(at).then(|| rows.value(at)), file, "row", at)?;
            if row != documents.len() as u64 {
                let expected = documents.len().to_string();
                return Err(corrupt(file, "column row", &expected, &row.to_string()));
            }
            let document =
                required(attrs.is_valid(at).then(|| attrs.value(at)), file, "attrs", at)?;
            if crcs.is_valid(at) {
                let what = format!("document {row}");
                parquet_file::check_crc(file, &what, crcs.value(at) as u32, document)?;
            }
            let map = serde_json::from_slice(document).map_err(|error| {
                corrupt(file, &format!("document {row}"), "a JSON object", &error.to_string())
            })?;
            documents.push(Arc::new(map));
        }
    }
    Ok(documents)
}
