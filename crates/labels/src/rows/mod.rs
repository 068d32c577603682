//! Rows of the tables of a labelmap, as Rust values and as Arrow batches.
//!
//! `index` and `facts` have a type for each table; this file has what they share.

mod facts;
mod index;

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int64Type, UInt32Type, UInt64Type};
use arrow_array::{ArrayRef, ListArray, RecordBatch, UInt64Array};
use arrow_schema::{Field, Schema};
use chunkyard_repo::{KeyPart, KeyRange, Table};
use chunkyard_store::{Error, Result};
use futures::TryStreamExt;
use serde::{Deserialize, Serialize};

pub use self::facts::{Body, Kind, Mutation, Supervoxel};
pub(crate) use self::facts::{HistoryRow, MappingRow};
pub(crate) use self::index::{BlockKey, IndexRow, Part, Parts, insert};

/// A box of voxels along z, y and x: from the first position up to the second, which is not in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bounds {
    /// The least position.
    pub start: [u64; 3],
    /// One after the greatest position.
    pub end: [u64; 3],
}

impl Bounds {
    /// No voxels at all: the neutral element of [`Bounds::union`].
    pub const EMPTY: Self = Self { start: [u64::MAX; 3], end: [0; 3] };

    /// The smallest box around both.
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        Self {
            start: std::array::from_fn(|axis| self.start[axis].min(other.start[axis])),
            end: std::array::from_fn(|axis| self.end[axis].max(other.end[axis])),
        }
    }

    /// Whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        self.start.iter().zip(self.end).any(|(&start, end)| start >= end)
    }

    /// As six columns; all zeros if it is empty.
    fn columns(&self) -> [u64; 6] {
        if self.is_empty() {
            return [0; 6];
        }
        let ([a, b, c], [d, e, f]) = (self.start, self.end);
        [a, b, c, d, e, f]
    }

    fn of_columns(values: [u64; 6]) -> Self {
        let [a, b, c, d, e, f] = values;
        let bounds = Self { start: [a, b, c], end: [d, e, f] };
        if bounds.is_empty() { Self::EMPTY } else { bounds }
    }
}

/// A row of a table.
pub(crate) trait Row: Sized {
    /// The values of many rows as the columns of their table.
    fn batch(rows: &[Self], schema: &Arc<Schema>) -> Result<RecordBatch>;
    /// The rows of a batch with all columns.
    fn parse(batch: &RecordBatch) -> Result<Vec<Self>>;
}

/// Sets rows.
pub(crate) async fn upsert<R: Row>(table: &Table, rows: &[R]) -> Result<()> {
    if rows.is_empty() {
        return Ok(());
    }
    table.upsert(R::batch(rows, table.schema())?).await
}

/// Deletes rows by their keys, which are 64-bit numbers.
pub(crate) async fn delete(table: &Table, keys: &[u64]) -> Result<()> {
    if keys.is_empty() {
        return Ok(());
    }
    table.delete(ids(table, keys)?).await
}

/// Looks rows up by their keys, which are 64-bit numbers; aligned to them.
pub(crate) async fn get<R: Row>(table: &Table, keys: &[u64]) -> Result<Vec<Option<R>>> {
    if keys.is_empty() {
        return Ok(Vec::new());
    }
    found(table.get(ids(table, keys)?).await?)
}

/// The rows that begin with a key.
pub(crate) async fn scan<R: Row>(table: &Table, range: &KeyRange) -> Result<Vec<R>> {
    let mut batches = table.scan(range, None)?;
    let mut rows = Vec::new();
    while let Some(batch) = batches.try_next().await? {
        rows.extend(R::parse(&batch)?);
    }
    Ok(rows)
}

/// The rows of an answer, aligned to the question.
pub(crate) fn found<R: Row>(answer: chunkyard_repo::Found) -> Result<Vec<Option<R>>> {
    let mut rows = Vec::with_capacity(answer.found.len());
    for at in 0..answer.found.len() {
        let row = match answer.found.value(at) {
            true => R::parse(&answer.rows.slice(at, 1))?.pop(),
            false => None,
        };
        rows.push(row);
    }
    Ok(rows)
}

/// Keys that begin with one id.
pub(crate) fn of(id: u64) -> KeyRange {
    KeyRange::Prefix(vec![KeyPart::Uint(id)])
}

fn ids(table: &Table, keys: &[u64]) -> Result<RecordBatch> {
    let schema = table.spec().key_schema();
    let column: ArrayRef = Arc::new(UInt64Array::from(keys.to_vec()));
    batch(&schema, vec![column])
}

pub(crate) fn batch(schema: &Arc<Schema>, columns: Vec<ArrayRef>) -> Result<RecordBatch> {
    RecordBatch::try_new(schema.clone(), columns)
        .map_err(|error| Error::invalid(format!("rows of a labelmap: {error}")))
}

fn column<'a>(batch: &'a RecordBatch, name: &str) -> Result<&'a ArrayRef> {
    batch.column_by_name(name).ok_or_else(|| wrong(name, "none"))
}

fn wrong(name: &str, found: &str) -> Error {
    Error::Corrupt {
        file: "a table of a labelmap".into(),
        what: format!("column {name}"),
        expected: "the type that docs/formats/labels.md names".into(),
        found: found.to_owned(),
    }
}

/// A column of 64-bit numbers.
pub(crate) fn u64s<'a>(batch: &'a RecordBatch, name: &str) -> Result<&'a [u64]> {
    let column = column(batch, name)?;
    let typed = column.as_primitive_opt::<UInt64Type>();
    Ok(typed.ok_or_else(|| wrong(name, &column.data_type().to_string()))?.values())
}

fn u32s<'a>(batch: &'a RecordBatch, name: &str) -> Result<&'a [u32]> {
    let column = column(batch, name)?;
    let typed = column.as_primitive_opt::<UInt32Type>();
    Ok(typed.ok_or_else(|| wrong(name, &column.data_type().to_string()))?.values())
}

fn i64s<'a>(batch: &'a RecordBatch, name: &str) -> Result<&'a [i64]> {
    let column = column(batch, name)?;
    let typed = column.as_primitive_opt::<Int64Type>();
    Ok(typed.ok_or_else(|| wrong(name, &column.data_type().to_string()))?.values())
}

fn lists<'a>(batch: &'a RecordBatch, name: &str) -> Result<&'a ListArray> {
    let column = column(batch, name)?;
    column.as_list_opt::<i32>().ok_or_else(|| wrong(name, &column.data_type().to_string()))
}

fn u64_list(lists: &ListArray, at: usize, name: &str) -> Result<Vec<u64>> {
    let items = lists.value(at);
    let typed = items.as_primitive_opt::<UInt64Type>();
    Ok(typed.ok_or_else(|| wrong(name, &items.data_type().to_string()))?.values().to_vec())
}

fn u64_column(values: impl Iterator<Item = u64>) -> ArrayRef {
    Arc::new(UInt64Array::from_iter_values(values))
}

fn list_column<T: arrow_array::types::ArrowPrimitiveType>(
    lists: impl Iterator<Item = Vec<T::Native>>,
) -> ArrayRef {
    let item = arrow_array::builder::PrimitiveBuilder::<T>::new();
    let field = Field::new("item", T::DATA_TYPE, true);
    let mut builder = arrow_array::builder::ListBuilder::new(item).with_field(Arc::new(field));
    for list in lists {
        builder.values().append_slice(&list);
        builder.append(true);
    }
    Arc::new(builder.finish())
}
