//! Rows of a table in memory: sorted by key, deletions among them, newer rows over older ones.

use std::cmp::Ordering;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{
    Array, ArrayRef, BooleanArray, ListArray, RecordBatch, RecordBatchOptions, UInt32Array,
    make_array,
};
use arrow_buffer::BooleanBuffer;
use arrow_data::ArrayData;
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use arrow_select::take::take_arrays;
use chunkyard_store::{Error, Result};

use super::gather;
use super::key::KeyColumn;
use super::spec::{REMOVED, TableSpec};
use crate::parquet_file::corrupt;
use crate::run;

/// Consecutive rows of a run.
#[derive(Debug, Clone)]
pub(crate) struct Block {
    first_row: u64,
    keys: Arc<KeyColumn>,
    /// Some of the table's columns, the key among them.
    columns: Vec<ArrayRef>,
    /// Which rows are deletions, if any is.
    removed: Option<BooleanBuffer>,
    bytes: usize,
}

impl run::Block for Block {
    fn first_row(&self) -> u64 {
        self.first_row
    }

    fn len(&self) -> usize {
        self.keys.len()
    }

    fn key(&self, at: usize) -> &[u8] {
        self.keys.get(at)
    }

    fn bytes_held(&self) -> usize {
        self.bytes
    }
}

impl Block {
    /// Sorts rows by key. Of rows with one key the last stays.
    pub(crate) fn sorted(spec: &TableSpec, columns: Vec<ArrayRef>, removed: bool) -> Result<Self> {
        let keys = KeyColumn::encode(columns.get(..spec.key()).unwrap_or_default());
        let (keys, columns) = match keys.sorted() {
            None => (keys, columns),
            Some(order) => {
                let columns =
                    take_arrays(&columns, &UInt32Array::from(order), None).map_err(failed)?;
                (KeyColumn::encode(columns.get(..spec.key()).unwrap_or_default()), columns)
            }
        };
        let removed = removed.then(|| BooleanBuffer::new_set(keys.len()));
        Ok(Self::new(0, keys, columns, removed))
    }

    /// Rows that are in the order of their keys.
    pub(crate) fn in_order(
        spec: &TableSpec,
        columns: Vec<ArrayRef>,
        removed: Option<BooleanBuffer>,
    ) -> Self {
        let keys = KeyColumn::encode(columns.get(..spec.key()).unwrap_or_default());
        Self::new(0, keys, columns, removed)
    }

    fn new(
        first_row: u64,
        keys: KeyColumn,
        columns: Vec<ArrayRef>,
        removed: Option<BooleanBuffer>,
    ) -> Self {
        let removed = removed.filter(|removed| removed.count_set_bits() > 0);
        let size = |column: &ArrayRef| column.to_data().get_slice_memory_size().unwrap_or(0);
        let bytes = columns.iter().map(size).sum::<usize>() + keys.bytes_held() + 256;
        Self { first_row, keys: Arc::new(keys), columns, removed, bytes }
    }

    /// Rows of a file: the columns that a table has, in types that a table has, or it is corrupt.
    pub(crate) fn decode(
        spec: &TableSpec,
        wanted: &[usize],
        file: &Arc<str>,
        first_row: u64,
        batch: &RecordBatch,
    ) -> Result<Self> {
        let column = |at: &usize| {
            let field = spec.schema().field(*at);
            let found = batch.column_by_name(field.name());
            let found = found.ok_or_else(|| wrong(file, field, "no such column"))?;
            conform(file, field, found)
        };
        let columns = wanted.iter().map(column).collect::<Result<Vec<_>>>()?;
        let removed = match batch.column_by_name(REMOVED) {
            None => None,
            Some(column) => match column.as_boolean_opt() {
                Some(removed) if removed.null_count() == 0 => Some(removed.values().clone()),
                _ => {
                    let found = format!("{}, {} nulls", column.data_type(), column.null_count());
                    return Err(corrupt(file, &format!("column {REMOVED}"), "booleans", &found));
                }
            },
        };
        let keys = KeyColumn::encode(columns.get(..spec.key()).unwrap_or_default());
        Ok(Self::new(first_row, keys, columns, removed))
    }

    /// Two blocks as one; `newer` wins.
    pub(crate) fn merge(spec: &TableSpec, older: &Self, newer: &Self) -> Result<Self> {
        use run::Block as _;
        let (mut a, mut b) = (0, 0);
        // Stretches of one block or the other.
        let mut stretches: Vec<(usize, usize, usize)> = Vec::new();
        let mut take = |source: usize, at: usize| match stretches.last_mut() {
            Some((last, _, end)) if *last == source && *end == at => *end = at + 1,
            _ => stretches.push((source, at, at + 1)),
        };
        while a < older.len() || b < newer.len() {
            let order = match (a < older.len(), b < newer.len()) {
                (true, true) => older.key(a).cmp(newer.key(b)),
                (true, false) => Ordering::Less,
                _ => Ordering::Greater,
            };
            match order {
                Ordering::Less => take(0, a),
                _ => take(1, b),
            }
            a += usize::from(order.is_le());
            b += usize::from(order.is_ge());
        }
        let gather = |older: &ArrayRef, newer: &ArrayRef| {
            let part = |(source, from, to): &(usize, usize, usize)| {
                (if *source == 0 { older } else { newer }, *from..*to)
            };
            gather::stretches(&stretches.iter().map(part).collect::<Vec<_>>())
        };
        let pairs = older.columns.iter().zip(&newer.columns);
        let columns = pairs.map(|(a, b)| gather(a, b)).collect::<Result<_>>()?;
        let mut removed = None;
        if older.removed.is_some() || newer.removed.is_some() {
            let marks = |block: &Self| removed_column(block.removed(), block.len());
            removed = Some(gather(&marks(older), &marks(newer))?.as_boolean().values().clone());
        }
        Ok(Self::in_order(spec, columns, removed))
    }

