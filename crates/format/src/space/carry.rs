//! Keeping the facts true when arrays are selected, cropped, or written as Zarr v3.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use chunkyard_array::{ArraySpec, Attributes, GroupSpec};
use chunkyard_store::{Error, Result};
use serde_json::{Map, Value, json};

use super::ome::{
    DATASETS, MULTISCALES, OME, TRANSFORMATIONS, Transformation, VERSION, level_path,
};
use super::{KEY, Survey, key, ome};
use crate::{Dataset, Node};

/// What becomes of an array.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fate {
    /// It comes along, from this element on.
    Kept(Vec<u64>),
    /// It stays behind.
    Left,
}

/// The metadata of an array that begins at another element than before.
pub fn carry_array(spec: &ArraySpec, start: &[u64]) -> Result<ArraySpec> {
    if start.iter().all(|start| *start == 0) {
        return Ok(spec.clone());
    }
    // What cannot be read is no fact, and stays as it is.
    let Ok(Some(mut space)) = key::parse(spec.attributes(), start.len()) else {
        return Ok(spec.clone());
    };
    let before = space.origin.take().unwrap_or_else(|| vec![0; start.len()]);
    let moved = before.iter().zip(start).map(|(index, start)| index.checked_add_unsigned(*start));
    let Some(moved) = moved.collect::<Option<Vec<i64>>>() else {
        return Err(Error::unsupported(format!(
            "an origin of {before:?} moved by {start:?}: an index is a 64-bit integer"
        )));
    };
    space.origin = Some(moved);
    let mut attributes = spec.attributes().clone();
    attributes.extend(key::render(&space).map(|value| (KEY.to_owned(), value)));
    Ok(spec.with_attributes(attributes)?)
}

/// The metadata of a group after `fate` has come over the arrays of its pyramids, with the reasons
/// why some of them had to be left out. Levels that stay behind are no longer listed; levels that begin at another
/// element say so.
pub fn carry_group(
    path: &str,
    group: &GroupSpec,
    dataset: &Dataset,
    fate: &dyn Fn(&str) -> Fate,
) -> (GroupSpec, Vec<String>) {
    // Numbers that are not finite are listed by their place, which may change here.
    let mut attributes = group.plain_attributes();
    let entries = ome::listed(&attributes).and_then(|(list, _)| list.as_array());
    let Some(before) = entries else { return (group.clone(), Vec::new()) };
    let (mut entries, mut lost) = (Vec::with_capacity(before.len()), Vec::new());
    for (number, entry) in before.iter().enumerate() {
        match carry_entry(path, entry, dataset, fate) {
            Ok(entry) => entries.extend(entry),
            Err(why) => lost.push(format!("pyramid {number} of {path}: {why}")),
        }
    }
    if entries == *before {
        return (group.clone(), Vec::new());
    }
    let place = match attributes.get_mut(OME) {
        Some(ome) => ome.as_object_mut(),
        None => Some(&mut attributes),
    };
    if let Some(place) = place {
        match entries.is_empty() {
            true => place.shift_remove(MULTISCALES),
            false => place.insert(MULTISCALES.to_owned(), Value::Array(entries)),
        };
    }
    (group.replace_attributes(attributes), lost)
}

/// A pyramid afterwards; `None` if nothing of it comes along.
fn carry_entry(
    group: &str,
    entry: &Value,
    dataset: &Dataset,
    fate: &dyn Fn(&str) -> Fate,
) -> std::result::Result<Option<Value>, String> {
    let Some(before) = entry.get(DATASETS).and_then(Value::as_array) else {
        return Ok(Some(entry.clone()));
    };
    let mut levels = Vec::with_capacity(before.len());
    for described in before {
        // What was no level before is none afterwards, and stays as it is.
        let path = level_path(group, described).ok();
        let array = path.and_then(|path| Some((dataset.array(&path).ok()?, fate(&path), path)));
        match array {
            Some((_, Fate::Left, _)) => {}
            Some((_, Fate::Kept(start), path)) if start.iter().any(|start| *start > 0) => {
                let moved = moved(described, &start).map_err(|why| format!("{path}: {why}"))?;
                levels.push(moved);
            }
            Some(_) | None => levels.push(described.clone()),
        }
    }
    if levels.is_empty() && !before.is_empty() {
        return Ok(None);
    }
    let mut entry = entry.clone();
    if let Some(members) = entry.as_object_mut() {
        members.insert(DATASETS.to_owned(), Value::Array(levels));
    }
    Ok(Some(entry))
}

