//! Arrays of a container as arrays of the model, and the other way round.
//!
//! ```text
//!  ArrayMeta + attributes  ◀──▶  ArrayNode (Zarr v3)        this module, `types`, `fill`, `attributes`
//!  names, one flat list    ◀──▶  Dataset, a hierarchy       `names`
//! ```
//!
//! The two models differ. Facts that one side cannot express go into attributes with names of ours, and
//! come back from them; nothing is lost on the way there and back:
//!
//! | attribute | holds |
//! |---|---|
//! | `_chunkyard_list` | the type of elements that are lists, see `types` |
//! | `_chunkyard_fill` | a fill value that would come back from Zarr differently, see `fill` |
//! | `_chunkyard_members` | members of a Zarr document that a container has no place for |
//!
//! Chunks look alike on both sides, so that no byte of them is touched: elements in little-endian order
//! or after a table of offsets, row-major, clipped at the edges. Only chunks of lists are rearranged,
//! see [`elements`](crate::container::elements). Compression belongs to blocks, not to this module.

pub(crate) mod attribute_type;
mod attributes;
pub(crate) mod chunks;
mod fill;
mod names;
#[cfg(test)]
mod tests;
mod types;

use chunkyard_array::{ArraySpec, Attributes, GroupSpec, codec, non_finite};
use serde_json::{Map, Value, json};

pub use self::attributes::attribute_json;
pub use self::names::{dataset_of, entries_of, group_name, name_of};
use self::types::ElementMapping;
pub use self::types::{data_type_of, parse_type};
use chunkyard_store::{Error, Result};

use super::model::{ArrayMeta, AttributeValue, DType, IndexWidth, to_u32};
use crate::{ArrayNode, Edges};

/// The attribute that keeps members of a Zarr document.
const MEMBERS: &str = "_chunkyard_members";
/// The attribute that keeps the type of elements that are lists.
const LIST: &str = "_chunkyard_list";

/// The member that keeps the names of dimensions, if a container cannot.
const NAMES: &str = "dimension_names";
/// The member that is a copy of all other documents. A copy elsewhere would be stale.
const CONSOLIDATED: &str = "consolidated_metadata";

/// An array of a container with its attributes, which the container keeps apart.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// The array. Its list of attributes is empty: indices belong to a file.
    pub meta: ArrayMeta,
    /// Its attributes.
    pub attributes: Vec<(String, AttributeValue)>,
}

/// The array that an entry describes.
pub fn array_of(entry: &Entry) -> Result<ArrayNode> {
    let meta = &entry.meta;
    let (rank, chunk_rank) = (meta.shape.len(), meta.chunk_shape.len());
    if rank != chunk_rank {
        return Err(corrupt(meta, format!("chunks of rank {rank}"), chunk_rank));
    }
    if !meta.dimension_names.is_empty() && meta.dimension_names.len() != rank {
        let expected = format!("{rank} dimension names, or none");
        return Err(corrupt(meta, expected, meta.dimension_names.len()));
    }
    let layout = ElementMapping::of(&meta.dtype)?;
    let (mut attributes, non_finite) = attributes::to_json(&entry.attributes);
    let mut members = take_members(&mut attributes, non_finite);
    if !layout.is_plain() {
        reserve(&mut attributes, LIST, json!(types::render(&meta.dtype)))?;
    }
    let element = fill::element(&layout.leaf, meta.fill_value.as_ref());
    if let Some(stored) = fill::remark(&layout.leaf, meta.fill_value.as_ref(), &element) {
        reserve(&mut attributes, fill::FILL, stored)?;
    }
    let inner = || layout.inner.iter().map(|&size| u64::from(size));
    let shape: Vec<u64> = meta.shape.iter().map(|&n| u64::from(n)).chain(inner()).collect();
    // 0.9 gives a zero-length axis chunks of no extent, which later versions read as one.
    let chunks = meta.chunk_shape.iter().map(|&n| u64::from(n)).chain(inner());
    let chunk_shape: Vec<u64> = chunks.map(|extent| extent.max(1)).collect();
    let dtype = chunkyard_array::DType::parse(&layout.data_type)?;
    let codecs = match dtype.item_size() {
        Some(_) => codec::parse_shorthand("none", &dtype)?,
        None => vec![json!({"name": codec::OFFSETS})],
    };
    let mut spec = ArraySpec::builder(&shape, &chunk_shape, layout.data_type)
        .fill_bytes(&element)
        .codecs(codecs)
        .attributes(attributes)
        .build()?;
    if !meta.dimension_names.is_empty() {
        let mut names: Vec<_> = meta.dimension_names.iter().cloned().map(Some).collect();
        names.resize(shape.len(), None);
        spec = spec.with_dimension_names(Some(&names))?;
    }
    if let Some(names) = members.shift_remove(NAMES) {
        let names: Vec<Option<String>> = serde_json::from_value(names).map_err(|cause| {
            Error::invalid(format!("the dimension names in {MEMBERS}: {cause}"))
        })?;
        spec = spec.with_dimension_names(Some(&names))?;
    }
    spec = spec.with_members(members)?;
    Ok(ArrayNode { spec, sharding: None, edges: Edges::Clipped })
}

