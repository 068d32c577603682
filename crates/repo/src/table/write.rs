//! Writing runs of a table.

use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch};
use arrow_buffer::BooleanBuffer;
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use chunkyard_store::{Result, Uid};
use parquet::basic::Encoding;
use parquet::file::metadata::SortingColumn;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::schema::types::ColumnPath;

use super::block::{batch_of, removed_column};
use super::key::KeyColumn;
use super::rows::TableFiles;
use super::scan::Merged;
use super::spec::{REMOVED, TableSpec};
use crate::id;
use crate::node::Inventory;
use crate::parquet_file::{self, FileWriter, Label};
use crate::run;

/// Rows of a row group.
const GROUP_ROWS: usize = 65_536;
/// Rows of a file: it bounds the footer that a lookup of one key reads.
const FILE_ROWS: u64 = 1 << 22;
/// Bytes of a file, more or less: a file is held in memory until it is complete.
const FILE_BYTES: usize = 64 << 20;

/// What every file of a run says.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RunLabel<'a> {
    pub(crate) uid: Uid,
    pub(crate) dataset_id: &'a str,
    pub(crate) now_ms: i64,
}

/// A run in the making: a file, or several where it is large. Each is stored as soon as it is complete.
pub(crate) struct RunWriter<'a> {
    files: &'a TableFiles,
    label: RunLabel<'a>,
    spec: &'a TableSpec,
    schema: SchemaRef,
    /// Whether rows have a mark for deletions.
    marks: bool,
    /// The first rows of a file: whether it is compressed depends on whether there will be more.
    first: Option<RecordBatch>,
    writer: Option<FileWriter>,
    rows: u64,
    removed: u64,
    ends: Option<(Vec<u8>, Vec<u8>)>,
    done: RunWritten,
}

/// A run that is stored.
#[derive(Debug, Default)]
pub(crate) struct RunWritten {
    /// Without merge level and OVERRIDES.
    pub(crate) entries: Vec<Inventory>,
    /// Rows that are no deletions.
    pub(crate) live: u64,
    pub(crate) rows: u64,
    pub(crate) bytes: u64,
}

impl RunWritten {
    /// The entries, on a merge level.
    pub(crate) fn on_level(mut self, level: u32) -> Vec<Inventory> {
        self.entries.iter_mut().for_each(|entry| entry.flags |= Inventory::level_bits(level));
        self.entries
    }

    /// Where the files are.
    pub(crate) fn paths(&self) -> impl Iterator<Item = String> {
        self.entries.iter().map(|entry| format!("i/{}", entry.file))
    }
}

impl<'a> RunWriter<'a> {
    pub(crate) fn new(
        files: &'a TableFiles,
        label: RunLabel<'a>,
        spec: &'a TableSpec,
        marks: bool,
    ) -> Self {
        let mut fields: Vec<Arc<Field>> = spec.schema().fields().iter().cloned().collect();
        if marks {
            fields.push(Arc::new(Field::new(REMOVED, DataType::Boolean, false)));
        }
        Self {
            files,
            label,
            spec,
            schema: Arc::new(Schema::new(fields)),
            marks,
            first: None,
            writer: None,
            rows: 0,
            removed: 0,
            ends: None,
            done: RunWritten::default(),
        }
    }

    /// Appends rows, which come in the order of their keys.
    pub(crate) async fn push(&mut self, merged: Merged) -> Result<()> {
        let mut from = 0;
        while from < merged.rows {
            let room = GROUP_ROWS - (self.rows as usize % GROUP_ROWS);
            let count = room.min(merged.rows - from);
            let columns = merged.columns.iter().map(|column| column.slice(from, count)).collect();
            let removed = merged.removed.as_ref().map(|removed| removed.slice(from, count));
            self.append(columns, removed, count)?;
            from += count;
            let bytes = self.writer.as_ref().map_or(0, FileWriter::bytes_written);
            if self.rows >= FILE_ROWS || bytes >= FILE_BYTES {
                self.cut().await?;
            }
        }
        Ok(())
    }

