//! Attributes as JSON.

use chunkyard_array::Attributes;
use hdf5_reader::RawAttribute;
use hdf5_reader::messages::attribute::AttributeMessage;
use hdf5_reader::messages::dataspace::DataspaceType;
use hdf5_reader::messages::datatype::{Datatype, StringPadding, StringSize, VarLenKind};
use serde_json::{Value, json};

use super::dtype::ElementType;

/// The most bytes of text that one attribute may refer to.
const TEXT_BYTES_MAX: usize = 16 << 20;
/// The most elements of one attribute.
const ELEMENTS_MAX: u64 = 1 << 22;

/// Attributes that netCDF and the dimension scales of HDF5 use internally. Their meaning is in the
/// dimension names.
const BOOKKEEPING: &[&str] = &[
    "DIMENSION_LABELS",
    "DIMENSION_LIST",
    "REFERENCE_LIST",
    "_NCProperties",
    "_Netcdf4Coordinates",
    "_Netcdf4Dimid",
    "_nc3_strict",
];

/// Follows a reference into a heap: the reference as stored, and the bytes of an element there.
pub(super) type Resolve<'a> = dyn Fn(&[u8], usize) -> Result<Vec<u8>, String> + 'a;

/// All attributes of an object, with a list of those that JSON cannot express and why.
pub(super) fn read(
    stored: &[RawAttribute],
    resolve: &Resolve<'_>,
    is_netcdf: bool,
) -> (Attributes, Vec<String>) {
    let mut attributes = Attributes::new();
    let mut lost = Vec::new();
    let is_scale = is_dimension_scale(stored);
    for attribute in stored {
        let name = attribute.name();
        if BOOKKEEPING.contains(&name) || (is_scale && matches!(name, "CLASS" | "NAME")) {
            continue;
        }
        match value(attribute.message(), attribute.raw_datatype(), resolve) {
            Ok(value) => {
                let value = if is_netcdf { scalar(value) } else { value };
                attributes.insert(name.to_owned(), value);
            }
            Err(why) => lost.push(format!("attribute {name:?}: {why}")),
        }
    }
    (attributes, lost)
}

/// Whether a dataset gives a dimension its name and coordinates.
pub(super) fn is_dimension_scale(stored: &[RawAttribute]) -> bool {
    text_of(stored, "CLASS").as_deref() == Some("DIMENSION_SCALE")
}

/// An attribute that is one string of fixed length.
pub(super) fn text_of(stored: &[RawAttribute], name: &str) -> Option<String> {
    let attribute = find(stored, name)?;
    match value(attribute.message(), attribute.raw_datatype(), &|_, _| Err(String::new())) {
        Ok(Value::String(text)) => Some(text),
        _ => None,
    }
}

/// The attribute with this name.
pub(super) fn find<'a>(stored: &'a [RawAttribute], name: &str) -> Option<&'a RawAttribute> {
    stored.iter().find(|attribute| attribute.name() == name)
}

/// NetCDF has no scalar attributes: it stores them as one element and shows them without a list.
fn scalar(value: Value) -> Value {
    match value {
        Value::Array(mut elements) if elements.len() == 1 => elements.pop().unwrap_or_default(),
        value => value,
    }
}

/// The value of one attribute: an element, or nested lists of them.
pub(super) fn value(
    attribute: &AttributeMessage,
    raw_datatype: &[u8],
    resolve: &Resolve<'_>,
) -> Result<Value, String> {
    let space = &attribute.dataspace;
    let count = space.num_elements().map_err(|cause| cause.to_string())?;
    if count > ELEMENTS_MAX {
        return Err(format!("{count} elements"));
    }
    let elements = elements(attribute, raw_datatype, count as usize, resolve)?;
    Ok(match space.dataspace_type {
        // NetCDF stores an empty string like this.
        DataspaceType::Null if is_text(&attribute.datatype) => json!(""),
        DataspaceType::Null => Value::Null,
        DataspaceType::Scalar => elements.into_iter().next().unwrap_or_default(),
        DataspaceType::Simple => nest(elements, &space.dims),
    })
}

fn is_text(datatype: &Datatype) -> bool {
    matches!(datatype, Datatype::String { .. } | Datatype::VarLen { kind: VarLenKind::String, .. })
}

fn elements(
    attribute: &AttributeMessage,
    raw_datatype: &[u8],
    count: usize,
    resolve: &Resolve<'_>,
) -> Result<Vec<Value>, String> {
    let cut_short = || "its value is cut short".to_owned();
    let data = attribute.raw_data.as_slice();
    match &attribute.datatype {
        Datatype::String { size: StringSize::Fixed(bytes), padding, .. } => {
            let texts = data.chunks_exact((*bytes as usize).max(1)).take(count);
            let texts = texts.map(|text| fixed_text(text, *padding));
            let texts = texts.collect::<Result<Vec<_>, _>>()?;
            if texts.len() < count { Err(cut_short()) } else { Ok(texts) }
        }
        Datatype::VarLen { kind: VarLenKind::String, base, .. } if base.is_vlen_string_base() => {
            let mut bytes_left = TEXT_BYTES_MAX;
            let references = data.chunks_exact((data.len() / count.max(1)).max(1)).take(count);
            let texts = references.map(|reference| {
                let bytes = resolve(reference, 1)?;
                bytes_left = bytes_left
                    .checked_sub(bytes.len())
                    .ok_or_else(|| format!("more than {TEXT_BYTES_MAX} bytes of text"))?;
                text(until_zero(&bytes)).map(Value::from)
            });
            let texts = texts.collect::<Result<Vec<_>, _>>()?;
            if texts.len() < count { Err(cut_short()) } else { Ok(texts) }
        }
        datatype => {
            let element = ElementType::new_from(datatype, raw_datatype)?;
            let values = data.chunks_exact(element.bytes.max(1)).take(count);
            let values: Option<Vec<Value>> = values.map(|bytes| element.number(bytes)).collect();
            values.filter(|values| values.len() == count).ok_or_else(cut_short)
        }
    }
}

fn fixed_text(bytes: &[u8], padding: StringPadding) -> Result<Value, String> {
    let padded_with = |byte: u8| {
        let end = bytes.iter().rposition(|&found| found != byte).map_or(0, |last| last + 1);
        bytes.get(..end).unwrap_or_default()
    };
    let bytes = match padding {
        StringPadding::NullTerminate => until_zero(bytes),
        StringPadding::NullPad => padded_with(0),
        StringPadding::SpacePad => padded_with(b' '),
    };
    text(bytes).map(Value::from)
}

/// A C string ends at the first zero, whatever length is recorded.
pub(super) fn until_zero(bytes: &[u8]) -> &[u8] {
    bytes.split(|&byte| byte == 0).next().unwrap_or_default()
}

/// Text, which must be UTF-8 as ASCII is.
pub(super) fn text(bytes: &[u8]) -> Result<&str, String> {
    std::str::from_utf8(bytes).map_err(|_| "text that is not UTF-8".to_owned())
}

/// Elements in lists of lists, one level per axis.
fn nest(elements: Vec<Value>, shape: &[u64]) -> Value {
    let Some((_, inner)) = shape.split_first() else {
        return elements.into_iter().next().unwrap_or_default();
    };
    let mut level = elements;
    for &extent in inner.iter().rev() {
        let extent = usize::try_from(extent).unwrap_or(usize::MAX).max(1);
        level = level.chunks(extent).map(|chunk| Value::Array(chunk.to_vec())).collect();
    }
    Value::Array(level)
}
