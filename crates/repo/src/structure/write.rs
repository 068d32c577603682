//! Writing a structure file.

use std::sync::Arc;

use arrow_array::builder::FixedSizeBinaryBuilder;
use arrow_array::{
    ArrayRef, BinaryArray, FixedSizeListArray, ListArray, RecordBatch, StringArray, StructArray,
    UInt32Array, UInt64Array,
};
use arrow_buffer::{NullBuffer, OffsetBuffer};
use arrow_schema::{Field, FieldRef, Fields, Schema};
use chunkyard_store::{Error, Result};
use parquet::file::properties::EnabledStatistics;
use serde_json::{Map, Value};

use super::document::{self, ArrayColumns};
use crate::config::Compat;
use crate::node::{Attributes, Inventory, Node, NodeKind};
use crate::parquet_file::{self, FileWriter, Label, Sealed};
use crate::tree::Tree;
use crate::width::{Width, uint_array};

/// What a structure file says about its snapshot, so that a lost state file can be rebuilt.
#[derive(Debug, Clone)]
pub(crate) struct SnapshotLabel<'a> {
    pub(crate) snapshot_id: &'a str,
    pub(crate) parent_snapshot_id: Option<&'a str>,
    pub(crate) timestamp_ms: i64,
    pub(crate) message: &'a str,
    pub(crate) change_file: Option<&'a str>,
    /// The branch it was committed to, for recovery.
    pub(crate) branch: Option<&'a str>,
}

/// Renders all nodes of a tree.
pub(crate) fn render(
    tree: &Tree,
    dataset_id: &str,
    snapshot: &SnapshotLabel<'_>,
    compat: Compat,
) -> Result<Sealed> {
    let nodes: Vec<&Arc<Node>> = tree.nodes().collect();
    let wide = compat == Compat::Wide;
    let mut columns = Vec::new();
    let mut add = |name: &str, array: ArrayRef, nullable: bool| {
        let field = Field::new(name, array.data_type().clone(), nullable);
        let field = if wide { field } else { described(field) };
        columns.push((Arc::new(field), array));
    };

    let ids = nodes.iter().map(|node| u64::from(node.id)).collect();
    let id_width = if wide { Width::U32 } else { Width::U16 };
    add("id", uint_array("id", ids, None, id_width)?, false);
    if wide {
        let mut uids = FixedSizeBinaryBuilder::with_capacity(nodes.len(), 16);
        for node in &nodes {
            uids.append_value(node.uid.as_bytes()).map_err(failed)?;
        }
        add("uid", Arc::new(uids.finish()), true);
    }
    let types = StringArray::from_iter_values(nodes.iter().map(|node| node.type_name()));
    add("type", Arc::new(types), false);
    let paths = StringArray::from_iter_values(nodes.iter().map(|node| node.path.as_str()));
    add("path", Arc::new(paths), false);

    let documents = nodes.iter().map(|node| split(node)).collect::<Result<Vec<_>>>()?;
    let arrays: Vec<_> = documents.iter().map(|(columns, _)| columns.as_ref()).collect();
    add("array_metadata", array_metadata(&arrays, wide)?, true);

    let inline = nodes.iter().map(|node| match &node.attributes {
        Attributes::Inline(map) if !map.is_empty() => serde_json::to_vec(&**map).ok(),
        _ => None,
    });
    let inline: BinaryArray = inline.collect();
    add("inline_attrs", Arc::new(inline), true);
    add("attrs_reference", attrs_reference(&nodes, wide)?, true);
    add("inventories", inventories(&nodes, wide)?, true);

    if wide {
        let extra: BinaryArray = documents
            .iter()
            .map(|(_, extra)| (!extra.is_empty()).then(|| serde_json::to_vec(extra).ok()).flatten())
            .collect();
        add("extra_metadata", Arc::new(extra), true);
        let counts = nodes.iter().map(|node| (!node.is_group()).then_some(node.refs_count));
        let counts = UInt64Array::from_iter(counts);
        add("refs_count", Arc::new(counts), true);
    } else if let Some((node, key)) = nodes
        .iter()
        .zip(&documents)
        .find_map(|(node, (_, extra))| Some((node, extra.keys().next()?)))
    {
        return Err(Error::Unsupported {
            what: format!("strict draft mode: {key:?} of {} has no column in the draft", node.path),
        });
    }

    let (fields, arrays): (Vec<FieldRef>, Vec<ArrayRef>) = columns.into_iter().unzip();
    let schema = Arc::new(Schema::new(fields));
    let batch = RecordBatch::try_new(schema, arrays).map_err(failed)?;
    let label = Label { format: "structure", dataset_id, created_ms: snapshot.timestamp_ms };
    // A structure file is read whole; statistics and dictionaries would only make it larger.
    let properties = parquet_file::properties(Some(&batch))
        .set_statistics_enabled(EnabledStatistics::None)
        .set_dictionary_enabled(false)
        .set_offset_index_disabled(true)
        .build();
    let mut more = vec![
        ("snapshot-id", snapshot.snapshot_id.to_owned()),
        ("timestamp-ms", snapshot.timestamp_ms.to_string()),
        ("message", snapshot.message.to_owned()),
        ("next-id", tree.next_id().to_string()),
    ];
    let optional = [
        ("parent-snapshot-id", snapshot.parent_snapshot_id),
        ("change-file", snapshot.change_file),
        ("branch", snapshot.branch),
    ];
    more.extend(optional.into_iter().filter_map(|(key, value)| Some((key, value?.to_owned()))));
    let open = if wide { FileWriter::new } else { FileWriter::with_arrow_schema };
    let mut writer = open(batch.schema(), properties)?;
    writer.row_group(&batch)?;
    writer.seal(label, &more)
}

