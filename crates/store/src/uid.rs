//! Random identities: 128 bits, written as 26 characters of lower-case Crockford base 32.
//!
//! Lower case only, because two names that differ by case collide on some filesystems; random from
//! the first character on, because object stores partition load by key prefix.

use std::fmt;

use crate::error::{Error, Result};

const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";

/// A random identity: of a node (stable across branches, rebases and renames), a file or a writer.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Uid([u8; 16]);

impl Uid {
    /// A fresh random identity.
    pub fn fresh() -> Result<Self> {
        Ok(Self(random_bits()?.to_be_bytes()))
    }

    /// The identity of a node in a file of the bare draft, which has none: ids are never reused
    /// within a lineage, so the id itself serves.
    pub fn of_draft_node(id: u32) -> Self {
        Self(u128::from(id).to_be_bytes())
    }

    /// The identity of a group that a file of the bare draft implies but does not list. It is the
    /// same for the same path in every version, and never equals an identity from
    /// [`Uid::of_draft_node`].
    pub fn of_implied_group(path: &str) -> Self {
        // FNV-1a, 128 bits.
        const BASIS: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
        const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;
        let hash =
            path.bytes().fold(BASIS, |hash, byte| (hash ^ u128::from(byte)).wrapping_mul(PRIME));
        Self((hash | 1 << 127).to_be_bytes())
    }

    /// Its sixteen bytes.
    pub fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }
}

impl TryFrom<&[u8]> for Uid {
    type Error = std::array::TryFromSliceError;

    fn try_from(bytes: &[u8]) -> Result<Self, Self::Error> {
        Ok(Self(bytes.try_into()?))
    }
}

impl fmt::Debug for Uid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Uid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&encode(u128::from_be_bytes(self.0)))
    }
}

impl serde::Serialize for Uid {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> serde::Deserialize<'de> for Uid {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        decode(&text)
            .map(|bits| Self(bits.to_be_bytes()))
            .ok_or_else(|| serde::de::Error::custom(format!("{text:?} is no node identity")))
    }
}

fn random_bits() -> Result<u128> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|source| Error::Store {
        op: "read random bytes from",
        path: "the system generator".into(),
        source: Box::new(std::io::Error::other(source.to_string())),
    })?;
    Ok(u128::from_be_bytes(bytes))
}

fn encode(bits: u128) -> String {
    // 26 digits of 5 bits are 130 bits: the first digit holds the top 3.
    (0..26).rev().map(|digit| ALPHABET[(bits >> (5 * digit)) as usize & 31] as char).collect()
}

fn decode(text: &str) -> Option<u128> {
    if text.len() != 26 {
        return None;
    }
    text.bytes().try_fold(0u128, |bits, byte| {
        let digit = ALPHABET.iter().position(|&letter| letter == byte)? as u128;
        (bits >> 123 == 0).then_some(bits << 5 | digit)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_identity_has_26_lower_case_characters_and_two_differ() {
        let (a, b) = (Uid::fresh().unwrap().to_string(), Uid::fresh().unwrap().to_string());
        assert_eq!(a.len(), 26);
        assert_eq!(a.to_lowercase(), a);
        assert_ne!(a, b);
    }

    #[test]
    fn uid_text_round_trips_at_the_extremes() {
        for bits in [0, 1, u128::MAX, u128::MAX / 3] {
            assert_eq!(decode(&encode(bits)), Some(bits));
        }
        assert_eq!(decode(&"z".repeat(26)), None, "130 bits do not fit");
        assert_eq!(decode("short"), None);
    }
}
