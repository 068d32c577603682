//! Elements between arrays and files of JSON: lists within lists, one for each dimension.
//!
//! For types that `.npy` lacks (strings, bytes, lists), and for people. The types are the ones of
//! containers, which are those that JSON can write.

use std::path::Path;

use anyhow::{Context as _, Result};
use chunkyard_array::{ElementsBuf, Region};
use chunkyard_engine::Error;
use chunkyard_engine::format::Reader;
use chunkyard_engine::format::container::elements::{element_of_json, json_of_element};
use chunkyard_engine::format::container::model::DType;
use chunkyard_engine::format::container::{ContainerArray, mapping};
use serde_json::Value;

use crate::failure::Input;
use crate::npy::Writer;

/// Whether the name of a file says JSON.
pub(crate) fn is_json(file: &Path) -> bool {
    file.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("json"))
}

/// Reads a file.
pub(crate) async fn read(file: &Path) -> Result<Value> {
    let name = file.display().to_string();
    let text = tokio::fs::read(file).await;
    let text = text.map_err(|error| Error::store("read", &name, error)).context(Input)?;
    let parsed = serde_json::from_slice(&text);
    parsed.map_err(|error| Error::invalid(format!("{name} is no JSON: {error}"))).context(Input)
}

/// The type of the elements of an array. Refuses types that JSON has no form for.
pub(crate) fn leaf_of(dtype: &chunkyard_array::DType) -> Result<DType> {
    let name = match dtype.name() {
        "variable_length_bytes" => "bytes",
        name => name,
    };
    let refused = |_| Error::unsupported(format!("elements of {dtype} as JSON"));
    Ok(mapping::parse_type(name).map_err(refused)?)
}

/// The same in a container: the type within lists of fixed size, which are dimensions of the array.
pub(crate) fn leaf_of_container(array: &ContainerArray) -> DType {
    within(&array.described().meta.dtype).clone()
}

fn within(dtype: &DType) -> &DType {
    match dtype {
        DType::FixedSizeList { child, .. } => within(child),
        leaf => leaf,
    }
}

/// How many levels of lists in a file are dimensions, for elements of a type.
pub(crate) fn rank_of(value: &Value, dtype: &DType) -> Result<usize> {
    let (lists, own) = (depth_of(value), depth_of_type(dtype));
    lists.checked_sub(own).ok_or_else(|| {
        let what = format!("lists {lists} deep hold no elements that are lists {own} deep");
        anyhow::Error::from(Error::invalid(what)).context(Input)
    })
}

fn depth_of(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth_of).max().unwrap_or(0),
        _ => 0,
    }
}

fn depth_of_type(dtype: &DType) -> usize {
    match dtype {
        DType::List { child } | DType::FixedSizeList { child, .. } => 1 + depth_of_type(child),
        _ => 0,
    }
}

/// The extents of the first `rank` levels of lists, and the values in them.
pub(crate) fn flatten(value: &Value, rank: usize) -> Result<(Vec<u64>, Vec<&Value>)> {
    let (mut shape, mut items) = (Vec::new(), vec![value]);
    for axis in 0..rank {
        let mut inner = Vec::new();
        let mut extent = None;
        for item in items {
            let uneven = || {
                let what = format!("lists of different lengths, or none, along dimension {axis}");
                anyhow::Error::from(Error::invalid(what)).context(Input)
            };
            let list = item.as_array().ok_or_else(uneven)?;
            if *extent.get_or_insert(list.len()) != list.len() {
                return Err(uneven());
            }
            inner.extend(list);
        }
        shape.push(extent.unwrap_or(0) as u64);
        items = inner;
    }
    Ok((shape, items))
}

/// Elements of a type, which is no list of fixed size.
pub(crate) fn elements_of(leaf: &DType, items: &[&Value]) -> Result<ElementsBuf> {
    let (mut bytes, mut offsets) = (Vec::new(), vec![0]);
    for (at, item) in items.iter().enumerate() {
        let element = element_of_json(leaf, item);
        bytes.extend(element.with_context(|| format!("element {at}")).context(Input)?);
        offsets.push(bytes.len() as u64);
    }
    Ok(match leaf.item_size() {
        Some(_) => ElementsBuf::Fixed(bytes),
        None => ElementsBuf::Variable { bytes, offsets },
    })
}

/// Writes a region of an array, whose elements have this type, slab after slab along its first
/// dimension.
pub(crate) async fn write(
    reader: &Reader,
    leaf: &DType,
    region: &Region,
    mut writer: Writer,
) -> Result<Writer> {
    let Some((&rows, inner)) = region.shape().split_first() else {
        let value = values(leaf, &reader.read_elements(region).await?)?.pop();
        writer.push(format!("{}\n", value.unwrap_or_default()).as_bytes())?;
        return Ok(writer);
    };
    let step = reader.codecs().grid().chunk_shape().first().copied().unwrap_or(1).max(1);
    let first = region.origin().first().copied().unwrap_or(0);
    writer.push(b"[")?;
    let mut at = 0;
    while at < rows {
        // Whole rows of chunks, so that none is read twice.
        let until = ((first + at) / step + 1).saturating_mul(step).saturating_sub(first).min(rows);
        let (mut origin, mut shape) = (region.origin().to_vec(), region.shape().to_vec());
        (origin[0], shape[0]) = (first + at, until - at);
        let slab = Region::new(origin, shape)?;
        let mut found = values(leaf, &reader.read_elements(&slab).await?)?.into_iter();
        let mut text = String::new();
        for row in at..until {
            text.push_str(if row == 0 { "" } else { ",\n " });
            text.push_str(&nest(&mut found, inner).to_string());
        }
        writer.push(text.as_bytes())?;
        at = until;
    }
    writer.push(b"]\n")?;
    Ok(writer)
}

fn values(leaf: &DType, elements: &ElementsBuf) -> Result<Vec<Value>> {
    let found: Result<Vec<Value>, Error> = match elements {
        ElementsBuf::Fixed(bytes) => {
            let size = leaf.item_size().unwrap_or(1).max(1);
            bytes.chunks_exact(size).map(|element| json_of_element(leaf, element)).collect()
        }
        variable => {
            let variable = variable.as_ref();
            let elements = (0..).map_while(|at| variable.get(at));
            elements.map(|element| json_of_element(leaf, element)).collect()
        }
    };
    Ok(found?)
}

/// The next values as lists within lists of these extents.
fn nest(values: &mut impl Iterator<Item = Value>, shape: &[u64]) -> Value {
    match shape.split_first() {
        None => values.next().unwrap_or_default(),
        Some((&extent, inner)) => (0..extent).map(|_| nest(values, inner)).collect(),
    }
}
