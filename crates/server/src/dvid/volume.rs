//! Voxels of a box: `raw/0_1_2/SIZE/OFFSET`, which Neuroglancer asks for chunk by chunk.
//!
//! A chunk of Neuroglancer that is one label block is not decoded: its cells become those of `compressed_segmentation`.

use std::sync::Arc;

use axum::extract::{Path, RawQuery, State as Shared};
use axum::http::HeaderValue;
use axum::http::header::CONTENT_ENCODING;
use axum::response::Response;
use chunkyard_array::codec::label_block::{Block, SIZE_MAX, encode_part, encode_solid};
use chunkyard_array::codec::{gzip_onto, zeroed};
use chunkyard_engine::labels::Ids;
use chunkyard_engine::store::cpu;
use chunkyard_engine::{Error, Result};
use futures::TryStreamExt;
use tokio::sync::OwnedSemaphorePermit;

use super::address::resolve;
use super::answer::{bounded, bytes};
use super::ask::{Settings, bad, region};
use super::blocks::{GZIP_LEVEL, little_endian};
use super::segmentation::{At, Segmentation};
use crate::State;
use crate::http::Failure;

/// Blocks that are decoded at a time.
const BATCH_BLOCKS: usize = 32;
/// Voxels of a cell of `compressed_segmentation` along each axis.
const CELL: usize = 8;

/// What is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// Voxels, little-endian, x fastest.
    Voxels,
    /// One LZ4 block of them, without its length.
    Lz4,
    Gzip,
    /// Neuroglancer's `compressed_segmentation`.
    Segmentation,
    /// The same with gzip as encoding of the answer, which browsers undo.
    SegmentationGzip,
}

impl Form {
    fn parse(settings: &Settings<'_>) -> Result<Self, Failure> {
        match settings.get("compression") {
            None => Ok(Self::Voxels),
            Some("lz4") => Ok(Self::Lz4),
            Some("gzip") => Ok(Self::Gzip),
            Some("google") => Ok(Self::Segmentation),
            Some("googlegzip") => Ok(Self::SegmentationGzip),
            Some(other) => Err(bad(format!(
                "compression={other}: voxels are sent plain or as lz4, gzip, google or googlegzip"
            ))),
        }
    }
}

/// A box of voxels of a scale.
#[derive(Debug, Clone, Copy)]
struct Wanted {
    scale: usize,
    start: At,
    end: At,
    ids: Ids,
}

impl Wanted {
    /// Voxels along z, y and x.
    fn shape(&self) -> [usize; 3] {
        // Boxes have positions of 32 bits, and an end behind the start.
        std::array::from_fn(|axis| (self.end[axis] - self.start[axis]) as usize)
    }

    fn bytes(&self) -> u64 {
        self.shape().iter().fold(8, |all, extent| all.saturating_mul(*extent as u64))
    }
}

/// `GET raw/0_1_2/SIZE/OFFSET`.
pub(super) async fn get_raw(
    Shared(state): Shared<State>,
    Path((uuid, data, axes, size, offset)): Path<(String, String, String, String, String)>,
    RawQuery(query): RawQuery,
) -> Result<Response, Failure> {
    if axes != "0_1_2" {
        return Err(bad(format!("raw/{axes}: only volumes are sent, whose axes are 0_1_2")));
    }
    let settings = Settings::parse(query.as_deref());
    if settings.get("roi").is_some() {
        return Err(bad("roi: there are no regions of interest here; leave it out"));
    }
    let form = Form::parse(&settings)?;
    let (scale, ids) = (settings.scale()?, settings.ids());
    let (start, end) = region(&size, &offset)?;
    let wanted = Wanted { scale, start, end, ids };
    let limit = state.config().limits.answer_bytes_max;
    bounded(wanted.bytes(), limit, "the voxels of this box")?;
    let shape = wanted.shape();
    let segments = matches!(form, Form::Segmentation | Form::SegmentationGzip);
    if segments && shape.iter().any(|extent| *extent > SIZE_MAX as usize) {
        return Err(bad(format!(
            "compression=google takes {SIZE_MAX} voxels along each axis at most"
        )));
    }
    let seg = Segmentation::open(&state, &resolve(&state, &uuid, &data).await?).await?;
    seg.frame().check_scale(scale)?;
    let made = if segments && let Some(at) = one_block(&seg, &wanted) {
        segmentation_of(&seg, &wanted, at).await?
    } else {
        // Labels, and what is made of them.
        let permit = state.dvid().room(wanted.bytes().saturating_mul(2)).await?;
        let labels = read(&seg, &wanted).await?;
        let made = cpu(move || match form {
            Form::Voxels => Ok(little_endian(&labels)),
            Form::Lz4 => Ok(lz4_flex::block::compress(&little_endian(&labels))),
            Form::Gzip => gzipped(&little_endian(&labels)),
            Form::Segmentation | Form::SegmentationGzip => segmentation(&labels, shape),
        });
        let made = made.await??;
        return answer(form, made, Some(permit)).await;
    };
    answer(form, made, None).await
}

async fn answer(
    form: Form,
    made: Vec<u8>,
    permit: Option<OwnedSemaphorePermit>,
) -> Result<Response, Failure> {
    if form != Form::SegmentationGzip {
        return Ok(held(made, permit));
    }
    let packed = cpu(move || gzipped(&made)).await??;
    let mut response = held(packed, permit);
    response.headers_mut().insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    Ok(response)
}

