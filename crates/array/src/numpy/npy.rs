//! The header of a `.npy` file: a Python dictionary with three keys.
//!
//! ```text
//!  \x93NUMPY  major minor  length  {'descr': '<f8', 'fortran_order': False, 'shape': (3, 4), } … \n
//! ```
//!
//! The length is a little-endian `u16` in version 1 and a `u32` in versions 2 and 3; blanks fill
//! the header up to a multiple of 64 bytes.

use super::literal::{self, Literal};
use super::row::{self, RowType};
use crate::{ByteOrder, DType, Error, Result};

/// Longer headers than this are not read; NumPy itself stops at 10,000 bytes.
pub const LENGTH_MAX: usize = 1 << 20;
/// What a file begins with.
pub const MAGIC: &[u8] = b"\x93NUMPY";
const ALIGNMENT: usize = 64;

/// The type and shape of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Header {
    /// NumPy's description of the data type: a text, or a list of fields.
    descr: Literal,
    /// Whether the first index varies fastest.
    pub fortran: bool,
    /// Shape of the array.
    pub shape: Vec<u64>,
}

/// The type of a file of plain elements.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plain {
    /// NumPy's description, as it stands in the file.
    pub descr: String,
    /// The data type.
    pub dtype: DType,
    /// Order of the bytes of an element.
    pub byte_order: ByteOrder,
}

/// Length of the dictionary, from the twelve bytes at the beginning of a file; and how many of those
/// twelve belong to the part before it. `None` if this is no file of a known version.
pub fn length(start: &[u8; 12]) -> Option<(usize, usize)> {
    if !start.starts_with(MAGIC) {
        return None;
    }
    let [_, _, _, _, _, _, major, _, a, b, c, d] = *start;
    match major {
        1 => Some((usize::from(u16::from_le_bytes([a, b])), 10)),
        2 | 3 => Some((usize::try_from(u32::from_le_bytes([a, b, c, d])).ok()?, 12)),
        _ => None,
    }
}

impl Header {
    /// Reads the dictionary.
    pub fn parse(text: &[u8]) -> Result<Self> {
        Self::understood(text).ok_or_else(|| {
            let found = String::from_utf8_lossy(text.get(..80).unwrap_or(text));
            let expected = "a dictionary with descr, fortran_order and shape";
            Error::corrupt("the header of a .npy file", expected, found.trim_end())
        })
    }

    fn understood(text: &[u8]) -> Option<Self> {
        let Literal::Dictionary(pairs) = literal::parse(std::str::from_utf8(text).ok()?)? else {
            return None;
        };
        let (mut descr, mut fortran, mut shape) = (None, None, None);
        for (key, value) in pairs {
            match (key.as_str(), value) {
                ("descr", value @ (Literal::Text(_) | Literal::List(_))) => descr = Some(value),
                ("fortran_order", Literal::Truth(value)) => fortran = Some(value),
                ("shape", Literal::Tuple(extents)) => {
                    let extents = extents.into_iter().map(|extent| match extent {
                        Literal::Number(extent) => Some(extent),
                        _ => None,
                    });
                    shape = Some(extents.collect::<Option<Vec<u64>>>()?);
                }
                _ => return None,
            }
        }
        Some(Self { descr: descr?, fortran: fortran?, shape: shape? })
    }

    /// The type of its elements, which may have fields.
    pub fn row(&self) -> Result<RowType> {
        row::of_literal(&self.descr)
    }

    /// The type of its elements, which have no fields.
    pub fn plain(&self) -> Result<Plain> {
        let Literal::Text(descr) = &self.descr else {
            return Err(Error::unsupported("a structured data type"));
        };
        if descr.trim_start_matches('|') == "O" {
            let what = "an array of pickled Python objects, not of a plain data type";
            return Err(Error::unsupported(what));
        }
        let (dtype, byte_order) = DType::from_numpy(descr)?;
        Ok(Plain { descr: descr.clone(), dtype, byte_order })
    }
}

/// The header of a file of little-endian elements in C order.
pub fn render_plain(dtype: &DType, shape: &[u64]) -> Result<Vec<u8>> {
    let descr = dtype.to_numpy();
    let descr =
        descr.ok_or_else(|| Error::unsupported(format!("data type {dtype} in a .npy file")))?;
    render_descr(&format!("'{descr}'"), shape)
}

/// The header of a file of rows in C order.
pub fn render(row: &RowType, shape: &[u64]) -> Result<Vec<u8>> {
    render_descr(&row::repr(row)?, shape)
}