/// The draft's schema describes its columns in the metadata of each field.
fn described(field: Field) -> Field {
    let description = match field.name().as_str() {
        "id" => "unique identifier for the node",
        "type" => "array or group",
        "path" => "path to the node within the store",
        "array_metadata" => "All the Zarr array metadata",
        "inline_attrs" => "user-defined attributes, stored inline with this entry",
        "attrs_reference" => "user-defined attributes, stored in a separate attributes file",
        _ => return field,
    };
    field.with_metadata([("description".to_owned(), description.to_owned())])
}

type Split = (Option<ArrayColumns>, Map<String, Value>);

fn split(node: &Node) -> Result<Split> {
    match &node.kind {
        NodeKind::Group { extra } => Ok((None, extra.clone())),
        NodeKind::Array(metadata) => {
            let (columns, extra) = document::split(&metadata.document(&node.path)?);
            Ok((Some(columns), extra))
        }
        NodeKind::Table(spec) => Ok((None, spec.render())),
    }
}

fn array_metadata(arrays: &[Option<&ArrayColumns>], wide: bool) -> Result<ArrayRef> {
    let width = if wide { Width::U64 } else { Width::U16 };
    let of = |get: fn(&ArrayColumns) -> &str| -> ArrayRef {
        Arc::new(StringArray::from_iter_values(arrays.iter().map(|a| a.map_or("", get))))
    };
    let uint_list = |field: &'static str, get: fn(&ArrayColumns) -> &[u64]| -> Result<ArrayRef> {
        let lists = arrays.iter().map(|array| array.map_or(&[][..], get));
        let values = lists.clone().flatten().copied().collect();
        list(lists.map(<[u64]>::len), uint_array(field, values, None, width)?, None)
    };
    let grid = structure(vec![
        ("name", of(|a| &a.chunk_grid.0), false),
        (
            "configuration",
            structure(vec![(
                "chunk_shape",
                uint_list("chunk_grid.configuration.chunk_shape", |a| &a.chunk_grid.1)?,
                false,
            )])?,
            false,
        ),
    ])?;
    let encoding = structure(vec![
        ("name", of(|a| &a.chunk_key_encoding.0), false),
        (
            "configuration",
            structure(vec![("separator", of(|a| &a.chunk_key_encoding.1), false)])?,
            false,
        ),
    ])?;
    let codecs = || arrays.iter().flatten().flat_map(|array| &array.codecs);
    let codec_items = structure(vec![
        ("name", Arc::new(StringArray::from_iter_values(codecs().map(|c| &c.0))), false),
        (
            "configuration",
            Arc::new(codecs().map(|c| c.1.as_deref()).collect::<BinaryArray>()),
            true,
        ),
    ])?;
    let names = |array: &Option<&ArrayColumns>| array.and_then(|a| a.dimension_names.clone());
    let name_values: StringArray = arrays.iter().filter_map(names).flatten().collect();
    let dimension_names = list(
        arrays.iter().map(|array| names(array).map_or(0, |names| names.len())),
        Arc::new(name_values),
        Some(arrays.iter().map(|array| names(array).is_some()).collect()),
    )?;
    let fill_values: BinaryArray =
        arrays.iter().map(|array| array.and_then(|a| a.fill_value.as_deref())).collect();
    let children = vec![
        ("shape", uint_list("array_metadata.shape", |a| &a.shape)?, false),
        ("data_type", of(|a| &a.data_type), false),
        ("fill_value", Arc::new(fill_values) as ArrayRef, true),
        ("dimension_names", dimension_names, true),
        ("chunk_grid", grid, true),
        ("chunk_key_encoding", encoding, true),
        (
            "codecs",
            list(arrays.iter().map(|a| a.map_or(0, |a| a.codecs.len())), codec_items, None)?,
            true,
        ),
    ];
    nullable_structure(children, arrays.iter().map(Option::is_some).collect())
}

