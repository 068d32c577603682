//! Streams of blocks: `blocks/SIZE/OFFSET` and `specificblocks`.
//!
//! ```text
//!  i32 x, y, z of the block in blocks of the scale │ u32 n │ n bytes │ the next block …           little-endian
//! ```
//!
//! Blocks that are not stored are not sent. Only some are in memory at a time, whatever the box.

use std::sync::Arc;

use axum::extract::{Path, RawQuery, State as Shared};
use axum::response::Response;
use chunkyard_array::codec::gzip_onto;
use chunkyard_array::codec::label_block::Block;
use chunkyard_engine::labels::Ids;
use chunkyard_engine::store::cpu;
use chunkyard_engine::{Error, Result};
use futures::{StreamExt, TryStreamExt, stream};

use super::address::resolve;
use super::answer::{Out, streamed};
use super::ask::{Settings, bad, region, turned};
use super::segmentation::{At, Segmentation};
use crate::State;
use crate::http::Failure;

/// Bytes of voxels of a batch, if blocks are sent as voxels, and blocks of one at most.
const BATCH_BYTES: usize = 16 << 20;
const BATCH_BLOCKS: usize = 32;
/// How hard gzip tries; nearly as small as the best, several times as fast.
pub(super) const GZIP_LEVEL: u32 = 4;
/// Blocks of a list at most.
const LISTED_MAX: usize = 100_000;

/// What is sent for a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// The label block, gzip.
    Blocks,
    /// Voxels, one LZ4 block without its length.
    Lz4,
    /// Voxels, gzip.
    Gzip,
    /// Voxels.
    Voxels,
}

impl Form {
    fn parse(settings: &Settings<'_>, otherwise: Self) -> Result<Self, Failure> {
        match settings.get("compression") {
            None => Ok(otherwise),
            Some("blocks") => Ok(Self::Blocks),
            Some("lz4") => Ok(Self::Lz4),
            Some("gzip") => Ok(Self::Gzip),
            Some("uncompressed") => Ok(Self::Voxels),
            Some(other) => Err(bad(format!(
                "compression={other}: blocks are sent as blocks, lz4, gzip or uncompressed"
            ))),
        }
    }

    /// A block in this form, behind its position.
    fn frame_onto(self, at: At, block: &[u8], out: &mut Vec<u8>) -> Result<()> {
        for position in turned(at) {
            let position = i32::try_from(position)
                .map_err(|_| Error::unsupported(format!("block {at:?}: positions have 32 bits")))?;
            out.extend(position.to_le_bytes());
        }
        let length_at = out.len();
        out.extend([0; 4]);
        let start = out.len();
        match self {
            Self::Blocks => gzip_onto(block, GZIP_LEVEL, out)?,
            Self::Voxels => out.extend(voxels_of(block)?),
            Self::Gzip => gzip_onto(&voxels_of(block)?, GZIP_LEVEL, out)?,
            Self::Lz4 => out.extend(lz4_flex::block::compress(&voxels_of(block)?)),
        }
        let length = u32::try_from(out.len() - start)
            .map_err(|_| Error::unsupported(format!("a block of {} bytes", out.len() - start)))?;
        if let Some(slot) = out.get_mut(length_at..start) {
            slot.copy_from_slice(&length.to_le_bytes());
        }
        Ok(())
    }
}

