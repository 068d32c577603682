//! Merges chunks of several layers into one.

use bytes::Bytes;
use chunkyard_array::ChunkIndex;
use chunkyard_store::{ChunkRef, Error, Fetcher, Result, block_codec};
use futures::{StreamExt, TryStreamExt, stream};

use crate::Meter;
use crate::container::read::array_state::{ArrayState, ChunkLocation};
use crate::container::write::draft::{Draft, Piece};
use crate::container::write::flush::coord;

/// Chunks that are read at once.
const READS: usize = 16;

/// Puts all chunks of an array into a layer that has just begun it. With `repack` all blocks are packed
/// anew, even if they have the same codec: its level may differ.
pub(crate) async fn push_all(
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

/// A chunk for another layer: still packed, if it is alone in its block.
async fn piece(
    fetcher: &Fetcher,
    array: &ArrayState,
    index: &ChunkIndex,
    found: &ChunkLocation,
    repack: bool,
) -> Result<Piece> {
    let block = found.layer.block_ref(found.address.block).await?;
    let whole = found.address.offset == 0 && u64::from(found.address.size) == block.len;
    let unknown = block.codec.as_ref().filter(|codec| block_codec(codec).is_err());
    if let Some(codec) = unknown.filter(|_| repack) {
        return Err(Error::unsupported(format!(
            "packing chunk {index:?} of {:?} anew, which is packed by {codec:?}: that is not known \
             here; without another codec its bytes are taken over as they are",
            array.described.meta.name
        )));
    }
    if whole && !repack && block.codec.is_some() {
        let bytes = fetch(fetcher, &block.packed()).await?;
        return Ok(Piece::Packed { bytes, len: block.len, codec: block.codec.clone() });
    }
    if unknown.is_some() {
        // Its codec is unknown, so it cannot be unpacked here; check that it lies within the block.
        array.slice(found, block.clone(), index)?;
        return Ok(Piece::Within {
            block: (found.layer.key, found.address.block),
            bytes: fetch(fetcher, &block.packed()).await?,
            len: block.len,
            codec: block.codec.clone(),
            offset: found.address.offset,
            size: found.address.size,
        });
    }
    let reference = array.slice(found, block, index)?;
    Ok(Piece::Plain(fetch(fetcher, &reference).await?))
}

async fn fetch(fetcher: &Fetcher, reference: &ChunkRef) -> Result<Bytes> {
    let fetched = fetcher.fetch(&[reference]).await?.pop().flatten();
    fetched.ok_or_else(|| Error::store("read", "a chunk", "the store returned no bytes"))
}
