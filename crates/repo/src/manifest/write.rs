//! Laying out manifests.

use std::borrow::Borrow;
use std::sync::Arc;

use arrow_array::builder::{
    BinaryBuilder, Int64Builder, StringBuilder, StringDictionaryBuilder, UInt32Builder,
    UInt64Builder,
};
use arrow_array::types::Int32Type;
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use chunkyard_store::{Error, Result};
use parquet::basic::Encoding;
use parquet::file::metadata::SortingColumn;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::schema::types::ColumnPath;

use super::Payload;
use crate::config::Compat;
use crate::coord;
use crate::node::Inventory;
use crate::parquet_file::{self, FileWriter, Label, Sealed};
use crate::widen;
use crate::width::{Width, uint_array};

/// Rows of a row group, and of one tile of a merged run.
pub(crate) const TILE_ROWS: usize = 65_536;
/// Arrays with at least this many rows get row groups of their own.
const OWN_GROUP_ROWS: usize = 4096;

/// Builds one manifest out of runs of rows, array after array.
pub(crate) struct RunBuilder {
    compat: Compat,
    schema: SchemaRef,
    /// Begun with the first row group: its settings depend on whether there will be more.
    writer: Option<FileWriter>,
    pending: Columns,
    rows: u64,
    /// Array and coordinate of the last row, if there is one.
    last: (u32, Vec<u8>),
    tiles: Vec<Tile>,
}

/// A manifest ready to be stored, with the inventory entries that point into it.
#[derive(Debug)]
pub(crate) struct Written {
    pub(crate) sealed: Sealed,
    tiles: Vec<Tile>,
}

/// Rows of one array that one inventory entry will describe.
#[derive(Debug)]
struct Tile {
    array_id: u32,
    row: u64,
    rows: u64,
    extent: Vec<(u64, u64)>,
    coord_min: Vec<u8>,
    coord_max: Vec<u8>,
    flags: u32,
}

impl RunBuilder {
    pub(crate) fn new(compat: Compat) -> Self {
        Self {
            compat,
            schema: schema(compat),
            writer: None,
            pending: Columns::default(),
            rows: 0,
            last: (0, Vec::new()),
            tiles: Vec::new(),
        }
    }

    /// Appends the rows of one array, sorted by coordinate. Arrays come in order of their handle.
    /// `rank` is the array's; `expected` is how many rows will come, to decide on row groups.
    pub(crate) fn push_array<C: AsRef<[u8]>, P: Borrow<Payload>>(
        &mut self,
        array_id: u32,
        rank: usize,
        expected: usize,
        rows: impl IntoIterator<Item = Result<(C, P)>>,
    ) -> Result<()> {
        let own_groups = expected >= OWN_GROUP_ROWS;
        if own_groups {
            self.cut()?;
        }
        let mut tile: Option<Tile> = None;
        let mut index = Vec::with_capacity(rank);
        for row in rows {
            let (coordinate, payload) = row?;
            let (coordinate, payload) = (coordinate.as_ref(), payload.borrow());
            if tile.as_ref().is_some_and(|tile| tile.rows as usize == TILE_ROWS) {
                self.tiles.extend(tile.take());
            }
            coord::decode_into(coordinate, rank, &mut index)
                .map_err(|error| Error::Invalid { what: format!("chunk coordinate: {error}") })?;
            let at = self.rows;
            let current = tile.get_or_insert_with(|| Tile::new(array_id, at, coordinate, rank));
            current.add(coordinate, &index, payload);
            self.push(array_id, coordinate, payload)?;
        }
        self.tiles.extend(tile);
        if own_groups { self.cut() } else { Ok(()) }
    }

    fn push(&mut self, array_id: u32, coordinate: &[u8], payload: &Payload) -> Result<()> {
        let (last_id, last) = &mut self.last;
        if self.rows > 0 && (*last_id, last.as_slice()) >= (array_id, coordinate) {
            return Err(Error::Invalid { what: "manifest rows out of order".into() });
        }
        *last_id = array_id;
        last.clear();
        last.extend_from_slice(coordinate);
        self.pending.push(self.rows, array_id, coordinate, payload)?;
        self.rows += 1;
        if self.pending.len() == TILE_ROWS { self.cut() } else { Ok(()) }
    }

