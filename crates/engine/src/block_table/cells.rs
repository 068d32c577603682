//! Payloads and label lists in cells of bounded size.
//!
//! A payload of `n` bytes takes `max(1, ⌈n / ROW⌉)` rows; row `k` holds bytes `k·ROW` to `(k + 1)·ROW`, in up to four cells. A
//! cell that would be empty is absent, but the first cell of an empty payload is there and empty: "empty" and "missing" differ.
//! Label lists go on in the same rows, and ask for more rows if they are longer than the payload.

use std::ops::Range;

use chunkyard_store::{Error, Result};

/// Bytes of a cell at most.
pub const CELL_BYTES: usize = 126 << 10;
/// Cells of a row.
pub const CELLS: usize = 4;
/// Bytes of a payload in a row at most.
pub const ROW_BYTES: usize = CELLS * CELL_BYTES;
/// Labels in a row at most: a list is a cell too.
pub const ROW_LABELS: usize = CELL_BYTES / 8;
/// Rows of a block at most.
pub const PARTS_MAX: usize = u16::MAX as usize;

/// How many rows a block takes; an error if it is more than their number can say.
pub fn parts(payload_bytes: usize, labels: usize) -> Result<u16> {
    let parts = payload_bytes.div_ceil(ROW_BYTES).max(labels.div_ceil(ROW_LABELS)).max(1);
    u16::try_from(parts).map_err(|_| {
        Error::unsupported(format!(
            "a block of {payload_bytes} bytes and {labels} labels in a table: {parts} rows, and {PARTS_MAX} are the most"
        ))
    })
}

/// The bytes of a payload that are in a cell of a row.
pub fn cell(payload_bytes: usize, part: u16, cell: usize) -> Option<Range<usize>> {
    let start = usize::from(part) * ROW_BYTES + cell * CELL_BYTES;
    let end = payload_bytes.min(start + CELL_BYTES);
    let is_first = part == 0 && cell == 0;
    (start < end || is_first).then_some(start..end)
}

/// The labels of a list that are in a row.
pub fn labels(count: usize, part: u16) -> Range<usize> {
    let start = (usize::from(part) * ROW_LABELS).min(count);
    start..count.min(start + ROW_LABELS)
}

/// A row of a block, as it is read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Part<'a> {
    /// Its number.
    pub part: u16,
    /// The rows of the block.
    pub parts: u16,
    /// Bytes of the whole payload.
    pub bytes: u32,
    /// CRC-32C of the whole payload.
    pub crc32c: u32,
    /// The cells.
    pub cells: [Option<&'a [u8]>; CELLS],
}

/// Joins the rows of a block, which must be all of them and in order. `place` says for errors which block it is.
pub fn join(place: &str, rows: &[Part<'_>]) -> Result<Vec<u8>> {
    let corrupt = |what: &str, expected: String, found: String| Error::Corrupt {
        file: place.to_owned(),
        what: what.to_owned(),
        expected,
        found,
    };
    let Some(first) = rows.first() else {
        return Err(corrupt("rows of a block", "one at least".to_owned(), "none".to_owned()));
    };
    if rows.len() != usize::from(first.parts) {
        return Err(corrupt("rows of a block", first.parts.to_string(), rows.len().to_string()));
    }
    let bytes = usize::try_from(first.bytes).unwrap_or(usize::MAX);
    let held: usize = rows.iter().flat_map(|row| row.cells).flatten().map(<[u8]>::len).sum();
    if held != bytes {
        return Err(corrupt("bytes of a block", bytes.to_string(), held.to_string()));
    }
    let mut payload = Vec::with_capacity(held);
    for (number, row) in (0_u16..).zip(rows) {
        let same = (row.parts, row.bytes, row.crc32c) == (first.parts, first.bytes, first.crc32c);
        if row.part != number || !same {
            let expected = format!("part {number} of {}, {} bytes", first.parts, first.bytes);
            let found = format!("part {} of {}, {} bytes", row.part, row.parts, row.bytes);
            return Err(corrupt("a row of a block", expected, found));
        }
        for (at, found) in row.cells.iter().enumerate() {
            let expected = cell(bytes, number, at).map(|range| range.len());
            if expected != found.map(<[u8]>::len) {
                let what = format!("cell {} of row {number} of a block", at + 1);
                let text = |len: Option<usize>| {
                    len.map_or("none".to_owned(), |len| format!("{len} bytes"))
                };
                return Err(corrupt(&what, text(expected), text(found.map(<[u8]>::len))));
            }
            payload.extend_from_slice(found.unwrap_or_default());
        }
    }
    let crc = crc32c::crc32c(&payload);
    if crc != first.crc32c {
        return Err(corrupt(
            "CRC-32C of a block",
            format!("{:08x}", first.crc32c),
            format!("{crc:08x}"),
        ));
    }
    Ok(payload)
}
