//! CRC-32C of memory of Python: what workers compare of blocks that come over a network.

use bytes::Bytes;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::memory::Lent;

/// The CRC-32C of some bytes behind others, whose CRC-32C is `crc`.
#[pyfunction]
#[pyo3(signature = (data, crc = 0))]
pub(crate) fn crc32c(py: Python<'_>, data: &Bound<'_, PyAny>, crc: u32) -> PyResult<u32> {
    let data = Lent::new(data, false)?.into_bytes();
    Ok(py.detach(|| chunkyard_engine::crc32c(crc, &data)))
}

/// The CRC-32C of each of some pieces that lie one behind the other; `offsets` are little-endian `int32`, one more than
/// there are pieces.
#[pyfunction]
pub(crate) fn crc32c_pieces(
    py: Python<'_>,
    data: &Bound<'_, PyAny>,
    offsets: &Bound<'_, PyAny>,
) -> PyResult<Vec<u32>> {
    let (data, offsets) =
        (Lent::new(data, false)?.into_bytes(), Lent::new(offsets, false)?.into_bytes());
    py.detach(|| pieces(&data, &offsets)).ok_or_else(|| {
        PyValueError::new_err("offsets that are not within the bytes, or do not ascend")
    })
}

fn pieces(data: &Bytes, offsets: &Bytes) -> Option<Vec<u32>> {
    let (offsets, _) = offsets.as_chunks::<4>();
    offsets
        .windows(2)
        .map(|ends| {
            let [start, end] = [ends.first()?, ends.last()?].map(|end| i32::from_le_bytes(*end));
            let piece = data.get(usize::try_from(start).ok()?..usize::try_from(end).ok()?)?;
            Some(chunkyard_engine::crc32c(0, piece))
        })
        .collect()
}
