//! The header of a file: what [`numpy::npy`](chunkyard_array::numpy::npy) says about it, with the name
//! of the file.

use chunkyard_array::numpy::npy;
use chunkyard_array::{ByteOrder, DType};
use chunkyard_engine::{Error, Result};

/// The type and shape of a `.npy` file of plain elements.
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
    /// Reads the dictionary of a file.
    pub(super) fn parse(text: &[u8], file: &str) -> Result<Self> {
        let found = parse(text, file)?;
        let plain = found.plain().map_err(|error| of_file(error, file))?;
        let npy::Plain { descr, dtype, byte_order } = plain;
        Ok(Self { descr, dtype, byte_order, fortran: found.fortran, shape: found.shape })
    }
}

/// Reads the dictionary of a file, whose elements may have fields.
pub(crate) fn parse(text: &[u8], file: &str) -> Result<npy::Header> {
    npy::Header::parse(text).map_err(|error| of_file(error, file))
}

/// The error with the name of the file.
fn of_file(error: chunkyard_array::Error, file: &str) -> Error {
    use chunkyard_array::Error as Cause;
    match error {
        Cause::Corrupt { expected, found, .. } => {
            Error::Corrupt { file: file.to_owned(), what: "its header".into(), expected, found }
        }
        Cause::Unsupported { what, .. } => Error::unsupported(format!("{file}: {what}")),
        other => other.into(),
    }
}
