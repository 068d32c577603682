//! Calls into `zarrs` that turn panics into errors.

use zarrs::array::CodecError;

use crate::Error;
use crate::quiet::quietly;

/// How a call into `zarrs` failed.
pub(super) enum Failure {
    Codec(CodecError),
    Panic(String),
}

impl Failure {
    /// The error to report, with this failure as its cause.
    pub(super) fn because(self, error: Error) -> Error {
        match self {
            Self::Codec(
                cause @ (CodecError::UnsupportedDataType(..)
                | CodecError::UnsupportedDataTypeCodec(_)),
            ) => Error::unsupported("a codec for this data type").because(cause),
            Self::Codec(cause) => error.because(cause),
            Self::Panic(message) => error.because(message),
        }
    }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Codec(cause) => cause.fmt(f),
            Self::Panic(message) => f.write_str(message),
        }
    }
}

/// Calls into `zarrs`, whose decoders slice by lengths in the bytes and so panic on forged ones.
/// They hold no state that a panic could leave broken.
pub(super) fn guard<T>(call: impl FnOnce() -> Result<T, CodecError>) -> Result<T, Failure> {
    match quietly(call) {
        Ok(result) => result.map_err(Failure::Codec),
        Err(text) => Err(Failure::Panic(text.unwrap_or_else(|| "a codec panicked".to_owned()))),
    }
}
