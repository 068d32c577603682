//! The attribute of an array that keeps what no other metadata of it states.
//!
//! ```json
//! {"axes": [{"type": "space", "unit": "nanometer", "scale": 8.0}, {}], "origin": [-16, 0]}
//! ```
//!
//! `axes` has an object per dimension, in which every member may be missing; names are the dimension
//! names of the array. Either of the two may be missing.

use chunkyard_array::{ArraySpec, Attributes};
use serde_json::{Map, Value, json};

use super::{Axis, Space};

/// The name of the attribute.
pub const KEY: &str = "chunkyard_space";

/// The longest unit, and the longest name of an axis or of what it measures, in bytes.
const TEXT_BYTES_MAX: usize = 256;

/// What the attribute of an array says; `None` if there is none.
pub(super) fn parse(attributes: &Attributes, rank: usize) -> Result<Option<Space>, String> {
    let Some(value) = attributes.get(KEY) else { return Ok(None) };
    let Value::Object(members) = value else {
        return Err(format!("expected an object, found {}", found(value)));
    };
    let axes = match members.get("axes") {
        None => vec![Axis::default(); rank],
        Some(axes) => list(axes, rank, "axes")?.iter().map(axis).collect::<Result<_, _>>()?,
    };
    let origin = match members.get("origin") {
        None => None,
        Some(origin) => {
            let index = |index: &Value| {
                index.as_i64().ok_or_else(|| format!("origin {} is no index", found(index)))
            };
            let indices = list(origin, rank, "origin")?.iter().map(index);
            Some(indices.collect::<Result<Vec<_>, _>>()?)
        }
    };
    Ok(Some(Space { axes, translation: None, origin }))
}

/// The attribute for a space; `None` if it says nothing but names.
pub(super) fn render(space: &Space) -> Option<Value> {
    let mut members = Map::new();
    // The names have a place of their own.
    let unnamed = |axis: &Axis| Axis { name: None, ..axis.clone() };
    let axes: Vec<Axis> = space.axes.iter().map(unnamed).collect();
    if axes.iter().any(|axis| *axis != Axis::default()) {
        members.insert("axes".to_owned(), json!(axes));
    }
    if let Some(origin) = &space.origin {
        members.insert("origin".to_owned(), json!(origin));
    }
    (!members.is_empty()).then_some(Value::Object(members))
}

/// The metadata of an array whose attribute states these units as well, one per axis.
pub(crate) fn with_units(
    spec: &ArraySpec,
    units: &[Option<String>],
) -> chunkyard_store::Result<ArraySpec> {
    let rank = spec.shape().len();
    let nothing = || Space { axes: vec![Axis::default(); rank], ..Space::default() };
    let Ok(stated) = parse(spec.attributes(), rank) else { return Ok(spec.clone()) };
    let mut space = stated.unwrap_or_else(nothing);
    for (axis, unit) in space.axes.iter_mut().zip(units) {
        axis.unit = axis.unit.take().or_else(|| unit.clone());
    }
    let mut attributes = spec.attributes().clone();
    attributes.extend(render(&space).map(|value| (KEY.to_owned(), value)));
    Ok(spec.with_attributes(attributes)?)
}

fn axis(value: &Value) -> Result<Axis, String> {
    let Value::Object(members) = value else {
        return Err(format!("axis {} is no object", found(value)));
    };
    Ok(Axis {
        name: None,
        kind: members.get("type").map(|value| text("type", value)).transpose()?,
        unit: members.get("unit").map(unit).transpose()?,
        scale: members.get("scale").map(scale).transpose()?,
    })
}

/// A list with one member per dimension.
pub(super) fn list<'a>(value: &'a Value, rank: usize, what: &str) -> Result<&'a [Value], String> {
    match value.as_array() {
        Some(values) if values.len() == rank => Ok(values),
        Some(values) => Err(format!("{what} has {} members for {rank} dimensions", values.len())),
        None => Err(format!("{what} {} is no list", found(value))),
    }
}

/// A distance of neighbouring elements.
pub(super) fn scale(value: &Value) -> Result<f64, String> {
    let scale = number("scale", value)?;
    match scale > 0.0 {
        true => Ok(scale),
        false => Err(format!("scale {} is not positive", found(value))),
    }
}

/// A finite number.
pub(super) fn number(what: &str, value: &Value) -> Result<f64, String> {
    let number = value.as_f64().filter(|number| number.is_finite());
    number.ok_or_else(|| format!("{what} {} is no finite number", found(value)))
}

/// A unit.
pub(crate) fn unit(value: &Value) -> Result<String, String> {
    text("unit", value)
}

/// A short text that is not empty.
pub(super) fn text(what: &str, value: &Value) -> Result<String, String> {
    match value.as_str() {
        Some(text) if !text.is_empty() && text.len() <= TEXT_BYTES_MAX => Ok(text.to_owned()),
        _ => Err(format!("{what} {} is no text of 1 to {TEXT_BYTES_MAX} bytes", found(value))),
    }
}

/// A value from a file, short enough for a message.
pub(super) fn found(value: &Value) -> String {
    const CHARS_MAX: usize = 60;
    let whole = match value {
        Value::Array(values) => return format!("[{} members]", values.len()),
        Value::Object(members) => return format!("{{{} members}}", members.len()),
        other => other.to_string(),
    };
    match whole.char_indices().nth(CHARS_MAX) {
        Some((at, _)) => format!("{}…", whole.get(..at).unwrap_or_default()),
        None => whole,
    }
}
