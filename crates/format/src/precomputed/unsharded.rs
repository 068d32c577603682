//! Arrays of any format as the scales of a volume whose chunks are served one by one.
//!
//! Nothing is written: this says what `info` looks like, which chunk a name is, and what its bytes must be. Axes, units and
//! origins are read from the dataset as for a volume that is written; a scale that states no resolution has that of the
//! first, doubled so often.

use std::sync::Arc;

use chunkyard_array::guess_chunks;
use chunkyard_array::{ChunkIndex, Codecs};
use chunkyard_store::{Error, Result};
use serde_json::{Map, Value};

use super::axes::Axes;
use super::chunk_files;
use super::codecs;
use super::info::{Encoding, Info, Scale, VolumeKind, VoxelType};
use super::volume::{THEIRS, TYPE, nanometres, understood};
use crate::{ArrayNode, Dataset, Edges, Node, Survey};

/// Arrays as a volume without shards.
#[derive(Debug, Clone)]
pub struct Unsharded {
    /// The file `info`.
    pub info: Info,
    scales: Vec<Shown>,
}

/// An array as a scale.
#[derive(Debug, Clone)]
struct Shown {
    path: String,
    node: Arc<ArrayNode>,
    axes: Axes,
    is_gzip: bool,
}

impl Unsharded {
    /// The volume of some arrays of a dataset, the finest first. `folder` is the path of their group, or of the array alone:
    /// keys of scales are relative to it. Chunks of more than `chunk_bytes_max` bytes are cut.
    pub fn of(
        dataset: &Dataset,
        survey: &Survey,
        folder: &str,
        paths: &[String],
        chunk_bytes_max: usize,
    ) -> Result<Self> {
        let group = match dataset.nodes.get(folder) {
            Some(Node::Group(group)) => group.plain_attributes(),
            _ => Map::new(),
        };
        let mut rest = group.get(THEIRS).and_then(Value::as_object).cloned().unwrap_or_default();
        let stated = match rest.shift_remove(TYPE).as_ref().and_then(Value::as_str) {
            Some("image") => Some(VolumeKind::Image),
            Some("segmentation") => Some(VolumeKind::Segmentation),
            _ => None,
        };
        // Meshes, skeletons and properties of segments lie beside the chunks, and are not served.
        for beside in ["mesh", "skeletons", "segment_properties"] {
            rest.shift_remove(beside);
        }
        let (mut scales, mut shown) = (Vec::new(), Vec::new());
        let mut shared: Option<(VoxelType, u64)> = None;
        let mut first: Option<[f64; 3]> = None;
        for (number, path) in paths.iter().enumerate() {
            let array = dataset.array(path)?;
            let in_array = |error| Error::for_array(path, error);
            let (axes, data_type) = understood(&array.spec).map_err(in_array)?;
            let channels = axes.channel(array.spec.shape(), 1);
            if array.spec.shape().contains(&0) {
                continue;
            }
            if *shared.get_or_insert((data_type, channels)) != (data_type, channels) {
                return Err(Error::unsupported(format!(
                    "{path}: all scales of a precomputed volume have one data type and number of channels, and this \
                     has {} and {channels}",
                    data_type.name()
                )));
            }
            let kind = kind(stated, data_type);
            let space = survey.space(path);
            let steps = space.and_then(|space| {
                let known = space.axes.iter().any(|axis| axis.scale.is_some());
                known.then(|| {
                    let steps: Vec<f64> = space.axes.iter().map(nanometres).collect();
                    axes.xyz(&steps, 1.0)
                })
            });
            let doubled = (1u64 << number.min(60)) as f64;
            let resolution =
                steps.unwrap_or_else(|| first.unwrap_or([1.0; 3]).map(|step| step * doubled));
            first.get_or_insert(resolution);
            let origin = space.and_then(|space| space.origin.as_ref());
            let mut scale = Scale {
                key: key(folder, path, number),
                size: axes.xyz(array.spec.shape(), 1),
                voxel_offset: origin.map_or([0; 3], |origin| axes.xyz(origin, 0)),
                resolution,
                chunk_sizes: Vec::new(),
                encoding: encoding(array, &axes, kind).map_err(in_array)?,
                sharding: None,
                rest: Map::new(),
            };
            let (node, is_gzip) =
                made(array, &axes, &mut scale, (data_type, channels), chunk_bytes_max)
                    .map_err(in_array)?;
            if scales.iter().any(|other: &Scale| other.key == scale.key) {
                return Err(Error::unsupported(format!("two scales with the key {}", scale.key)));
            }
            scales.push(scale);
            shown.push(Shown { path: path.clone(), node, axes, is_gzip });
        }
        let (data_type, num_channels) =
            shared.ok_or_else(|| Error::unsupported("a precomputed volume without voxels"))?;
        let kind = kind(stated, data_type);
        let info = Info { kind, data_type, num_channels, scales, rest };
        Ok(Self { info, scales: shown })
    }

