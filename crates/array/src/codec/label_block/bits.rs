//! Packed values of a cell: 512 numbers of 0 to 9 bits, the first in the top bits of the first byte.
//!
//! A row of eight voxels takes exactly as many bytes as a voxel takes bits, so rows are unpacked
//! one by one, with the width known to the compiler.

use super::CELL;

/// Values of the voxels of a cell.
pub(super) type Values = [u16; CELL];

/// Bits per voxel of a cell of `count` labels.
pub(super) fn width(count: usize) -> usize {
    match count {
        0 | 1 => 0,
        _ => (count - 1).ilog2() as usize + 1,
    }
}

/// Calls a function of a width with that width as a constant: `0` is no case of it.
macro_rules! with_width {
    ($width:expr, $function:ident $(::<$kind:ty>)? ($($argument:expr),*), $none:expr) => {
        match $width {
            1 => $function::<1 $(, $kind)?>($($argument),*),
            2 => $function::<2 $(, $kind)?>($($argument),*),
            3 => $function::<3 $(, $kind)?>($($argument),*),
            4 => $function::<4 $(, $kind)?>($($argument),*),
            5 => $function::<5 $(, $kind)?>($($argument),*),
            6 => $function::<6 $(, $kind)?>($($argument),*),
            7 => $function::<7 $(, $kind)?>($($argument),*),
            8 => $function::<8 $(, $kind)?>($($argument),*),
            9 => $function::<9 $(, $kind)?>($($argument),*),
            _ => $none,
        }
    };
}
pub(super) use with_width;

/// The eight values of a row.
#[inline(always)]
pub(super) fn row<const BITS: usize>(bytes: &[u8; BITS]) -> [usize; 8] {
    let mask = (1 << BITS) - 1;
    if BITS <= 8 {
        let word = bytes.iter().fold(0u64, |word, &byte| word << 8 | u64::from(byte));
        std::array::from_fn(|at| (word >> (BITS * (7 - at))) as usize & mask)
    } else {
        let word = bytes.iter().fold(0u128, |word, &byte| word << 8 | u128::from(byte));
        std::array::from_fn(|at| (word >> (BITS * (7 - at))) as usize & mask)
    }
}

/// The values of all voxels. Packed values of no bits are zeros.
pub(super) fn unpack(packed: &[u8], width: usize, out: &mut Values) {
    with_width!(width, unpack_rows(packed, out), out.fill(0));
}

fn unpack_rows<const BITS: usize>(packed: &[u8], out: &mut Values) {
    let (rows, _) = packed.as_chunks::<BITS>();
    for (bytes, out) in rows.iter().zip(out.as_chunks_mut::<8>().0) {
        *out = row(bytes).map(|value| value as u16);
    }
}

/// Appends the values with `width` bits each, all of which must fit.
pub(super) fn pack_onto(values: &Values, width: usize, out: &mut Vec<u8>) {
    with_width!(width, pack_rows(values, out), ());
}

fn pack_rows<const BITS: usize>(values: &Values, out: &mut Vec<u8>) {
    let start = out.len();
    out.resize(start + CELL / 8 * BITS, 0);
    let (rows, _) = out[start..].as_chunks_mut::<BITS>();
    for (values, bytes) in values.as_chunks::<8>().0.iter().zip(rows) {
        // Neighbours first, then pairs, then fours: a chain of eight steps would be slower.
        let [a, b, c, d, e, f, g, h] = values.map(u64::from);
        let high = (a << BITS | b) << (2 * BITS) | (c << BITS | d);
        let low = (e << BITS | f) << (2 * BITS) | (g << BITS | h);
        if BITS <= 8 {
            let word = high << (4 * BITS) | low;
            bytes.copy_from_slice(&word.to_be_bytes()[8 - BITS.min(8)..]);
        } else {
            let word = u128::from(high) << (4 * BITS) | u128::from(low);
            bytes.copy_from_slice(&word.to_be_bytes()[16 - BITS..]);
        }
    }
}

/// Whether every value is below `count`, the number of labels that gave the values their width.
pub(super) fn all_below(packed: &[u8], count: usize) -> bool {
    if count.is_power_of_two() || count == 0 {
        return true;
    }
    if count == 3 {
        // The one value too many is both bits set.
        let both = |word: u64| word & word >> 1 & 0x5555_5555_5555_5555;
        let (words, _) = packed.as_chunks::<8>();
        return words.iter().fold(0, |seen, word| seen | both(u64::from_be_bytes(*word))) == 0;
    }
    let mut values = [0; CELL];
    unpack(packed, width(count), &mut values);
    values.iter().fold(0, |largest, &value| largest.max(value)) < count as u16
}