fn attrs_reference(nodes: &[&Arc<Node>], wide: bool) -> Result<ArrayRef> {
    let references: Vec<_> = nodes
        .iter()
        .map(|node| match &node.attributes {
            Attributes::File(reference) => Some(reference),
            Attributes::Inline(_) => None,
        })
        .collect();
    let (row, flags) = if wide { (Width::U64, Width::U32) } else { (Width::U16, Width::U16) };
    let files = references.iter().map(|r| r.map_or("", |r| &r.file));
    let rows = references.iter().map(|r| r.map_or(0, |r| r.row)).collect();
    let bits = references.iter().map(|r| r.map_or(0, |r| u64::from(r.flags))).collect();
    let mut children = vec![
        ("attrs_file", Arc::new(StringArray::from_iter_values(files)) as ArrayRef, false),
        ("row", uint_array("attrs_reference.row", rows, None, row)?, false),
        ("flags", uint_array("attrs_reference.flags", bits, None, flags)?, true),
    ];
    if wide {
        let crcs = UInt32Array::from_iter(references.iter().map(|r| r.and_then(|r| r.file_crc32c)));
        children.push(("file_crc32c", Arc::new(crcs), true));
    }
    nullable_structure(children, references.iter().map(Option::is_some).collect())
}

fn inventories(nodes: &[&Arc<Node>], wide: bool) -> Result<ArrayRef> {
    let all = || nodes.iter().flat_map(|node| &node.inventories);
    let (number, flags) = if wide { (Width::U64, Width::U32) } else { (Width::U16, Width::U16) };
    let files = StringArray::from_iter_values(all().map(|entry| &*entry.file));
    let rows = all().map(|entry| entry.row).collect();
    let bounds = all().flat_map(|e| &e.extent).flat_map(|&(low, high)| [low, high]).collect();
    let bounds = uint_array("inventories.extent", bounds, None, number)?;
    let item = Arc::new(Field::new("item", bounds.data_type().clone(), true));
    let pairs = FixedSizeListArray::try_new(item, 2, bounds, None).map_err(failed)?;
    let extents = list(all().map(|entry| entry.extent.len()), Arc::new(pairs), None)?;
    // The level bits have no meaning to a draft reader and no run is ever stacked in draft mode.
    let keep = if wide { u32::MAX } else { 0xff };
    let bits = all().map(|entry| u64::from(entry.flags & keep)).collect();
    let mut children = vec![
        ("inventory_file", Arc::new(files) as ArrayRef, false),
        ("row", uint_array("inventories.row", rows, None, number)?, false),
        ("extent", extents, false),
        ("flags", uint_array("inventories.flags", bits, None, flags)?, true),
    ];
    if wide {
        let optional = |get: fn(&Inventory) -> Option<u64>| -> ArrayRef {
            Arc::new(UInt64Array::from_iter(all().map(get)))
        };
        let binary = |get: fn(&Inventory) -> Option<&[u8]>| -> ArrayRef {
            Arc::new(all().map(get).collect::<BinaryArray>())
        };
        let crcs = all().map(|entry| entry.tail.map(|tail| tail.crc32c));
        children.extend([
            ("rows", optional(|entry| entry.rows), true),
            ("file_size", optional(|entry| entry.file_size), true),
            ("tail_size", optional(|entry| entry.tail.map(|tail| tail.size)), true),
            ("tail_crc32c", Arc::new(UInt32Array::from_iter(crcs)), true),
            ("coord_min", binary(|entry| entry.coord_min.as_deref()), true),
            ("coord_max", binary(|entry| entry.coord_max.as_deref()), true),
        ]);
    }
    list(nodes.iter().map(|node| node.inventories.len()), structure(children)?, None)
}

fn list(
    lengths: impl Iterator<Item = usize>,
    values: ArrayRef,
    validity: Option<Vec<bool>>,
) -> Result<ArrayRef> {
    let item = Arc::new(Field::new("item", values.data_type().clone(), true));
    let offsets = OffsetBuffer::from_lengths(lengths);
    let nulls = validity.map(NullBuffer::from);
    Ok(Arc::new(ListArray::try_new(item, offsets, values, nulls).map_err(failed)?))
}

fn structure(children: Vec<(&str, ArrayRef, bool)>) -> Result<ArrayRef> {
    let rows = children.first().map_or(0, |(_, array, _)| array.len());
    nullable_structure(children, vec![true; rows])
}

fn nullable_structure(
    children: Vec<(&str, ArrayRef, bool)>,
    validity: Vec<bool>,
) -> Result<ArrayRef> {
    let nulls = validity.contains(&false).then(|| validity.into());
    let (fields, arrays): (Vec<_>, Vec<_>) = children
        .into_iter()
        .map(|(name, array, nullable)| {
            (Field::new(name, array.data_type().clone(), nullable), array)
        })
        .unzip();
    Ok(Arc::new(StructArray::try_new(Fields::from(fields), arrays, nulls).map_err(failed)?))
}

fn failed(error: arrow_schema::ArrowError) -> Error {
    Error::Invalid { what: format!("cannot lay out a structure file: {error}") }
}
