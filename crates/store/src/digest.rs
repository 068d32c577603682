//! The nine checksums that Bloscpack files put behind their chunks.
//!
//! The store checks a chunk of such a file when its bytes arrive, so it knows the kinds; their
//! names and numbers are Bloscpack's.

use md5::Md5;
use sha1::Sha1;
use sha2::digest::Digest as _;
use sha2::{Sha224, Sha256, Sha384, Sha512};

use crate::error::{Error, Result};

/// A kind of checksum, including none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Digest {
    /// No checksum: no bytes, and nothing is ever wrong.
    None,
    /// Adler-32, what the Bloscpack tool writes unless told otherwise.
    Adler32,
    /// The CRC-32 of zlib.
    Crc32,
    /// MD5.
    Md5,
    /// SHA-1.
    Sha1,
    /// SHA-224.
    Sha224,
    /// SHA-256.
    Sha256,
    /// SHA-384.
    Sha384,
    /// SHA-512.
    Sha512,
}

impl Digest {
    /// All kinds, each at the index that is its number.
    pub const ALL: [Self; 9] = [
        Self::None,
        Self::Adler32,
        Self::Crc32,
        Self::Md5,
        Self::Sha1,
        Self::Sha224,
        Self::Sha256,
        Self::Sha384,
        Self::Sha512,
    ];

    /// The kind with this number in a file.
    pub fn from_id(id: u8) -> Option<Self> {
        Self::ALL.get(usize::from(id)).copied()
    }

    /// The number that stands for this kind in a file.
    pub fn id(self) -> u8 {
        match self {
            Self::None => 0,
            Self::Adler32 => 1,
            Self::Crc32 => 2,
            Self::Md5 => 3,
            Self::Sha1 => 4,
            Self::Sha224 => 5,
            Self::Sha256 => 6,
            Self::Sha384 => 7,
            Self::Sha512 => 8,
        }
    }

    /// What the Bloscpack tool calls this kind.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Adler32 => "adler32",
            Self::Crc32 => "crc32",
            Self::Md5 => "md5",
            Self::Sha1 => "sha1",
            Self::Sha224 => "sha224",
            Self::Sha256 => "sha256",
            Self::Sha384 => "sha384",
            Self::Sha512 => "sha512",
        }
    }

    /// The kind with this name in the Bloscpack tool.
    pub fn parse(name: &str) -> Result<Self> {
        Self::ALL.into_iter().find(|digest| digest.name() == name).ok_or_else(|| {
            let names = Self::ALL.map(Self::name).join(", ");
            Error::invalid(format!("checksum '{name}': expected one of {names}"))
        })
    }

    /// How many bytes a checksum of this kind has.
    pub fn bytes(self) -> usize {
        match self {
            Self::None => 0,
            Self::Adler32 | Self::Crc32 => 4,
            Self::Md5 => 16,
            Self::Sha1 => 20,
            Self::Sha224 => 28,
            Self::Sha256 => 32,
            Self::Sha384 => 48,
            Self::Sha512 => 64,
        }
    }

    /// The checksum of `data` as it is stored: the two numbers with their lowest byte first.
    pub fn of(self, data: &[u8]) -> Vec<u8> {
        match self {
            Self::None => Vec::new(),
            Self::Adler32 => simd_adler32::adler32(&data).to_le_bytes().to_vec(),
            Self::Crc32 => crc32fast::hash(data).to_le_bytes().to_vec(),
            Self::Md5 => Md5::digest(data).to_vec(),
            Self::Sha1 => Sha1::digest(data).to_vec(),
            Self::Sha224 => Sha224::digest(data).to_vec(),
            Self::Sha256 => Sha256::digest(data).to_vec(),
            Self::Sha384 => Sha384::digest(data).to_vec(),
            Self::Sha512 => Sha512::digest(data).to_vec(),
        }
    }

    /// Whether `stored` is the checksum of `data`.
    pub fn matches(self, data: &[u8], stored: &[u8]) -> bool {
        self.of(data) == stored
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What Python's zlib and hashlib say of `b"abc"`.
    const OF_ABC: [&str; 9] = [
        "",
        "27014d02",
        "c2412435",
        "900150983cd24fb0d6963f7d28e17f72",
        "a9993e364706816aba3e25717850c26c9cd0d89d",
        "23097d223405d8228642a477bda255b32aadbce4bda0b3f7e36c9da7",
        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
        "cb00753f45a35e8bb5a03d699ac65007272c32ab0eded1631a8b605a43ff5bed\
         8086072ba1e7cc2358baeca134c825a7",
        "ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a\
         2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f",
    ];

    #[test]
    fn every_kind_gives_the_bytes_that_python_gives() {
        for (digest, expected) in Digest::ALL.into_iter().zip(OF_ABC) {
            let found = digest.of(b"abc");
            let hex: String = found.iter().map(|byte| format!("{byte:02x}")).collect();
            assert_eq!(hex, expected, "{}", digest.name());
            assert_eq!(found.len(), digest.bytes());
            assert!(digest.matches(b"abc", &found));
            assert_eq!(digest.matches(b"abd", &found), digest == Digest::None);
        }
    }

    #[test]
    fn nothing_has_a_checksum_too() {
        assert_eq!(Digest::Adler32.of(b""), [1, 0, 0, 0]);
        assert_eq!(Digest::Crc32.of(b""), [0; 4]);
    }

    #[test]
    fn numbers_and_names_lead_back_to_their_kind() {
        for (id, digest) in (0..).zip(Digest::ALL) {
            assert_eq!(digest.id(), id);
            assert_eq!(Digest::from_id(id), Some(digest));
            assert_eq!(Digest::parse(digest.name()).unwrap(), digest);
        }
        assert_eq!(Digest::from_id(9), None);
        let refused = Digest::parse("sha3").unwrap_err().to_string();
        assert!(refused.contains("sha3") && refused.contains("adler32"), "{refused}");
    }
}