/// The header of a file in C order, with the description of its type as a Python literal.
fn render_descr(descr: &str, shape: &[u64]) -> Result<Vec<u8>> {
    let extents = shape.iter().map(u64::to_string).collect::<Vec<_>>().join(", ");
    let comma = if shape.len() == 1 { "," } else { "" };
    let text =
        format!("{{'descr': {descr}, 'fortran_order': False, 'shape': ({extents}{comma}), }}");
    // Version 1 has room for 64 KiB, which is ten thousand dimensions, or some thousand fields.
    let before = MAGIC.len() + 4;
    let total = (before + text.len() + 1).next_multiple_of(ALIGNMENT);
    let length = u16::try_from(total - before)
        .map_err(|_| Error::unsupported("a .npy file with that many dimensions or fields"))?;
    let mut bytes = MAGIC.to_vec();
    bytes.extend([1, 0]);
    bytes.extend(length.to_le_bytes());
    bytes.extend(text.as_bytes());
    bytes.resize(total - 1, b' ');
    bytes.push(b'\n');
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<(Header, Plain)> {
        let header = Header::parse(text.as_bytes())?;
        let plain = header.plain()?;
        Ok((header, plain))
    }

    #[test]
    fn headers_by_numpy_are_read() {
        let header = parse("{'descr': '>c16', 'fortran_order': True, 'shape': (3, 4), }   \n");
        let (header, plain) = header.unwrap();
        assert_eq!(plain.dtype.name(), "complex128");
        assert_eq!(plain.byte_order, ByteOrder::Big);
        assert!(header.fortran);
        assert_eq!(header.shape, [3, 4]);
        assert_eq!(
            parse("{'shape': (), \"descr\": '|b1', 'fortran_order': False}").unwrap().0.shape,
            [0; 0]
        );
        let old = parse("{'descr': '<i2', 'fortran_order': False, 'shape': (7L,), }").unwrap();
        assert_eq!(old.0.shape, [7]);
    }

    #[test]
    fn written_headers_are_read_back_and_aligned() {
        for shape in [vec![], vec![5], vec![5, 0, u64::MAX]] {
            for descr in ["|b1", "<f4", "<M8[25s]", "<m8[ns]", "<U12", "|S5", "|V16"] {
                let (dtype, _) = DType::from_numpy(descr).unwrap();
                let bytes = render_plain(&dtype, &shape).unwrap();
                assert!(bytes.len().is_multiple_of(ALIGNMENT) && bytes.ends_with(b"\n"));
                let (length, before) = length(bytes.first_chunk().unwrap()).unwrap();
                assert_eq!(before + length, bytes.len());
                let header = Header::parse(&bytes[before..]).unwrap();
                let found = header.plain().unwrap().descr;
                assert_eq!((found.as_str(), &header.shape), (descr, &shape));
            }
        }
        let row = super::super::parse("[('a', '>f4', (2,)), (\"it's\", '?')]").unwrap();
        let bytes = render(&row, &[3]).unwrap();
        assert_eq!(Header::parse(&bytes[10..]).unwrap().row().unwrap(), row);
    }

    #[test]
    fn broken_headers_are_corrupt_and_foreign_types_unsupported() {
        for bad in [
            "",
            "{",
            "{'descr': '<f4'}",
            "{'descr': '<f4', 'fortran_order': False, 'shape': (3 4), }",
            "{'descr': '<f4', 'fortran_order': False, 'shape': (-3,), }",
            "{'descr': '<f4', 'fortran_order': Maybe, 'shape': (3,), }",
            "{'descr': '<f4, 'fortran_order': False, 'shape': (99999999999999999999,), }",
            "{'descr': 4, 'fortran_order': False, 'shape': (3,), }",
            "{'descr': '<f4', 'fortran_order': False, 'shape': (3,), 'more': 1}",
        ] {
            assert!(matches!(parse(bad), Err(Error::Corrupt { .. })), "{bad}");
        }
        for foreign in ["'|O'", "[('a', '<f4')]", "'<f16'"] {
            let text = format!("{{'descr': {foreign}, 'fortran_order': False, 'shape': (3,), }}");
            assert!(matches!(parse(&text), Err(Error::Unsupported { .. })), "{foreign}");
        }
    }

    #[test]
    fn only_known_versions_have_a_length() {
        assert_eq!(length(b"\x93NUMPY\x01\x00\x76\x00{'"), Some((118, 10)));
        assert_eq!(length(b"\x93NUMPY\x03\x00\x76\x00\x00\x00"), Some((118, 12)));
        assert_eq!(length(b"\x93NUMPY\x09\x00\x76\x00{'"), None);
        assert_eq!(length(b"PK\x03\x04........"), None);
    }
}
