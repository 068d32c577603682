//! The Zarr metadata of an array, parsed on first use.
//!
//! A structure file holds all arrays of a version, and most sessions touch a few of them. So a node
//! keeps the unparsed document; nodes with equal documents share it, and the first use parses it
//! for all of them.

use std::borrow::Borrow;
use std::collections::HashSet;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, OnceLock};

use chunkyard_array::ArraySpec;
use chunkyard_store::Result;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

use super::parquet_file::corrupt;

/// Metadata of an array, without attributes: these are the node's. Cheap to clone.
#[derive(Clone)]
pub struct ArrayMetadata(Arc<Shared>);

struct Shared {
    /// The document as it was read; empty where the specification came first.
    document: Box<[u8]>,
    /// Where it was read, for errors.
    file: Arc<str>,
    /// The result of parsing it. An error is kept as text, since it is reported more than once.
    spec: OnceLock<std::result::Result<Arc<ArraySpec>, String>>,
}

impl ArrayMetadata {
    /// The specification. `path` is the array's, to name it in the error.
    pub fn spec(&self, path: &str) -> Result<&Arc<ArraySpec>> {
        let parse = || match ArraySpec::parse(&self.0.document) {
            Ok(spec) => Ok(Arc::new(spec)),
            Err(error) => Err(error.to_string()),
        };
        self.0.spec.get_or_init(parse).as_ref().map_err(|error| {
            let what = format!("array metadata of {path}");
            corrupt(&self.0.file, &what, "a Zarr array document", error)
        })
    }

    /// The Zarr document; cheaper than through the specification.
    pub(super) fn document(&self, path: &str) -> Result<Map<String, Value>> {
        let parsed = match self.0.document.is_empty() {
            true => serde_json::from_slice(&self.spec(path)?.render()),
            false => serde_json::from_slice(&self.0.document),
        };
        parsed.map_err(|error| {
            let what = format!("array metadata of {path}");
            corrupt(&self.0.file, &what, "a JSON object", &error.to_string())
        })
    }

    fn of_document(document: &[u8], file: &Arc<str>) -> Self {
        Self(Arc::new(Shared {
            document: document.into(),
            file: file.clone(),
            spec: OnceLock::new(),
        }))
    }
}

impl From<ArraySpec> for ArrayMetadata {
    fn from(spec: ArraySpec) -> Self {
        let spec = OnceLock::from(Ok(Arc::new(spec)));
        Self(Arc::new(Shared { document: Box::default(), file: Arc::default(), spec }))
    }
}

/// Equal when the specifications are; documents that cannot be parsed are equal byte by byte.
impl PartialEq for ArrayMetadata {
    fn eq(&self, other: &Self) -> bool {
        let (a, b) = (&self.0, &other.0);
        if Arc::ptr_eq(a, b) || (!a.document.is_empty() && a.document == b.document) {
            return true;
        }
        match (self.spec(""), other.spec("")) {
            (Ok(a), Ok(b)) => a == b,
            _ => false,
        }
    }
}

impl fmt::Debug for ArrayMetadata {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ArrayMetadata").field(&self.spec("")).finish()
    }
}

impl Serialize for ArrayMetadata {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.document("").map_err(serde::ser::Error::custom)?.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for ArrayMetadata {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let document = Value::deserialize(deserializer)?;
        let spec = ArraySpec::parse(document.to_string().as_bytes());
        spec.map(Self::from).map_err(serde::de::Error::custom)
    }
}

/// Finds equal documents of one structure file.
pub(super) struct Interner {
    file: Arc<str>,
    known: HashSet<ByDocument>,
}

impl Interner {
    pub(super) fn new(file: &str) -> Self {
        Self { file: file.into(), known: HashSet::new() }
    }

    /// The metadata of a document, the same one for the same bytes.
    pub(super) fn get(&mut self, document: &[u8]) -> ArrayMetadata {
        if let Some(known) = self.known.get(document) {
            return known.0.clone();
        }
        let fresh = ArrayMetadata::of_document(document, &self.file);
        self.known.insert(ByDocument(fresh.clone()));
        fresh
    }
}

struct ByDocument(ArrayMetadata);

impl Borrow<[u8]> for ByDocument {
    fn borrow(&self) -> &[u8] {
        &self.0.0.document
    }
}

impl Hash for ByDocument {
    fn hash<H: Hasher>(&self, state: &mut H) {
        Borrow::<[u8]>::borrow(self).hash(state);
    }
}

impl PartialEq for ByDocument {
    fn eq(&self, other: &Self) -> bool {
        self.0.0.document == other.0.0.document
    }
}

impl Eq for ByDocument {}

#[cfg(test)]
mod tests {
    use super::*;

    const DOCUMENT: &[u8] = br#"{"zarr_format":3,"node_type":"array","shape":[4],
        "data_type":"uint8","fill_value":0,"codecs":[{"name":"bytes"}],
        "chunk_grid":{"name":"regular","configuration":{"chunk_shape":[2]}},
        "chunk_key_encoding":{"name":"default","configuration":{"separator":"/"}}}"#;

    #[test]
    fn equal_documents_are_parsed_once() {
        let mut interner = Interner::new("s/x");
        let (a, b) = (interner.get(DOCUMENT), interner.get(DOCUMENT));
        assert!(Arc::ptr_eq(a.spec("/a").unwrap(), b.spec("/b").unwrap()));
        assert_eq!(a, ArrayMetadata::from(ArraySpec::parse(DOCUMENT).unwrap()));
    }

    #[test]
    fn a_document_that_does_not_parse_names_file_and_array() {
        let mut interner = Interner::new("s/x");
        let broken = interner.get(b"{}");
        for path in ["/a", "/b"] {
            let error = broken.spec(path).unwrap_err().to_string();
            assert!(error.contains("s/x") && error.contains(path), "{error}");
        }
        assert_eq!(broken, interner.get(b"{}"));
        assert_ne!(broken, interner.get(DOCUMENT));
    }
}