    /// Ends a row group; more may follow.
    fn cut(&mut self) -> Result<()> {
        if self.pending.len() == 0 {
            return Ok(());
        }
        let batch = self.take_pending()?;
        let mut writer = match self.writer.take() {
            Some(writer) => writer,
            None => FileWriter::new(self.schema.clone(), properties(None))?,
        };
        writer.row_group(&batch)?;
        self.writer = Some(writer);
        Ok(())
    }

    fn take_pending(&mut self) -> Result<RecordBatch> {
        let arrays = std::mem::take(&mut self.pending).finish(self.compat)?;
        RecordBatch::try_new(self.schema.clone(), arrays).map_err(failed)
    }

    /// How many rows were pushed.
    pub(crate) fn rows(&self) -> u64 {
        self.rows
    }

    /// Seals the file.
    pub(crate) fn finish(mut self, label: Label<'_>) -> Result<Written> {
        let last = self.take_pending()?;
        let mut writer = match self.writer {
            Some(writer) => writer,
            None => FileWriter::new(self.schema, properties(Some(&last)))?,
        };
        if last.num_rows() > 0 {
            writer.row_group(&last)?;
        }
        Ok(Written { sealed: writer.seal(label, &[])?, tiles: self.tiles })
    }
}

impl Written {
    /// The entries of one array, once the file has a name. `level` is the merge level.
    pub(crate) fn inventories(&self, file: &Arc<str>, array_id: u32, level: u32) -> Vec<Inventory> {
        // Rows are sorted by array, and so are tiles: with many arrays in one file a walk over all
        // tiles for each array would be quadratic.
        let start = self.tiles.partition_point(|tile| tile.array_id < array_id);
        let tiles = self.tiles.get(start..).unwrap_or_default();
        tiles
            .iter()
            .take_while(|tile| tile.array_id == array_id)
            .enumerate()
            .map(|(at, tile)| Inventory {
                file: file.clone(),
                row: tile.row,
                rows: Some(tile.rows),
                extent: tile.extent.clone(),
                flags: tile.flags
                    | Inventory::level_bits(level)
                    | if at > 0 { Inventory::CONTINUES } else { 0 },
                file_size: Some(self.sealed.bytes.len() as u64),
                tail: Some(self.sealed.tail),
                coord_min: Some(tile.coord_min.clone()),
                coord_max: Some(tile.coord_max.clone()),
            })
            .collect()
    }
}

impl Tile {
    fn new(array_id: u32, row: u64, coordinate: &[u8], rank: usize) -> Self {
        Self {
            array_id,
            row,
            rows: 0,
            extent: vec![(u64::MAX, 0); rank],
            coord_min: coordinate.to_vec(),
            coord_max: Vec::new(),
            flags: 0,
        }
    }

    fn add(&mut self, coordinate: &[u8], index: &[u64], payload: &Payload) {
        self.rows += 1;
        self.coord_max.clear();
        self.coord_max.extend_from_slice(coordinate);
        for ((low, high), &component) in self.extent.iter_mut().zip(index) {
            *low = (*low).min(component);
            // Chunk indices come from grids over u64 shapes, so `+ 1` cannot overflow in a sound
            // array; for a forged one the bound saturates and stays a bound.
            *high = (*high).max(component.saturating_add(1));
        }
        self.flags |= match payload {
            Payload::Inline { .. } => Inventory::INLINE,
            Payload::Native(_) => 0,
            Payload::Virtual(_) => Inventory::VIRTUAL,
            Payload::Removed => Inventory::REMOVALS,
        };
    }
}

#[derive(Default)]
struct Columns {
    ids: Vec<u64>,
    array_ids: Vec<u64>,
    coords: BinaryBuilder,
    inline: BinaryBuilder,
    files: StringDictionaryBuilder<Int32Type>,
    offsets: UInt64Builder,
    lengths: Vec<u64>,
    crcs: UInt32Builder,
    etags: StringBuilder,
    modified: Int64Builder,
}

impl Columns {
    fn len(&self) -> usize {
        self.ids.len()
    }

