//! What of a source is exported: the arrays that are the scales of one segmentation, and the bodies of its supervoxels.

use std::sync::Arc;

use chunkyard_format::{Dataset, Source, Space, Survey, normalise_path};
use chunkyard_labels::{Ids, Mapping};
use chunkyard_store::{Error, Result, cpu};
use sha2::{Digest, Sha256};

use super::geometry::Level;
use crate::pipeline::mappings;
use crate::scales;

/// Bytes of a mapping that are digested at a time.
const DIGESTED_BYTES: usize = 1 << 16;

/// A segmentation of a source.
#[derive(Debug, Clone)]
pub(super) struct Segmentation {
    /// Its scales, the finest first; a scale without voxels has no array.
    pub(super) levels: Vec<Option<Level>>,
    /// Nanometres per voxel of each scale; where none are known, 1 at full resolution.
    pub(super) resolutions: Vec<[f64; 3]>,
}

impl Segmentation {
    /// The segmentation of a source: the one at a path, or the only one.
    pub(super) fn find(source: &dyn Source, path: Option<&str>, factor: [u64; 3]) -> Result<Self> {
        let dataset = source.dataset();
        let survey = Survey::of(dataset);
        let paths = match path {
            Some(path) => scales::at(dataset, &survey, &normalise_path(path)?)?,
            None => scales::only(dataset, &survey, "name the segmentation with --array")?,
        };
        let mut levels = Vec::with_capacity(paths.len());
        let mut voxels: Vec<Option<[f64; 3]>> = Vec::with_capacity(paths.len());
        for path in &paths {
            let Some(path) = path else {
                levels.push(None);
                voxels.push(None);
                continue;
            };
            let space = survey.space(path);
            let level = level(dataset, path, space, factor)?;
            let axes = level.as_ref().map_or([2, 1, 0], |level| level.axes);
            voxels.push(space.and_then(|space| nanometres(space, axes)));
            levels.push(level);
        }
        let times = |size: [f64; 3], factors: [f64; 3]| {
            std::array::from_fn(|axis| size[axis] * factors[axis])
        };
        let halved = |scales: usize| (1u64 << scales.min(60)) as f64;
        let known: Vec<(usize, [f64; 3])> =
            voxels.iter().enumerate().filter_map(|(at, size)| Some((at, (*size)?))).collect();
        let resolutions = (0..levels.len()).map(|scale| {
            // Its own; without one, that of the next finer scale that has one, or of the first, halved so often.
            let finer = known.iter().rev().find(|(at, _)| *at <= scale).or(known.first());
            let size = match finer {
                Some((at, size)) if *at <= scale => times(*size, [halved(scale - at); 3]),
                Some((at, size)) => times(*size, [1.0 / halved(at - scale); 3]),
                None => [halved(scale); 3],
            };
            times(size, factor.map(|factor| factor.max(1) as f64))
        });
        let resolutions = resolutions.collect();
        Ok(Self { levels, resolutions })
    }
}

/// The bodies of the supervoxels of some arrays; `None` where every supervoxel is its own body.
pub(super) async fn mapping(
    source: &Arc<dyn Source>,
    levels: &[Option<Level>],
    ids: Ids,
) -> Result<Option<Arc<Mapping>>> {
    if ids == Ids::Supervoxels {
        return Ok(None);
    }
    let mut known = mappings(source).await?;
    let first = levels.iter().flatten().find_map(|level| known.remove(&level.path));
    Ok(first.filter(|mapping| !mapping.is_empty()))
}

/// What tells a mapping from others: how many rows it has, and a digest of all of them.
pub(super) async fn digest(mapping: Option<&Arc<Mapping>>) -> Result<String> {
    let Some(mapping) = mapping.cloned() else { return Ok("none".to_owned()) };
    cpu(move || {
        let mut bytes = Vec::with_capacity(DIGESTED_BYTES);
        let mut sha = Sha256::new();
        for (supervoxel, body) in mapping.rows() {
            bytes.extend_from_slice(&supervoxel.to_le_bytes());
            bytes.extend_from_slice(&body.to_le_bytes());
            if bytes.len() >= DIGESTED_BYTES {
                sha.update(&bytes);
                bytes.clear();
            }
        }
        sha.update(&bytes);
        let hex: String =
            sha.finalize().iter().take(16).map(|byte| format!("{byte:02x}")).collect();
        format!("{} supervoxels, {hex}", mapping.len())
    })
    .await
}

/// An array as a level; `None` if it has no voxels.
fn level(
    dataset: &Dataset,
    path: &str,
    space: Option<&Space>,
    factor: [u64; 3],
) -> Result<Option<Level>> {
    let node = dataset.array(path)?;
    let shape = node.spec.shape();
    let axes = axes(path, shape, node.spec.dimension_names().unwrap_or_default())?;
    let shape = axes.map(|axis| shape.get(axis).copied().unwrap_or(0));
    if shape.contains(&0) {
        return Ok(None);
    }
    let origin = space.and_then(|space| space.origin.as_deref()).unwrap_or_default();
    let origin = axes.map(|axis| origin.get(axis).copied().unwrap_or(0));
    Ok(Some(Level { path: path.to_owned(), origin, shape, factor, axes }))
}

/// Which axes of an array x, y and z are: by their names, and without any z comes first and x last. An axis of one element
/// besides does not count.
fn axes(path: &str, shape: &[u64], names: &[Option<String>]) -> Result<[usize; 3]> {
    let named = |wanted: &str| {
        let is = |name: &Option<String>| {
            name.as_deref().is_some_and(|name| name.eq_ignore_ascii_case(wanted))
        };
        names.iter().position(is)
    };
    let found = match [named("x"), named("y"), named("z")] {
        [Some(x), Some(y), Some(z)] => Some([x, y, z]),
        // Names that say something else are not taken for these.
        [None, None, None] => match shape {
            [_, _, _] => Some([2, 1, 0]),
            [1, _, _, _] => Some([3, 2, 1]),
            _ => None,
        },
        _ if shape.len() == 3 => Some([2, 1, 0]),
        _ => None,
    };
    let others_are_single = |axes: &[usize; 3]| {
        shape.iter().enumerate().all(|(axis, extent)| *extent == 1 || axes.contains(&axis))
    };
    found.filter(others_are_single).ok_or_else(|| {
        Error::invalid(format!(
            "{path}: a segmentation has the axes z, y and x, and others of one element at most; this array has the shape \
             {shape:?}; name its axes x, y and z, or select a part of it"
        ))
    })
}

/// The size of a voxel in nanometres along x, y, z.
fn nanometres(space: &Space, axes: [usize; 3]) -> Option<[f64; 3]> {
    let mut size = [0.0; 3];
    for (axis, size) in axes.into_iter().zip(&mut size) {
        let axis = space.axes.get(axis)?;
        let unit = match axis.unit.as_deref().unwrap_or("nanometer") {
            "nanometer" | "nanometers" | "nanometre" | "nm" => 1.0,
            "angstrom" => 0.1,
            "micrometer" | "micrometers" | "micrometre" | "um" | "µm" => 1e3,
            "millimeter" | "millimeters" | "millimetre" | "mm" => 1e6,
            "meter" | "meters" | "metre" | "m" => 1e9,
            _ => return None,
        };
        *size = axis.scale? * unit;
    }
    Some(size)
}
