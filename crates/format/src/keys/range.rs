//! A part of a value.

use std::ops::Range;

/// Bytes of a value. A part beyond its end is left out, as in a Python slice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ByteRange {
    /// From the first up to, not including, the second.
    Within(Range<u64>),
    /// From here to the end.
    From(u64),
    /// This many at the end.
    Last(u64),
}

impl ByteRange {
    /// The range in a value of that many bytes.
    pub fn of(&self, length: u64) -> Range<u64> {
        let (start, end) = match self {
            Self::Within(range) => (range.start, range.end),
            Self::From(start) => (*start, length),
            Self::Last(count) => (length.saturating_sub(*count), length),
        };
        let end = end.min(length);
        start.min(end)..end
    }

    /// The range of these bytes.
    pub fn cut(range: Option<&Self>, bytes: bytes::Bytes) -> bytes::Bytes {
        let Some(range) = range else { return bytes };
        let range = range.of(bytes.len() as u64);
        // It lies within the bytes, so it fits.
        let at = |offset: u64| usize::try_from(offset).unwrap_or(bytes.len());
        bytes.slice(at(range.start)..at(range.end))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lies_beyond_the_end_is_left_out() {
        #[expect(clippy::reversed_empty_ranges, reason = "it is the point")]
        let reversed = ByteRange::Within(3..1);
        for (range, expected) in [
            (ByteRange::Within(1..3), 1..3),
            (ByteRange::Within(3..9), 3..4),
            (ByteRange::Within(8..9), 4..4),
            (reversed, 1..1),
            (ByteRange::From(1), 1..4),
            (ByteRange::From(9), 4..4),
            (ByteRange::Last(1), 3..4),
            (ByteRange::Last(9), 0..4),
        ] {
            assert_eq!(range.of(4), expected, "{range:?}");
        }
    }
}
