//! The specification of an export: a multiscale volume of Neuroglancer, given or chosen.
//!
//! Whatever is wrong with it is said before anything is written. DVID's own server takes a specification, answers that the
//! export goes on, and leaves nothing behind where a chunk has another size or a scale no sharding.

use chunkyard_array::codec::label_block::SIZE_MAX;
use chunkyard_format::precomputed::{Encoding, Hash, Info, Scale, Sharding, VolumeKind, VoxelType};
use chunkyard_store::{Error, Result, check_path};
use serde_json::Map;

use super::geometry::{Frame, Level, boxes};
use super::segmentation::Segmentation;

/// The blocks of DVID, and so of Arrow shards.
const BLOCK: [u64; 3] = [64; 3];

/// How a message calls the specification.
pub(super) const NAME: &str = "the specification";

/// What an export is to write, as far as it bears on the specification.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wanted {
    pub(super) arrow: bool,
    pub(super) precomputed: bool,
    pub(super) table: bool,
}

/// Refuses a specification that no export can follow.
pub(super) fn check(info: &Info, wanted: Wanted) -> Result<()> {
    let refuse = |what: String| Err(Error::invalid(format!("{NAME}: {what}")));
    if info.kind != VolumeKind::Segmentation {
        return refuse("`type` is image, and a segmentation is exported".to_owned());
    }
    if info.data_type != VoxelType::Uint64 {
        return refuse(format!("`data_type` is {}, and labels are uint64", info.data_type.name()));
    }
    if info.num_channels != 1 {
        return refuse(format!(
            "`num_channels` is {}, and a segmentation has 1",
            info.num_channels
        ));
    }
    for (number, scale) in info.scales.iter().enumerate() {
        check_scale(scale, wanted)
            .map_err(|error| Error::for_array(&format!("{NAME}: scales[{number}]"), error))?;
        let same = |other: &Scale| other.key == scale.key;
        if info.scales.iter().take(number).any(same) {
            return refuse(format!("scales[{number}] has the key {} of another scale", scale.key));
        }
    }
    Ok(())
}

fn check_scale(scale: &Scale, wanted: Wanted) -> Result<()> {
    let chunk = scale.chunk_size();
    if scale.chunk_sizes.len() != 1 {
        return Err(Error::invalid(format!(
            "`chunk_sizes` has {} sizes, and an export has one",
            scale.chunk_sizes.len()
        )));
    }
    if wanted.arrow && chunk != BLOCK {
        return Err(Error::invalid(format!(
            "`chunk_sizes` is {chunk:?}, and an Arrow shard holds label blocks of {BLOCK:?} voxels"
        )));
    }
    let legal = |edge: &u64| *edge > 0 && edge.is_multiple_of(8) && *edge <= u64::from(SIZE_MAX);
    if !chunk.iter().all(legal) {
        return Err(Error::invalid(format!(
            "`chunk_sizes` is {chunk:?}, and a label block has a multiple of 8 voxels along each axis, at most {SIZE_MAX}"
        )));
    }
    if scale.size.contains(&0) {
        return Err(Error::invalid(format!("`size` is {:?}: there are no voxels", scale.size)));
    }
    let Some(sharding) = &scale.sharding else {
        return Err(Error::invalid(
            "there is no `sharding`, which says which blocks share a shard",
        ));
    };
    if sharding.hash != Hash::Identity {
        return Err(Error::unsupported(
            "a `hash` other than identity: shards would be no boxes, and have no origin to be named by; `chunkyard \
             convert` writes such volumes",
        ));
    }
    boxes(scale)?;
    if wanted.arrow && !Frame::of(scale).is_aligned() {
        return Err(Error::invalid(format!(
            "`voxel_offset` is {:?}, and Arrow shards name blocks by whole numbers of {BLOCK:?} voxels",
            scale.voxel_offset
        )));
    }
    let end = scale
        .voxel_offset
        .iter()
        .zip(scale.size)
        .map(|(start, size)| i64::try_from(size).ok()?.checked_add(*start));
    let limit = i64::from(i32::MAX) * if wanted.table { 1 } else { 8 };
    if end
        .chain(scale.voxel_offset.map(|start| start.checked_neg()))
        .any(|end| end.is_none_or(|end| end > limit))
    {
        return Err(Error::unsupported(format!(
            "{:?} voxels from {:?} on: positions of blocks, and in tables of voxels, are 32-bit numbers",
            scale.size, scale.voxel_offset
        )));
    }
    if wanted.precomputed {
        check_path(&scale.key)?;
        if !matches!(scale.encoding, Encoding::CompressedSegmentation { .. } | Encoding::Raw) {
            return Err(Error::unsupported(format!(
                "`encoding` is {}: labels are written as compressed_segmentation or raw",
                scale.encoding.name()
            )));
        }
        if let Encoding::CompressedSegmentation { block } = &scale.encoding
            && *block != [8; 3]
        {
            return Err(Error::unsupported(format!(
                "`compressed_segmentation_block_size` is {block:?}; [8, 8, 8] is written"
            )));
        }
    }
    Ok(())
}

/// The specification for a segmentation without one: whole volumes from voxel 0 on, or from their first voxel if that lies
/// before it; sharding as TensorStore chooses it for shards of 2048 voxels along each axis.
pub(super) fn choose(segmentation: &Segmentation, scales: usize) -> Result<Info> {
    let known = segmentation.levels.iter().flatten().next();
    let Some(known) = known else {
        return Err(Error::invalid(
            "the segmentation has no voxels, so nothing says how large the exported volume is; give it with --spec",
        ));
    };
    let mut chosen: Vec<Scale> = Vec::new();
    for (number, level) in segmentation.levels.iter().enumerate().take(scales) {
        let resolution = segmentation.resolutions.get(number).copied().unwrap_or([1.0; 3]);
        let (low, high) = level.as_ref().unwrap_or(known).bounds();
        let voxel_offset: [i64; 3] = low.map(|low| low.min(0).div_euclid(64) * 64);
        let size = std::array::from_fn(|axis| high[axis].abs_diff(voxel_offset[axis]).max(1));
        let mut key = resolution.map(|size| size.to_string()).join("_");
        if chosen.iter().any(|scale| scale.key == key) {
            key = format!("{key}_s{number}");
        }
        let encoding = Encoding::CompressedSegmentation { block: [8; 3] };
        let mut scale = Scale {
            key,
            size,
            voxel_offset,
            resolution,
            chunk_sizes: vec![BLOCK],
            encoding: encoding.clone(),
            sharding: None,
            rest: Map::new(),
        };
        scale.sharding = Some(Sharding::for_grid(scale.grid(), &encoding)?);
        chosen.push(scale);
    }
    Ok(Info {
        kind: VolumeKind::Segmentation,
        data_type: VoxelType::Uint64,
        num_channels: 1,
        scales: chosen,
        rest: Map::new(),
    })
}

/// Refuses a decimation that no array can have.
pub(super) fn check_factor(factor: [u64; 3]) -> Result<()> {
    match factor.contains(&0) || factor.iter().any(|factor| *factor > 1 << 20) {
        true => Err(Error::invalid(format!(
            "a factor of {factor:?}: each is 1 or more, for x, y and z"
        ))),
        false => Ok(()),
    }
}

/// The levels of an export in the order of its scales.
pub(super) fn levels(segmentation: &Segmentation, scales: usize) -> Vec<Option<Level>> {
    segmentation.levels.iter().take(scales).cloned().collect()
}
