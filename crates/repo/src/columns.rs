//! Reading Arrow columns by name, whatever width or variant a writer chose.
//!
//! For every integer field any signed or unsigned width is accepted and widened; `list` and
//! `large_list`, `string` and `large_string`, the view and dictionary variants are equivalent. A
//! missing column counts as all nulls.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::UInt64Type;
use arrow_array::{
    Array, ArrayRef, BinaryArray, FixedSizeListArray, Int64Array, ListArray, RecordBatch,
    StringArray, StructArray, UInt64Array, new_null_array,
};
use arrow_cast::{CastOptions, cast_with_options};
use arrow_schema::{DataType, Field, Fields};
use chunkyard_store::{Error, Result};

use super::parquet_file::corrupt;

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

    fn cast(&self, name: &str, to: &DataType) -> Result<ArrayRef> {
        let Some(array) = self.get(name) else {
            return Ok(new_null_array(to, self.rows));
        };
        if array.data_type() == to {
            return Ok(array.clone());
        }
        // Not `safe`: a value that does not fit (a negative count) is an error, not a null.
        let options = CastOptions { safe: false, ..Default::default() };
        cast_with_options(array, to, &options).map_err(|error| {
            let column = format!("column {}{name}", self.prefix);
            corrupt(self.file, &column, &format!("{to}"), &error.to_string())
        })
    }

    pub(super) fn uints(&self, name: &str) -> Result<UInt64Array> {
        Ok(self.cast(name, &DataType::UInt64)?.as_primitive::<UInt64Type>().clone())
    }

    pub(super) fn ints(&self, name: &str) -> Result<Int64Array> {
        Ok(self.cast(name, &DataType::Int64)?.as_primitive().clone())
    }

    pub(super) fn strings(&self, name: &str) -> Result<StringArray> {
        Ok(self.cast(name, &DataType::Utf8)?.as_string().clone())
    }

    pub(super) fn binaries(&self, name: &str) -> Result<BinaryArray> {
        Ok(self.cast(name, &DataType::Binary)?.as_binary().clone())
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
        match array.data_type() {
            DataType::List(_) => Ok(array.as_list::<i32>().clone()),
            DataType::LargeList(item)
            | DataType::ListView(item)
            | DataType::LargeListView(item)
            | DataType::FixedSizeList(item, _) => {
                let list = self.cast(name, &DataType::List(item.clone()))?;
                Ok(list.as_list::<i32>().clone())
            }
            other => Err(self.wrong(name, "list", other)),
        }
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
    let options = CastOptions { safe: false, ..Default::default() };
    let array = cast_with_options(array, &DataType::UInt64, &options)
        .map_err(|error| corrupt(file, what, "unsigned integers", &error.to_string()))?;
    let array = array.as_primitive::<UInt64Type>();
    if array.null_count() > 0 {
        return Err(corrupt(file, what, "unsigned integers", "nulls"));
    }
    Ok(array.values().to_vec())
}

/// The pairs of one list of two-element lists.
pub(super) fn pair_list(file: &str, what: &str, array: &ArrayRef) -> Result<Vec<(u64, u64)>> {
    let item = Arc::new(Field::new("item", DataType::UInt64, true));
    let options = CastOptions { safe: false, ..Default::default() };
    let pairs = cast_with_options(array, &DataType::FixedSizeList(item, 2), &options)
        .map_err(|error| corrupt(file, what, "pairs of integers", &error.to_string()))?;
    let pairs: &FixedSizeListArray = pairs.as_fixed_size_list();
    let flat = uint_list(file, what, pairs.values())?;
    let start = pairs.value_offset_at(0);
    let flat = flat.get(start..start + 2 * pairs.len()).unwrap_or_default();
    Ok(flat.chunks_exact(2).map(|pair| (pair[0], pair[1])).collect())
}

/// A value that must be there.
pub(super) fn required<T>(value: Option<T>, file: &str, what: &str, row: usize) -> Result<T> {
    value.ok_or_else(|| corrupt(file, &format!("column {what}, row {row}"), "a value", "null"))
}