    fn append(
        &mut self,
        mut columns: Vec<ArrayRef>,
        removed: Option<BooleanBuffer>,
        count: usize,
    ) -> Result<()> {
        let keys = columns.get(..self.spec.key()).unwrap_or_default();
        let key_at = |at: usize| {
            let row: Vec<ArrayRef> = keys.iter().map(|column| column.slice(at, 1)).collect();
            KeyColumn::encode(&row).get(0).to_vec()
        };
        let last = key_at(count - 1);
        match &mut self.ends {
            Some((_, end)) => *end = last,
            none => *none = Some((key_at(0), last)),
        }
        self.rows += count as u64;
        if self.marks {
            self.removed += removed.as_ref().map_or(0, |removed| removed.count_set_bits() as u64);
            columns.push(removed_column(removed.as_ref(), count));
        }
        let batch = batch_of(&self.schema, columns, count)?;
        if self.writer.is_none() && self.first.is_none() {
            self.first = Some(batch);
            return Ok(());
        }
        let mut writer = match self.writer.take() {
            Some(writer) => writer,
            None => FileWriter::new(self.schema.clone(), properties(self.spec, None))?,
        };
        if let Some(first) = self.first.take() {
            writer.write(&first)?;
        }
        writer.write(&batch)?;
        self.writer = Some(writer);
        Ok(())
    }

    /// Completes a file; more may follow.
    async fn cut(&mut self) -> Result<()> {
        let Some((coord_min, coord_max)) = self.ends.take() else { return Ok(()) };
        let mut writer = match self.writer.take() {
            Some(writer) => writer,
            None => {
                FileWriter::new(self.schema.clone(), properties(self.spec, self.first.as_ref()))?
            }
        };
        if let Some(first) = self.first.take() {
            writer.write(&first)?;
        }
        let RunLabel { uid, dataset_id, now_ms } = self.label;
        let label = Label { format: "table", dataset_id, created_ms: now_ms };
        let more = [("table", uid.to_string()), ("key", self.spec.key().to_string())];
        let sealed = writer.seal(label, &more)?;
        let file: Arc<str> = id::fresh()?.into();
        self.files.put(&file, &sealed.bytes).await?;
        let mut flags = 0;
        if self.removed > 0 {
            flags |= Inventory::REMOVALS;
        }
        if !self.done.entries.is_empty() {
            flags |= Inventory::CONTINUES;
        }
        self.done.live += self.rows - self.removed;
        self.done.rows += self.rows;
        self.done.bytes += sealed.bytes.len() as u64;
        self.done.entries.push(Inventory {
            file,
            row: 0,
            rows: Some(self.rows),
            extent: Vec::new(),
            flags,
            file_size: Some(sealed.bytes.len() as u64),
            tail: Some(sealed.tail),
            coord_min: Some(coord_min),
            coord_max: Some(coord_max),
        });
        (self.rows, self.removed) = (0, 0);
        Ok(())
    }

    /// Stores what is left.
    pub(crate) async fn finish(mut self) -> Result<RunWritten> {
        self.cut().await?;
        Ok(self.done)
    }
}

/// A page of a lookup stands alone, so no column has a dictionary; pages have bounds for the key only.
pub(crate) fn properties(spec: &TableSpec, content: Option<&RecordBatch>) -> WriterProperties {
    let sorted = |at| SortingColumn { column_idx: at, descending: false, nulls_first: false };
    let key = i32::try_from(spec.key()).unwrap_or(i32::MAX);
    let mut builder = parquet_file::properties(content)
        .set_dictionary_enabled(false)
        .set_statistics_enabled(EnabledStatistics::None)
        .set_max_row_group_row_count(Some(GROUP_ROWS))
        .set_sorting_columns(Some((0..key).map(sorted).collect()));
    for field in spec.schema().fields().iter().take(spec.key()) {
        // Not parsed: a name may have dots in it.
        let column = ColumnPath::new(vec![field.name().clone()]);
        let encoding = match field.data_type() {
            DataType::Utf8 | DataType::Binary => Encoding::DELTA_BYTE_ARRAY,
            _ => Encoding::DELTA_BINARY_PACKED,
        };
        builder = builder
            .set_column_encoding(column.clone(), encoding)
            .set_column_statistics_enabled(column, EnabledStatistics::Page);
    }
    builder.build()
}

/// Merge level of a run.
pub(crate) fn level(rows: u64) -> u32 {
    run::levels::level_of(rows)
}
