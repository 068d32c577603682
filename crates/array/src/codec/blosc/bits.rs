//! The bit shuffle: first all lowest bits of the elements, then all second ones, and so on.
//!
//! It is made of the byte shuffle, which has vector code already. Eight bytes of a byte plane are a
//! matrix of 8 × 8 bits; turned round, its k-th byte holds the k-th bit of each, and a byte shuffle
//! of such groups of eight brings the k-th bytes together.

use super::shuffle as bytes;

/// Shuffles a block of elements of `item` bytes, whose number is a multiple of eight; bytes after
/// the last whole element stay behind. All slices have the same length.
pub(super) fn shuffle(item: usize, plain: &[u8], shuffled: &mut [u8], work: &mut [u8]) {
    let whole = plain.len() / item * item;
    let (plain, tail) = plain.split_at(whole);
    let (shuffled, rest) = shuffled.split_at_mut(whole);
    rest.copy_from_slice(tail);
    let planes = &mut work[..whole];
    bytes::shuffle(item, plain, planes);
    bytes::turn_bits(planes);
    let plane_bytes = whole / item;
    if plane_bytes > 0 {
        for (plane, out) in
            planes.chunks_exact(plane_bytes).zip(shuffled.chunks_exact_mut(plane_bytes))
        {
            bytes::shuffle(8, plane, out);
        }
    }
}

/// Undoes [`shuffle`].
pub(super) fn unshuffle(item: usize, shuffled: &[u8], plain: &mut [u8], work: &mut [u8]) {
    let whole = shuffled.len() / item * item;
    let (shuffled, tail) = shuffled.split_at(whole);
    let (plain, rest) = plain.split_at_mut(whole);
    rest.copy_from_slice(tail);
    let planes = &mut work[..whole];
    let plane_bytes = whole / item;
    if plane_bytes > 0 {
        for (rows, plane) in
            shuffled.chunks_exact(plane_bytes).zip(planes.chunks_exact_mut(plane_bytes))
        {
            bytes::unshuffle(8, rows, plane);
        }
    }
    bytes::turn_bits(planes);
    bytes::unshuffle(item, planes, plain);
}
