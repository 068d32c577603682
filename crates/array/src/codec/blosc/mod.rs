//! Blosc-1 buffers: every compressor and filter, block by block.
//!
//! Specification: c-blosc `README_CHUNK_FORMAT`, Zarr v3 `blosc`. Compatible implementations:
//! c-blosc 1.x, and with it numcodecs, zarr-python, TensorStore, bcolz, Bloscpack and `zarrs`; Blosc2
//! reads these buffers too, but writes others.
//!
//! ```json
//! {"name": "blosc", "configuration": {
//!     "cname": "zstd", "clevel": 2, "shuffle": "shuffle", "typesize": 4, "blocksize": 0}}
//! ```
//!
//! ```text
//! header   16 bytes, and what they may be      filter, shuffle, bits   before and after a compressor
//! buffer   blocks and streams of a buffer      stream, c, blosclz      a part of a block, compressed
//! params   how a buffer is made                encode, decode, slack   what is done with buffers
//! trial    which parameters suit some data     zarr                    the codec of that name
//! ```
//!
//! c-blosc makes new contexts for every block, decodes whole buffers and believes what they say.
//! Here contexts and memory are kept per thread, a read decodes only the blocks it wants, and all
//! lengths are checked before a compressor sees a byte. The output equals c-blosc's.
//!
//! ```
//! use chunkyard_array::codec::blosc::{self, Compressor, Header, Params, Shuffle};
//!
//! let plain: Vec<u8> = (0..100_000_u32).flat_map(u32::to_le_bytes).collect();
//! let params = Params {
//!     compressor: Compressor::Lz4, level: 5, shuffle: Shuffle::Byte, item: 4, block_bytes: 0,
//! };
//! let mut encoded = Vec::new();
//! blosc::encode_onto(&params, &plain, &mut encoded)?;
//! assert_eq!(Header::parse(&encoded)?.decoded_bytes, 400_000);
//!
//! let mut some = [0; 8];
//! blosc::decode_range(&encoded, 40_000..40_008, &mut some)?;
//! assert_eq!(some, plain[40_000..40_008]);
//! # Ok::<(), chunkyard_array::Error>(())
//! ```

mod bits;
mod blosclz;
mod buffer;
mod c;
mod decode;
mod encode;
mod filter;
mod header;
mod kept;
mod params;
mod shuffle;
mod slack;
mod stream;
#[cfg(test)]
mod tests;
mod trial;
mod zarr;

pub(super) use self::c::{snappy_decode, snappy_into, snappy_max};
pub(super) use self::decode::{borrow, decode_into_together, decode_some};
pub use self::decode::{decode_into, decode_range};
pub use self::encode::{encode_onto, encode_onto_from};
pub use self::header::{DECODED_BYTES_MAX, HEADER_BYTES, Header};
pub use self::params::{Compressor, Params, Shuffle};
pub use self::slack::with_slack;
pub use self::trial::choose;
pub(super) use self::zarr::{check, recognise};
