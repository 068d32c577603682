//! The columns of a batch that a client has sent, checked.

use arrow_array::cast::AsArray;
use arrow_array::types::{ArrowPrimitiveType, UInt64Type};
use arrow_array::{
    Array, ArrayRef, BinaryArray, ListArray, PrimitiveArray, RecordBatch, StringArray,
};
use bytes::Bytes;
use chunkyard_engine::{Error, Result};

fn column<'a>(batch: &'a RecordBatch, name: &str) -> Result<&'a ArrayRef> {
    let column = batch.column_by_name(name);
    let column = column.ok_or_else(|| Error::invalid(format!("there is no column {name}")))?;
    match column.null_count() {
        0 => Ok(column),
        nulls => {
            Err(Error::invalid(format!("the column {name} has {nulls} nulls, which none may")))
        }
    }
}

fn wrong(name: &str, column: &ArrayRef, expected: &str) -> Error {
    Error::invalid(format!("the column {name} is {}, not {expected}", column.data_type()))
}

pub(super) fn numbers<'a, T: ArrowPrimitiveType>(
    batch: &'a RecordBatch,
    name: &str,
) -> Result<&'a PrimitiveArray<T>> {
    let column = column(batch, name)?;
    column.as_primitive_opt().ok_or_else(|| wrong(name, column, &T::DATA_TYPE.to_string()))
}

pub(super) fn texts<'a>(batch: &'a RecordBatch, name: &str) -> Result<&'a StringArray> {
    let column = column(batch, name)?;
    column.as_string_opt().ok_or_else(|| wrong(name, column, "utf8"))
}

pub(super) fn binaries<'a>(batch: &'a RecordBatch, name: &str) -> Result<&'a BinaryArray> {
    let column = column(batch, name)?;
    column.as_binary_opt().ok_or_else(|| wrong(name, column, "binary"))
}

pub(super) fn lists<'a>(batch: &'a RecordBatch, name: &str) -> Result<&'a ListArray> {
    let column = column(batch, name)?;
    column.as_list_opt().ok_or_else(|| wrong(name, column, "list of uint64"))
}

/// A list of a column of lists.
pub(super) fn list(lists: &ListArray, at: usize) -> Result<Vec<u64>> {
    let list = lists.value(at);
    let typed = list.as_primitive_opt::<UInt64Type>().filter(|list| list.null_count() == 0);
    let typed =
        typed.ok_or_else(|| Error::invalid("a list that is none of uint64 without nulls"))?;
    Ok(typed.values().to_vec())
}

/// A cell, without a copy.
pub(super) fn cell(column: &BinaryArray, at: usize) -> Bytes {
    let offsets = column.value_offsets();
    let bound = |at: usize| offsets.get(at).and_then(|at| usize::try_from(*at).ok());
    match (bound(at), bound(at + 1)) {
        (Some(start), Some(end)) if start < end => {
            column.values().slice_with_length(start, end - start).into()
        }
        _ => Bytes::new(),
    }
}
