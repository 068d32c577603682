//! How a place is opened, and in which version, as Python gives it.

use std::collections::BTreeMap;

use chunkyard_engine::{format, repo, store};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// How a place is opened; the same for all formats.
#[derive(Debug, Clone, FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct OpenOptions {
    storage: BTreeMap<String, String>,
    allow: Vec<String>,
    check_chunks: bool,
    cache_bytes: u64,
    durable: bool,
    memory_bytes: Option<usize>,
    requests: Option<usize>,
}

impl OpenOptions {
    pub(crate) fn store(&self) -> store::Options {
        let durability = match self.durable {
            true => store::Durability::Full,
            false => store::Durability::None,
        };
        let usual = store::Limits::default();
        let limits = store::Limits {
            bytes_in_flight: self.memory_bytes.unwrap_or(usual.bytes_in_flight),
            requests: self.requests.unwrap_or(usual.requests).max(1),
            ..usual
        };
        store::Options { values: self.storage.clone(), durability, limits }
    }

    pub(crate) fn repository(&self) -> repo::OpenOptions {
        repo::OpenOptions {
            store: self.store(),
            allowed: self.allow.clone(),
            check_chunks: self.check_chunks,
            cache_bytes_max: self.cache_bytes,
            ..repo::OpenOptions::default()
        }
    }

    pub(crate) fn any(&self, version: Option<repo::Version>) -> format::OpenOptions {
        format::OpenOptions {
            store: self.store(),
            allowed: self.allow.clone(),
            version,
            skip_corrupt: false,
        }
    }
}

/// Which version is meant: `("branch", name)`, `("tag", name)`, `("snapshot", id)`, `("named", any
/// of these)`, `("as_of", branch, milliseconds)` or `("default",)`.
#[derive(Debug, Clone)]
pub(crate) struct Version(pub(crate) repo::Version);

impl<'py> FromPyObject<'_, 'py> for Version {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let kind: String = object.get_item(0)?.extract()?;
        let name = || object.get_item(1)?.extract::<String>();
        Ok(Self(match kind.as_str() {
            "branch" => repo::Version::Branch(name()?),
            "tag" => repo::Version::Tag(name()?),
            "snapshot" => repo::Version::Snapshot(name()?),
            "named" => repo::Version::Named(name()?),
            "as_of" => {
                repo::Version::AsOf { branch: name()?, time_ms: object.get_item(2)?.extract()? }
            }
            "default" => repo::Version::Default,
            other => return Err(PyValueError::new_err(format!("no version is a {other:?}"))),
        }))
    }
}
