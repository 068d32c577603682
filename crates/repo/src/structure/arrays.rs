//! The column `array_metadata`: a Zarr document for each array.
//!
//! Each column is converted once for all rows, and a document is written straight from them: with
//! many arrays, the work per row decides how long it takes to open a repository.

use std::io::Write;
use std::ops::Range;

use arrow_array::cast::AsArray;
use arrow_array::{Array, BinaryArray, ListArray, StringArray, StructArray};
use arrow_buffer::NullBuffer;
use arrow_schema::DataType;
use chunkyard_store::{Error, Result};
use serde::Serialize;
use serde::de::IgnoredAny;
use serde_json::{Map, Value};

use crate::columns::{Columns, required, uint_list};
use crate::parquet_file::corrupt;

/// The metadata of all arrays of a file.
pub(super) struct Arrays<'a> {
    file: &'a str,
    nulls: Option<NullBuffer>,
    shapes: UintLists,
    data_types: StringArray,
    fill_values: BinaryArray,
    dimension_names: (ListArray, StringArray),
    grid_names: StringArray,
    chunk_shapes: UintLists,
    encoding_names: StringArray,
    separators: StringArray,
    codecs: ListArray,
    codec_names: StringArray,
    codec_configurations: BinaryArray,
}

impl<'a> Arrays<'a> {
    pub(super) fn new(file: &'a str, array: &StructArray) -> Result<Self> {
        let columns = Columns::of_struct(file, "array_metadata", array);
        let grids = columns.structs("chunk_grid")?;
        let grid = Columns::of_struct(file, "chunk_grid", &grids);
        let configurations = grid.structs("configuration")?;
        let chunk_shapes = Columns::of_struct(file, "chunk_grid.configuration", &configurations);
        let encodings = columns.structs("chunk_key_encoding")?;
        let encoding = Columns::of_struct(file, "chunk_key_encoding", &encodings);
        let configurations = encoding.structs("configuration")?;
        let separators =
            Columns::of_struct(file, "chunk_key_encoding.configuration", &configurations);
        let codecs = columns.lists("codecs")?;
        let items = structs_of(file, "codecs", &codecs)?;
        let items = Columns::of_struct(file, "codecs", &items);
        let codec_names = items.strings("name")?;
        if codec_names.null_count() > 0 {
            return Err(items.error("name", "no nulls", "a null"));
        }
        Ok(Self {
            file,
            nulls: array.nulls().cloned(),
            shapes: UintLists::new(file, "array_metadata.shape", columns.lists("shape")?)?,
            data_types: columns.strings("data_type")?,
            fill_values: columns.binaries("fill_value")?,
            dimension_names: columns.string_lists("dimension_names")?,
            grid_names: grid.strings("name")?,
            chunk_shapes: UintLists::new(file, "chunk_shape", chunk_shapes.lists("chunk_shape")?)?,
            encoding_names: encoding.strings("name")?,
            separators: separators.strings("separator")?,
            codec_names,
            codec_configurations: items.binaries("configuration")?,
            codecs,
        })
    }

    /// Writes the document of a row, with the keys of `extra` laid over it, over the old content of
    /// `document`.
    pub(super) fn write(
        &self,
        row: usize,
        extra: &Map<String, Value>,
        document: &mut Vec<u8>,
    ) -> Result<()> {
        let valid = self.nulls.as_ref().is_none_or(|nulls| nulls.is_valid(row));
        required(valid.then_some(()), self.file, "array_metadata", row)?;
        document.clear();
        let failed = |error| Error::Invalid { what: format!("array metadata: {error}") };
        self.write_columns(row, document).map_err(failed)?;
        if extra.is_empty() {
            return Ok(());
        }
        let mut whole: Map<String, Value> =
            serde_json::from_slice(document).map_err(|error| failed(error.into()))?;
        whole.extend(extra.iter().map(|(name, value)| (name.clone(), value.clone())));
        document.clear();
        serde_json::to_writer(document, &whole).map_err(|error| failed(error.into()))
    }

