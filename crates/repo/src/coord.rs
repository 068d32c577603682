//! OPV: order-preserving variable-length integers for chunk coordinates.
//!
//! Each component of a chunk index takes 1 to 9 bytes; a coordinate is the concatenation of its
//! components. Byte-wise order of coordinates of one rank is row-major order of the indices, no
//! index has two encodings, and no encoding is a prefix of another. `docs/formats/repo.md` has the
//! proof and the test vectors.

use smallvec::SmallVec;

/// A coordinate up to this length needs no heap memory: a session may hold millions of them.
const INLINE_BYTES: usize = 16;

/// The smallest value that takes `n + 1` bytes.
const BASE: [u64; 9] = [
    0,
    128,
    16_512,
    2_113_664,
    270_549_120,
    34_630_287_488,
    4_432_676_798_592,
    567_382_630_219_904,
    72_624_976_668_147_840,
];

/// An encoded chunk index. Ordered like the index itself.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
pub struct Coord(SmallVec<[u8; INLINE_BYTES]>);

/// Why bytes are no coordinate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum CoordError {
    /// The bytes end inside a component, or before the last one.
    #[error("truncated coordinate")]
    Truncated,
    /// Bytes remain after the last component.
    #[error("bytes after the last component")]
    Trailing,
    /// A nine-byte component above 2^64 - 1.
    #[error("component above 2^64 - 1")]
    TooLarge,
}

impl Coord {
    /// Encodes a chunk index.
    pub fn encode(index: &[u64]) -> Self {
        let mut bytes = SmallVec::new();
        for &component in index {
            push_component(component, &mut bytes);
        }
        Self(bytes)
    }

    /// Takes encoded bytes; `decode` says whether they are sound.
    pub fn from_bytes(bytes: &[u8]) -> Self {
        Self(SmallVec::from_slice(bytes))
    }

    /// The encoded bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The chunk index, which must have `rank` components.
    pub fn decode(&self, rank: usize) -> Result<Vec<u64>, CoordError> {
        decode(&self.0, rank)
    }
}

