//! The header of a `.npy` file: a Python dictionary with three keys.
//!
//! ```text
//!  \x93NUMPY  major minor  length  {'descr': '<f8', 'fortran_order': False, 'shape': (3, 4), } … \n
//! ```
//!
//! The length is a little-endian `u16` in version 1 and a `u32` in versions 2 and 3; blanks fill
//! the header up to a multiple of 64 bytes.

use chunkyard_array::{ByteOrder, DType};
use chunkyard_engine::{Error, Result};

/// Longer headers than this are not read; NumPy itself stops at 10,000 bytes.
pub(super) const LENGTH_MAX: usize = 1 << 20;
const MAGIC: &[u8] = b"\x93NUMPY";
const ALIGNMENT: usize = 64;

/// The type and shape of a `.npy` file.
#[derive(Debug, Clone)]
pub(crate) struct Header {
    /// NumPy's name of the data type, as it stands in the file.
    pub(crate) descr: String,
    /// The data type.
    pub(crate) dtype: DType,
    /// Order of the bytes of an element.
    pub(crate) byte_order: ByteOrder,
    /// Whether the first index varies fastest.
    pub(crate) fortran: bool,
    /// Shape of the array.
    pub(crate) shape: Vec<u64>,
}

impl Header {
    /// Length of the rest of the header, from the twelve bytes at the beginning of a file; and how
    /// many of those twelve belong to the part before it.
    pub(super) fn length(start: &[u8; 12]) -> Option<(usize, usize)> {
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

    /// Reads the dictionary of a file of plain elements.
    pub(super) fn parse(text: &[u8], file: &str) -> Result<Self> {
        let Dictionary { descr, fortran, shape } = Dictionary::parse(text, file)?;
        let Some(descr) = Literal(&descr).string().map(str::to_owned) else {
            return Err(Error::unsupported(format!("{file}: a structured data type")));
        };
        let (dtype, byte_order) = data_type(&descr, file)?;
        Ok(Self { descr, dtype, byte_order, fortran, shape })
    }

    /// The header of a file of little-endian elements in C order.
    pub(crate) fn render(dtype: &DType, shape: &[u64]) -> Result<Vec<u8>> {
        let descr = dtype
            .to_numpy()
            .ok_or_else(|| Error::unsupported(format!("data type {dtype} in a .npy file")))?;
        render(&format!("'{descr}'"), shape)
    }
}

/// A header whose data type is not interpreted yet.
#[derive(Debug, Clone)]
pub(crate) struct Dictionary {
    /// NumPy's description of the data type, as a Python literal: a text, or a list of fields.
    pub(crate) descr: String,
    /// Whether the first index varies fastest.
    pub(crate) fortran: bool,
    /// Shape of the array.
    pub(crate) shape: Vec<u64>,
}

impl Dictionary {
    /// Reads the dictionary.
    pub(crate) fn parse(text: &[u8], file: &str) -> Result<Self> {
        let malformed = || Error::Corrupt {
            file: file.to_owned(),
            what: "its header".into(),
            expected: "a dictionary with descr, fortran_order and shape".into(),
            found: String::from_utf8_lossy(text.get(..80).unwrap_or(text)).trim_end().to_owned(),
        };
        let text = std::str::from_utf8(text).map_err(|_| malformed())?;
        let mut literal = Literal(text);
        let (mut descr, mut fortran, mut shape) = (None, None, None);
        literal.eat('{').ok_or_else(malformed)?;
        while literal.eat('}').is_none() {
            let key = literal.string().ok_or_else(malformed)?;
            literal.eat(':').ok_or_else(malformed)?;
            match key {
                "descr" => descr = Some(literal.description().ok_or_else(malformed)?),
                "fortran_order" => fortran = Some(literal.boolean().ok_or_else(malformed)?),
                "shape" => shape = Some(literal.tuple().ok_or_else(malformed)?),
                _ => return Err(malformed()),
            }
            if literal.eat(',').is_none() && !literal.begins_with('}') {
                return Err(malformed());
            }
        }
        Ok(Self {
            descr: descr.ok_or_else(malformed)?.to_owned(),
            fortran: fortran.ok_or_else(malformed)?,
            shape: shape.ok_or_else(malformed)?,
        })
    }
}

/// The header of a file in C order, with the description of its type as a Python literal.
pub(crate) fn render(descr: &str, shape: &[u64]) -> Result<Vec<u8>> {
    let extents = shape.iter().map(u64::to_string).collect::<Vec<_>>().join(", ");
    let comma = if shape.len() == 1 { "," } else { "" };
    let text =
        format!("{{'descr': {descr}, 'fortran_order': False, 'shape': ({extents}{comma}), }}");
    // Version 1 has room for 64 KiB, which is ten thousand dimensions, or some thousand fields.
    let before = MAGIC.len() + 4;
    let total = (before + text.len() + 1).next_multiple_of(ALIGNMENT);
    let length = u16::try_from(total - before)
        .map_err(|_| Error::unsupported("that many dimensions or fields in a .npy file"))?;
    let mut bytes = MAGIC.to_vec();
    bytes.extend([1, 0]);
    bytes.extend(length.to_le_bytes());
    bytes.extend(text.as_bytes());
    bytes.resize(total - 1, b' ');
    bytes.push(b'\n');
    Ok(bytes)
}

/// The data type for NumPy's name.
fn data_type(descr: &str, file: &str) -> Result<(DType, ByteOrder)> {
    match descr.trim_start_matches('|') {
        "O" => Err(Error::unsupported(format!(
            "{file}: pickled Python objects; save the array with a plain data type"
        ))),
        _ => Ok(DType::from_numpy(descr)?),
    }
}

/// The rest of a Python literal.
struct Literal<'a>(&'a str);

