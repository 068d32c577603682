//! The bit shuffle: first all lowest bits of the elements, then all second ones, and so on.
//!
//! It uses the byte shuffle, which has vector code already. Eight bytes of a byte plane are a
//! matrix of 8 × 8 bits; transposed, its k-th byte holds the k-th bit of each, and a byte shuffle
//! of such groups of eight brings the k-th bytes together. This is done for some elements at a
//! time, which stay in the first cache meanwhile.

use super::shuffle::{Planes, gather, spread, turn_bits};

/// About how many bytes are worked on at a time.
const TILE_BYTES: usize = 16 << 10;

/// Elements that are worked on at a time: rows of at least eight bytes.
const fn tile_elements(item: usize) -> usize {
    let elements = TILE_BYTES / item / 64 * 64;
    if elements == 0 { 64 } else { elements }
}

/// Bytes of work space for elements of `item` bytes.
pub(super) fn work_bytes(item: usize) -> usize {
    tile_elements(item) * item
}

/// Shuffles a block of elements of `item` bytes, whose number is a multiple of eight; bytes after
/// the last whole element stay behind.
pub(super) fn shuffle(item: usize, plain: &[u8], shuffled: &mut [u8], work: &mut [u8]) {
    let count = plain.len() / item;
    let (plain, rest) = plain.split_at(count * item);
    let (shuffled, tail) = shuffled.split_at_mut(count * item);
    tail.copy_from_slice(rest);
    for (tile, elements) in plain.chunks(work_bytes(item)).enumerate() {
        let plane_bytes = elements.len() / item;
        let planes = &mut work[..elements.len()];
        spread(item, elements, Planes { stride: plane_bytes, at: 0 }, planes);
        turn_bits(planes);
        let place = Planes { stride: count / 8, at: tile * tile_elements(item) / 8 };
        for (plane, rows) in planes.chunks_exact(plane_bytes).zip(shuffled.chunks_exact_mut(count))
        {
            spread(8, plane, place, rows);
        }
    }
}

/// Undoes [`shuffle`].
pub(super) fn unshuffle(item: usize, shuffled: &[u8], plain: &mut [u8], work: &mut [u8]) {
    let count = plain.len() / item;
    let (shuffled, rest) = shuffled.split_at(count * item);
    let (plain, tail) = plain.split_at_mut(count * item);
    tail.copy_from_slice(rest);
    for (tile, elements) in plain.chunks_mut(work_bytes(item)).enumerate() {
        let plane_bytes = elements.len() / item;
        let planes = &mut work[..elements.len()];
        let place = Planes { stride: count / 8, at: tile * tile_elements(item) / 8 };
        for (rows, plane) in shuffled.chunks_exact(count).zip(planes.chunks_exact_mut(plane_bytes))
        {
            gather(8, rows, place, plane);
        }
        turn_bits(planes);
        gather(item, planes, Planes { stride: plane_bytes, at: 0 }, elements);
    }
}
