//! Numbers of bytes from outside, each checked against what is there.

use chunkyard_store::Error;

/// The first `count` bytes, and the slice moves behind them.
pub(super) fn take<'a>(rest: &mut &'a [u8], count: usize) -> Option<&'a [u8]> {
    let (taken, behind) = rest.split_at_checked(count)?;
    *rest = behind;
    Some(taken)
}

/// A byte.
pub(super) fn byte(rest: &mut &[u8]) -> Option<u8> {
    take(rest, 1)?.first().copied()
}

/// A number in groups of seven bits, the lowest first.
pub(super) fn uvarint(rest: &mut &[u8]) -> Option<u64> {
    let mut number = 0u64;
    for at in 0..10 {
        let byte = byte(rest)?;
        // The tenth byte has room for one bit.
        if at == 9 && byte > 1 {
            return None;
        }
        number |= u64::from(byte & 0x7f) << (7 * at);
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

/// How many bytes [`uvarint`] reads for a number.
pub(super) fn uvarint_len(number: u64) -> u64 {
    u64::from((64 - (number | 1).leading_zeros()).div_ceil(7))
}

/// Appends a number as [`uvarint`] reads it.
pub(super) fn push_uvarint(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// A big-endian number at the start.
pub(super) fn be_u32(rest: &mut &[u8]) -> Option<u32> {
    Some(u32::from_be_bytes(*take(rest, 4)?.first_chunk()?))
}

/// A little-endian number at the start.
pub(super) fn le_u32(rest: &mut &[u8]) -> Option<u32> {
    Some(u32::from_le_bytes(*take(rest, 4)?.first_chunk()?))
}

/// A little-endian number at the start.
pub(super) fn le_u16(rest: &mut &[u8]) -> Option<u16> {
    Some(u16::from_le_bytes(*take(rest, 2)?.first_chunk()?))
}

/// A big-endian number at the end, and the bytes before it.
pub(super) fn be_u32_last(bytes: &[u8]) -> Option<(&[u8], u32)> {
    let (rest, last) = bytes.split_last_chunk::<4>()?;
    Some((rest, u32::from_be_bytes(*last)))
}

/// The error of bytes that are not what the format says.
pub(super) fn corrupt(
    file: &str,
    what: impl Into<String>,
    expected: impl Into<String>,
    found: impl Into<String>,
) -> Error {
    let (what, expected, found) = (what.into(), expected.into(), found.into());
    Error::Corrupt { file: file.to_owned(), what, expected, found }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_seven_bits_a_byte_are_read_as_they_are_written() {
        for number in [0, 1, 127, 128, 16_383, 16_384, u64::from(u32::MAX), u64::MAX] {
            let mut bytes = Vec::new();
            push_uvarint(&mut bytes, number);
            assert_eq!(bytes.len() as u64, uvarint_len(number));
            assert_eq!(uvarint(&mut &bytes[..]), Some(number));
            assert_eq!(uvarint(&mut &bytes[..bytes.len() - 1]), None);
        }
        assert_eq!(uvarint(&mut &[0xff; 10][..]), None);
    }
}
