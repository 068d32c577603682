//! Zarr v2 metadata, read as the Zarr v3 metadata of the same array.
//!
//! Specification: Zarr v2, as zarr-python 2 and 3 write it. The `.zarray` and `.zattrs` of version
//! 2 become one [`ArraySpec`] whose codecs decode the existing chunks:
//!
//! | version 2 | version 3 |
//! |---|---|
//! | `dtype` | `data_type`, and the byte order of the `bytes` codec |
//! | `order: "F"` | a `transpose` codec |
//! | `filters`, `compressor` | codecs, in that order |
//! | `fill_value: null` | zero, or empty |
//! | `dimension_separator` | `chunk_key_encoding` named `v2` |
//! | attribute `_ARRAY_DIMENSIONS` | `dimension_names` |
//!
//! ```
//! let zarray = br#"{"zarr_format": 2, "shape": [100], "chunks": [10], "dtype": ">f4",
//!     "compressor": {"id": "zlib", "level": 1}, "fill_value": "NaN", "order": "C", "filters": null}"#;
//! let spec = chunkyard_array::parse_v2_array(zarray, None)?;
//! assert_eq!(spec.data_type_name(), "float32");
//! assert_eq!(spec.codecs_json()[1]["name"], "numcodecs.zlib");
//! # Ok::<(), chunkyard_array::Error>(())
//! ```

mod codecs;
mod dtype;
#[cfg(test)]
mod tests;

use serde_json::{Map, Value, json};

use super::{ArraySpec, Attributes, GroupSpec, document, non_finite};
use crate::{Codecs, Error, Result};

/// Names of the dimensions, by the convention of xarray.
const DIMENSIONS: &str = "_ARRAY_DIMENSIONS";

/// Reads the content of a `.zarray`, and of the `.zattrs` beside it if there is one.
///
/// An array whose chunks could not be read is [`Error::Unsupported`], with the data type, filter or
/// compressor that is in the way.
pub fn parse_v2_array(zarray: &[u8], zattrs: Option<&[u8]>) -> Result<ArraySpec> {
    let members = document::parse("Zarr v2 array metadata", zarray)?;
    check_format(&members)?;
    let shape = extents(&members, "shape")?;
    let mut chunk_shape = extents(&members, "chunks")?;
    for (chunk, extent) in chunk_shape.iter_mut().zip(&shape) {
        // Some writers cut a dimension of extent 0 into chunks of extent 0; there are none.
        if *extent == 0 && *chunk == 0 {
            *chunk = 1;
        }
    }
    let filters = match members.get("filters") {
        None | Some(Value::Null) => &[][..],
        Some(Value::Array(filters)) => filters,
        Some(other) => return Err(wrong("filters", other)),
    };
    let element = dtype::parse(members.get("dtype").unwrap_or(&Value::Null), filters)?;
    let fill_value = element.fill_value(members.get("fill_value").unwrap_or(&Value::Null))?;
    let fortran = match members.get("order").map(|order| (order, order.as_str())) {
        None | Some((_, Some("C"))) => false,
        Some((_, Some("F"))) => true,
        Some((other, _)) => return Err(wrong("order", other)),
    };
    let compressor = members.get("compressor").filter(|compressor| !compressor.is_null());
    let mut codecs = codecs::translate(&element, filters, compressor)?;
    if fortran && shape.len() > 1 {
        let order: Vec<usize> = (0..shape.len()).rev().collect();
        codecs.insert(0, json!({"name": "transpose", "configuration": {"order": order}}));
    }
    let separator = match members.get("dimension_separator").map(|value| (value, value.as_str())) {
        None | Some((Value::Null, _) | (_, Some("."))) => ".",
        Some((_, Some("/"))) => "/",
        Some((other, _)) => return Err(wrong("dimension_separator", other)),
    };
    let mut attributes = parse_attributes(zattrs)?;
    let names = take_dimension_names(&mut attributes, shape.len());
    let builder = ArraySpec::builder(&shape, &chunk_shape, element.metadata())
        .fill_value(fill_value)
        .codecs(codecs)
        .attributes(attributes)
        .chunk_key_encoding(json!({"name": "v2", "configuration": {"separator": separator}}));
    let builder = match names {
        Some(names) => builder.dimension_names(names),
        None => builder,
    };
    let spec = builder.build_as_read()?;
    Codecs::new(&spec)?;
    Ok(spec)
}

/// Reads the content of a `.zgroup`, and of the `.zattrs` beside it if there is one.
pub fn parse_v2_group(zgroup: &[u8], zattrs: Option<&[u8]>) -> Result<GroupSpec> {
    check_format(&document::parse("Zarr v2 group metadata", zgroup)?)?;
    Ok(GroupSpec::new(parse_attributes(zattrs)?))
}

fn parse_attributes(zattrs: Option<&[u8]>) -> Result<Attributes> {
    let Some(text) = zattrs else { return Ok(Attributes::new()) };
    let what = "Zarr v2 attributes are not a JSON object";
    match non_finite::parse(text).map_err(|cause| Error::invalid(what).because(cause))? {
        Value::Object(attributes) => Ok(attributes),
        _ => Err(Error::invalid(what)),
    }
}

fn check_format(members: &Map<String, Value>) -> Result<()> {
    match members.get("zarr_format") {
        Some(format) if format == 2 => Ok(()),
        other => Err(wrong("zarr_format", other.unwrap_or(&Value::Null))),
    }
}

fn extents(members: &Map<String, Value>, key: &str) -> Result<Vec<u64>> {
    let value = members.get(key).unwrap_or(&Value::Null);
    serde_json::from_value(value.clone()).map_err(|cause| wrong(key, value).because(cause))
}

/// Takes the names of the dimensions out of the attributes, if they are valid names.
fn take_dimension_names(attributes: &mut Attributes, rank: usize) -> Option<Vec<String>> {
    let names: Option<Vec<String>> = attributes
        .get(DIMENSIONS)?
        .as_array()?
        .iter()
        .map(|name| name.as_str().map(str::to_owned))
        .collect();
    let names = names.filter(|names| names.len() == rank)?;
    attributes.shift_remove(DIMENSIONS);
    Some(names)
}

/// The error of a member that is missing or not allowed in version 2.
fn wrong(key: &str, found: &Value) -> Error {
    Error::invalid(format!("Zarr v2 metadata with {key} {found}"))
}