    /// The arrays of the scales, by their paths, and what their chunks must be.
    pub fn arrays(&self) -> impl Iterator<Item = (&str, &Arc<ArrayNode>)> {
        self.scales.iter().map(|scale| (&*scale.path, &scale.node))
    }

    /// Whether the chunks of a scale are compressed by gzip, which no encoding says: they go out with a header that does.
    pub fn is_gzip(&self, scale: usize) -> bool {
        self.scales.get(scale).is_some_and(|scale| scale.is_gzip)
    }

    /// The chunk of a scale that has a name, as an index of the array; `None` for any other name.
    pub fn chunk(&self, scale: usize, name: &str) -> Option<ChunkIndex> {
        let chunk = chunk_files::parse(self.info.scales.get(scale)?, name)?;
        Some(self.scales.get(scale)?.axes.arrange(chunk, 0))
    }

    /// The name of a chunk of a scale.
    pub fn name(&self, scale: usize, index: &[u64]) -> Option<String> {
        let chunk = self.scales.get(scale)?.axes.xyz(index, 0);
        Some(chunk_files::name(self.info.scales.get(scale)?, chunk))
    }
}

fn kind(stated: Option<VolumeKind>, data_type: VoxelType) -> VolumeKind {
    stated.unwrap_or(match data_type {
        VoxelType::Uint32 | VoxelType::Uint64 => VolumeKind::Segmentation,
        _ => VolumeKind::Image,
    })
}

/// The directory of a scale: where its array is below the folder, or a name of its own.
fn key(folder: &str, path: &str, number: usize) -> String {
    let below = path.strip_prefix(folder.trim_end_matches('/')).unwrap_or(path);
    match below.trim_matches('/') {
        "" => format!("s{number}"),
        below => below.to_owned(),
    }
}

/// How chunks are encoded: as they are where that is an encoding.
fn encoding(array: &ArrayNode, axes: &Axes, kind: VolumeKind) -> Result<Encoding> {
    let first = array.spec.codecs_json();
    let named = first.iter().map(codecs::name).find(|name| *name != "transpose");
    Ok(match named.and_then(|name| name.strip_prefix("neuroglancer.")) {
        Some(other) if !matches!(other, "compressed_segmentation" | "jpeg" | "png") => {
            Encoding::Other(other.to_owned())
        }
        _ => codecs::encoding(&array.spec, axes, kind == VolumeKind::Segmentation)?,
    })
}

/// The array as the chunks of a scale, and whether these are gzip besides.
fn made(
    array: &ArrayNode,
    axes: &Axes,
    scale: &mut Scale,
    (data_type, channels): (VoxelType, u64),
    chunk_bytes_max: usize,
) -> Result<(Arc<ArrayNode>, bool)> {
    // Of a shard that is one chunk elsewhere, the chunks in it are served.
    let (inner, _) = array.spec.unsharded()?;
    let grid = inner.grid()?;
    // A chunk has all channels.
    let chunk = axes.arrange(axes.xyz(grid.chunk_shape(), 1), channels);
    // A chunk that is larger than the array has no more voxels than that.
    let item = usize::try_from(data_type.bytes()).unwrap_or(8);
    let bytes = chunk.iter().fold(item as u64, |bytes, extent| bytes.saturating_mul(*extent));
    let cut = bytes > chunk_bytes_max as u64;
    scale.chunk_sizes = vec![match cut {
        true => axes.xyz(&guess_chunks(&chunk, item), 1),
        false => axes.xyz(&chunk, 1),
    }];
    if cut && matches!(scale.encoding, Encoding::Jpeg { .. } | Encoding::Png) {
        // A picture that is made anew would lose more than it has lost.
        scale.encoding = Encoding::Raw;
    }
    let chain = codecs::chain(scale, axes, data_type);
    let chunk = axes.arrange(scale.chunk_size(), channels);
    let plain = array.spec.with_chunk_shape(&chunk)?.with_codecs(chain.clone())?;
    let mut gzip = chain;
    gzip.extend(array.spec.codecs_json().into_iter().filter(|codec| codecs::name(codec) == "gzip"));
    let gzip = plain.with_codecs(gzip)?;
    let is_gzip = gzip != plain && gzip.same_encoding(&array.spec);
    let spec = if is_gzip { gzip } else { plain };
    if matches!(scale.encoding, Encoding::Raw | Encoding::CompressedSegmentation { .. }) {
        // Refuses blocks and shapes that the encoding does not take.
        Codecs::new(&spec)?;
    }
    Ok((Arc::new(ArrayNode { spec, sharding: None, edges: Edges::Clipped }), is_gzip))
}
