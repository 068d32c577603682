//! Thrift structures that take longer to skip than their bytes are worth.
//!
//! Footers and page headers of Parquet are structures of the compact protocol. The library passes over
//! fields that it does not know, and a list of booleans takes it no bytes at all: five bytes that promise two
//! thousand million of them take it seconds. Parquet has such lists in its column index alone, which is
//! not skipped. So one anywhere else is refused before the library sees it.

/// Structures inside structures: the library itself gives up here.
const DEPTH_MAX: u32 = 64;

/// Why a walk over a structure ends before the structure does.
#[derive(Debug, PartialEq, Eq)]
enum Stop {
    /// A list of booleans.
    Booleans,
    /// No structure, or one that is cut short: for the library to refuse.
    Malformed,
}

/// Whether the structure at the start of `bytes` has a list of booleans.
pub(super) fn has_booleans(mut bytes: &[u8]) -> bool {
    skip_structure(&mut bytes, DEPTH_MAX) == Err(Stop::Booleans)
}

fn skip_structure(bytes: &mut &[u8], depth: u32) -> Result<(), Stop> {
    let depth = depth.checked_sub(1).ok_or(Stop::Malformed)?;
    loop {
        let header = take(bytes)?;
        if header & 0x0f == 0 {
            return Ok(());
        }
        if header >> 4 == 0 {
            number(bytes)?; // the id of the field, in full
        }
        match header & 0x0f {
            1 | 2 => {} // a boolean is in its header
            kind => skip_value(bytes, kind, depth)?,
        }
    }
}

fn skip_value(bytes: &mut &[u8], kind: u8, depth: u32) -> Result<(), Stop> {
    match kind {
        3 => skip(bytes, 1),
        4..=6 => number(bytes).map(|_| ()),
        7 => skip(bytes, 8),
        8 => {
            let length = number(bytes)?;
            skip(bytes, length)
        }
        9 | 10 => skip_list(bytes, depth),
        12 => skip_structure(bytes, depth),
        13 => skip(bytes, 16),
        _ => Err(Stop::Malformed),
    }
}

fn skip_list(bytes: &mut &[u8], depth: u32) -> Result<(), Stop> {
    let header = take(bytes)?;
    let count = match header >> 4 {
        15 => number(bytes)?,
        few => few.into(),
    };
    match header & 0x0f {
        1 | 2 if count > 0 => Err(Stop::Booleans),
        _ if count == 0 => Ok(()),
        // Every other element takes a byte, so this ends with the bytes.
        kind => (0..count).try_for_each(|_| skip_value(bytes, kind, depth)),
    }
}

fn take(bytes: &mut &[u8]) -> Result<u8, Stop> {
    let (&first, rest) = bytes.split_first().ok_or(Stop::Malformed)?;
    *bytes = rest;
    Ok(first)
}

fn skip(bytes: &mut &[u8], count: u64) -> Result<(), Stop> {
    let count = usize::try_from(count).map_err(|_| Stop::Malformed)?;
    *bytes = bytes.get(count..).ok_or(Stop::Malformed)?;
    Ok(())
}

/// Seven bits a byte, the lowest first.
fn number(bytes: &mut &[u8]) -> Result<u64, Stop> {
    let mut value = 0u64;
    let mut shift = 0;
    loop {
        let byte = take(bytes)?;
        value |= u64::from(byte & 0x7f).checked_shl(shift).unwrap_or_default();
        if byte & 0x80 == 0 {
            return Ok(value);
        }
        shift = shift.saturating_add(7);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn booleans_are_found_inside_structures_and_lists_of_them() {
        let list = [0xf1, 0xff, 0xff, 0xff, 0xff, 0x07]; // 2^31 - 1 of them
        let field = [&[0x19][..], &list].concat();
        assert!(has_booleans(&field));
        let inside = [&[0x15, 0x06, 0x1c][..], &field].concat();
        assert!(has_booleans(&inside));
        let among = [&[0x29, 0x1c][..], &field].concat();
        assert!(has_booleans(&among));
    }

    #[test]
    fn other_structures_pass_and_so_do_bytes_that_are_none() {
        // A boolean field, a number, a text, an empty list, a list of numbers, the end.
        let sound = [0x11, 0x15, 0x02, 0x18, 0x01, b'a', 0x19, 0x00, 0x19, 0x25, 0x02, 0x04, 0x00];
        assert!(!has_booleans(&sound));
        for length in 0..sound.len() {
            assert!(!has_booleans(&sound[..length]));
        }
        assert!(!has_booleans(&[0x1c; 1000]));
        assert!(!has_booleans(&[0x19, 0xf5, 0xff, 0xff, 0xff, 0xff, 0x07]));
    }
}
