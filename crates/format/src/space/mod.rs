//! Where the elements of an array lie: names, units and spacing of its axes, the index of its first
//! element, and which arrays are one volume at several resolutions.
//!
//! ```text
//!  dimension names ──┐
//!  OME-Zarr ─────────┼──▶ Survey ─┬─ Space       one per array: axes, translation, origin
//!  chunkyard_space ──┤            ├─ Multiscale  one per pyramid: axes, and its levels
//!  coordinate arrays ┘            └─ findings    what was left out, and why
//! ```
//!
//! These facts have no storage of their own. They are read from the metadata of the nodes, which
//! every format keeps verbatim, so the model and the attributes cannot disagree, and a change of the
//! attributes changes the model. Each fact has one place; the first that states it counts:
//!
//! | fact | places |
//! |---|---|
//! | name | `dimension_names`; else the axes of the pyramid that lists the array |
//! | type, unit, scale, translation | that pyramid; else the attribute [`KEY`] |
//! | unit | else the `units` of the coordinate array with the name of the axis |
//! | origin | the translation in elements, if it is whole; else the attribute [`KEY`] |
//!
//! - `ome` reads and renders pyramids as OME-Zarr describes them.
//! - `key` reads and renders the attribute, for facts that no other metadata of an array states.
//! - `carry` keeps them true when a conversion selects or crops, and puts them where Zarr has a
//!   place for them.
//!
//! Metadata that lies, or cannot be understood, never makes an array unreadable: its facts are left
//! out, and a finding says why.

mod carry;
mod key;
mod ome;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use chunkyard_array::ArraySpec;
use serde::Serialize;

pub use self::carry::{Fate, carry_array, carry_group, in_zarr3};
pub use self::key::KEY;
pub(crate) use self::key::{unit, with_units};
pub use self::ome::{Multiscale, Resolution};
use crate::{ArrayNode, Dataset, FINDINGS_MAX, Finding, Severity};

/// One axis of an array.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Axis {
    /// Its name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// What it measures: `space`, `time`, `channel`, or another word of the writer.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// The unit of its positions, as the writer spelled it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unit: Option<String>,
    /// The distance of two neighbouring elements, in that unit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scale: Option<f64>,
}

/// Where the elements of an array lie. Along each axis, element `i` has the position
/// `translation + i * scale`.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Space {
    /// One axis per dimension, in their order.
    pub axes: Vec<Axis>,
    /// The position of the first element, in the units of the axes, if it is stated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub translation: Option<Vec<f64>>,
    /// The index of the first element in the volume that the array is a part of, in elements of this
    /// array, if it is stated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub origin: Option<Vec<i64>>,
}

/// All that the metadata of a dataset says about where its elements lie.
#[derive(Debug, Clone, Default)]
pub struct Survey {
    spaces: BTreeMap<String, Space>,
    /// The pyramids, in the order of their groups.
    pub multiscales: Vec<Multiscale>,
    /// What was left out, and why; at most [`FINDINGS_MAX`].
    pub findings: Vec<Finding>,
}

impl Space {
    /// Whether it says more than names.
    pub fn is_stated(&self) -> bool {
        let stated =
            |axis: &Axis| axis.kind.is_some() || axis.unit.is_some() || axis.scale.is_some();
        self.origin.is_some() || self.translation.is_some() || self.axes.iter().any(stated)
    }

    /// The scale of every axis, if all have one.
    pub fn scale(&self) -> Option<Vec<f64>> {
        self.axes.iter().map(|axis| axis.scale).collect()
    }

    /// The metadata of an array with these facts in it: names as dimension names, all else in the
    /// attribute [`KEY`]. For formats that state them elsewhere.
    pub fn render(&self, spec: &ArraySpec) -> chunkyard_store::Result<ArraySpec> {
        let names: Vec<Option<String>> = self.axes.iter().map(|axis| axis.name.clone()).collect();
        let named = names.iter().any(Option::is_some);
        let spec = spec.with_dimension_names(named.then_some(&names[..]))?;
        let mut attributes = spec.attributes().clone();
        match key::render(self) {
            Some(value) => {
                attributes.insert(KEY.to_owned(), value);
            }
            None => {
                attributes.shift_remove(KEY);
            }
        }
        Ok(spec.with_attributes(attributes)?)
    }
}

impl Survey {
    /// Reads the metadata of all nodes.
    pub fn of(dataset: &Dataset) -> Self {
        let mut survey = Self::default();
        for (path, group) in dataset.groups() {
            let (found, notes) = ome::parse(path, group.attributes(), dataset);
            survey.multiscales.extend(found);
            notes.into_iter().for_each(|note| survey.note(path, note));
        }
        let mut levels: BTreeMap<&str, (&Multiscale, &Resolution)> = BTreeMap::new();
        let mut notes = Vec::new();
        for multiscale in &survey.multiscales {
            for level in &multiscale.levels {
                let first = *levels.entry(&level.path).or_insert((multiscale, level));
                if first != (multiscale, level) && !agree(first, (multiscale, level)) {
                    let what = format!(
                        "{} is listed again, with another position; the first counts",
                        level.path
                    );
                    notes.push((multiscale.group.clone(), what));
                }
            }
        }
        let mut spaces = BTreeMap::new();
        for (path, array) in dataset.arrays() {
            let level = levels.get(path).copied();
            let (space, note) = space_of(dataset, path, array, level);
            spaces.insert(path.to_owned(), space);
            notes.extend(note.map(|note| (path.to_owned(), note)));
        }
        survey.spaces = spaces;
        notes.into_iter().for_each(|(path, note)| survey.note(&path, note));
        survey
    }