/// A level that begins at another element: its translation grows by as many elements.
fn moved(described: &Value, start: &[u64]) -> std::result::Result<Value, String> {
    let list = described.get(TRANSFORMATIONS).unwrap_or(&Value::Null);
    let whole = Transformation::parse(list, start.len())?;
    let shift = start.iter().zip(&whole.scale).map(|(start, scale)| *start as f64 * scale);
    let mut steps = list.as_array().cloned().unwrap_or_default();
    // What is added after all other steps is not scaled any more.
    let is_translation = |step: &Value| step.get("type").is_some_and(|kind| kind == "translation");
    let last = steps.pop_if(|step| is_translation(step));
    let before = last.as_ref().and_then(|step| step["translation"].as_array());
    let before = |axis: usize| before.and_then(|before| before.get(axis)?.as_f64()).unwrap_or(0.0);
    let sum: Vec<f64> = shift.enumerate().map(|(axis, shift)| before(axis) + shift).collect();
    if !sum.iter().all(|place| place.is_finite()) {
        return Err("its translation is out of range".to_owned());
    }
    let mut step = last.unwrap_or_else(|| json!({"type": "translation"}));
    step["translation"] = json!(sum);
    steps.push(step);
    let mut described = described.clone();
    described[TRANSFORMATIONS] = Value::Array(steps);
    Ok(described)
}

/// The dataset as Zarr v3 has places for these facts: the axes of a pyramid are the dimension names
/// of its levels, and OME-Zarr 0.4, which is for Zarr v2, becomes 0.5, which differs in its place
/// only. Metadata that is not understood stays as it is.
pub fn in_zarr3(mut dataset: Dataset) -> Result<Dataset> {
    let survey = Survey::of(&dataset);
    let mut named: BTreeMap<&str, BTreeSet<Vec<Option<String>>>> = BTreeMap::new();
    for multiscale in &survey.multiscales {
        let names: Vec<_> = multiscale.axes.iter().map(|axis| axis.name.clone()).collect();
        for level in &multiscale.levels {
            named.entry(&level.path).or_default().insert(names.clone());
        }
    }
    for (path, names) in named {
        // Pyramids that share an array and name its axes differently leave it without names.
        if let (Some(Node::Array(array)), 1) = (dataset.nodes.get_mut(path), names.len())
            && array.spec.dimension_names().is_none()
        {
            let spec = array.spec.with_dimension_names(names.first().map(Vec::as_slice))?;
            Arc::make_mut(array).spec = spec;
        }
    }
    let doubtful: BTreeSet<&str> =
        survey.findings.iter().map(|finding| finding.file.as_str()).collect();
    let images: BTreeSet<String> = dataset
        .groups()
        .filter(|(path, group)| !doubtful.contains(path) && is_image_04(group.attributes()))
        .map(|(path, _)| path.to_owned())
        .collect();
    for (path, node) in &mut dataset.nodes {
        let Node::Group(group) = node else { continue };
        let moving = keys_of_04(path, group.attributes(), &images);
        if !moving.is_empty() {
            *group = group.replace_attributes(as_05(group.plain_attributes(), &moving));
        }
    }
    Ok(dataset)
}

/// Whether all pyramids of a group are of version 0.4.
fn is_image_04(attributes: &Attributes) -> bool {
    let list = attributes.get(MULTISCALES).and_then(Value::as_array);
    let is_04 = |entry: &Value| entry.get(VERSION).is_some_and(|version| version == "0.4");
    !attributes.contains_key(OME)
        && list.is_some_and(|entries| !entries.is_empty() && entries.iter().all(is_04))
}

/// The attributes of a group that belong to OME-Zarr 0.4. Other programs use words such as `plate`
/// or `labels` too, so the shape of the value, or the group above, must agree.
fn keys_of_04(path: &str, attributes: &Attributes, images: &BTreeSet<String>) -> Vec<&'static str> {
    if attributes.contains_key(OME) {
        return Vec::new();
    }
    let is_04 = |value: &Value| value.get(VERSION).is_some_and(|version| version == "0.4");
    let has = |key: &str, test: &dyn Fn(&Value) -> bool| attributes.get(key).is_some_and(test);
    let (image, any) = (images.contains(path), |_: &Value| true);
    let above =
        path.strip_suffix("/labels").map(|above| if above.is_empty() { "/" } else { above });
    let labels = above.is_some_and(|above| images.contains(above));
    let mut keys = Vec::new();
    for (key, moves) in [
        (MULTISCALES, image),
        ("omero", image && has("omero", &any)),
        ("image-label", image && has("image-label", &any)),
        ("labels", labels && has("labels", &Value::is_array)),
        ("plate", has("plate", &|plate| plate["wells"].is_array() && is_04(plate))),
        ("well", has("well", &|well| well["images"].is_array() && is_04(well))),
        ("bioformats2raw.layout", has("bioformats2raw.layout", &Value::is_number)),
    ] {
        if moves {
            keys.push(key);
        }
    }
    keys
}

/// The same attributes with some of them moved to where version 0.5 has them. There the version is
/// said once.
fn as_05(mut rest: Attributes, moving: &[&str]) -> Attributes {
    let mut ome = Map::new();
    ome.insert(VERSION.to_owned(), json!("0.5"));
    for key in moving {
        let Some(mut value) = rest.shift_remove(*key) else { continue };
        if let Value::Array(entries) = &mut value {
            entries.iter_mut().for_each(without_version);
        }
        without_version(&mut value);
        ome.insert((*key).to_owned(), value);
    }
    rest.insert(OME.to_owned(), Value::Object(ome));
    rest
}

fn without_version(value: &mut Value) {
    if let Some(members) = value.as_object_mut() {
        members.shift_remove(VERSION);
    }
}