/// The entry that describes an array under a name.
pub fn entry_of(name: &str, array: &ArrayNode) -> Result<Entry> {
    let spec = &array.spec;
    spec.check_understood()?;
    let (dtype, grid) = (spec.dtype()?, spec.grid()?);
    let mut attributes = spec.attributes().clone();
    let mut members = spec.members();
    let leaf = types::leaf_of(&dtype)?;
    let layout = take_list(&mut attributes, &leaf, spec.shape(), grid.chunk_shape());
    let dtype = layout.unwrap_or(leaf);
    let layout = ElementMapping::of(&dtype)?;
    let element = chunkyard_array::fill_element(&spec.dtype()?, &spec.metadata().fill_value)?;
    let fill_value = match fill::take(&mut attributes, &layout.leaf, &element) {
        Some(stored) => Some(stored),
        None => fill::stored(&layout.leaf, &element)?,
    };
    let rank = spec.shape().len().saturating_sub(layout.inner.len());
    let extents = |what: &str, extents: &[u64]| -> Result<Vec<u32>> {
        let numbered = extents.iter().take(rank).enumerate();
        numbered.map(|(axis, &n)| to_u32(|| format!("{what} of dimension {axis}"), n)).collect()
    };
    let dimension_names = dimension_names(spec.dimension_names(), rank, &mut members);
    let attributes = with_members(attributes, members)?;
    Ok(Entry {
        meta: ArrayMeta {
            name: name.to_owned(),
            dtype,
            shape: extents("the extent", spec.shape())?,
            dimension_names,
            chunk_shape: extents("the chunk extent", grid.chunk_shape())?,
            fill_value,
            deleted: false,
            attributes: Vec::new(),
            index_width: IndexWidth::default(),
        },
        attributes,
    })
}

/// The group that an entry describes.
fn group_of(entry: &Entry) -> GroupSpec {
    let (mut attributes, non_finite) = attributes::to_json(&entry.attributes);
    let members = take_members(&mut attributes, non_finite);
    let group = GroupSpec::new(attributes);
    members.into_iter().fold(group, |group, (key, value)| group.with_member(&key, value))
}

/// The entry that describes a group under a name: a scalar that is never written.
fn group_entry_of(name: String, group: &GroupSpec) -> Result<Entry> {
    let mut members = group.members();
    members.shift_remove(CONSOLIDATED);
    Ok(Entry {
        meta: ArrayMeta {
            name,
            dtype: DType::UInt8,
            shape: Vec::new(),
            dimension_names: Vec::new(),
            chunk_shape: Vec::new(),
            fill_value: None,
            deleted: false,
            attributes: Vec::new(),
            index_width: IndexWidth::default(),
        },
        attributes: with_members(group.attributes().clone(), members)?,
    })
}

/// The names of the first `rank` dimensions. A container names all of them or none; if Zarr names only
/// some, the whole list is kept among the members.
fn dimension_names(
    names: Option<&[Option<String>]>,
    rank: usize,
    members: &mut Map<String, Value>,
) -> Vec<String> {
    let Some(names) = names else { return Vec::new() };
    let (outer, inner) = names.split_at_checked(rank).unwrap_or((names, &[]));
    if outer.iter().any(Option::is_none) || inner.iter().any(Option::is_some) {
        members.insert(NAMES.to_owned(), json!(names));
    }
    outer.iter().map(|name| name.clone().unwrap_or_default()).collect()
}

/// Takes the type of lists out of the attributes, if it fits the array. It no longer does after the
/// array was cut or cast; then it means nothing.
fn take_list(
    attributes: &mut Attributes,
    leaf: &DType,
    shape: &[u64],
    chunk_shape: &[u64],
) -> Option<DType> {
    let dtype = types::parse(attributes.get(LIST)?.as_str()?)?;
    attributes.shift_remove(LIST);
    let layout = ElementMapping::of(&dtype).ok()?;
    let sizes: Vec<u64> = layout.inner.iter().map(|&size| u64::from(size)).collect();
    let chunk: Vec<u64> = sizes.iter().map(|&size| size.max(1)).collect();
    let fits =
        layout.element() == *leaf && shape.ends_with(&sizes) && chunk_shape.ends_with(&chunk);
    fits.then_some(dtype)
}

/// Adds an attribute of ours.
fn reserve(attributes: &mut Attributes, key: &str, value: Value) -> Result<()> {
    match attributes.insert(key.to_owned(), value) {
        None => Ok(()),
        Some(_) => Err(Error::unsupported(format!("an attribute {key}, which is ours, here"))),
    }
}

/// Attributes as a container keeps them, with the members among them.
fn with_members(
    mut attributes: Attributes,
    mut members: Map<String, Value>,
) -> Result<Vec<(String, AttributeValue)>> {
    let (numbers, rest) = attributes::split_pointers(&attributes, non_finite::pointers(&members));
    members.shift_remove(non_finite::MEMBER);
    if !rest.is_empty() {
        members.insert(non_finite::MEMBER.to_owned(), non_finite::member(&rest));
    }
    // The user's attribute would be taken for ours on the way back.
    if !members.is_empty() || attributes.get(MEMBERS).is_some_and(Value::is_object) {
        reserve(&mut attributes, MEMBERS, Value::Object(members))?;
    }
    Ok(attributes::from_json(&attributes, &numbers))
}

/// Takes the members out of attributes, and adds which attributes are numbers that JSON does not have.
fn take_members(attributes: &mut Attributes, mut numbers: Vec<String>) -> Map<String, Value> {
    let mut members = Map::new();
    if attributes.get(MEMBERS).is_some_and(Value::is_object)
        && let Some(Value::Object(kept)) = attributes.shift_remove(MEMBERS)
    {
        members = kept;
    }
    numbers.extend(non_finite::pointers(&members).map(str::to_owned));
    members.shift_remove(non_finite::MEMBER);
    if !numbers.is_empty() {
        members.insert(non_finite::MEMBER.to_owned(), non_finite::member(&numbers));
    }
    members
}

fn corrupt(meta: &ArrayMeta, expected: String, found: usize) -> Error {
    let what = format!("array {:?}", meta.name);
    chunkyard_array::Error::corrupt(what, expected, found.to_string()).into()
}
