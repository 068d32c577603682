//! Whether a dataset leaves its filters out for chunks at the edges.
//!
//! `H5Pset_chunk_opts` can ask for that, and one bit of the layout message records it (HDF5 §"Data
//! Layout Message", version 4). The index does not, and the parser drops the bit: without this module
//! such chunks would be decoded by filters that they never went through.

use hdf5_reader::Hdf5File;
use hdf5_reader::error::{Error as ParserError, Result as ParserResult};
use hdf5_reader::io::Cursor;
use hdf5_reader::messages::{MSG_CONTINUATION, MSG_DATA_LAYOUT};
use hdf5_reader::storage::StorageBuffer;

/// The most blocks in one header.
const BLOCKS_MAX: usize = 64;
/// The most bytes in one block.
const BLOCK_BYTES_MAX: u64 = 1 << 20;
/// The layout class of chunks.
const CHUNKED: u8 = 2;

/// A part of a header that consists of messages.
struct Block {
    bytes: StorageBuffer,
    /// Whether messages have the long prefix of version 1, and whether the prefix of version 2 has two
    /// more bytes for the order of creation.
    prefix: Prefix,
}

#[derive(Clone, Copy)]
enum Prefix {
    Long,
    Short { ordered: bool },
}

/// Whether partial chunks at the edges of the dataset with this header are stored unfiltered.
pub(super) fn are_unfiltered(file: &Hdf5File, address: u64) -> ParserResult<bool> {
    let mut blocks = vec![first_block(file, address)?];
    let mut read = 0;
    while let Some(block) = blocks.pop() {
        read += 1;
        if read > BLOCKS_MAX {
            return Err(ParserError::InvalidData("an object header without an end".into()));
        }
        let mut cursor = Cursor::new(&block.bytes);
        while let Some((kind, body)) = next_message(&mut cursor, block.prefix)? {
            match (kind, body) {
                (MSG_DATA_LAYOUT, &[version, class, flags, ..]) => {
                    return Ok(version >= 4 && class == CHUNKED && flags & 1 != 0);
                }
                (MSG_CONTINUATION, body) => {
                    let mut body = Cursor::new(body);
                    let offset = body.read_offset(file.superblock().offset_size)?;
                    let length = body.read_length(file.superblock().length_size)?;
                    blocks.push(continuation(file, offset, length, block.prefix)?);
                }
                _ => {}
            }
        }
    }
    Ok(false)
}

fn first_block(file: &Hdf5File, address: u64) -> ParserResult<Block> {
    let storage = file.storage();
    let available = storage.len().saturating_sub(address).min(40);
    let head = storage.read_range(address, available as usize)?;
    let mut cursor = Cursor::new(&head);
    if cursor.peek_bytes(4)? != b"OHDR" {
        // Version, reserved, number of messages, references; then the size, and padding.
        cursor.skip(8)?;
        let bytes = u64::from(cursor.read_u32_le()?);
        return Ok(Block { bytes: read(file, address, 16, bytes)?, prefix: Prefix::Long });
    }
    cursor.skip(5)?;
    let flags = cursor.read_u8()?;
    // Four times, and two limits of attributes.
    cursor.skip(if flags & 0x20 != 0 { 16 } else { 0 })?;
    cursor.skip(if flags & 0x10 != 0 { 4 } else { 0 })?;
    let bytes = cursor.read_uvar(1 << (flags & 3))?;
    let prefix = Prefix::Short { ordered: flags & 0x04 != 0 };
    Ok(Block { bytes: read(file, address, cursor.position(), bytes)?, prefix })
}

fn continuation(file: &Hdf5File, at: u64, length: u64, prefix: Prefix) -> ParserResult<Block> {
    let bytes = match prefix {
        Prefix::Long => read(file, at, 0, length)?,
        // The messages lie between a signature and a checksum.
        Prefix::Short { .. } => read(file, at, 4, length.saturating_sub(8))?,
    };
    Ok(Block { bytes, prefix })
}

fn read(file: &Hdf5File, address: u64, skip: u64, bytes: u64) -> ParserResult<StorageBuffer> {
    let start = address.checked_add(skip).ok_or(ParserError::OffsetOutOfBounds(address))?;
    if bytes > BLOCK_BYTES_MAX {
        return Err(ParserError::ResourceLimit(format!("an object header of {bytes} bytes")));
    }
    file.storage().read_range(start, bytes as usize)
}

/// The type and the bytes of the next message; `None` if too few bytes are left for one.
fn next_message<'a>(
    cursor: &mut Cursor<'a>,
    prefix: Prefix,
) -> ParserResult<Option<(u16, &'a [u8])>> {
    let prefix_bytes = match prefix {
        Prefix::Long => 8,
        Prefix::Short { ordered } => 4 + if ordered { 2 } else { 0 },
    };
    if cursor.remaining() < prefix_bytes {
        return Ok(None);
    }
    let (kind, rest) = match prefix {
        Prefix::Long => (cursor.read_u16_le()?, 4),
        Prefix::Short { ordered } => {
            (u16::from(cursor.read_u8()?), 1 + if ordered { 2 } else { 0 })
        }
    };
    let bytes = usize::from(cursor.read_u16_le()?);
    cursor.skip(rest)?;
    Ok(Some((kind, cursor.read_bytes(bytes)?)))
}