/// `GET blocks/SIZE/OFFSET`.
pub(super) async fn get_blocks(
    Shared(state): Shared<State>,
    Path((uuid, data, size, offset)): Path<(String, String, String, String)>,
    RawQuery(query): RawQuery,
) -> Result<Response, Failure> {
    let settings = Settings::parse(query.as_deref());
    let form = Form::parse(&settings, Form::Lz4)?;
    let (scale, ids) = (settings.scale()?, settings.ids());
    let (start, end) = region(&size, &offset)?;
    let seg = Segmentation::open(&state, &resolve(&state, &uuid, &data).await?).await?;
    seg.frame().check_scale(scale)?;
    let edge = seg.frame().block.map(i64::from);
    let aligned = |at: At| (0..3).all(|axis| at[axis] % edge[axis] == 0);
    if !aligned(start) || !aligned(end) {
        return Err(bad(format!(
            "the box {size}/{offset} does not begin and end with blocks, which have {:?} voxels (x, y, z)",
            turned(edge)
        )));
    }
    let (low, high) = seg.frame().blocks_of(start, end);
    streamed(None, move |out| async move {
        let batch = batch(&seg, form);
        let mut positions = seg.stored(scale, low, high)?.try_chunks(batch);
        while let Some(at) = positions.try_next().await.map_err(|error| error.1)? {
            if !send(&seg, scale, at, form, ids, &out).await? {
                break;
            }
        }
        Ok(())
    })
    .await
}

/// `GET specificblocks?blocks=X,Y,Z,X,Y,Z,…`.
pub(super) async fn get_specific_blocks(
    Shared(state): Shared<State>,
    Path((uuid, data)): Path<(String, String)>,
    RawQuery(query): RawQuery,
) -> Result<Response, Failure> {
    let settings = Settings::parse(query.as_deref());
    let form = Form::parse(&settings, Form::Blocks)?;
    let (scale, ids) = (settings.scale()?, settings.ids());
    let listed = settings.get("blocks").unwrap_or_default();
    let numbers: Result<Vec<i32>, _> = listed.split(',').map(str::parse).collect();
    let numbers = numbers.map_err(|_| bad(format!("blocks={listed:.100} is not X,Y,Z,X,Y,Z,…")))?;
    let (triples, rest) = numbers.as_chunks::<3>();
    if !rest.is_empty() || triples.len() > LISTED_MAX {
        return Err(bad(format!(
            "blocks has {} numbers: three for each block, of {LISTED_MAX} blocks at most",
            numbers.len()
        )));
    }
    let at: Vec<At> = triples.iter().map(|[x, y, z]| [*z, *y, *x].map(i64::from)).collect();
    let seg = Segmentation::open(&state, &resolve(&state, &uuid, &data).await?).await?;
    seg.frame().check_scale(scale)?;
    streamed(None, move |out| async move {
        for some in at.chunks(batch(&seg, form)) {
            if !send(&seg, scale, some.to_vec(), form, ids, &out).await? {
                break;
            }
        }
        Ok(())
    })
    .await
}

/// How many blocks are in memory at a time.
fn batch(seg: &Segmentation, form: Form) -> usize {
    match form {
        Form::Blocks => BATCH_BLOCKS,
        _ => (BATCH_BYTES / (seg.frame().block_voxels() * 8).max(1)).clamp(1, BATCH_BLOCKS),
    }
}

/// Sends some blocks; false if the client is gone.
async fn send(
    seg: &Arc<Segmentation>,
    scale: usize,
    at: Vec<At>,
    form: Form,
    ids: Ids,
    out: &Out,
) -> Result<bool> {
    let blocks = seg.blocks(scale, &at, ids).await?;
    let frames = at.into_iter().zip(blocks).filter_map(|(at, block)| Some((at, block?)));
    let frames: Vec<Vec<u8>> = stream::iter(frames)
        .map(|(at, block)| {
            cpu(move || {
                let mut frame = Vec::new();
                form.frame_onto(at, &block, &mut frame)?;
                Ok::<_, Error>(frame)
            })
        })
        .buffered(BATCH_BLOCKS)
        .map(|made| made?)
        .try_collect()
        .await?;
    Ok(out.push(frames.concat()).await)
}

/// The voxels of a block, little-endian.
fn voxels_of(block: &[u8]) -> Result<Vec<u8>> {
    let block = Block::parse(block)?;
    let mut voxels = vec![0u64; block.voxel_count()];
    block.decode_into(&mut voxels)?;
    Ok(little_endian(&voxels))
}

/// Labels as bytes.
pub(super) fn little_endian(labels: &[u64]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(labels.len() * 8);
    labels.iter().for_each(|label| bytes.extend_from_slice(&label.to_le_bytes()));
    bytes
}
