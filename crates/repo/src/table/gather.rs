//! Columns out of pieces of other columns.

use std::ops::Range;

use arrow_array::{Array, ArrayRef, make_array, new_null_array};
use arrow_data::transform::MutableArrayData;
use arrow_schema::DataType;
use chunkyard_store::Result;

use super::block::failed;

/// Different arrays among pieces that repeat them. Neighbours mostly share one, so only the last ones are
/// compared: an array that comes twice does no harm.
#[derive(Default)]
struct Sources<'a>(Vec<&'a ArrayRef>);

impl<'a> Sources<'a> {
    fn place(&mut self, array: &'a ArrayRef) -> usize {
        const LOOK_BACK: usize = 16;
        let known =
            self.0.iter().rev().take(LOOK_BACK).position(|known| std::ptr::eq(*known, array));
        match known {
            Some(back) => self.0.len() - 1 - back,
            None => {
                self.0.push(array);
                self.0.len() - 1
            }
        }
    }
}

/// Stretches of arrays of one type, one after the other.
pub(super) fn stretches(parts: &[(&ArrayRef, Range<usize>)]) -> Result<ArrayRef> {
    if let [(array, range)] = parts {
        return Ok(array.slice(range.start, range.len()));
    }
    let mut sources = Sources::default();
    let places: Vec<usize> = parts.iter().map(|(array, _)| sources.place(array)).collect();
    let data: Vec<_> = sources.0.iter().map(|array| array.to_data()).collect();
    let rows = parts.iter().map(|(_, range)| range.len()).sum();
    let mut gathered = MutableArrayData::new(data.iter().collect(), false, rows);
    for (source, (_, range)) in places.into_iter().zip(parts) {
        gathered.try_extend(source, range.start, range.end).map_err(failed)?;
    }
    Ok(make_array(gathered.freeze()))
}

/// Single rows of arrays of one type; null where there is none.
pub(super) fn rows(kind: &DataType, rows: &[Option<(&ArrayRef, usize)>]) -> Result<ArrayRef> {
    let mut sources = Sources::default();
    if rows.iter().all(Option::is_none) {
        return Ok(new_null_array(kind, rows.len()));
    }
    let mut places = Vec::with_capacity(rows.len());
    for row in rows {
        places.push(row.map(|(array, at)| (sources.place(array), at)));
    }
    let data: Vec<_> = sources.0.iter().map(|array| array.to_data()).collect();
    let mut gathered = MutableArrayData::new(data.iter().collect(), true, rows.len());
    for place in places {
        match place {
            Some((source, at)) => gathered.try_extend(source, at, at + 1).map_err(failed)?,
            None => gathered.try_extend_nulls(1).map_err(failed)?,
        }
    }
    Ok(make_array(gathered.freeze()))
}
