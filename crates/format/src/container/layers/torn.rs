//! Whether a file that cannot be read was ever whole.
//!
//! A layer whose write was cut off was never acknowledged: the state before it is right. A layer
//! that was whole and is damaged since was acknowledged, and the state before it is old. The bytes
//! tell the two apart, because the end of a layer is written last:
//!
//! - It ends in the mark of a layer.
//! - It ends in a footer and its length, and only the mark after them is wrong.
//! - It has a seal, and everything that the seal says comes after it is there.
//!
//! Any of these shows a layer that was whole. A file with none of them was cut off.

use std::ops::Range;

use bytes::Bytes;
use chunkyard_store::{Guard, Meta, Result, Store};

use super::footer_reader::read;
use crate::container::bytes::archive::{Stop, View};
use crate::container::bytes::footer;
use crate::container::bytes::seal;
use crate::container::bytes::trailer::TRAILER_LEN;

/// Bytes that are read of a file at once.
const PIECE_BYTES: u64 = 1 << 20;

/// How far from its end a seal is searched: beyond the footer of a million chunks.
const SEARCH_BYTES_MAX: u64 = 64 << 20;

/// Whether a file that cannot be read was whole once.
pub(crate) async fn was_whole(store: &Store, meta: &Meta) -> Result<bool> {
    let (size, guard) = (meta.size, Guard::of(meta));
    let at = size.saturating_sub(PIECE_BYTES);
    let end = read(store, &meta.path, at..size, guard.as_ref()).await?;
    if end.ends_with(b"ARRF") || ends_in_footer(&end, size) {
        return Ok(true);
    }
    let last = size.saturating_sub(SEARCH_BYTES_MAX);
    let (mut from, mut piece) = (at, end);
    loop {
        for (offset, _) in marks(&piece) {
            let until = offset + seal::MAGIC.len();
            let Ok(Some(found)) = seal::parse_tail(piece.get(..until).unwrap_or_default()) else {
                continue;
            };
            let after = found.footer_size().checked_add(TRAILER_LEN);
            let whole = after.and_then(|after| after.checked_add(from + until as u64));
            return Ok(whole.is_some_and(|whole| whole <= size));
        }
        if from <= last {
            return Ok(false);
        }
        // Pieces overlap, so that a seal across two of them is found.
        let next = from.saturating_sub(PIECE_BYTES).max(last);
        let overlap = (from + seal::TAIL_LEN).min(size);
        piece = read(store, &meta.path, next..overlap, guard.as_ref()).await?;
        from = next;
    }
}

/// The places of the mark of a seal, from the end.
fn marks(piece: &Bytes) -> impl Iterator<Item = (usize, &[u8])> {
    let windows = piece.windows(seal::MAGIC.len()).enumerate().rev();
    windows.filter(|(_, bytes)| *bytes == seal::MAGIC)
}

/// Whether the bytes before the last four, whatever those are, are a footer and its length.
fn ends_in_footer(end: &Bytes, size: u64) -> bool {
    let Some(trailer_at) = size.checked_sub(TRAILER_LEN) else { return false };
    let Some([a, b, c, d, e, f, g, h, ..]) = end.last_chunk::<12>() else { return false };
    let footer_len = u64::from_le_bytes([*a, *b, *c, *d, *e, *f, *g, *h]);
    if footer_len > trailer_at {
        return false;
    }
    let here = end.slice(..end.len() - TRAILER_LEN as usize);
    // A root that leads to bytes outside `here` has been found all the same.
    matches!(footer::root(&End { len: footer_len, here }), Ok(_) | Err(Stop::Lack(_)))
}

/// The end of a footer.
struct End {
    len: u64,
    /// Its bytes in memory, and perhaps bytes before it.
    here: Bytes,
}

impl View for End {
    fn len(&self) -> u64 {
        self.len
    }

    fn get(&self, range: Range<u64>) -> Result<Bytes, Stop> {
        let from_end = |at: u64| usize::try_from(self.len.checked_sub(at)?).ok();
        let slice = || {
            let start = self.here.len().checked_sub(from_end(range.start)?)?;
            let end = self.here.len().checked_sub(from_end(range.end)?)?;
            (start <= end).then(|| self.here.slice(start..end))
        };
        slice().ok_or(Stop::Lack(range))
    }
}