    /// Whether it is the same block, or a copy of it.
    pub(crate) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.keys, &other.keys)
    }

    pub(crate) fn keys(&self) -> &Arc<KeyColumn> {
        &self.keys
    }

    pub(crate) fn columns(&self) -> &[ArrayRef] {
        &self.columns
    }

    pub(crate) fn is_removed(&self, at: usize) -> bool {
        self.removed.as_ref().is_some_and(|removed| removed.value(at))
    }

    pub(crate) fn removed(&self) -> Option<&BooleanBuffer> {
        self.removed.as_ref()
    }
}

/// A column of a file in the type of the table. Parquet keeps integers and text as they are; only the
/// name of a list's items is its own.
fn conform(file: &str, field: &Field, found: &ArrayRef) -> Result<ArrayRef> {
    if !field.is_nullable() && found.null_count() > 0 {
        return Err(wrong(file, field, &format!("{} nulls", found.null_count())));
    }
    if found.data_type() == field.data_type() {
        return Ok(found.clone());
    }
    match (field.data_type(), found.data_type()) {
        (DataType::List(item), DataType::List(had)) if item.data_type() == had.data_type() => {
            let (_, offsets, values, nulls) = found.as_list::<i32>().clone().into_parts();
            let list = ListArray::try_new(item.clone(), offsets, values, nulls);
            Ok(Arc::new(list.map_err(|error| wrong(file, field, &error.to_string()))?))
        }
        (_, had) => Err(wrong(file, field, &had.to_string())),
    }
}

fn wrong(file: &str, field: &Field, found: &str) -> Error {
    let kind = field.data_type();
    let expected = if field.is_nullable() { kind.to_string() } else { format!("{kind}, no nulls") };
    corrupt(file, &format!("column {}", field.name()), &expected, found)
}

/// Takes the columns of a caller's batch by name. `fields` are those of the table; a nullable column may
/// be missing.
pub(crate) fn take_columns(fields: &Schema, batch: &RecordBatch) -> Result<Vec<ArrayRef>> {
    let invalid = |what: String| Error::Invalid { what };
    for field in batch.schema().fields() {
        if fields.field_with_name(field.name()).is_err() {
            return Err(invalid(format!(
                "the table has no column {:?} for these rows",
                field.name()
            )));
        }
    }
    let column = |field: &Arc<Field>| {
        let name = field.name();
        let Some(column) = batch.column_by_name(name) else {
            if field.is_nullable() {
                return Ok(filler(field, batch.num_rows()));
            }
            return Err(invalid(format!("the column {name:?} is missing")));
        };
        let same = match (column.data_type(), field.data_type()) {
            (DataType::List(a), DataType::List(b)) => a.data_type() == b.data_type(),
            (a, b) => a == b,
        };
        if !same {
            let (expected, found) = (field.data_type(), column.data_type());
            return Err(invalid(format!(
                "the column {name:?} is {expected}, these rows have {found}"
            )));
        }
        if let Some(lists) = column.as_list_opt::<i32>()
            && lists.values().null_count() > 0
        {
            return Err(invalid(format!("a list in column {name:?} has a null in it")));
        }
        if !field.is_nullable() && column.null_count() > 0 {
            return Err(invalid(format!("the column {name:?} takes no nulls")));
        }
        conform("the rows", field, column)
    };
    fields.fields().iter().map(column).collect()
}

/// Values for rows that have none: null, or zero and empty where a column takes no nulls.
pub(crate) fn filler(field: &Field, rows: usize) -> ArrayRef {
    use arrow_array::{BinaryArray, StringArray, new_null_array};
    let kind = field.data_type();
    if field.is_nullable() {
        return new_null_array(kind, rows);
    }
    match kind {
        DataType::Utf8 => Arc::new(StringArray::from_iter_values((0..rows).map(|_| ""))),
        DataType::Binary => Arc::new(BinaryArray::from_iter_values((0..rows).map(|_| b""))),
        // Zeroed memory is zero, false and an empty list.
        _ => {
            let data = ArrayData::new_null(kind, rows).into_builder().nulls(None).build();
            data.map_or_else(|_| new_null_array(kind, rows), make_array)
        }
    }
}

/// A batch of columns, of which there may be none.
pub(crate) fn batch_of(
    schema: &SchemaRef,
    columns: Vec<ArrayRef>,
    rows: usize,
) -> Result<RecordBatch> {
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    RecordBatch::try_new_with_options(schema.clone(), columns, &options).map_err(failed)
}

/// The column that marks deletions.
pub(crate) fn removed_column(removed: Option<&BooleanBuffer>, rows: usize) -> ArrayRef {
    let removed = removed.cloned().unwrap_or_else(|| BooleanBuffer::new_unset(rows));
    Arc::new(BooleanArray::new(removed, None))
}

pub(crate) fn failed(error: ArrowError) -> Error {
    Error::Invalid { what: format!("cannot lay out rows of a table: {error}") }
}
