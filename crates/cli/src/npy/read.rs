//! Reading a `.npy` file or pipe, piece by piece.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use chunkyard_array::numpy::npy::{LENGTH_MAX, length};
use chunkyard_array::{ByteOrder, Region};
use chunkyard_engine::{Error, Noun, Result};

use super::header::Header;
use super::order::{swap_bytes, swap_unit, to_c_order};

/// Memory is allocated in steps while a pipe is read, since its header may claim any length.
const STEP_BYTES: u64 = 16 << 20;

/// An open `.npy` file, read up to some element.
pub(crate) struct Reader {
    name: String,
    header: Header,
    item_size: usize,
    source: Box<dyn Read + Send>,
}

impl Reader {
    /// Opens a file, or standard input for `-`, and reads its header. A regular file must be as
    /// long as its header says.
    pub(crate) fn open(path: &Path) -> Result<Self> {
        if path.as_os_str() == "-" {
            return Self::new("standard input", Box::new(io::stdin()), None);
        }
        let name = path.display().to_string();
        let file = File::open(path).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => Error::NotFound { what: Noun::File, name: name.clone() },
            _ => Error::store("open", &name, error),
        })?;
        let metadata = file.metadata().map_err(|error| Error::store("read", &name, error))?;
        if metadata.is_dir() {
            return Err(Error::invalid(format!("{name} is a directory, not a .npy file")));
        }
        let length = metadata.is_file().then_some(metadata.len());
        Self::new(&name, Box::new(file), length)
    }

    /// Reads the header of a source whose length may be known.
    pub(crate) fn new(
        name: &str,
        mut source: Box<dyn Read + Send>,
        length: Option<u64>,
    ) -> Result<Self> {
        let (text, before) = read_text(name, &mut source)?;
        let header = Header::parse(&text, name)?;
        let item_size = header.dtype.item_size().ok_or_else(|| {
            Error::unsupported(format!("{name}: elements of variable length ({})", header.descr))
        })?;
        let bytes = Region::whole(&header.shape).num_bytes(item_size)? as u64;
        let expected = before as u64 + bytes;
        if let Some(found) = length.filter(|&length| length < expected) {
            return Err(truncated(name, &header, expected, found));
        }
        Ok(Self { name: name.to_owned(), header, item_size, source })
    }

    /// The type and shape of the file.
    pub(crate) fn header(&self) -> &Header {
        &self.header
    }

    /// Bytes of an element.
    pub(crate) fn item_size(&self) -> usize {
        self.item_size
    }

    /// The next elements, a slab of this shape: in C order, little-endian. Slabs follow each other
    /// along the slowest axis.
    pub(crate) fn read_slab(&mut self, shape: &[u64]) -> Result<Vec<u8>> {
        let bytes = Region::whole(shape).num_bytes(self.item_size)? as u64;
        let mut slab = Vec::new();
        while (slab.len() as u64) < bytes {
            let step = (bytes - slab.len() as u64).min(STEP_BYTES);
            let read = self.source.by_ref().take(step).read_to_end(&mut slab);
            let read = read.map_err(|error| Error::store("read", &self.name, error))?;
            if (read as u64) < step {
                return Err(truncated(&self.name, &self.header, bytes, slab.len() as u64));
            }
        }
        if self.header.byte_order == ByteOrder::Big {
            swap_bytes(&mut slab, swap_unit(&self.header.descr, self.item_size));
        }
        match self.header.fortran && shape.len() > 1 {
            true => Ok(to_c_order(&slab, shape, self.item_size)),
            false => Ok(slab),
        }
    }
}

/// The text of the header of a file, and the bytes up to its end.
pub(crate) fn read_text(name: &str, source: &mut dyn Read) -> Result<(Vec<u8>, usize)> {
    let not_npy = || {
        Error::invalid(format!(
            "{name} is no .npy file; numpy.save writes one, and an .npz must be unpacked first"
        ))
    };
    let mut start = [0; 12];
    source.read_exact(&mut start).map_err(|error| match error.kind() {
        io::ErrorKind::UnexpectedEof => not_npy(),
        _ => Error::store("read", name, error),
    })?;
    let (rest, before) = length(&start).ok_or_else(not_npy)?;
    if rest > LENGTH_MAX {
        let found = format!("{rest} bytes");
        return Err(corrupt(name, "its header", format!("at most {LENGTH_MAX} bytes"), found));
    }
    let mut text = start.get(before..).unwrap_or_default().to_vec();
    let missing = rest.saturating_sub(text.len()) as u64;
    let read = source.take(missing).read_to_end(&mut text);
    let read = read.map_err(|error| Error::store("read", name, error))?;
    if (read as u64) < missing {
        let expected = format!("{rest} bytes");
        return Err(corrupt(name, "its header", expected, format!("{} bytes", text.len())));
    }
    text.truncate(rest);
    Ok((text, before + rest))
}

fn truncated(name: &str, header: &Header, expected: u64, found: u64) -> Error {
    let what = format!("its length, for {} elements of shape {:?}", header.descr, header.shape);
    corrupt(name, &what, format!("{expected} bytes"), format!("{found}; the file is truncated"))
}

fn corrupt(name: &str, what: &str, expected: String, found: String) -> Error {
    Error::Corrupt { file: name.to_owned(), what: what.to_owned(), expected, found }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn npy(header: &str, data: &[u8]) -> Vec<u8> {
        let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
        bytes.extend(u16::try_from(header.len()).unwrap().to_le_bytes());
        bytes.extend(header.as_bytes());
        bytes.extend(data);
        bytes
    }

    fn open(bytes: Vec<u8>, length: Option<u64>) -> Result<Reader> {
        Reader::new("x.npy", Box::new(io::Cursor::new(bytes)), length)
    }

    #[test]
    fn slabs_follow_each_other_along_the_slow_axis() {
        let header = "{'descr': '>i2', 'fortran_order': True, 'shape': (2, 3), }\n";
        let data: Vec<u8> = [1u16, 4, 2, 5, 3, 6].iter().flat_map(|n| n.to_be_bytes()).collect();
        let mut reader = open(npy(header, &data), None).unwrap();
        assert_eq!(reader.read_slab(&[2, 2]).unwrap(), [1, 0, 2, 0, 4, 0, 5, 0]);
        assert_eq!(reader.read_slab(&[2, 1]).unwrap(), [3, 0, 6, 0]);
        assert!(matches!(reader.read_slab(&[2, 1]), Err(Error::Corrupt { .. })));
    }

    #[test]
    fn a_file_cut_anywhere_is_an_error_and_never_a_panic() {
        let header = "{'descr': '<f8', 'fortran_order': False, 'shape': (3,), }\n";
        let whole = npy(header, &[7; 24]);
        for length in 0..whole.len() {
            let cut = whole[..length].to_vec();
            assert!(open(cut, Some(length as u64)).is_err(), "{length}");
        }
        let mut reader = open(whole.clone(), Some(whole.len() as u64)).unwrap();
        assert_eq!(reader.read_slab(&[3]).unwrap(), [7; 24]);
    }

    #[test]
    fn a_header_that_claims_more_than_memory_is_refused_first() {
        let header =
            "{'descr': '<f8', 'fortran_order': False, 'shape': (9999999999, 9999999999), }\n";
        assert!(open(npy(header, &[]), None).is_err());
        let mut long = b"\x93NUMPY\x02\x00\xff\xff\xff\xff".to_vec();
        long.extend([b' '; 64]);
        assert!(matches!(open(long, None), Err(Error::Corrupt { .. })));
    }
}
