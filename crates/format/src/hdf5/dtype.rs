//! HDF5 data types as Zarr data types.
//!
//! The parser's description lacks details: a float of two bytes may be an IEEE half or a `bfloat16`,
//! an integer may use fewer bits than it has. So numbers are recognised by the stored bytes of the
//! type message (HDF5 §"Datatype Message"), and a type that does not exactly match a Zarr type is
//! refused by name.

use chunkyard_array::{ByteOrder, DType};
use hdf5_reader::messages::datatype::{
    CompoundField, Datatype, EnumMember, StringSize, VarLenKind,
};
use hdf5_reader::{ByteOrder as Hdf5Order, ReferenceType};
use serde_json::{Map, Value, json};

/// Bytes of the largest element that is kept as raw bytes.
const RAW_BYTES_MAX: u32 = 1 << 16;

/// How elements are stored, in terms of Zarr.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ElementType {
    /// The data type of the array.
    pub(super) dtype: Value,
    /// The kind that decides how a fill value is read.
    pub(super) kind: ElementClass,
    /// Bytes of an element; 0 for strings of variable length, which are in heaps.
    pub(super) bytes: usize,
    /// The order of the bytes of a number.
    pub(super) order: ByteOrder,
    /// The members of an enumeration, which do not fit in the data type.
    pub(super) members: Option<Map<String, Value>>,
}

/// How the bytes of one element become a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ElementClass {
    Bool,
    Signed,
    Unsigned,
    Float16,
    BFloat16,
    Float32,
    Float64,
    Complex64,
    Complex128,
    Raw,
    Text,
}

impl ElementType {
    fn new(kind: ElementClass, dtype: impl Into<Value>, bytes: usize, order: ByteOrder) -> Self {
        Self { dtype: dtype.into(), kind, bytes, order, members: None }
    }

    /// The type of a dataset or an attribute; `raw` is the message, as stored.
    pub(super) fn new_from(datatype: &Datatype, raw: &[u8]) -> Result<Self, String> {
        match datatype {
            Datatype::FixedPoint { size, signed, byte_order } => {
                integer(*size, *signed, *byte_order, raw)
            }
            // The user knows what the bits mean; as a number they are all kept.
            Datatype::Bitfield { size, byte_order } => integer(*size, false, *byte_order, raw),
            Datatype::FloatingPoint { byte_order, .. } => float(*byte_order, raw),
            Datatype::String { size: StringSize::Fixed(bytes), .. } => {
                fixed_bytes("null_terminated_bytes", *bytes)
            }
            Datatype::VarLen { kind: VarLenKind::String, base, .. }
                if base.is_vlen_string_base() =>
            {
                Ok(Self::new(ElementClass::Text, "string", 0, ByteOrder::Little))
            }
            Datatype::Opaque { size, tag } => opaque(*size, tag),
            Datatype::Enum { base, members } => enumeration(base, members, raw),
            Datatype::Compound { size, fields } => complex(*size, fields),
            Datatype::String { size: StringSize::Variable, .. } => {
                Err("a string without a length".to_owned())
            }
            Datatype::VarLen { .. } => Err("sequences of variable length".to_owned()),
            Datatype::Array { .. } => Err("elements that are arrays themselves".to_owned()),
            Datatype::Reference { ref_type: ReferenceType::Object, .. } => {
                Err("references to objects".to_owned())
            }
            Datatype::Reference { ref_type: ReferenceType::DatasetRegion, .. } => {
                Err("references to regions".to_owned())
            }
        }
    }
}

fn order(order: Hdf5Order) -> ByteOrder {
    match order {
        Hdf5Order::LittleEndian => ByteOrder::Little,
        Hdf5Order::BigEndian => ByteOrder::Big,
    }
}

fn u16_at(raw: &[u8], at: usize) -> Option<u16> {
    raw.get(at..at + 2)?.try_into().ok().map(u16::from_le_bytes)
}

fn integer(size: u8, signed: bool, stored: Hdf5Order, raw: &[u8]) -> Result<ElementType, String> {
    let (offset, precision) = (u16_at(raw, 8), u16_at(raw, 10));
    if offset != Some(0) || precision != Some(u16::from(size) * 8) {
        return Err(format!("integers that do not use all bits of their {size} bytes"));
    }
    if !matches!(size, 1 | 2 | 4 | 8) {
        return Err(format!("integers of {size} bytes"));
    }
    let (kind, prefix) =
        if signed { (ElementClass::Signed, "int") } else { (ElementClass::Unsigned, "uint") };
    let dtype = format!("{prefix}{}", u16::from(size) * 8);
    Ok(ElementType::new(kind, dtype, usize::from(size), order(stored)))
}

/// Position of the sign, bit offset, precision, position and bits of the exponent, position and bits
/// of the mantissa, bias.
type FloatLayout = (u8, u16, u16, u8, u8, u8, u8, u32);