    fn push(&mut self, id: u64, array_id: u32, coordinate: &[u8], payload: &Payload) -> Result<()> {
        if payload.length() == 0 && !payload.is_removed() {
            return Err(Error::Invalid { what: "a chunk of zero bytes cannot be stored".into() });
        }
        self.ids.push(id);
        self.array_ids.push(array_id.into());
        self.coords.append_value(coordinate);
        self.lengths.push(payload.length());
        let (mut inline, mut place, mut crc, mut etag, mut modified) =
            (None, None, None, None, None);
        match payload {
            Payload::Inline { bytes } => {
                inline = Some(bytes);
                crc = Some(crc32c::crc32c(bytes));
            }
            Payload::Native(native) => {
                place = Some((&native.file, native.offset));
                crc = native.crc32c;
            }
            Payload::Virtual(remote) => {
                place = Some((&remote.url, remote.offset));
                crc = remote.crc32c;
                etag = remote.etag.as_deref();
                modified = remote.last_modified_ms;
            }
            Payload::Removed => {}
        }
        self.inline.append_option(inline);
        match place {
            Some((file, _)) => self.files.append(&**file).map(|_| ()).map_err(failed)?,
            None => self.files.append_null(),
        }
        self.offsets.append_option(place.map(|(_, offset)| offset));
        self.crcs.append_option(crc);
        self.etags.append_option(etag);
        self.modified.append_option(modified);
        Ok(())
    }

    fn finish(mut self, compat: Compat) -> Result<Vec<ArrayRef>> {
        let wide = compat == Compat::Wide;
        let length = if wide { Width::U64 } else { Width::U32 };
        let mut arrays: Vec<ArrayRef> = vec![
            uint_array("id", self.ids, None, Width::U32)?,
            uint_array("array_id", self.array_ids, None, Width::U32)?,
            Arc::new(self.coords.finish()),
            Arc::new(self.inline.finish()),
            // The dictionary is only used to gather rows: the column is stored as strings.
            Arc::new(
                widen::strings(&self.files.finish())
                    .map_err(ArrowError::CastError)
                    .map_err(failed)?,
            ),
            Arc::new(self.offsets.finish()),
            uint_array("length", self.lengths, None, length)?,
        ];
        if wide {
            arrays.push(Arc::new(self.crcs.finish()));
            arrays.push(Arc::new(self.etags.finish()));
            arrays.push(Arc::new(self.modified.finish()));
        }
        Ok(arrays)
    }
}

fn schema(compat: Compat) -> SchemaRef {
    let wide = compat == Compat::Wide;
    let mut fields = vec![
        Field::new("id", DataType::UInt32, false),
        Field::new("array_id", DataType::UInt32, false),
        Field::new("coord", DataType::Binary, false),
        Field::new("inline_data", DataType::Binary, true),
        Field::new("chunk_file", DataType::Utf8, true),
        Field::new("offset", DataType::UInt64, true),
        Field::new("length", if wide { DataType::UInt64 } else { DataType::UInt32 }, false),
    ];
    if wide {
        fields.extend([
            Field::new("crc32c", DataType::UInt32, true),
            Field::new("etag", DataType::Utf8, true),
            Field::new("last_modified_ms", DataType::Int64, true),
        ]);
    }
    Arc::new(Schema::new(fields))
}

fn properties(content: Option<&RecordBatch>) -> WriterProperties {
    let column = |name: &str| ColumnPath::from(name);
    let sorted = |at| SortingColumn { column_idx: at, descending: false, nulls_first: false };
    let mut builder = parquet_file::properties(content)
        .set_dictionary_enabled(false)
        .set_statistics_enabled(EnabledStatistics::None)
        .set_sorting_columns(Some(vec![sorted(1), sorted(2)]))
        .set_column_encoding(column("coord"), Encoding::DELTA_BYTE_ARRAY)
        .set_column_dictionary_enabled(column("chunk_file"), true)
        .set_column_dictionary_enabled(column("etag"), true)
        .set_column_statistics_enabled(column("array_id"), EnabledStatistics::Page)
        .set_column_statistics_enabled(column("coord"), EnabledStatistics::Page);
    for name in ["id", "array_id", "offset", "length", "last_modified_ms"] {
        builder = builder.set_column_encoding(column(name), Encoding::DELTA_BINARY_PACKED);
    }
    builder.build()
}

fn failed(error: ArrowError) -> Error {
    Error::Invalid { what: format!("cannot lay out a manifest: {error}") }
}
