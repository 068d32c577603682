//! What of a source is exported: the arrays that are the scales of one segmentation, and the bodies of its supervoxels.

use std::sync::Arc;

use chunkyard_format::{Dataset, Source, Space, Survey, normalise_path};
use chunkyard_labels::{Ids, Mapping};
use chunkyard_store::{Error, Noun, Result};

use super::geometry::Level;
use crate::pipeline::mappings;

/// Scales that are looked for at most.
const SCALES_MAX: usize = 32;

/// A segmentation of a source.
#[derive(Debug, Clone)]
pub(super) struct Segmentation {
    /// Its scales, the finest first; a scale without voxels has no array.
    pub(super) levels: Vec<Option<Level>>,
    /// Nanometres per voxel at full resolution, if they are known.
    pub(super) resolution: Option<[f64; 3]>,
}

impl Segmentation {
    /// The segmentation of a source: the one at a path, or the only one.
    pub(super) fn find(source: &dyn Source, path: Option<&str>, factor: [u64; 3]) -> Result<Self> {
        let dataset = source.dataset();
        let survey = Survey::of(dataset);
        let paths = match path {
            Some(path) => scales_at(dataset, &survey, &normalise_path(path)?)?,
            None => only(dataset, &survey)?,
        };
        let mut levels = Vec::with_capacity(paths.len());
        let mut resolution = None;
        for (number, path) in paths.iter().enumerate() {
            let Some(path) = path else {
                levels.push(None);
                continue;
            };
            let space = survey.space(path);
            levels.push(level(dataset, path, space, factor)?);
            if resolution.is_none() {
                let coarser = (1u64 << number.min(60)) as f64;
                resolution = space.and_then(nanometres).map(|size| size.map(|size| size / coarser));
            }
        }
        let resolution: Option<[f64; 3]> = resolution.map(|size: [f64; 3]| {
            std::array::from_fn(|axis| size[axis] * factor[axis].max(1) as f64)
        });
        Ok(Self { levels, resolution })
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

/// The arrays of the scales of what is at a path: an array alone, or a group of scales.
fn scales_at(dataset: &Dataset, survey: &Survey, path: &str) -> Result<Vec<Option<String>>> {
    if dataset.array(path).is_ok() {
        return Ok(vec![Some(path.to_owned())]);
    }
    let listed = scales_of_group(dataset, survey, path);
    if listed.is_empty() {
        return Err(Error::NotFound {
            what: Noun::Array,
            name: format!("{path}, or scales below it"),
        });
    }
    Ok(listed)
}

/// The arrays of the scales in a group: of its pyramid, or `s0`, `s1`, …
fn scales_of_group(dataset: &Dataset, survey: &Survey, group: &str) -> Vec<Option<String>> {
    let pyramid = survey.multiscales.iter().find(|multiscale| multiscale.group == group);
    if let Some(pyramid) = pyramid {
        return pyramid.levels.iter().map(|level| Some(level.path.clone())).collect();
    }
    let name = |scale: usize| format!("{}/s{scale}", group.trim_end_matches('/'));
    let mut scales: Vec<Option<String>> = (0..SCALES_MAX)
        .map(|scale| Some(name(scale)).filter(|path| dataset.array(path).is_ok()))
        .collect();
    while scales.last().is_some_and(Option::is_none) {
        scales.pop();
    }
    scales
}

/// The only segmentation of a source.
fn only(dataset: &Dataset, survey: &Survey) -> Result<Vec<Option<String>>> {
    let groups = dataset.groups().map(|(path, _)| path.to_owned());
    let pyramids: Vec<(String, Vec<Option<String>>)> = groups
        .map(|group| (group.clone(), scales_of_group(dataset, survey, &group)))
        .filter(|(_, scales)| !scales.is_empty())
        .collect();
    let arrays: Vec<String> = dataset.arrays().map(|(path, _)| path.to_owned()).collect();
    match (&pyramids[..], &arrays[..]) {
        ([(_, only)], _) => Ok(only.clone()),
        ([], [only]) => Ok(vec![Some(only.clone())]),
        ([], []) => {
            Err(Error::NotFound { what: Noun::Array, name: "any in the source".to_owned() })
        }
        (several, arrays) => {
            let names: Vec<&str> = match several {
                [] => arrays.iter().map(String::as_str).take(10).collect(),
                several => several.iter().map(|(group, _)| group.as_str()).take(10).collect(),
            };
            Err(Error::invalid(format!(
                "there are several arrays in the source ({}); name the segmentation with --array",
                names.join(", ")
            )))
        }
    }
}

/// An array as a level; `None` if it has no voxels.
fn level(
    dataset: &Dataset,
    path: &str,
    space: Option<&Space>,
    factor: [u64; 3],
) -> Result<Option<Level>> {
    let node = dataset.array(path)?;
    let &[z, y, x] = node.spec.shape() else {
        return Err(Error::invalid(format!(
            "{path}: a segmentation has the axes z, y and x, and this array has {}",
            node.spec.shape().len()
        )));
    };
    let named = node.spec.dimension_names().unwrap_or_default();
    let first = named.first().and_then(Option::as_deref);
    if matches!(first, Some("x" | "X")) {
        return Err(Error::invalid(format!(
            "{path}: its first axis is x; a segmentation has its axes in the order z, y, x"
        )));
    }
    if [z, y, x].contains(&0) {
        return Ok(None);
    }
    let origin = match space.and_then(|space| space.origin.as_deref()) {
        Some(&[z, y, x]) => [x, y, z],
        _ => [0; 3],
    };
    Ok(Some(Level { path: path.to_owned(), origin, shape: [x, y, z], factor }))
}

/// The size of a voxel in nanometres along x, y, z.
fn nanometres(space: &Space) -> Option<[f64; 3]> {
    let mut size = [0.0; 3];
    let axes: &[_; 3] = space.axes.as_slice().try_into().ok()?;
    for (axis, size) in axes.iter().rev().zip(&mut size) {
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
