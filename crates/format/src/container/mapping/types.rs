//! Types: Zarr's types, and lists.
//!
//! | container | model |
//! |---|---|
//! | Bool, Int8 … UInt64, Float32, Float64 | `bool`, `int8` … `uint64`, `float32`, `float64` |
//! | String, Binary | `string`, `bytes` |
//! | TimestampNs | `numpy.datetime64` in units of 1 ns |
//! | FixedSizeList | one more dimension, the last, with chunks as long as it is |
//! | List | `bytes`: the children of an element, see [`elements`](crate::container::elements) |
//!
//! Types with lists are kept as text: `list<int32>`, `fixed<3,fixed<2,float32>>`. The words for other
//! types are Zarr's, and `datetime64[ns]`.

use chunkyard_store::{Error, Result};
use serde_json::{Value, json};

use crate::container::elements::DEPTH_MAX;
use crate::container::model::DType;

/// Types that are not lists, and their words.
const LEAVES: &[(DType, &str)] = &[
    (DType::Bool, "bool"),
    (DType::Int8, "int8"),
    (DType::Int16, "int16"),
    (DType::Int32, "int32"),
    (DType::Int64, "int64"),
    (DType::UInt8, "uint8"),
    (DType::UInt16, "uint16"),
    (DType::UInt32, "uint32"),
    (DType::UInt64, "uint64"),
    (DType::Float32, "float32"),
    (DType::Float64, "float64"),
    (DType::String, "string"),
    (DType::Binary, "bytes"),
    (DType::TimestampNs, "datetime64[ns]"),
];

/// How the elements of a container become the elements of an array.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ElementMapping {
    /// The extents of the added dimensions.
    pub(super) inner: Vec<u32>,
    /// The type within them: not a list of fixed size.
    pub(super) leaf: DType,
    /// The data type of the array.
    pub(super) data_type: Value,
}

impl ElementMapping {
    /// The layout of a type.
    pub(super) fn of(dtype: &DType) -> Result<Self> {
        if children_of(dtype).nth(DEPTH_MAX).is_some() {
            return Err(Error::unsupported(format!("lists within {DEPTH_MAX} others")));
        }
        let mut inner = Vec::new();
        let mut leaf = dtype;
        while let DType::FixedSizeList { child, size } = leaf {
            inner.push(*size);
            leaf = child;
        }
        let data_type = match leaf {
            DType::TimestampNs => {
                let nanoseconds = json!({"unit": "ns", "scale_factor": 1});
                json!({"name": "numpy.datetime64", "configuration": nanoseconds})
            }
            DType::List { .. } => json!("bytes"),
            leaf => json!(render(leaf)),
        };
        Ok(Self { inner, leaf: leaf.clone(), data_type })
    }

    /// Whether there is no list.
    pub(super) fn is_plain(&self) -> bool {
        self.inner.is_empty() && !matches!(self.leaf, DType::List { .. })
    }

    /// The type of an element of the array, by itself.
    pub(super) fn element(&self) -> DType {
        match &self.leaf {
            DType::List { .. } => DType::Binary,
            leaf => leaf.clone(),
        }
    }
}

/// The type and the types nested in it, from the outside.
fn children_of(dtype: &DType) -> impl Iterator<Item = &DType> {
    std::iter::successors(Some(dtype), |dtype| match *dtype {
        DType::List { child } | DType::FixedSizeList { child, .. } => Some(child.as_ref()),
        _ => None,
    })
    .skip(1)
}

/// The container's type for the elements of an array.
pub(super) fn leaf_of(dtype: &chunkyard_array::DType) -> Result<DType> {
    let name = match dtype.name() {
        "variable_length_bytes" => "bytes",
        "numpy.datetime64" if dtype.to_numpy().as_deref() == Some("<M8[ns]") => "datetime64[ns]",
        name => name,
    };
    if let Some((leaf, _)) = LEAVES.iter().find(|(_, word)| *word == name) {
        return Ok(leaf.clone());
    }
    let advice = match name {
        "float16" | "bfloat16" => "; float32 holds all of its values",
        "complex64" | "complex128" => "; two arrays of floats hold its parts",
        name if name.starts_with("fixed_length_utf32") => "; string holds them",
        name if name.starts_with("numpy.datetime64") => "; so give times in nanoseconds",
        _ => "",
    };
    Err(Error::unsupported(format!(
        "data type {dtype} in a container, which has booleans, integers, float32, float64, strings, \
         bytes and times in nanoseconds{advice}"
    )))
}

/// A type as text. The type must have a [`ElementMapping`], which limits how deep it nests.
pub(super) fn render(dtype: &DType) -> String {
    match dtype {
        DType::List { child } => format!("list<{}>", render(child)),
        DType::FixedSizeList { child, size } => format!("fixed<{size},{}>", render(child)),
        leaf => LEAVES.iter().find(|(known, _)| known == leaf).map_or("", |(_, word)| word).into(),
    }
}

/// Parses a type, lists included: `string`, `list<int32>`, `fixed<3,float32>`.
pub fn parse_type(text: &str) -> Result<DType> {
    parse_any(text, 0).filter(|dtype| ElementMapping::of(dtype).is_ok()).ok_or_else(|| {
        let words: Vec<&str> = LEAVES.iter().map(|(_, word)| *word).collect();
        Error::invalid(format!(
            "{text:?} is no type of a container; there are {}, list<TYPE> and fixed<SIZE,TYPE>",
            words.join(", ")
        ))
    })
}

/// The data type of an array whose elements have this type, as Zarr writes it; lists of fixed size are
/// further dimensions of it.
pub fn data_type_of(dtype: &DType) -> Result<Value> {
    Ok(ElementMapping::of(dtype)?.data_type)
}

/// Parses a type with lists; `None` if the text is not one.
pub(super) fn parse(text: &str) -> Option<DType> {
    let dtype = parse_any(text, 0)?;
    matches!(dtype, DType::List { .. } | DType::FixedSizeList { .. }).then_some(dtype)
}

fn parse_any(text: &str, depth: usize) -> Option<DType> {
    if depth > DEPTH_MAX {
        return None;
    }
    let child = |text: &str| parse_any(text, depth + 1).map(Box::new);
    let Some(inside) = text.strip_suffix('>') else {
        return LEAVES.iter().find(|(_, word)| *word == text).map(|(leaf, _)| leaf.clone());
    };
    if let Some(text) = inside.strip_prefix("list<") {
        return Some(DType::List { child: child(text)? });
    }
    let (size, text) = inside.strip_prefix("fixed<")?.split_once(',')?;
    Some(DType::FixedSizeList { size: size.parse().ok()?, child: child(text)? })
}