const FLOATS: &[(FloatLayout, ElementClass, &str)] = &[
    ((15, 0, 16, 10, 5, 0, 10, 15), ElementClass::Float16, "float16"),
    ((15, 0, 16, 7, 8, 0, 7, 127), ElementClass::BFloat16, "bfloat16"),
    ((31, 0, 32, 23, 8, 0, 23, 127), ElementClass::Float32, "float32"),
    ((63, 0, 64, 52, 11, 0, 52, 1023), ElementClass::Float64, "float64"),
];

fn float(stored: Hdf5Order, raw: &[u8]) -> Result<ElementType, String> {
    let layout = float_layout(raw);
    let known = FLOATS.iter().find(|(known, ..)| Some(*known) == layout);
    let Some(((_, _, bits, ..), kind, name)) = known else {
        return Err("floating-point numbers that are not as in IEEE 754".to_owned());
    };
    Ok(ElementType::new(*kind, *name, usize::from(*bits) / 8, order(stored)))
}

fn float_layout(raw: &[u8]) -> Option<FloatLayout> {
    // Bit 6 of the flags is VAX order; bits 4 and 5 must say that the leading one is implied.
    let (flags, sign) = (*raw.get(1)?, *raw.get(2)?);
    if flags & 0b0111_0000 != 0b0010_0000 {
        return None;
    }
    let size = u32::from_le_bytes(raw.get(4..8)?.try_into().ok()?);
    let (offset, precision) = (u16_at(raw, 8)?, u16_at(raw, 10)?);
    let [exponent_at, exponent, mantissa_at, mantissa] = raw.get(12..16)?.try_into().ok()?;
    let bias = u32::from_le_bytes(raw.get(16..20)?.try_into().ok()?);
    let whole = size.checked_mul(8) == Some(u32::from(precision));
    whole.then_some((sign, offset, precision, exponent_at, exponent, mantissa_at, mantissa, bias))
}

/// The types that zarr-python has for bytes; it lacks `r*`.
fn fixed_bytes(name: &str, bytes: u32) -> Result<ElementType, String> {
    if bytes == 0 || bytes > RAW_BYTES_MAX {
        return Err(format!("elements of {bytes} bytes"));
    }
    let dtype = json!({"name": name, "configuration": {"length_bytes": bytes}});
    Ok(ElementType::new(ElementClass::Raw, dtype, bytes as usize, ByteOrder::Little))
}

/// h5py keeps NumPy's times as opaque bytes with the type in the tag.
fn opaque(bytes: u32, tag: &str) -> Result<ElementType, String> {
    let numpy = tag.strip_prefix("NUMPY:").and_then(|descr| DType::from_numpy(descr).ok());
    match numpy {
        Some((dtype, order)) if dtype.name().starts_with("numpy.") && bytes == 8 => {
            let json = serde_json::to_value(dtype.metadata()).map_err(|cause| cause.to_string())?;
            Ok(ElementType::new(ElementClass::Signed, json, 8, order))
        }
        _ => fixed_bytes("raw_bytes", bytes),
    }
}

fn enumeration(base: &Datatype, members: &[EnumMember], raw: &[u8]) -> Result<ElementType, String> {
    // The type message of the base type follows the eight bytes of class, flags and size.
    let mut element = ElementType::new_from(base, raw.get(8..).unwrap_or_default())?;
    let values: Option<Map<String, Value>> = members
        .iter()
        .map(|member| Some((member.name.clone(), element.value(&member.value)?)))
        .collect();
    let values = values.ok_or("an enumeration whose values cannot be read")?;
    // h5py writes NumPy's bool like this.
    let is = |name: &str, value: i64| values.get(name) == Some(&json!(value));
    if element.bytes == 1 && values.len() == 2 && is("FALSE", 0) && is("TRUE", 1) {
        return Ok(ElementType::new(ElementClass::Bool, "bool", 1, ByteOrder::Little));
    }
    element.members = Some(values);
    Ok(element)
}

/// A compound of a real and an imaginary part, as h5py and netCDF write complex numbers.
fn complex(size: u32, fields: &[CompoundField]) -> Result<ElementType, String> {
    let refused = || {
        let names: Vec<&str> = fields.iter().map(|field| field.name.as_str()).collect();
        format!("compounds of {}", names.join(", "))
    };
    let [real, imaginary] = fields else { return Err(refused()) };
    let names = (real.name.as_str(), imaginary.name.as_str());
    let Datatype::FloatingPoint { size: part, byte_order } = real.datatype else {
        return Err(refused());
    };
    let packed = real.byte_offset == 0
        && imaginary.byte_offset == u32::from(part)
        && size == 2 * u32::from(part)
        && real.datatype == imaginary.datatype;
    let named = matches!(names, ("r", "i") | ("re", "im") | ("real", "imag"));
    match part {
        4 if packed && named => {
            Ok(ElementType::new(ElementClass::Complex64, "complex64", 8, order(byte_order)))
        }
        8 if packed && named => {
            Ok(ElementType::new(ElementClass::Complex128, "complex128", 16, order(byte_order)))
        }
        _ => Err(refused()),
    }
}
