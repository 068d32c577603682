//! Chunks as bytes: encoding and decoding, one chunk at a time, pure functions of their input.
//!
//! [`Codecs`] binds the chain of an array once and is then shared by all threads. Most arrays use a
//! chain that is short and known (`bytes`, maybe `zstd` or `blosc`, maybe `crc32c`): that one is
//! run directly, with contexts and scratch memory kept per thread. Shards are taken apart here too,
//! so that a read decodes only the inner chunks it wants. Everything else goes to `zarrs`, behind a
//! guard: bytes from outside are hostile, and must not make a decoder allocate or panic.
//! [`label_block`] is a codec for segmentations that other parts also use without an array.

pub mod blosc;
mod bounded;
mod chain;
mod dvid_value;
mod elements;
mod fast;
mod fletcher32;
mod guard;
mod gzip;
pub mod label_block;
mod labels;
mod lz4;
mod offsets;
pub mod packed;
mod pcodec;
pub mod picture;
mod scratch;
pub mod segmentation;
mod shard;
mod shard_index;
mod shorthand;
#[cfg(test)]
mod tests;
mod vlen;
mod whole;
mod zstd;

pub use chain::Codecs;
pub use dvid_value::NAME as DVID_VALUE;
pub use elements::{Assembly, Elements, ElementsBuf};
pub use gzip::{gunzip, gzip_onto};
pub use offsets::NAME as OFFSETS;
pub use scratch::zeroed;
pub use shard::Part;
pub use shard_index::{ShardEntries, ShardIndex};
pub(crate) use shorthand::elements_to_bytes;
pub use shorthand::parse_shorthand;

/// The error of a chunk whose size contradicts the metadata.
fn wrong_length(expected: usize, found: usize) -> crate::Error {
    crate::Error::corrupt("chunk", format!("{expected} bytes when decoded"), format!("{found}"))
}

fn no_label_blocks() -> crate::Error {
    crate::Error::invalid("chunks of this array are no label blocks")
}
