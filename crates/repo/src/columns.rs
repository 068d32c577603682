//! Reading Arrow columns by name, whatever width or variant a writer chose.
//!
//! For every integer field any signed or unsigned width is accepted and widened; `list` and
//! `large_list`, `string` and `large_string`, the view and dictionary variants are equivalent. A
//! missing column counts as all nulls.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{
    Array, ArrayRef, BinaryArray, Int64Array, ListArray, RecordBatch, StringArray, StructArray,
    UInt64Array,
};
use arrow_data::ArrayData;
use arrow_schema::{DataType, Field, Fields};
use chunkyard_store::{Error, Result};

use super::parquet_file::corrupt;
use super::widen;

/// Columns with names: a record batch or a struct.
pub(super) struct Columns<'a> {
    file: &'a str,
    prefix: String,
    fields: Fields,
    arrays: Vec<ArrayRef>,
    rows: usize,
}

impl<'a> Columns<'a> {
    pub(super) fn of_batch(file: &'a str, batch: &RecordBatch) -> Self {
        Self {
            file,
            prefix: String::new(),
            fields: batch.schema().fields().clone(),
            arrays: batch.columns().to_vec(),
            rows: batch.num_rows(),
        }
    }

    pub(super) fn of_struct(file: &'a str, name: &str, array: &StructArray) -> Self {
        Self {
            file,
            prefix: format!("{name}."),
            fields: array.fields().clone(),
            arrays: array.columns().to_vec(),
            rows: array.len(),
        }
    }

    fn get(&self, name: &str) -> Option<&ArrayRef> {
        let at = self.fields.iter().position(|field| field.name() == name)?;
        self.arrays.get(at)
    }

    /// The column, or nulls where there is none, as the caller needs it.
    fn widened<T: From<ArrayData>>(
        &self,
        name: &str,
        expected: &DataType,
        widen: fn(&dyn Array) -> Result<T, String>,
    ) -> Result<T> {
        match self.get(name) {
            None => Ok(T::from(ArrayData::new_null(expected, self.rows))),
            Some(array) => {
                widen(array).map_err(|found| self.error(name, &expected.to_string(), &found))
            }
        }
    }

    pub(super) fn uints(&self, name: &str) -> Result<UInt64Array> {
        self.widened(name, &DataType::UInt64, widen::uints)
    }

    pub(super) fn ints(&self, name: &str) -> Result<Int64Array> {
        self.widened(name, &DataType::Int64, widen::ints)
    }

    pub(super) fn strings(&self, name: &str) -> Result<StringArray> {
        self.widened(name, &DataType::Utf8, widen::strings)
    }

    pub(super) fn binaries(&self, name: &str) -> Result<BinaryArray> {
        self.widened(name, &DataType::Binary, widen::binaries)
    }

    pub(super) fn structs(&self, name: &str) -> Result<StructArray> {
        match self.get(name) {
            None => Ok(StructArray::new_null(Fields::empty(), self.rows)),
            Some(array) => array
                .as_struct_opt()
                .cloned()
                .ok_or_else(|| self.wrong(name, "struct", array.data_type())),
        }
    }

    pub(super) fn lists(&self, name: &str) -> Result<ListArray> {
        let Some(array) = self.get(name) else {
            let item = Arc::new(Field::new("item", DataType::Null, true));
            return Ok(ListArray::new_null(item, self.rows));
        };
        widen::lists(array).map_err(|found| self.error(name, "list", &found))
    }

    /// The strings in a column of lists, beside the lists.
    pub(super) fn string_lists(&self, name: &str) -> Result<(ListArray, StringArray)> {
        let lists = self.lists(name)?;
        let strings = widen::strings(lists.values());
        Ok((lists, strings.map_err(|found| self.error(name, "strings", &found))?))
    }

    /// Says what is wrong with a column.
    pub(super) fn error(&self, name: &str, expected: &str, found: &str) -> Error {
        corrupt(self.file, &format!("column {}{name}", self.prefix), expected, found)
    }

    fn wrong(&self, name: &str, expected: &str, found: &DataType) -> Error {
        self.error(name, expected, &found.to_string())
    }
}

/// The integers of one list.
pub(super) fn uint_list(file: &str, what: &str, array: &ArrayRef) -> Result<Vec<u64>> {
    let array =
        widen::uints(array).map_err(|found| corrupt(file, what, "unsigned integers", &found))?;
    if array.null_count() > 0 {
        return Err(corrupt(file, what, "unsigned integers", "nulls"));
    }
    Ok(array.values().to_vec())
}

/// The pairs of one list of two-element lists.
pub(super) fn pair_list(file: &str, what: &str, array: &ArrayRef) -> Result<Vec<(u64, u64)>> {
    let flat = widen::pairs(array)
        .map_err(|found| corrupt(file, what, "pairs of unsigned integers", &found))?;
    if flat.null_count() > 0 {
        return Err(corrupt(file, what, "pairs of unsigned integers", "nulls"));
    }
    Ok(flat.values().chunks_exact(2).map(|pair| (pair[0], pair[1])).collect())
}

/// A value that must be there.
pub(super) fn required<T>(value: Option<T>, file: &str, what: &str, row: usize) -> Result<T> {
    value.ok_or_else(|| corrupt(file, &format!("column {what}, row {row}"), "a value", "null"))
}
