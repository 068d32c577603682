//! NumPy's texts for data types: of one value, or of a row of named fields.
//!
//! ```text
//!  float64   bool   >f8   |S3   <U5   datetime64[ns]                  one value
//!  [('x', '<f8'), ('y', '<i2', (3,)), ('n', [('a', '<i4')])]          fields
//!  '<i2'                        a text within the text, as Bloscpack's metadata has it
//! ```

use std::collections::HashSet;

use super::literal::{self, Literal, quoted};
use crate::{ByteOrder, DType, Error, Result};

/// Bytes of the largest single value.
const ITEM_BYTES_MAX: usize = 1 << 20;

/// The type of the rows of an array.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RowType {
    /// One value.
    Plain {
        /// Its type.
        dtype: DType,
        /// How its bytes are ordered where it is stored.
        order: ByteOrder,
    },
    /// Named values, one after another without gaps.
    Struct(Vec<Field>),
}

/// A named part of a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// Its name.
    pub name: String,
    /// Its type.
    pub kind: RowType,
    /// The shape of an array in each row; empty for a single value.
    pub shape: Vec<u64>,
}

/// Types of time, which NumPy spells out where it names a type.
const TIMES: [(&str, &str); 2] = [("datetime64", "M8"), ("timedelta64", "m8")];

/// Number types of NumPy that are longer than any of ours, and differ between machines.
const EXTENDED: [&str; 12] = [
    "float96",
    "float128",
    "longdouble",
    "f12",
    "f16",
    "g",
    "complex192",
    "complex256",
    "clongdouble",
    "c24",
    "c32",
    "G",
];

/// The type that a text describes.
pub fn parse(text: &str) -> Result<RowType> {
    let text = text.trim();
    match text.as_bytes().first() {
        Some(b'\'' | b'"' | b'[' | b'(') => {
            let literal = literal::parse(text).ok_or_else(|| malformed(text))?;
            row_type(&literal, text)
        }
        Some(b'{') => {
            let what = format!("NumPy data type {text}: fields with gaps between them");
            Err(Error::unsupported(what))
        }
        _ => plain(text),
    }
}

/// The text for a type, as bcolz writes it: a name for a number or a time, else a description.
pub fn render(kind: &RowType) -> Result<String> {
    match kind {
        RowType::Plain { dtype, order: ByteOrder::Little } if is_number(dtype) => {
            Ok(dtype.name().to_owned())
        }
        RowType::Plain { dtype, order: ByteOrder::Little } => {
            let short = description(dtype, ByteOrder::Little)?;
            let time = TIMES.into_iter().find_map(|(name, numpy)| {
                let unit = short.strip_prefix('<')?.strip_prefix(numpy)?;
                Some(format!("{name}{unit}"))
            });
            Ok(time.unwrap_or(short))
        }
        RowType::Plain { dtype, order } => description(dtype, *order),
        RowType::Struct(fields) => {
            let fields: Result<Vec<_>> = fields.iter().map(render_field).collect();
            Ok(format!("[{}]", fields?.join(", ")))
        }
    }
}

/// Python's `repr` of NumPy's description of a type, as Bloscpack and `.npy` files have it.
pub fn repr(kind: &RowType) -> Result<String> {
    match kind {
        RowType::Plain { dtype, order } => Ok(format!("'{}'", description(dtype, *order)?)),
        RowType::Struct(_) => render(kind),
    }
}

/// Bytes of one row, in the file as in memory.
pub fn item_bytes(kind: &RowType) -> u64 {
    match kind {
        RowType::Plain { dtype, .. } => dtype.item_size().unwrap_or(0) as u64,
        RowType::Struct(fields) => fields.iter().fold(0, |sum, field| {
            let items = field.shape.iter().fold(1, |items: u64, &len| items.saturating_mul(len));
            sum.saturating_add(item_bytes(&field.kind).saturating_mul(items))
        }),
    }
}