/// Bytes that count as taken until they are sent.
fn held(made: Vec<u8>, permit: Option<OwnedSemaphorePermit>) -> Response {
    struct Held(
        Vec<u8>,
        #[expect(dead_code, reason = "freed with the bytes")] Option<OwnedSemaphorePermit>,
    );
    impl AsRef<[u8]> for Held {
        fn as_ref(&self) -> &[u8] {
            &self.0
        }
    }
    bytes(bytes::Bytes::from_owner(Held(made, permit)))
}

fn gzipped(plain: &[u8]) -> Result<Vec<u8>> {
    let mut out = Vec::new();
    gzip_onto(plain, GZIP_LEVEL, &mut out)?;
    Ok(out)
}

/// The block that a box is, if it is one.
fn one_block(seg: &Segmentation, wanted: &Wanted) -> Option<At> {
    let edge = seg.frame().block.map(i64::from);
    let whole = (0..3).all(|axis| {
        wanted.start[axis] % edge[axis] == 0 && wanted.end[axis] - wanted.start[axis] == edge[axis]
    });
    whole.then(|| std::array::from_fn(|axis| wanted.start[axis].div_euclid(edge[axis])))
}

async fn segmentation_of(seg: &Segmentation, wanted: &Wanted, at: At) -> Result<Vec<u8>> {
    let block = seg.blocks(wanted.scale, &[at], wanted.ids).await?.pop().flatten();
    let [z, y, x] = seg.frame().block;
    cpu(move || {
        let block = match block {
            Some(block) => block,
            None => {
                let mut zeros = Vec::new();
                encode_solid(0, [x, y, z], &mut zeros)?;
                zeros
            }
        };
        let mut out = Vec::new();
        Block::parse(&block)?.segmentation_onto([x, y, z], &mut out)?;
        Ok(out)
    })
    .await?
}

/// A box of labels as `compressed_segmentation`.
fn segmentation(labels: &[u64], shape: [usize; 3]) -> Result<Vec<u8>> {
    let [z, y, x] = shape;
    let [z_whole, y_whole, x_whole] = shape.map(|extent| extent.next_multiple_of(CELL));
    let (mut padded, mut block, mut out) = (Vec::new(), Vec::new(), Vec::new());
    let mut from = labels;
    if shape != [z_whole, y_whole, x_whole] {
        padded.resize(z_whole * y_whole * x_whole, 0);
        for (row, line) in labels.chunks_exact(x).enumerate() {
            let to = (row / y * y_whole + row % y) * x_whole;
            padded.get_mut(to..to + x).unwrap_or_default().copy_from_slice(line);
        }
        from = &padded;
    }
    // An axis has SIZE_MAX voxels at most, which is a whole number of cells.
    let whole = [x_whole, y_whole, z_whole].map(|extent| extent as u32);
    encode_part(from, [x_whole, x_whole * y_whole], whole, &mut block)?;
    Block::parse(&block)?.segmentation_onto([x, y, z].map(|extent| extent as u32), &mut out)?;
    Ok(out)
}

/// The labels of a box, x fastest. What is not stored is label 0.
async fn read(seg: &Arc<Segmentation>, wanted: &Wanted) -> Result<Vec<u64>> {
    let shape = wanted.shape();
    let bytes = usize::try_from(wanted.bytes()).unwrap_or(usize::MAX);
    // Reserves or fails, where `vec!` would end the process.
    drop(zeroed(bytes)?);
    let mut labels = vec![0u64; bytes / 8];
    let (low, high) = seg.frame().blocks_of(wanted.start, wanted.end);
    let mut positions = seg.stored(wanted.scale, low, high)?.try_chunks(BATCH_BLOCKS);
    while let Some(at) = positions.try_next().await.map_err(|error| error.1)? {
        let blocks = seg.blocks(wanted.scale, &at, wanted.ids).await?;
        let (wanted, edge, voxels) = (*wanted, seg.frame().block, seg.frame().block_voxels());
        labels = cpu(move || {
            let mut decoded = vec![0; voxels];
            for (at, block) in at.iter().zip(&blocks) {
                let Some(block) = block else { continue };
                let block = Block::parse(block)?;
                if block.voxel_count() != voxels {
                    return Err(Error::invalid(format!(
                        "block {at:?} has {} voxels where {voxels} are expected",
                        block.voxel_count()
                    )));
                }
                block.decode_into(&mut decoded)?;
                copy(&decoded, *at, edge, &wanted, shape, &mut labels);
            }
            Ok::<_, Error>(labels)
        })
        .await??;
    }
    Ok(labels)
}

/// Copies what a box has of a block.
fn copy(
    decoded: &[u64],
    at: At,
    edge: [u32; 3],
    wanted: &Wanted,
    shape: [usize; 3],
    labels: &mut [u64],
) {
    let edge = edge.map(i64::from);
    let first: At = std::array::from_fn(|axis| at[axis] * edge[axis]);
    let low: At = std::array::from_fn(|axis| first[axis].max(wanted.start[axis]));
    let high: At = std::array::from_fn(|axis| (first[axis] + edge[axis]).min(wanted.end[axis]));
    let width = usize::try_from(high[2] - low[2]).unwrap_or(0);
    for z in low[0]..high[0] {
        for y in low[1]..high[1] {
            let from = ((z - first[0]) * edge[1] + y - first[1]) * edge[2] + low[2] - first[2];
            let row = (z - wanted.start[0]) as usize * shape[1] + (y - wanted.start[1]) as usize;
            let to = row * shape[2] + (low[2] - wanted.start[2]) as usize;
            let from = decoded.get(from as usize..from as usize + width);
            if let (Some(from), Some(to)) = (from, labels.get_mut(to..to + width)) {
                to.copy_from_slice(from);
            }
        }
    }
}
