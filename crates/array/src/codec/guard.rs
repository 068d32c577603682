//! Calls into `zarrs`, so that nothing but an error comes back.

use std::panic::{AssertUnwindSafe, catch_unwind};

use zarrs::array::CodecError;

use crate::Error;

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

/// Calls into `zarrs`, whose decoders slice by what the bytes say (`vlen-utf8` by its lengths, for
/// one) and so panic on forged ones. They hold no state that a panic could leave broken.
pub(super) fn guard<T>(call: impl FnOnce() -> Result<T, CodecError>) -> Result<T, Failure> {
    match catch_unwind(AssertUnwindSafe(call)) {
        Ok(result) => result.map_err(Failure::Codec),
        Err(payload) => {
            let text = payload
                .downcast_ref::<String>()
                .map(String::as_str)
                .or_else(|| payload.downcast_ref::<&str>().copied());
            Err(Failure::Panic(text.unwrap_or("a codec panicked").to_owned()))
        }
    }
}
