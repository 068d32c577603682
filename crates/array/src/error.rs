//! What can go wrong here, sorted by what the caller does about it.

use zarrs::plugin::PluginCreateError;

type Cause = Box<dyn std::error::Error + Send + Sync + 'static>;

/// The result of everything in this crate that can fail.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An error of the array model. Each variant exists because some caller acts differently on it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An argument or a metadata document contradicts itself or the array it is meant for.
    #[error("{what}")]
    Invalid {
        /// What is wrong, with what was expected and what was found.
        what: String,
        /// The error of the layer below, where there is one.
        source: Option<Cause>,
    },
    /// Legal Zarr, but not something this crate implements.
    #[error("{what} is not supported")]
    Unsupported {
        /// The data type, codec or grid in question.
        what: String,
        /// The error of the layer below, where there is one.
        source: Option<Cause>,
    },
    /// Bytes from outside fail a check.
    #[error("{what} is corrupt: expected {expected}, found {found}")]
    Corrupt {
        /// What the bytes were meant to be.
        what: String,
        /// What the check demands.
        expected: String,
        /// What the bytes have instead.
        found: String,
        /// The error of the layer below, where there is one.
        source: Option<Cause>,
    },
    /// The system refused the memory for an output or a chunk.
    #[error("no memory for {what} of {bytes} bytes")]
    OutOfMemory {
        /// What the memory was for.
        what: String,
        /// How much was asked for.
        bytes: usize,
    },
}

impl Error {
    /// An [`Error::Invalid`] without a cause.
    pub fn invalid(what: impl Into<String>) -> Self {
        Self::Invalid { what: what.into(), source: None }
    }

    /// An [`Error::Unsupported`] without a cause.
    pub fn unsupported(what: impl Into<String>) -> Self {
        Self::Unsupported { what: what.into(), source: None }
    }

    /// An [`Error::Corrupt`] without a cause.
    pub fn corrupt(
        what: impl Into<String>,
        expected: impl Into<String>,
        found: impl Into<String>,
    ) -> Self {
        Self::Corrupt {
            what: what.into(),
            expected: expected.into(),
            found: found.into(),
            source: None,
        }
    }

    /// What `zarrs` says when it cannot make a data type or codec from its metadata: a name it does
    /// not know is legal but not supported, anything else is a mistake in the metadata.
    pub(crate) fn from_plugin(what: String, cause: PluginCreateError) -> Self {
        match cause {
            PluginCreateError::Unsupported(_) => Self::unsupported(what).because(cause),
            _ => Self::invalid(format!("{what} is not valid")).because(cause),
        }
    }

    /// The same error, with the error of the layer below attached.
    #[must_use]
    pub fn because(mut self, cause: impl Into<Cause>) -> Self {
        match &mut self {
            Self::Invalid { source, .. }
            | Self::Unsupported { source, .. }
            | Self::Corrupt { source, .. } => *source = Some(cause.into()),
            Self::OutOfMemory { .. } => {}
        }
        self
    }
}