impl AsRef<[u8]> for Coord {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl std::fmt::Debug for Coord {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Coord(")?;
        for byte in &self.0 {
            write!(f, "{byte:02x}")?;
        }
        f.write_str(")")
    }
}

fn push_component(value: u64, bytes: &mut SmallVec<[u8; INLINE_BYTES]>) {
    let n = BASE.partition_point(|&base| base <= value);
    let payload = value - BASE[n - 1];
    if n == 9 {
        bytes.push(0xff);
        bytes.extend_from_slice(&payload.to_be_bytes());
    } else {
        // n - 1 one-bits and a zero-bit lead; the payload has 7n bits, most significant first.
        let lead = !(0xffu8 >> (n - 1));
        let start = bytes.len();
        bytes.extend_from_slice(&payload.to_be_bytes()[8 - n..]);
        bytes[start] |= lead;
    }
}

/// Decodes the chunk index of an array of that rank.
pub(super) fn decode(bytes: &[u8], rank: usize) -> Result<Vec<u64>, CoordError> {
    let mut index = Vec::with_capacity(rank);
    decode_into(bytes, rank, &mut index)?;
    Ok(index)
}

/// Like [`decode`], into a reused vector.
pub(super) fn decode_into(
    mut bytes: &[u8],
    rank: usize,
    index: &mut Vec<u64>,
) -> Result<(), CoordError> {
    index.clear();
    for _ in 0..rank {
        let (&first, _) = bytes.split_first().ok_or(CoordError::Truncated)?;
        let n = first.leading_ones() as usize + 1;
        let (component, rest) = bytes.split_at_checked(n).ok_or(CoordError::Truncated)?;
        let mut wide = [0; 8];
        if n == 9 {
            wide.copy_from_slice(&component[1..]);
        } else {
            wide[8 - n..].copy_from_slice(component);
            wide[8 - n] &= 0xffu8.checked_shr(n as u32).unwrap_or(0);
        }
        let payload = u64::from_be_bytes(wide);
        index.push(payload.checked_add(BASE[n - 1]).ok_or(CoordError::TooLarge)?);
        bytes = rest;
    }
    if bytes.is_empty() { Ok(()) } else { Err(CoordError::Trailing) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn hex(index: &[u64]) -> String {
        Coord::encode(index).0.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    #[test]
    fn known_vectors() {
        let values: &[(u64, &str)] = &[
            (0, "00"),
            (1, "01"),
            (127, "7f"),
            (128, "8000"),
            (255, "807f"),
            (256, "8080"),
            (300, "80ac"),
            (16_511, "bfff"),
            (16_512, "c00000"),
            (65_535, "c0bf7f"),
            (1_000_000, "cf01c0"),
            (2_113_663, "dfffff"),
            (2_113_664, "e0000000"),
            (u32::MAX as u64, "f0efdfbf7f"),
            (1 << 32, "f0efdfbf80"),
            (72_624_976_668_147_839, "feffffffffffffff"),
            (72_624_976_668_147_840, "ff0000000000000000"),
            (1 << 63, "ff7efdfbf7efdfbf80"),
            (u64::MAX, "fffefdfbf7efdfbf7f"),
        ];
        for &(value, expected) in values {
            assert_eq!(hex(&[value]), expected, "{value}");
        }
        let tuples: &[(&[u64], &str)] = &[
            (&[], ""),
            (&[0], "00"),
            (&[5, 30, 10], "051e0a"),
            (&[5, 30, 11], "051e0b"),
            (&[5, 31, 0], "051f00"),
            (&[5, 128, 0], "05800000"),
            (&[127, 999], "7f8367"),
            (&[128, 0], "800000"),
            (&[128, 1], "800001"),
            (&[365, 16_511, 16_512], "80edbfffc00000"),
            (&[0, 0, 0, 0], "00000000"),
        ];
        for &(tuple, expected) in tuples {
            assert_eq!(hex(tuple), expected, "{tuple:?}");
        }
    }

    #[test]
    fn all_short_strings_decode_to_consecutive_values() {
        let one = (0..=0x7fu8).map(|a| vec![a]);
        let two = (0x80..=0xbfu8).flat_map(|a| (0..=255u8).map(move |b| vec![a, b]));
        for (value, bytes) in one.chain(two).enumerate() {
            assert_eq!(decode(&bytes, 1), Ok(vec![value as u64]));
        }
    }

    #[test]
    fn unsound_bytes_are_told_apart() {
        assert_eq!(decode(&[], 1), Err(CoordError::Truncated));
        assert_eq!(decode(&[0x80], 1), Err(CoordError::Truncated));
        assert_eq!(decode(&[0, 0], 1), Err(CoordError::Trailing));
        assert_eq!(decode(&[0xff; 9], 1), Err(CoordError::TooLarge));
        assert_eq!(decode(&[0], 0), Err(CoordError::Trailing));
    }

    fn component() -> impl Strategy<Value = u64> {
        prop_oneof![
            any::<u64>(),
            (any::<u64>(), 0u32..64).prop_map(|(value, bits)| value >> bits),
            (0usize..9, 0u64..4).prop_map(|(n, d)| (BASE[n] + d).saturating_sub(2)),
        ]
    }

    fn pairs() -> impl Strategy<Value = (Vec<u64>, Vec<u64>)> {
        (0usize..5).prop_flat_map(|rank| {
            let tuple = || proptest::collection::vec(component(), rank);
            (tuple(), tuple())
        })
    }

    proptest! {
        #[test]
        fn bytes_sort_like_indices_and_round_trip((a, b) in pairs()) {
            let (x, y) = (Coord::encode(&a), Coord::encode(&b));
            prop_assert_eq!(x.cmp(&y), a.cmp(&b));
            prop_assert_eq!(x.decode(a.len()), Ok(a));
        }
    }
}
