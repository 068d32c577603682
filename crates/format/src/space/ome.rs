//! Pyramids as OME-Zarr describes them: `multiscales` in the attributes of a group (version 0.4 and
//! before, Zarr v2), or in its attribute `ome` (version 0.5, Zarr v3).
//!
//! Specification: <https://ngff.openmicroscopy.org/0.5/>, sections "axes",
//! "coordinateTransformations" and "multiscales".

use std::collections::BTreeSet;

use chunkyard_array::Attributes;
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::Axis;
use super::key::{found, list, number, scale, text, unit};
use crate::{Dataset, Node, check_node_path};

/// The attribute of version 0.5 that has everything of OME.
pub(super) const OME: &str = "ome";
/// The list of pyramids.
pub(super) const MULTISCALES: &str = "multiscales";
pub(super) const DATASETS: &str = "datasets";
pub(super) const TRANSFORMATIONS: &str = "coordinateTransformations";
pub(super) const VERSION: &str = "version";

/// The most axes of a pyramid, pyramids of a group, and levels of a pyramid.
const AXES_MAX: usize = 32;
const MULTISCALES_MAX: usize = 256;
const LEVELS_MAX: usize = 256;
/// The most transformations of a level. The specification has two.
const TRANSFORMATIONS_MAX: usize = 16;

/// A pyramid: the same volume at several resolutions.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Multiscale {
    /// The path of the group whose metadata describes it.
    pub group: String,
    /// Its name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The version of OME-Zarr that describes it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Its axes, in the order of the dimensions of each level. Scales are with the levels.
    pub axes: Vec<Axis>,
    /// Its levels, finest first by convention.
    pub levels: Vec<Resolution>,
}

/// One level of a pyramid.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Resolution {
    /// The path of its array in the dataset.
    pub path: String,
    /// The distance of neighbouring elements along each axis, if it is stated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scale: Option<Vec<f64>>,
    /// The position of the first element, if it is stated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub translation: Option<Vec<f64>>,
}

impl Multiscale {
    /// The value of the attribute `ome`, version 0.5, of a group with one pyramid. Levels outside of
    /// the group cannot be said.
    pub fn render(&self) -> chunkyard_store::Result<Value> {
        let prefix = format!("{}/", self.group.trim_end_matches('/'));
        let mut datasets = Vec::with_capacity(self.levels.len());
        for level in &self.levels {
            let path = level.path.strip_prefix(&prefix).ok_or_else(|| {
                let group = &self.group;
                chunkyard_store::Error::invalid(format!(
                    "{} is not in the group {group}",
                    level.path
                ))
            })?;
            let mut transformations = Vec::new();
            if let Some(scale) = &level.scale {
                transformations.push(json!({"type": "scale", "scale": scale}));
            }
            if let Some(translation) = &level.translation {
                transformations.push(json!({"type": "translation", "translation": translation}));
            }
            datasets.push(json!({"path": path, TRANSFORMATIONS: transformations}));
        }
        let mut multiscale = Map::new();
        if let Some(name) = &self.name {
            multiscale.insert("name".to_owned(), json!(name));
        }
        multiscale.insert("axes".to_owned(), json!(self.axes));
        multiscale.insert(DATASETS.to_owned(), Value::Array(datasets));
        Ok(json!({VERSION: "0.5", MULTISCALES: [multiscale]}))
    }
}

/// The list of pyramids in the attributes of a group, with the version that holds for all of them.
pub(super) fn listed(attributes: &Attributes) -> Option<(&Value, Option<&Value>)> {
    match attributes.get(OME) {
        Some(ome) => ome.get(MULTISCALES).map(|list| (list, ome.get(VERSION))),
        None => attributes.get(MULTISCALES).map(|list| (list, None)),
    }
}