    /// Where the elements of an array lie; `None` if there is no such array.
    pub fn space(&self, path: &str) -> Option<&Space> {
        self.spaces.get(path)
    }

    fn note(&mut self, path: &str, what: String) {
        if self.findings.len() < FINDINGS_MAX {
            self.findings.push(Finding {
                severity: Severity::Note,
                file: path.to_owned(),
                what,
                snapshots: Vec::new(),
                array: None,
                chunk: None,
            });
        }
    }
}

/// Whether two pyramids say the same of an array that is in both.
fn agree(a: (&Multiscale, &Resolution), b: (&Multiscale, &Resolution)) -> bool {
    a.0.axes == b.0.axes && a.1.scale == b.1.scale && a.1.translation == b.1.translation
}

fn space_of(
    dataset: &Dataset,
    path: &str,
    array: &ArrayNode,
    level: Option<(&Multiscale, &Resolution)>,
) -> (Space, Option<String>) {
    let rank = array.spec.shape().len();
    let (own, mut note) = match key::parse(array.spec.attributes(), rank) {
        Ok(own) => (own, None),
        Err(why) => (None, Some(format!("the attribute {KEY} is left out: {why}"))),
    };
    let mut space =
        own.unwrap_or_else(|| Space { axes: vec![Axis::default(); rank], ..Space::default() });
    if let Some((multiscale, level)) = level {
        let stated = in_level(multiscale, level);
        if !space.is_part_of(&stated) {
            note = Some(format!(
                "the attribute {KEY} is left out: it differs from the pyramid of {}",
                multiscale.group
            ));
        }
        space = stated;
    }
    if let Some(names) = array.spec.dimension_names() {
        for (axis, name) in space.axes.iter_mut().zip(names) {
            axis.name = name.clone().or_else(|| axis.name.take());
        }
    }
    for axis in &mut space.axes {
        if let (None, Some(name)) = (&axis.unit, &axis.name) {
            axis.unit = coordinate_unit(dataset, path, name);
        }
    }
    if let (None, Some(origin), Some(scale)) = (&space.translation, &space.origin, space.scale()) {
        let translation = origin.iter().zip(scale).map(|(index, scale)| *index as f64 * scale);
        let translation: Vec<f64> = translation.collect();
        let finite = translation.iter().all(|place| place.is_finite());
        space.translation = finite.then_some(translation);
    }
    (space, note)
}

impl Space {
    /// Whether another space states all that this one does.
    fn is_part_of(&self, other: &Self) -> bool {
        fn part<T: PartialEq>(a: Option<&T>, b: Option<&T>) -> bool {
            a.is_none() || a == b
        }
        let origin = other.origin.clone().unwrap_or_else(|| vec![0; other.axes.len()]);
        part(self.origin.as_ref(), Some(&origin))
            && self.axes.iter().zip(&other.axes).all(|(a, b)| {
                part(a.kind.as_ref(), b.kind.as_ref())
                    && part(a.unit.as_ref(), b.unit.as_ref())
                    && part(a.scale.as_ref(), b.scale.as_ref())
            })
    }
}

/// What a pyramid says about an array that is one of its levels.
fn in_level(multiscale: &Multiscale, level: &Resolution) -> Space {
    let mut axes = multiscale.axes.clone();
    if let Some(scale) = &level.scale {
        for (axis, scale) in axes.iter_mut().zip(scale) {
            axis.scale = Some(*scale);
        }
    }
    let origin = match (&level.translation, &level.scale) {
        (Some(translation), Some(scale)) => {
            translation.iter().zip(scale).map(|(place, scale)| whole(place / scale)).collect()
        }
        _ => None,
    };
    Space { axes, translation: level.translation.clone(), origin }
}

/// A number of elements, if it is whole: up to the error of a product of two numbers and its
/// quotient, and no larger than a float counts exactly.
fn whole(elements: f64) -> Option<i64> {
    let nearest = elements.round();
    let exact = (elements - nearest).abs() <= 1e-9 * nearest.abs().max(1.0);
    (exact && nearest.abs() < (1u64 << 52) as f64).then_some(nearest as i64)
}

/// The unit that the coordinates of an axis have: an array of one dimension with the name of the
/// axis, in the group of the array or in one above, as netCDF and xarray keep them.
fn coordinate_unit(dataset: &Dataset, path: &str, name: &str) -> Option<String> {
    if name.contains('/') {
        return None;
    }
    let mut group = path;
    while let Some((above, _)) = group.rsplit_once('/') {
        if let Ok(array) = dataset.array(&format!("{above}/{name}"))
            && let Some([Some(own)]) = array.spec.dimension_names()
            && own == name
        {
            return key::unit(array.spec.attributes().get("units")?).ok();
        }
        group = above;
    }
    None
}
