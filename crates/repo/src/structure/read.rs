//! Reading a structure file.

use std::sync::Arc;

use arrow_array::{Array, RecordBatch, StructArray};
use bytes::Bytes;
use chunkyard_format::{normalise_path, parent_path};
use chunkyard_store::{Result, Uid};
use serde_json::{Map, Value};

use super::arrays::Arrays;
use super::implied;
use super::inventories::Inventories;
use crate::array_metadata::Interner;
use crate::columns::{Columns, required};
use crate::id;
use crate::node::{Attributes, AttributesRef, Node, NodeKind};
use crate::parquet_file::{self, Footer, Label, corrupt};
use crate::table::TableSpec;
use crate::tree::Tree;

/// Parses a structure file. The caller has compared size and checksum with the state.
///
/// A file of the bare draft may have its rows in any order, and leave out groups that other paths
/// imply. In our own files, either is damage.
pub(crate) fn parse(file: &str, dataset_id: &str, bytes: &Bytes) -> Result<(Tree, Footer)> {
    let label = Label { format: "structure", dataset_id, created_ms: 0 };
    let (footer, batches) = parquet_file::read_whole(file, &label, bytes, None)?;
    let is_bare = footer.is_bare();
    let mut tree = Tree::default();
    let mut ids = std::collections::HashSet::new();
    let mut last: Option<String> = None;
    for batch in &batches {
        for mut node in parse_nodes(file, batch)? {
            if is_bare {
                node.path = normalise(file, &node.path)?;
            }
            let sorted = is_bare || last.as_ref().is_none_or(|last| *last < node.path);
            if !sorted || tree.get(&node.path).is_some() {
                let found = format!("{:?} after {last:?}", node.path);
                return Err(corrupt(file, "column path", "sorted unique paths", &found));
            }
            if !ids.insert(node.id) {
                return Err(corrupt(file, "column id", "unique ids", &node.id.to_string()));
            }
            if tree.by_uid(&node.uid).is_some() {
                let found = node.uid.to_string();
                return Err(corrupt(file, "column uid", "unique identities", &found));
            }
            if !is_bare {
                check_parent(file, &tree, &node)?;
            }
            last = Some(node.path.clone());
            tree.put(Arc::new(node));
        }
    }
    if is_bare {
        implied::add_groups(file, &mut tree)?;
    }
    if tree.get("/").is_none_or(|root| !root.is_group()) {
        return Err(corrupt(file, "column path", "a root group", "none"));
    }
    if let Some(next_id) = footer.key_value("next-id").and_then(|text| text.parse().ok()) {
        tree.reserve_ids(next_id);
    }
    Ok((tree, footer))
}

/// The draft does not say whether paths begin with `/`.
fn normalise(file: &str, path: &str) -> Result<String> {
    normalise_path(path).map_err(|error| corrupt(file, "column path", "a path", &error.to_string()))
}

fn check_parent(file: &str, tree: &Tree, node: &Node) -> Result<()> {
    match parent_path(&node.path) {
        None => Ok(()),
        Some(parent) => match tree.get(parent) {
            Some(parent) if parent.is_group() => Ok(()),
            _ => Err(corrupt(file, "column path", &format!("a group {parent:?}"), &node.path)),
        },
    }
}