/// The pyramids that the attributes of a group describe, and what was left out.
pub(super) fn parse(
    group: &str,
    attributes: &Attributes,
    dataset: &Dataset,
) -> (Vec<Multiscale>, Vec<String>) {
    let Some((list, version)) = listed(attributes) else { return (Vec::new(), Vec::new()) };
    let entries = match list.as_array() {
        Some(entries) if entries.len() <= MULTISCALES_MAX => entries,
        _ => {
            let list = found(list);
            let why = format!("{MULTISCALES} {list} is no list of at most {MULTISCALES_MAX}");
            return (Vec::new(), vec![why]);
        }
    };
    let (mut multiscales, mut notes) = (Vec::new(), Vec::new());
    for (number, entry) in entries.iter().enumerate() {
        match parse_entry(group, entry, version, dataset, &mut notes) {
            Ok(multiscale) => multiscales.push(multiscale),
            Err(why) => notes.push(format!("pyramid {number} is left out: {why}")),
        }
    }
    (multiscales, notes)
}

fn parse_entry(
    group: &str,
    entry: &Value,
    version: Option<&Value>,
    dataset: &Dataset,
    notes: &mut Vec<String>,
) -> Result<Multiscale, String> {
    let axes = parse_axes(entry.get("axes"))?;
    let overall = match entry.get(TRANSFORMATIONS) {
        Some(list) => Transformation::parse(list, axes.len())?,
        None => Transformation::identity(axes.len()),
    };
    let datasets = match entry.get(DATASETS).and_then(Value::as_array) {
        Some(datasets) if datasets.len() <= LEVELS_MAX => datasets,
        Some(datasets) => {
            return Err(format!("{} levels, more than {LEVELS_MAX}", datasets.len()));
        }
        None => return Err(format!("it has no list of {DATASETS}")),
    };
    let mut levels: Vec<Resolution> = Vec::new();
    let mut paths = BTreeSet::new();
    for (number, described) in datasets.iter().enumerate() {
        let level = parse_level(group, described, &axes, &overall, dataset);
        match level.and_then(|level| match paths.insert(level.path.clone()) {
            true => Ok(level),
            false => Err(format!("{} is listed before", level.path)),
        }) {
            Ok(level) => levels.push(level),
            Err(why) => notes.push(format!("level {number} is left out: {why}")),
        }
    }
    if levels.is_empty() {
        return Err("none of its levels is usable".to_owned());
    }
    let version = version.or_else(|| entry.get(VERSION));
    Ok(Multiscale {
        group: group.to_owned(),
        // An empty name is as good as none, and a wrong one harms nothing.
        name: entry.get("name").and_then(|name| text("name", name).ok()),
        version: version.and_then(|version| text(VERSION, version).ok()),
        axes,
        levels,
    })
}

fn parse_axes(value: Option<&Value>) -> Result<Vec<Axis>, String> {
    let axes = match value.and_then(Value::as_array) {
        Some(axes) if (1..=AXES_MAX).contains(&axes.len()) => axes,
        Some(axes) => return Err(format!("{} axes; expected 1 to {AXES_MAX}", axes.len())),
        None => return Err("it has no list of axes".to_owned()),
    };
    let parsed: Vec<Axis> = axes.iter().map(parse_axis).collect::<Result<_, _>>()?;
    let names: BTreeSet<&Option<String>> = parsed.iter().map(|axis| &axis.name).collect();
    match names.len() == parsed.len() {
        true => Ok(parsed),
        false => Err("two axes have the same name".to_owned()),
    }
}

/// An axis is an object; in version 0.3 it was a name.
fn parse_axis(value: &Value) -> Result<Axis, String> {
    let member = |key| value.get(key).filter(|value| !value.is_null());
    let name = if value.is_string() { value } else { member("name").unwrap_or(&Value::Null) };
    Ok(Axis {
        name: Some(text("the name of an axis,", name)?),
        kind: member("type").map(|value| text("type", value)).transpose()?,
        unit: member("unit").map(unit).transpose()?,
        scale: None,
    })
}

