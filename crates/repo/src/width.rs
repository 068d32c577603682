//! Integer columns at the width the mode asks for.

use std::sync::Arc;

use arrow_array::{ArrayRef, UInt16Array, UInt32Array, UInt64Array};
use chunkyard_store::{Error, Result};

/// Width of an integer column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Width {
    U16,
    U32,
    U64,
}

/// Builds a column, or says which field holds a value that does not fit.
pub(super) fn uint_array(
    field: &'static str,
    values: Vec<u64>,
    valid: Option<Vec<bool>>,
    width: Width,
) -> Result<ArrayRef> {
    fn narrow<T: TryFrom<u64>>(field: &'static str, values: &[u64]) -> Result<Vec<T>> {
        let fit = |&value| T::try_from(value).map_err(|_| Error::ValueDoesNotFit { field, value });
        values.iter().map(fit).collect()
    }
    let nulls = valid.map(|valid| valid.into());
    Ok(match width {
        Width::U16 => Arc::new(UInt16Array::new(narrow(field, &values)?.into(), nulls)),
        Width::U32 => Arc::new(UInt32Array::new(narrow(field, &values)?.into(), nulls)),
        Width::U64 => Arc::new(UInt64Array::new(values.into(), nulls)),
    })
}