    /// Same keys in the same order as [`super::document::join`].
    fn write_columns(&self, row: usize, out: &mut Vec<u8>) -> std::io::Result<()> {
        out.write_all(br#"{"zarr_format":3,"node_type":"array","shape":"#)?;
        json(out, self.shapes.get(row))?;
        out.write_all(br#","data_type":"#)?;
        let data_type = text(&self.data_types, row);
        match serde_json::from_str::<Map<String, Value>>(data_type) {
            Ok(_) => out.write_all(data_type.as_bytes())?,
            Err(_) => json(out, data_type)?,
        }
        out.write_all(br#","chunk_grid":{"name":"#)?;
        json(out, text(&self.grid_names, row))?;
        out.write_all(br#","configuration":{"chunk_shape":"#)?;
        json(out, self.chunk_shapes.get(row))?;
        out.write_all(br#"}},"chunk_key_encoding":{"name":"#)?;
        json(out, text(&self.encoding_names, row))?;
        out.write_all(br#","configuration":{"separator":"#)?;
        json(out, text(&self.separators, row))?;
        out.write_all(b"}}")?;
        if self.fill_values.is_valid(row) {
            out.write_all(br#","fill_value":"#)?;
            verbatim(out, self.fill_values.value(row))?;
        }
        out.write_all(br#","codecs":["#)?;
        for (at, codec) in items(&self.codecs, row).enumerate() {
            out.write_all(if at > 0 { br#",{"name":"# } else { br#"{"name":"# })?;
            json(out, text(&self.codec_names, codec))?;
            if self.codec_configurations.is_valid(codec) {
                out.write_all(br#","configuration":"#)?;
                verbatim(out, self.codec_configurations.value(codec))?;
            }
            out.write_all(b"}")?;
        }
        out.write_all(b"]")?;
        let (names, values) = &self.dimension_names;
        if names.is_valid(row) && names.value_type() != DataType::Null {
            out.write_all(br#","dimension_names":"#)?;
            let name = |at: usize| values.is_valid(at).then(|| values.value(at));
            json(out, &items(names, row).map(name).collect::<Vec<_>>())?;
        }
        out.write_all(b"}")
    }
}

/// Lists of integers, all in one array.
pub(super) struct UintLists {
    lists: ListArray,
    values: Vec<u64>,
}

impl UintLists {
    fn new(file: &str, what: &str, lists: ListArray) -> Result<Self> {
        let values = match lists.null_count() == lists.len() {
            true => Vec::new(),
            false => uint_list(file, what, lists.values())?,
        };
        Ok(Self { lists, values })
    }

    fn get(&self, row: usize) -> &[u64] {
        self.values.get(items(&self.lists, row)).unwrap_or_default()
    }
}

/// Where the items of a row are among the values of all rows.
pub(super) fn items(lists: &ListArray, row: usize) -> Range<usize> {
    match (lists.is_valid(row), lists.value_offsets().get(row..row + 2)) {
        (true, Some(&[start, end])) => start as usize..end as usize,
        _ => 0..0,
    }
}

/// The structs in the lists of all rows; none where there are no lists.
pub(super) fn structs_of(file: &str, column: &str, lists: &ListArray) -> Result<StructArray> {
    if lists.null_count() == lists.len() {
        return Ok(StructArray::new_empty_fields(0, None));
    }
    lists.values().as_struct_opt().cloned().ok_or_else(|| {
        let found = lists.value_type().to_string();
        corrupt(file, &format!("column {column}"), "a list of structs", &found)
    })
}

fn text(array: &StringArray, at: usize) -> &str {
    if array.is_valid(at) { array.value(at) } else { "" }
}

fn json<T: Serialize + ?Sized>(out: &mut Vec<u8>, value: &T) -> std::io::Result<()> {
    Ok(serde_json::to_writer(out, value)?)
}

/// JSON text as it is, or `null` for text that is not JSON.
fn verbatim(out: &mut Vec<u8>, bytes: &[u8]) -> std::io::Result<()> {
    match serde_json::from_slice::<IgnoredAny>(bytes) {
        Ok(_) => out.write_all(bytes),
        Err(_) => out.write_all(b"null"),
    }
}
