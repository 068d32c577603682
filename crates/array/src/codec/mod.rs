//! Chunks as bytes: encoding and decoding, one chunk at a time, pure functions of their input.
//!
//! [`Codecs`] binds the chain of an array once and is then shared by all threads. Most arrays use a
//! chain that is short and known (`bytes`, maybe `zstd`, maybe `crc32c`): that one is run directly,
//! with contexts and scratch memory kept per thread. Shards are taken apart here too, so that a
//! read decodes only the inner chunks it wants. Everything else is `zarrs`' business, behind a
//! guard: bytes from outside are hostile, and no decoder may allocate or panic on their word.

mod bounded;
mod chain;
mod elements;
mod fast;
mod guard;
mod pcodec;
mod scratch;
mod shard;
mod shorthand;
#[cfg(test)]
mod tests;

pub use chain::Codecs;
pub use elements::{Assembly, Elements, ElementsBuf};
pub use shorthand::parse_shorthand;