/// The type of one value.
fn plain(text: &str) -> Result<RowType> {
    let unordered = text.trim_start_matches(['<', '>', '|', '=']);
    if matches!(unordered, "O" | "O4" | "O8" | "object" | "object_") {
        let what =
            "NumPy data type object: its values are Python pickles, and reading one runs code";
        return Err(Error::unsupported(what));
    }
    let named = DType::parse(&text.into()).ok().filter(is_number);
    let (dtype, order) = match named {
        Some(dtype) => (dtype, ByteOrder::Little),
        None => {
            let time = TIMES.into_iter().find_map(|(name, numpy)| {
                text.strip_prefix(name).map(|unit| format!("{numpy}{unit}"))
            });
            // A truth value in a field is spelled with a question mark.
            let truth = (unordered == "?").then(|| "|b1".to_owned());
            let described = DType::from_numpy(&time.or(truth).unwrap_or_else(|| text.to_owned()));
            // Any other unknown text is not a type.
            described.map_err(|error| match EXTENDED.contains(&unordered) {
                true => error,
                false => malformed(text),
            })?
        }
    };
    if dtype.item_size().is_none_or(|bytes| bytes > ITEM_BYTES_MAX) {
        let what = format!("NumPy data type {text}: values of more than {ITEM_BYTES_MAX} bytes");
        return Err(Error::unsupported(what));
    }
    // A type without a byte order is always little-endian here, so that all its spellings are equal.
    let ordered = matches!(dtype.to_numpy().as_deref().map(str::as_bytes), Some([b'<', ..]));
    Ok(RowType::Plain { dtype, order: if ordered { order } else { ByteOrder::Little } })
}

/// Whether it is a truth value or a number: their names are the same in Zarr and in NumPy.
fn is_number(dtype: &DType) -> bool {
    let numpy = dtype.to_numpy().unwrap_or_default();
    matches!(numpy.as_bytes(), [_, b'b' | b'i' | b'u' | b'f' | b'c', ..])
}

/// The type that a literal describes.
pub(super) fn of_literal(literal: &Literal) -> Result<RowType> {
    row_type(literal, &literal.to_string())
}

fn row_type(literal: &Literal, text: &str) -> Result<RowType> {
    match literal {
        Literal::Text(inner) => plain(inner),
        Literal::List(items) if !items.is_empty() => {
            let fields: Vec<Field> =
                items.iter().map(|item| field(item, text)).collect::<Result<_>>()?;
            let mut names = HashSet::new();
            match fields.iter().find(|field| !names.insert(field.name.as_str())) {
                Some(Field { name, .. }) => {
                    Err(Error::invalid(format!("NumPy data type {text}: two fields '{name}'")))
                }
                None => Ok(RowType::Struct(fields)),
            }
        }
        _ => Err(malformed(text)),
    }
}

/// A field: name, type, and perhaps the shape of an array.
fn field(literal: &Literal, text: &str) -> Result<Field> {
    let Literal::Tuple(parts) = literal else { return Err(malformed(text)) };
    let (name, kind, shape) = match parts.as_slice() {
        [name, kind] => (name, kind, Vec::new()),
        [name, kind, Literal::Number(len)] => (name, kind, vec![*len]),
        [name, kind, Literal::Tuple(shape)] => (name, kind, lengths(shape, text)?),
        _ => return Err(malformed(text)),
    };
    match name {
        Literal::Text(name) if !name.is_empty() => {
            Ok(Field { name: name.clone(), kind: row_type(kind, text)?, shape })
        }
        Literal::Text(_) => {
            Err(Error::unsupported(format!("NumPy data type {text}: a field without a name")))
        }
        Literal::Tuple(_) => {
            Err(Error::unsupported(format!("NumPy data type {text}: a field with a title")))
        }
        _ => Err(malformed(text)),
    }
}

fn lengths(shape: &[Literal], text: &str) -> Result<Vec<u64>> {
    let lengths = shape.iter().map(|len| match len {
        Literal::Number(len) => Ok(*len),
        _ => Err(malformed(text)),
    });
    lengths.collect()
}

fn render_field(field: &Field) -> Result<String> {
    let kind = match &field.kind {
        RowType::Plain { dtype, order } => {
            let numpy = description(dtype, *order)?;
            match numpy.strip_prefix('|') {
                Some("b1") => quoted("?"),
                Some(bare) => quoted(bare),
                None => quoted(&numpy),
            }
        }
        kind @ RowType::Struct(_) => render(kind)?,
    };
    let lengths: Vec<_> = field.shape.iter().map(u64::to_string).collect();
    let shape = match lengths.as_slice() {
        [] => String::new(),
        [len] => format!(", ({len},)"),
        lengths => format!(", ({})", lengths.join(", ")),
    };
    Ok(format!("({}, {kind}{shape})", quoted(&field.name)))
}

/// NumPy's short description, with the byte order.
fn description(dtype: &DType, order: ByteOrder) -> Result<String> {
    let numpy = dtype.to_numpy();
    let numpy =
        numpy.ok_or_else(|| Error::unsupported(format!("NumPy has no {}", dtype.name())))?;
    Ok(match (order, numpy.strip_prefix('<')) {
        (ByteOrder::Big, Some(bare)) => format!(">{bare}"),
        _ => numpy,
    })
}

fn malformed(text: &str) -> Error {
    Error::invalid(format!("{text} is not a NumPy data type"))
}
