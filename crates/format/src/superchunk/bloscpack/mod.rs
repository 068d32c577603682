//! Bloscpack files of all versions: a header, and Blosc chunks with what helps to find and check them.
//!
//! ```text
//!  version 1    header 16 |                                   chunk | chunk …
//!  version 2    header 32 |                        offsets? | chunk | digest | chunk | digest …
//!  3, interim   header 32 | bare JSON?           | offsets? | chunk | digest | …
//!  3, final     header 32 | section of JSON?     | offsets? | chunk | digest | …
//! ```
//!
//! Version 1 is what BLZ and bcolz write, the interim version 3 what the BLZ document describes, the
//! final one what the Bloscpack tool writes. [`FileHead`] reads everything before the first chunk,
//! [`render_head`] and [`render_file`] write it. All numbers are little-endian.

mod head;
mod header;
mod section;
pub(crate) mod sink;
pub(crate) mod source;
mod write;

pub use self::head::{FileHead, Parsed};
pub use self::header::{CHUNK_BYTES_MAX, Header, Version};
pub use self::section::Section;
pub use self::write::{FileSpec, SectionOptions, head_bytes, patch_for, render_file, render_head};
pub use chunkyard_store::Digest;

/// Bytes of a Blosc header, and so of the shortest chunk.
pub const BLOSC_HEADER_BYTES: u64 = 16;

/// The `N` bytes at a position, if there are as many.
fn array<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..)?.first_chunk().copied()
}
