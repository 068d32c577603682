//! Decodes BloscLZ streams.
//!
//! ```text
//! 000nnnnn                               n + 1 literal bytes follow
//! lllddddd [255 …] [more] d              l + 2 bytes from d + 1 bytes back; l = 7: and more
//! lll11111 [255 …] [more] 255 dd dd      the same from d + 8192 bytes back, d big-endian
//! ```
//!
//! A stream starts with literals, whatever the upper bits of its first byte say. This is our own
//! code because c-blosc adds up lengths in an `int` until they are negative: a stream of nine
//! megabytes of 255 makes it write outside of its output.

/// A distance of one less than this is continued by two more bytes.
const DISTANCE_NEAR_MAX: usize = 8191;

/// Short copies take this many bytes at once, where there is room for them.
const STEP: usize = 32;

/// Decodes a stream and says how much of `out` it fills; `None` if it is no stream.
pub(super) fn decode(stream: &[u8], out: &mut [u8]) -> Option<usize> {
    let (&first, mut rest) = stream.split_first()?;
    let mut control = first & 31;
    let mut at = 0;
    loop {
        if control < 32 {
            let len = usize::from(control) + 1;
            let literals = rest.get(..len)?;
            match (rest.first_chunk::<STEP>(), out.get_mut(at..)?.first_chunk_mut::<STEP>()) {
                (Some(from), Some(to)) => *to = *from,
                _ => out.get_mut(at..at + len)?.copy_from_slice(literals),
            }
            at += len;
            rest = rest.get(len..)?;
            let Some((&next, after)) = rest.split_first() else { return Some(at) };
            (control, rest) = (next, after);
            continue;
        }
        let (mut len, high) = (usize::from(control >> 5) + 2, usize::from(control & 31) << 8);
        if control >> 5 == 7 {
            loop {
                let more = take(&mut rest)?;
                len = len.checked_add(more.into())?;
                if more != 255 {
                    break;
                }
            }
        }
        let low = usize::from(take(&mut rest)?);
        let mut distance = high + low + 1;
        if distance == DISTANCE_NEAR_MAX + 1 {
            let (upper, lower) = (take(&mut rest)?, take(&mut rest)?);
            distance += usize::from(u16::from_be_bytes([upper, lower]));
        }
        repeat(out, at, distance, len)?;
        at += len;
        // A stream ends with literals.
        control = take(&mut rest)?;
    }
}

fn take(bytes: &mut &[u8]) -> Option<u8> {
    let (&first, rest) = bytes.split_first()?;
    *bytes = rest;
    Some(first)
}

/// Copies `len` bytes to `at` from `distance` bytes before; the two may overlap.
fn repeat(out: &mut [u8], at: usize, distance: usize, len: usize) -> Option<()> {
    let from = at.checked_sub(distance)?;
    let end = at.checked_add(len).filter(|&end| end <= out.len())?;
    if distance == 1 {
        let byte = *out.get(from)?;
        out.get_mut(at..end)?.fill(byte);
        return Some(());
    }
    if len <= STEP && distance >= STEP && at + STEP <= out.len() {
        let step = *out.get(from..)?.first_chunk::<STEP>()?;
        *out.get_mut(at..)?.first_chunk_mut()? = step;
        return Some(());
    }
    // Each pass doubles the repeated stretch.
    let mut done = 0;
    while done < len {
        let step = (distance + done).min(len - done);
        out.copy_within(from..from + step, at + done);
        done += step;
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::decode;

    #[test]
    fn literals_runs_and_matches_are_decoded() {
        let mut out = [0; 20];
        // abcd; seven bytes from two back; three from one back; two literals.
        let stream =
            [0b0010_0011, b'a', b'b', b'c', b'd', 0b1010_0000, 1, 0b0010_0000, 0, 1, b'x', b'y'];
        assert_eq!(decode(&stream, &mut out), Some(16));
        assert_eq!(&out[..16], b"abcdcdcdcdccccxy");
    }

    #[test]
    fn lengths_beyond_an_int_are_refused() {
        let mut stream = vec![255; 9 << 20];
        stream[..2].copy_from_slice(&[0, 7]);
        assert_eq!(decode(&stream, &mut [0; 1000]), None);
    }

    #[test]
    fn a_match_before_the_start_is_refused() {
        assert_eq!(decode(&[0, 7, 0b0010_0000, 1, 0, 7], &mut [0; 100]), None);
    }
}