impl<'a> Literal<'a> {
    fn begins_with(&mut self, c: char) -> bool {
        self.0 = self.0.trim_start();
        self.0.starts_with(c)
    }

    fn eat(&mut self, c: char) -> Option<()> {
        self.0 = self.0.trim_start().strip_prefix(c)?;
        Some(())
    }

    fn string(&mut self) -> Option<&'a str> {
        self.0 = self.0.trim_start();
        let quote = self.0.chars().next().filter(|c| matches!(c, '\'' | '"'))?;
        let (text, rest) = self.0.get(1..)?.split_once(quote)?;
        self.0 = rest;
        Some(text)
    }

    /// A text with its quotes, or all of a list.
    fn description(&mut self) -> Option<&'a str> {
        self.0 = self.0.trim_start();
        let start = self.0;
        match start.starts_with('[') {
            true => self.list()?,
            false => self.string().map(drop)?,
        }
        start.get(..start.len() - self.0.len())
    }

    fn list(&mut self) -> Option<()> {
        let mut depth = 0usize;
        loop {
            match self.0.chars().next()? {
                '\'' | '"' => {
                    self.string()?;
                    continue;
                }
                '[' => depth += 1,
                ']' => depth -= 1,
                _ => {}
            }
            let mut rest = self.0.chars();
            rest.next();
            self.0 = rest.as_str();
            if depth == 0 {
                return Some(());
            }
        }
    }

    fn boolean(&mut self) -> Option<bool> {
        self.0 = self.0.trim_start();
        for (word, value) in [("True", true), ("False", false)] {
            if let Some(rest) = self.0.strip_prefix(word) {
                self.0 = rest;
                return Some(value);
            }
        }
        None
    }

    fn number(&mut self) -> Option<u64> {
        self.0 = self.0.trim_start();
        let digits = self.0.bytes().take_while(u8::is_ascii_digit).count();
        let (number, rest) = self.0.split_at_checked(digits)?;
        // Python 2 wrote long integers with an L.
        self.0 = rest.strip_prefix('L').unwrap_or(rest);
        number.parse().ok()
    }

    fn tuple(&mut self) -> Option<Vec<u64>> {
        let mut numbers = Vec::new();
        self.eat('(')?;
        while self.eat(')').is_none() {
            numbers.push(self.number()?);
            if self.eat(',').is_none() && !self.begins_with(')') {
                return None;
            }
        }
        Some(numbers)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Header> {
        Header::parse(text.as_bytes(), "x.npy")
    }

    #[test]
    fn headers_by_numpy_are_read() {
        let header = parse("{'descr': '>c16', 'fortran_order': True, 'shape': (3, 4), }   \n");
        let header = header.unwrap();
        assert_eq!(header.dtype.name(), "complex128");
        assert_eq!(header.byte_order, ByteOrder::Big);
        assert!(header.fortran);
        assert_eq!(header.shape, [3, 4]);
        assert_eq!(
            parse("{'shape': (), \"descr\": '|b1', 'fortran_order': False}").unwrap().shape,
            [0; 0]
        );
        let old = parse("{'descr': '<i2', 'fortran_order': False, 'shape': (7L,), }").unwrap();
        assert_eq!(old.shape, [7]);
    }

    #[test]
    fn written_headers_are_read_back_and_aligned() {
        for shape in [vec![], vec![5], vec![5, 0, u64::MAX]] {
            for descr in ["|b1", "<f4", "<M8[25s]", "<m8[ns]", "<U12", "|S5", "|V16"] {
                let (dtype, _) = DType::from_numpy(descr).unwrap();
                let bytes = Header::render(&dtype, &shape).unwrap();
                assert!(bytes.len().is_multiple_of(ALIGNMENT) && bytes.ends_with(b"\n"));
                let (length, before) = Header::length(bytes.first_chunk().unwrap()).unwrap();
                assert_eq!(before + length, bytes.len());
                let header = Header::parse(&bytes[before..], "x.npy").unwrap();
                assert_eq!((header.descr.as_str(), &header.shape), (descr, &shape));
            }
        }
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
        ] {
            assert!(matches!(parse(bad), Err(Error::Corrupt { .. })), "{bad}");
        }
        for foreign in ["'|O'", "[('a', '<f4')]", "'<f16'"] {
            let text = format!("{{'descr': {foreign}, 'fortran_order': False, 'shape': (3,), }}");
            let kind = parse(&text).unwrap_err().kind();
            assert_eq!(kind, chunkyard_engine::ErrorKind::Unsupported, "{foreign}");
        }
    }

    #[test]
    fn only_known_versions_have_a_length() {
        assert_eq!(Header::length(b"\x93NUMPY\x01\x00\x76\x00{'"), Some((118, 10)));
        assert_eq!(Header::length(b"\x93NUMPY\x03\x00\x76\x00\x00\x00"), Some((118, 12)));
        assert_eq!(Header::length(b"\x93NUMPY\x09\x00\x76\x00{'"), None);
        assert_eq!(Header::length(b"PK\x03\x04........"), None);
    }
}
