//! Reading a structure file.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ListArray, RecordBatch, StructArray};
use arrow_schema::DataType;
use bytes::Bytes;
use chunkyard_array::ArraySpec;
use serde_json::{Map, Value};

use super::document::{self, ArrayColumns};
use crate::error::Result;
use crate::repo::columns::{Columns, pair_list, required, uint_list};
use crate::repo::id::{self, Uid};
use crate::repo::node::{Attributes, AttributesRef, Inventory, Node, NodeKind, parent_path};
use crate::repo::parquet_file::{self, Footer, Label, Tail, corrupt};
use crate::repo::tree::Tree;

/// Parses a structure file. The caller has compared size and checksum with the state.
pub(in crate::repo) fn parse(
    file: &str,
    dataset_id: &str,
    bytes: &Bytes,
) -> Result<(Tree, Footer)> {
    let label = Label { format: "structure", dataset_id, created_ms: 0 };
    let (footer, batches) = parquet_file::read_whole(file, &label, bytes, None)?;
    let mut tree = Tree::default();
    let mut ids = std::collections::HashSet::new();
    let mut last: Option<String> = None;
    for batch in &batches {
        for node in parse_nodes(file, batch)? {
            if last.as_ref().is_some_and(|last| *last >= node.path) {
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
            check_parent(file, &tree, &node)?;
            last = Some(node.path.clone());
            tree.put(Arc::new(node));
        }
    }
    if tree.get("/").is_none_or(|root| root.is_array()) {
        return Err(corrupt(file, "column path", "a root group", "none"));
    }
    if let Some(next_id) = footer.key_value("next-id").and_then(|text| text.parse().ok()) {
        tree.reserve_ids(next_id);
    }
    Ok((tree, footer))
}

fn check_parent(file: &str, tree: &Tree, node: &Node) -> Result<()> {
    match parent_path(&node.path) {
        None => Ok(()),
        Some(parent) => match tree.get(parent) {
            Some(parent) if !parent.is_array() => Ok(()),
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
    let array_metadata = columns.structs("array_metadata")?;
    let documents = parse_arrays(file, &array_metadata)?;
    let inline = columns.binaries("inline_attrs")?;
    let references = parse_attrs_references(file, &columns.structs("attrs_reference")?)?;
    let mut inventories = parse_inventories(file, &columns.lists("inventories")?)?;
    let extras = columns.binaries("extra_metadata")?;
    let counts = columns.uints("refs_count")?;

    let mut nodes = Vec::with_capacity(batch.num_rows());
    for (row, document) in documents.into_iter().enumerate() {
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
                let columns = required(document, file, "array_metadata", row)?;
                let document = Value::Object(document::join(&columns, &extra)).to_string();
                let spec = ArraySpec::parse(document.as_bytes()).map_err(|error| {
                    let what = format!("array metadata of {path}");
                    corrupt(file, &what, "a Zarr array document", &error.to_string())
                })?;
                NodeKind::Array(Arc::new(spec))
            }
            other => {
                let found = format!("{other:?}");
                return Err(corrupt(file, "column type", "array or group", &found));
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
            inventories: inventories.get_mut(row).map(std::mem::take).unwrap_or_default(),
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

fn parse_arrays(file: &str, array: &StructArray) -> Result<Vec<Option<ArrayColumns>>> {
    let columns = Columns::of_struct(file, "array_metadata", array);
    let shapes = columns.lists("shape")?;
    let data_types = columns.strings("data_type")?;
    let fill_values = columns.binaries("fill_value")?;
    let names = columns.lists("dimension_names")?;
    let grids = columns.structs("chunk_grid")?;
    let grid = Columns::of_struct(file, "chunk_grid", &grids);
    let grid_names = grid.strings("name")?;
    let grid_configurations = grid.structs("configuration")?;
    let chunk_shapes = Columns::of_struct(file, "chunk_grid.configuration", &grid_configurations)
        .lists("chunk_shape")?;
    let encodings = columns.structs("chunk_key_encoding")?;
    let encoding = Columns::of_struct(file, "chunk_key_encoding", &encodings);
    let encoding_names = encoding.strings("name")?;
    let encoding_configurations = encoding.structs("configuration")?;
    let separators =
        Columns::of_struct(file, "chunk_key_encoding.configuration", &encoding_configurations)
            .strings("separator")?;
    let codecs = columns.lists("codecs")?;

    (0..array.len())
        .map(|row| {
            if array.is_null(row) {
                return Ok(None);
            }
            let list = |lists: &ListArray, what: &str| match lists.is_valid(row) {
                true => uint_list(file, what, &lists.value(row)),
                false => Ok(Vec::new()),
            };
            let text = |array: &arrow_array::StringArray| {
                if array.is_valid(row) { array.value(row).to_owned() } else { String::new() }
            };
            let dimension_names = names.is_valid(row).then(|| names.value(row));
            let dimension_names = match &dimension_names {
                Some(names) if names.data_type() != &DataType::Null => {
                    let names = arrow_cast::cast(names, &DataType::Utf8).map_err(|error| {
                        columns.error("dimension_names", "strings", &error.to_string())
                    })?;
                    Some(names.as_string::<i32>().iter().map(|n| n.map(str::to_owned)).collect())
                }
                _ => None,
            };
            Ok(Some(ArrayColumns {
                shape: list(&shapes, "array_metadata.shape")?,
                data_type: text(&data_types),
                fill_value: fill_values.is_valid(row).then(|| fill_values.value(row).to_vec()),
                dimension_names,
                chunk_grid: (text(&grid_names), list(&chunk_shapes, "chunk_shape")?),
                chunk_key_encoding: (text(&encoding_names), text(&separators)),
                codecs: parse_codecs(file, &codecs, row)?,
            }))
        })
        .collect()
}

fn parse_codecs(
    file: &str,
    codecs: &ListArray,
    row: usize,
) -> Result<Vec<(String, Option<Vec<u8>>)>> {
    if codecs.is_null(row) {
        return Ok(Vec::new());
    }
    let items = codecs.value(row);
    let Some(items) = items.as_struct_opt() else {
        let found = items.data_type().to_string();
        return Err(corrupt(file, "column codecs", "a list of structs", &found));
    };
    let columns = Columns::of_struct(file, "codecs", items);
    let names = columns.strings("name")?;
    let configurations = columns.binaries("configuration")?;
    (0..items.len())
        .map(|at| {
            let name = required(names.is_valid(at).then(|| names.value(at)), file, "codecs", at)?;
            let configuration = configurations.is_valid(at).then(|| configurations.value(at));
            Ok((name.to_owned(), configuration.map(<[u8]>::to_vec)))
        })
        .collect()
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

fn check_name(file: &str, name: &str) -> Result<()> {
    if id::is_file_name(name) {
        return Ok(());
    }
    Err(corrupt(file, "file name", "a name of [A-Za-z0-9._-]", &format!("{name:?}")))
}

fn parse_inventories(file: &str, lists: &ListArray) -> Result<Vec<Vec<Inventory>>> {
    (0..lists.len())
        .map(|row| {
            if lists.is_null(row) {
                return Ok(Vec::new());
            }
            let items = lists.value(row);
            let Some(items) = items.as_struct_opt() else {
                let found = items.data_type().to_string();
                return Err(corrupt(file, "column inventories", "a list of structs", &found));
            };
            parse_inventory_list(file, items)
        })
        .collect()
}

fn parse_inventory_list(file: &str, items: &StructArray) -> Result<Vec<Inventory>> {
    let columns = Columns::of_struct(file, "inventories", items);
    let files = columns.strings("inventory_file")?;
    let first_rows = columns.uints("row")?;
    let row_counts = columns.uints("rows")?;
    let extents = columns.lists("extent")?;
    let flags = columns.uints("flags")?;
    let sizes = columns.uints("file_size")?;
    let tail_sizes = columns.uints("tail_size")?;
    let tail_crcs = columns.uints("tail_crc32c")?;
    let minima = columns.binaries("coord_min")?;
    let maxima = columns.binaries("coord_max")?;
    let binary = |array: &arrow_array::BinaryArray, at: usize| {
        array.is_valid(at).then(|| array.value(at).to_vec())
    };
    let uint =
        |array: &arrow_array::UInt64Array, at: usize| array.is_valid(at).then(|| array.value(at));
    (0..items.len())
        .map(|at| {
            let name = files.is_valid(at).then(|| files.value(at));
            let name = required(name, file, "inventories.inventory_file", at)?;
            check_name(file, name)?;
            let extent = match extents.is_valid(at) {
                true => pair_list(file, "inventories.extent", &extents.value(at))?,
                false => Vec::new(),
            };
            let tail = match (uint(&tail_sizes, at), uint(&tail_crcs, at)) {
                (Some(size), Some(crc)) => Some(Tail { size, crc32c: crc as u32 }),
                _ => None,
            };
            Ok(Inventory {
                file: name.into(),
                row: required(uint(&first_rows, at), file, "inventories.row", at)?,
                rows: uint(&row_counts, at),
                extent,
                flags: uint(&flags, at).unwrap_or(0) as u32,
                file_size: uint(&sizes, at),
                tail,
                coord_min: binary(&minima, at),
                coord_max: binary(&maxima, at),
            })
        })
        .collect()
}
