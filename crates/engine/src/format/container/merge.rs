//! Chunks of several layers become those of one.

use bytes::Bytes;
use chunkyard_array::ChunkIndex;
use futures::{StreamExt, TryStreamExt, stream};

use super::array_state::{ArrayState, Found};
use super::draft::{Draft, Piece};
use super::flush::coord;
use crate::error::{Error, Result};
use crate::meter::Meter;
use crate::store::{ChunkRef, Fetcher};

/// Chunks that are read at once.
const READS: usize = 16;

/// Puts all chunks of an array into a layer that has just begun it. With `repack` all blocks are packed
/// anew: that they were packed by the same codec says nothing of the level.
pub(super) async fn push_all(
    draft: &mut Draft,
    fetcher: &Fetcher,
    array: &ArrayState,
    repack: bool,
    meter: &Meter,
) -> Result<()> {
    let name = &array.described.meta.name;
    let all = array.all().await?;
    meter.expect(all.iter().map(|(_, found)| u64::from(found.address.size)).sum());
    let mut pieces = stream::iter(all)
        .map(|(at, found)| async move {
            let index = array.index(at);
            let piece = piece(fetcher, array, &index, &found, repack).await?;
            Ok::<_, Error>((index, piece, u64::from(found.address.size)))
        })
        .buffered(READS);
    while let Some((index, piece, size)) = pieces.try_next().await? {
        draft.push(&coord(name, &index)?, piece).await?;
        meter.advance(size);
    }
    Ok(())
}

/// A chunk for another layer: packed as it is, where it is alone in its block.
async fn piece(
    fetcher: &Fetcher,
    array: &ArrayState,
    index: &ChunkIndex,
    found: &Found,
    repack: bool,
) -> Result<Piece> {
    let block = found.layer.block_ref(found.address.block).await?;
    let whole = found.address.offset == 0 && u64::from(found.address.size) == block.len;
    if whole && !repack && block.codec.is_some() {
        let bytes = fetch(fetcher, &block.packed()).await?;
        return Ok(Piece::Packed { bytes, len: block.len, codec: block.codec.clone() });
    }
    let reference = array.slice(found, block, index)?;
    Ok(Piece::Plain(fetch(fetcher, &reference).await?))
}

async fn fetch(fetcher: &Fetcher, reference: &ChunkRef) -> Result<Bytes> {
    let fetched = fetcher.fetch(&[reference]).await?.pop().flatten();
    fetched.ok_or_else(|| Error::store("read", "a chunk", "the store returned no bytes"))
}