fn parse_nodes(file: &str, batch: &RecordBatch) -> Result<Vec<Node>> {
    let columns = Columns::of_batch(file, batch);
    let ids = columns.uints("id")?;
    let uids = columns.binaries("uid")?;
    let types = columns.strings("type")?;
    let paths = columns.strings("path")?;
    let arrays = Arrays::new(file, &columns.structs("array_metadata")?)?;
    let mut interner = Interner::new(file);
    let mut document = Vec::new();
    let inline = columns.binaries("inline_attrs")?;
    let references = parse_attrs_references(file, &columns.structs("attrs_reference")?)?;
    let mut inventories = Inventories::new(file, columns.lists("inventories")?)?;
    let extras = columns.binaries("extra_metadata")?;
    let counts = columns.uints("refs_count")?;

    let mut nodes = Vec::with_capacity(batch.num_rows());
    for row in 0..batch.num_rows() {
        let id = required(ids.is_valid(row).then(|| ids.value(row)), file, "id", row)?;
        let id = u32::try_from(id)
            .map_err(|_| corrupt(file, "column id", "at most 2^32 - 1", &id.to_string()))?;
        let path = required(paths.is_valid(row).then(|| paths.value(row)), file, "path", row)?;
        let uid = match uids.is_valid(row).then(|| uids.value(row)) {
            Some(bytes) => Uid::try_from(bytes)
                .map_err(|_| corrupt(file, "column uid", "16 bytes", &bytes.len().to_string()))?,
            None => Uid::of_draft_node(id),
        };
        let extra = match extras.is_valid(row).then(|| extras.value(row)) {
            Some(bytes) => parse_object(file, "extra_metadata", path, bytes)?,
            None => Map::new(),
        };
        let kind = match types.is_valid(row).then(|| types.value(row)) {
            Some("group") => NodeKind::Group { extra },
            Some("array") => {
                arrays.write(row, &extra, &mut document)?;
                NodeKind::Array(interner.get(&document))
            }
            Some("table") => {
                let spec = TableSpec::parse(&extra).map_err(|found| {
                    corrupt(file, &format!("extra_metadata of {path}"), "a table", &found)
                })?;
                NodeKind::Table(Arc::new(spec))
            }
            other => {
                let found = format!("{other:?}");
                return Err(corrupt(file, "column type", "array, group or table", &found));
            }
        };
        let inline = inline.is_valid(row).then(|| inline.value(row));
        let attributes = match (inline, references.get(row).cloned().flatten()) {
            (Some(_), Some(_)) => {
                let what = format!("attributes of {path}");
                return Err(corrupt(file, &what, "inline or in a file", "both"));
            }
            (None, Some(reference)) => Attributes::File(reference),
            (Some(bytes), None) => {
                Attributes::Inline(Arc::new(parse_object(file, "inline_attrs", path, bytes)?))
            }
            (None, None) => Attributes::Inline(Arc::default()),
        };
        nodes.push(Node {
            id,
            uid,
            path: path.to_owned(),
            kind,
            attributes,
            inventories: inventories.get(row)?,
            refs_count: if counts.is_valid(row) { counts.value(row) } else { 0 },
        });
    }
    Ok(nodes)
}

fn parse_object(file: &str, column: &str, path: &str, bytes: &[u8]) -> Result<Map<String, Value>> {
    serde_json::from_slice(bytes).map_err(|error| {
        corrupt(file, &format!("{column} of {path}"), "a JSON object", &error.to_string())
    })
}

fn parse_attrs_references(file: &str, array: &StructArray) -> Result<Vec<Option<AttributesRef>>> {
    let columns = Columns::of_struct(file, "attrs_reference", array);
    let files = columns.strings("attrs_file")?;
    let rows = columns.uints("row")?;
    let flags = columns.uints("flags")?;
    let crcs = columns.uints("file_crc32c")?;
    (0..array.len())
        .map(|row| {
            if array.is_null(row) {
                return Ok(None);
            }
            let name = required(
                files.is_valid(row).then(|| files.value(row)),
                file,
                "attrs_reference.attrs_file",
                row,
            )?;
            check_name(file, name)?;
            Ok(Some(AttributesRef {
                file: name.into(),
                row: required(rows.is_valid(row).then(|| rows.value(row)), file, "row", row)?,
                flags: if flags.is_valid(row) { flags.value(row) as u32 } else { 0 },
                file_crc32c: crcs.is_valid(row).then(|| crcs.value(row) as u32),
            }))
        })
        .collect()
}

pub(super) fn check_name(file: &str, name: &str) -> Result<()> {
    if id::is_file_name(name) {
        return Ok(());
    }
    Err(corrupt(file, "file name", "a name of [A-Za-z0-9._-]", &format!("{name:?}")))
}
