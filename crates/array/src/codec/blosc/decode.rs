//! Decodes buffers: whole, with several threads, or only the wanted blocks.

use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use super::buffer::Buffer;
use super::filter::Filter;
use super::stream;
use crate::codec::scratch::with_scratch;
use crate::codec::wrong_length;
use crate::{Error, Result};

/// A chunk of fewer blocks is decoded by one thread: waking another takes longer.
const BLOCKS_TOGETHER_MIN: usize = 8;

/// Decodes a buffer of exactly `out.len()` bytes.
///
/// Bytes after the end of the buffer, and room inside it behind its blocks, are ignored.
pub fn decode_into(encoded: &[u8], out: &mut [u8]) -> Result<()> {
    let buffer = parse_for(encoded, out)?;
    if let Some(stored) = buffer.stored() {
        out.copy_from_slice(stored);
        return Ok(());
    }
    let blocks = out.chunks_mut(buffer.block_bytes()).enumerate();
    blocks.into_iter().try_for_each(|(block, plain)| decode_block(&buffer, block, plain))
}

/// Decodes the bytes `range` of what a buffer holds into `out`, which has as many. Only the blocks
/// that hold some of them are decoded, and only these are checked.
pub fn decode_range(encoded: &[u8], range: Range<usize>, out: &mut [u8]) -> Result<()> {
    let buffer = Buffer::parse(encoded)?;
    let whole = buffer.decoded_bytes();
    if range.len() != out.len() || range.start > range.end || range.end > whole {
        return Err(Error::invalid(format!(
            "bytes {range:?} of {whole} decoded ones do not fill {} bytes",
            out.len()
        )));
    }
    if let Some(stored) = buffer.stored() {
        out.copy_from_slice(&stored[range]);
        return Ok(());
    }
    let block_bytes = buffer.block_bytes();
    let (mut at, mut rest) = (range.start, out);
    while !rest.is_empty() {
        let block = at / block_bytes;
        let block_start = block * block_bytes;
        let block_end = (block_start + block_bytes).min(whole);
        let (part, after) = rest.split_at_mut(rest.len().min(block_end - at));
        if part.len() == block_end - block_start {
            decode_block(&buffer, block, part)?;
        } else {
            with_scratch(block_end - block_start, |plain| {
                decode_block(&buffer, block, plain)?;
                part.copy_from_slice(&plain[at - block_start..][..part.len()]);
                Ok(())
            })?;
        }
        (at, rest) = (block_end, after);
    }
    Ok(())
}

/// Like [`decode_into`], with all threads of the current pool: for a chunk that a caller waits for.
///
/// Do not call it while holding scratch memory of the thread: while it waits, the thread may start
/// another chunk.
pub(in crate::codec) fn decode_into_together(encoded: &[u8], out: &mut [u8]) -> Result<()> {
    let buffer = parse_for(encoded, out)?;
    if buffer.header().is_stored() || buffer.blocks() < BLOCKS_TOGETHER_MIN {
        return decode_into(encoded, out);
    }
    // This thread starts at once; others join when they are awake, and take the rest.
    let blocks = Mutex::new(out.chunks_mut(buffer.block_bytes()).enumerate());
    let work = || loop {
        let next = blocks.lock().unwrap_or_else(PoisonError::into_inner).next();
        let Some((block, plain)) = next else { return Ok(()) };
        decode_block(&buffer, block, plain)?;
    };
    let failed: Mutex<Result<()>> = Mutex::new(Ok(()));
    let helpers = (rayon::current_num_threads() - 1).min(buffer.blocks() / BLOCKS_TOGETHER_MIN);
    let join = || {
        if let Err(error) = work() {
            *failed.lock().unwrap_or_else(PoisonError::into_inner) = Err(error);
        }
    };
    rayon::in_place_scope(|scope| {
        (0..helpers).for_each(|_| scope.spawn(|_| join()));
        join();
    });
    failed.into_inner().unwrap_or_else(PoisonError::into_inner)
}

/// Decodes the blocks that `wanted` picks, given how many bytes a block has; the rest of `out`
/// stays as it is.
pub(in crate::codec) fn decode_some(
    encoded: &[u8],
    out: &mut [u8],
    wanted: impl FnOnce(usize) -> Result<Vec<usize>>,
) -> Result<()> {
    let buffer = parse_for(encoded, out)?;
    if let Some(stored) = buffer.stored() {
        out.copy_from_slice(stored);
        return Ok(());
    }
    let block_bytes = buffer.block_bytes();
    for block in wanted(block_bytes)? {
        let start = block.saturating_mul(block_bytes).min(out.len());
        let end = start.saturating_add(block_bytes).min(out.len());
        decode_block(&buffer, block, &mut out[start..end])?;
    }
    Ok(())
}

/// The decoded bytes, if the buffer stores them uncompressed.
pub(in crate::codec) fn borrow(encoded: &[u8]) -> Result<Option<&[u8]>> {
    Ok(Buffer::parse(encoded)?.stored())
}

fn parse_for<'a>(encoded: &'a [u8], out: &[u8]) -> Result<Buffer<'a>> {
    let buffer = Buffer::parse(encoded)?;
    if buffer.decoded_bytes() != out.len() {
        return Err(wrong_length(out.len(), buffer.decoded_bytes()));
    }
    Ok(buffer)
}

fn decode_block(buffer: &Buffer<'_>, block: usize, plain: &mut [u8]) -> Result<()> {
    if plain.is_empty() {
        return Ok(());
    }
    let len = plain.len();
    let filter = Filter::of(buffer.header().shuffle(), buffer.header().item, len);
    if filter == Filter::None {
        return decode_streams(buffer, block, plain);
    }
    with_scratch(len + filter.work_bytes(), |scratch| {
        let (filtered, work) = scratch.split_at_mut(len);
        decode_streams(buffer, block, filtered)?;
        filter.undo(filtered, plain, work);
        Ok(())
    })
}

fn decode_streams(buffer: &Buffer<'_>, block: usize, out: &mut [u8]) -> Result<()> {
    let mut streams = buffer.streams(block, out.len())?;
    for part in out.chunks_exact_mut(streams.decoded_bytes.max(1)) {
        stream::decompress(buffer.header().compressor(), streams.next()?, part)?;
    }
    Ok(())
}
