//! How numbered chunks are spread over shards, and over the minishards of a shard.
//!
//! Specification: neuroglancer, `sharded.md` (`neuroglancer_uint64_sharded_v1`). Compatible implementations:
//! neuroglancer, TensorStore, cloud-volume.
//!
//! ```json
//! {"@type": "neuroglancer_uint64_sharded_v1", "hash": "identity", "preshift_bits": 9, "minishard_bits": 6,
//!  "shard_bits": 19, "minishard_index_encoding": "gzip", "data_encoding": "gzip"}
//! ```

use serde_json::{Value, json};

use super::json::{Members, Wrong, word};
use super::murmur::murmurhash3_x86_128;

/// What `@type` says.
const TYPE: &str = "neuroglancer_uint64_sharded_v1";

/// Minishards of a shard at most, as a power of two: TensorStore's bound.
const MINISHARD_BITS_MAX: u32 = 32;

/// How numbered chunks are spread over shards.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sharding {
    /// What becomes of a number before its bits are taken.
    pub hash: Hash,
    /// Lowest bits of a number that are dropped first, so that neighbours stay together.
    pub preshift_bits: u32,
    /// Bits that choose the minishard.
    pub minishard_bits: u32,
    /// The bits above, which choose the shard.
    pub shard_bits: u32,
    /// How the index of a minishard is stored.
    pub minishard_index_encoding: Packing,
    /// How a chunk is stored, on top of its own encoding.
    pub data_encoding: Packing,
}

/// What becomes of a chunk's number before its bits choose a shard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hash {
    /// Nothing: chunks that are near each other share a shard.
    Identity,
    /// It is spread evenly, for numbers with gaps.
    Murmur,
}

/// How bytes are stored in a shard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Packing {
    /// As they are.
    Raw,
    /// As a gzip stream.
    Gzip,
}

/// Where a numbered chunk is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Slot {
    /// Number of the shard.
    pub shard: u64,
    /// Number of the minishard in it.
    pub minishard: u64,
    /// Number of the chunk.
    pub id: u64,
}

impl Sharding {
    /// Reads the member `sharding` of a scale.
    pub(super) fn parse(value: &Value) -> Result<Self, Wrong> {
        let mut members = Members::of("sharding", value)?;
        members.word("@type", &[(TYPE, ())])?;
        let hash = members.word("hash", Hash::WORDS)?;
        let preshift_bits = members.bits("preshift_bits", u64::BITS)?;
        let minishard_bits = members.bits("minishard_bits", MINISHARD_BITS_MAX)?;
        let shard_bits = members.bits("shard_bits", u64::BITS - minishard_bits)?;
        // An encoding that is left out is `raw`, not the `gzip` that most volumes have.
        let minishard_index_encoding =
            members.word_or("minishard_index_encoding", Packing::WORDS, Packing::Raw)?;
        let data_encoding = members.word_or("data_encoding", Packing::WORDS, Packing::Raw)?;
        Ok(Self {
            hash,
            preshift_bits,
            minishard_bits,
            shard_bits,
            minishard_index_encoding,
            data_encoding,
        })
    }

    /// The member `sharding` of a scale.
    pub fn render(&self) -> Value {
        json!({
            "@type": TYPE,
            "hash": word(Hash::WORDS, self.hash),
            "preshift_bits": self.preshift_bits,
            "minishard_bits": self.minishard_bits,
            "shard_bits": self.shard_bits,
            "minishard_index_encoding": word(Packing::WORDS, self.minishard_index_encoding),
            "data_encoding": word(Packing::WORDS, self.data_encoding),
        })
    }

    /// Where the chunk with a number is kept.
    pub fn slot(&self, id: u64) -> Slot {
        let shifted = id.checked_shr(self.preshift_bits).unwrap_or(0);
        let hashed = match self.hash {
            Hash::Identity => shifted,
            Hash::Murmur => murmurhash3_x86_128(shifted),
        };
        let above = hashed.checked_shr(self.minishard_bits).unwrap_or(0);
        let minishard = hashed & low_bits(self.minishard_bits);
        Slot { shard: above & low_bits(self.shard_bits), minishard, id }
    }

    /// The name of the file of a shard: `041f9.shard`.
    pub fn file_name(&self, shard: u64) -> String {
        // Without shard bits there is one digit all the same.
        let digits = self.shard_bits.div_ceil(4) as usize;
        format!("{shard:0digits$x}{SHARD_ENDING}")
    }

    /// The shard whose file has a name; `None` for the name of anything else.
    pub fn parse_file_name(&self, name: &str) -> Option<u64> {
        let digits = name.strip_suffix(SHARD_ENDING)?;
        let shard = u64::from_str_radix(digits, 16).ok()?;
        let valid = shard & !low_bits(self.shard_bits) == 0;
        // Exactly the name that a reader looks for: no sign, no capitals, no other number of digits.
        (valid && self.file_name(shard) == name).then_some(shard)
    }

    /// Number of minishards of a shard.
    pub fn num_minishards(&self) -> u64 {
        1 << self.minishard_bits
    }

    /// Bytes of the index at the start of a shard: where the index of each minishard begins and ends.
    pub fn index_bytes(&self) -> u64 {
        INDEX_ENTRY_BYTES << self.minishard_bits
    }
}

/// How the name of a shard's file ends.
const SHARD_ENDING: &str = ".shard";

/// Bytes of an entry of the index of a shard.
pub(super) const INDEX_ENTRY_BYTES: u64 = 16;

impl Hash {
    const WORDS: &[(&str, Self)] =
        &[("identity", Self::Identity), ("murmurhash3_x86_128", Self::Murmur)];
}

impl Packing {
    const WORDS: &[(&str, Self)] = &[("raw", Self::Raw), ("gzip", Self::Gzip)];
}

/// A number with this many of its lowest bits set.
fn low_bits(bits: u32) -> u64 {
    1u64.checked_shl(bits).map_or(u64::MAX, |bit| bit - 1)
}