fn parse_level(
    group: &str,
    described: &Value,
    axes: &[Axis],
    overall: &Transformation,
    dataset: &Dataset,
) -> Result<Resolution, String> {
    let path = level_path(group, described)?;
    let array = match dataset.nodes.get(&path) {
        Some(Node::Array(array)) => array,
        Some(Node::Group(_)) => return Err(format!("{path} is a group")),
        None => return Err(format!("there is no array {path}")),
    };
    let rank = array.spec.shape().len();
    if rank != axes.len() {
        return Err(format!("{path} has {rank} dimensions, the pyramid has {} axes", axes.len()));
    }
    if let Some(names) = array.spec.dimension_names()
        && names.iter().zip(axes).any(|(name, axis)| name.is_some() && *name != axis.name)
    {
        return Err(format!("the dimensions of {path} have other names than the axes"));
    }
    let Some(transformations) = described.get(TRANSFORMATIONS) else {
        return Ok(Resolution { path, scale: None, translation: None });
    };
    let whole = Transformation::parse(transformations, rank)?.then(overall)?;
    Ok(Resolution { path, scale: Some(whole.scale), translation: whole.translation })
}

/// The path in the dataset of a level that a group describes.
pub(super) fn level_path(group: &str, described: &Value) -> Result<String, String> {
    let value = described.get("path").unwrap_or(&Value::Null);
    let Some(path) = value.as_str() else {
        return Err(format!("its path {} is no text", found(value)));
    };
    check_node_path(path)
        .map_err(|_| format!("its path {} is no path below the group", found(value)))?;
    Ok(format!("{}/{path}", group.trim_end_matches('/')))
}

/// From the index of an element to its position: `index * scale + translation`.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Transformation {
    pub(super) scale: Vec<f64>,
    pub(super) translation: Option<Vec<f64>>,
}

impl Transformation {
    fn identity(rank: usize) -> Self {
        Self { scale: vec![1.0; rank], translation: None }
    }

    /// A list of transformations, each of which applies to what the one before gives.
    pub(super) fn parse(value: &Value, rank: usize) -> Result<Self, String> {
        let steps = match value.as_array() {
            Some(steps) if steps.len() <= TRANSFORMATIONS_MAX => steps,
            _ => return Err(format!("{TRANSFORMATIONS} {} is no short list", found(value))),
        };
        let mut whole = Self::identity(rank);
        for step in steps {
            let numbers = |key: &str| {
                let missing = || format!("a transformation of type {key} has no {key}");
                list(step.get(key).ok_or_else(missing)?, rank, key)
            };
            let next = match step.get("type").and_then(Value::as_str) {
                Some("identity") => continue,
                Some("scale") => {
                    let scale = numbers("scale")?.iter().map(scale).collect::<Result<_, _>>()?;
                    Self { scale, translation: None }
                }
                Some(key @ "translation") => {
                    let translation = numbers(key)?.iter().map(|value| number(key, value));
                    let translation = Some(translation.collect::<Result<_, _>>()?);
                    Self { translation, ..Self::identity(rank) }
                }
                _ => {
                    let kind = step.get("type").unwrap_or(&Value::Null);
                    return Err(format!("a transformation of type {} is unknown", found(kind)));
                }
            };
            whole = whole.then(&next)?;
        }
        Ok(whole)
    }

    /// This, and another one after it.
    fn then(&self, next: &Self) -> Result<Self, String> {
        let times = |values: &[f64]| -> Vec<f64> {
            values.iter().zip(&next.scale).map(|(value, scale)| value * scale).collect()
        };
        let scale = times(&self.scale);
        let translation = match (self.translation.as_deref().map(times), &next.translation) {
            (Some(first), Some(second)) => {
                Some(first.iter().zip(second).map(|(first, second)| first + second).collect())
            }
            (first, second) => first.or_else(|| second.clone()),
        };
        let all = scale.iter().chain(translation.iter().flatten());
        // A product of small scales may come out as zero, one of large scales as infinity.
        match all.clone().all(|value| value.is_finite()) && scale.iter().all(|scale| *scale > 0.0) {
            true => Ok(Self { scale, translation }),
            false => Err("its transformations together are out of range".to_owned()),
        }
    }
}
