//! Makes buffers that equal c-blosc 1.21's with one thread, byte for byte.

use super::filter::Filter;
use super::header::{DECODED_BYTES_MAX, HEADER_BYTES, Header, STREAM_BYTES_MIN, cuts};
use super::kept::Kept;
use super::params::Params;
use super::stream::Maker;
use crate::codec::scratch::with_scratch;
use crate::{Error, Result};

/// c-blosc counts the work space of a block, three times its size, in an `int`.
const BLOCK_BYTES_MAX: usize = (i32::MAX as usize - 255 * 4) / 3;

/// Appends a buffer with `plain` in it to `out`, at most [`HEADER_BYTES`] more than `plain`.
///
/// The same bytes and parameters always make the same buffer.
pub fn encode_onto(params: &Params, plain: &[u8], out: &mut Vec<u8>) -> Result<()> {
    encode_onto_from(params, plain, &[], out)
}

/// The same, given a buffer with the first of these bytes, made with these parameters: its whole
/// blocks are taken over. The caller vouches that they hold these bytes.
pub fn encode_onto_from(
    params: &Params,
    plain: &[u8],
    before: &[u8],
    out: &mut Vec<u8>,
) -> Result<()> {
    params.check()?;
    if plain.len() > DECODED_BYTES_MAX {
        let len = plain.len();
        let what = format!("a chunk of {len} bytes; blosc takes at most {DECODED_BYTES_MAX}");
        return Err(Error::invalid(what));
    }
    let start = out.len();
    let room = plain.len() + HEADER_BYTES;
    let block_bytes = block_bytes(params, plain.len());
    let Params { compressor, level, shuffle, item, .. } = *params;
    let mut header = Header::describe(compressor, shuffle, item, plain.len(), block_bytes);
    out.extend_from_slice(&header.render());
    let worthwhile = level > 0 && plain.len() >= STREAM_BYTES_MIN;
    let kept = Kept::of(before, &header);
    if !(worthwhile && push_blocks(&header, level, plain, kept, start, out)?) {
        header = header.stored();
        out.truncate(start + HEADER_BYTES);
        out.try_reserve(plain.len())
            .map_err(|_| Error::OutOfMemory { what: "an encoded chunk".into(), bytes: room })?;
        out.extend_from_slice(plain);
    }
    header.encoded_bytes = (out.len() - start) as u64;
    out[start..start + HEADER_BYTES].copy_from_slice(&header.render());
    Ok(())
}

/// Compresses block by block behind the header at `start`. `false` if that makes it no smaller.
fn push_blocks(
    header: &Header,
    level: u8,
    plain: &[u8],
    kept: Option<Kept<'_>>,
    start: usize,
    out: &mut Vec<u8>,
) -> Result<bool> {
    let room = plain.len() + HEADER_BYTES;
    let block_bytes = header.block_bytes as usize;
    let table = out.len();
    let table_bytes = 4 * header.blocks() as usize;
    if HEADER_BYTES + table_bytes > room {
        return Ok(false);
    }
    out.resize(table + table_bytes, 0);
    let kept_blocks = kept.map_or(0, |kept| kept.blocks());
    if let Some(kept) = kept {
        let first = out.len() - start;
        for (place, at) in out[table..].chunks_exact_mut(4).zip(kept.starts()) {
            place.copy_from_slice(&((first + at) as u32).to_le_bytes());
        }
        out.extend_from_slice(kept.bytes);
    }
    let compressor = header.compressor();
    let maker = Maker { compressor, level, cut: cuts(compressor, header.item, block_bytes) };
    let filter = |len: usize| Filter::of(header.shuffle(), header.item, len);
    // A shorter block at the end may be filtered where the others are not.
    let work_bytes = filter(block_bytes).work_bytes();
    let work_bytes = work_bytes.max(filter(plain.len() % block_bytes).work_bytes());
    with_scratch(block_bytes + work_bytes + maker.room(block_bytes), |scratch| {
        let (filtered, scratch) = scratch.split_at_mut(block_bytes);
        let (work, stream) = scratch.split_at_mut(work_bytes);
        for (block, plain) in plain.chunks(block_bytes).enumerate().skip(kept_blocks) {
            let offset = out.len() - start;
            out[table + 4 * block..][..4].copy_from_slice(&(offset as u32).to_le_bytes());
            let bytes = filter(plain.len()).apply(plain, &mut filtered[..plain.len()], work);
            for part in bytes.chunks_exact(plain.len() / header.streams(plain.len())) {
                let used = out.len() - start + 4;
                let left = room.saturating_sub(used);
                if left == 0 {
                    return Ok(false);
                }
                let most = maker.room(part.len()).min(left);
                let written = maker.compress(part, &mut stream[..most]);
                let bytes = match written {
                    // A reader takes a stream of full length for an uncompressed one.
                    Some(written) if written != part.len() => &stream[..written],
                    _ if part.len() > left => return Ok(false),
                    _ => part,
                };
                out.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
                out.extend_from_slice(bytes);
            }
        }
        Ok(true)
    })
}

/// Bytes of a block in a buffer that holds `decoded` bytes, at least 1.
fn block_bytes(params: &Params, decoded: usize) -> usize {
    let item = usize::from(params.item);
    if decoded < item {
        return 1;
    }
    let wanted = match params.block_bytes {
        0 => stretched(params, usual_block_bytes(params, decoded)),
        forced => forced.clamp(STREAM_BYTES_MIN, BLOCK_BYTES_MAX),
    };
    let wanted = wanted.min(decoded).max(1);
    if wanted > item { wanted / item * item } else { wanted }
}

fn usual_block_bytes(params: &Params, decoded: usize) -> usize {
    const L1_BYTES: usize = 32 << 10;
    if decoded < L1_BYTES {
        return decoded;
    }
    let thorough = params.compressor.is_thorough();
    let base = if thorough { 2 * L1_BYTES } else { L1_BYTES };
    match params.level {
        0 => base / 4,
        1 => base / 2,
        2 => base,
        3 => base * 2,
        4 | 5 => base * 4,
        6..=8 => base * 8,
        _ if thorough => base * 16,
        _ => base * 8,
    }
}

/// Where a block is cut into streams, c-blosc's block size is the size of a stream.
fn stretched(params: &Params, block_bytes: usize) -> usize {
    if params.level == 0 || !cuts(params.compressor, params.item, block_bytes) {
        return block_bytes;
    }
    let stream = block_bytes.min(256 << 10);
    (stream * usize::from(params.item)).clamp(64 << 10, 1 << 20)
}

/// The `block_bytes` that gives the same blocks as c-blosc when asked for `size`.
pub(super) fn block_bytes_asked(params: &Params, size: usize) -> usize {
    match size {
        0 => 0,
        size => stretched(params, size.clamp(STREAM_BYTES_MIN, BLOCK_BYTES_MAX)),
    }
}
