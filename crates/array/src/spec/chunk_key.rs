//! Chunk keys: the names of the objects that hold the chunks of an array.
//!
//! Specification: Zarr v3 §"Chunk key encoding", with `default` and `v2`; `zarrs.default_suffix` is
//! `default` with a file extension. Keys are relative to the array.
//!
//! ```
//! # use chunkyard_array::{ArraySpec, ChunkKeys};
//! let keys = ChunkKeys::new(&ArraySpec::builder(&[90, 90], &[10, 10], "uint8").build()?)?;
//! assert_eq!(keys.key(&[0, 7]), "c/0/7");
//! assert_eq!(keys.parse("c/0/7"), Some(vec![0, 7]));
//! assert_eq!(keys.parse("c/0/07"), None);
//! # Ok::<(), chunkyard_array::Error>(())
//! ```

use std::fmt::Write as _;

use zarrs::array::ChunkKeyEncoding;

use super::ArraySpec;
use crate::{ChunkIndex, Error, Result};

/// Makes and reads the chunk keys of one array.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChunkKeys {
    rank: usize,
    /// The prefix before the first coordinate, without a separator; empty for `v2`.
    prefix: &'static str,
    separator: char,
    suffix: String,
}

impl ChunkKeys {
    /// The chunk keys of an array.
    pub fn new(spec: &ArraySpec) -> Result<Self> {
        let metadata = &spec.metadata().chunk_key_encoding;
        let what = || format!("chunk key encoding {metadata}");
        // `zarrs` has checked the configuration, so it is read without further checks.
        ChunkKeyEncoding::from_metadata(metadata)
            .map_err(|cause| Error::from_plugin(what(), cause))?;
        let (prefix, separator) = match metadata.name() {
            "default" | "zarrs.default_suffix" => ("c", "/"),
            "v2" => ("", "."),
            _ => return Err(Error::unsupported(what())),
        };
        let member = |key: &str| metadata.configuration().and_then(|map| map.get(key)?.as_str());
        let separator = if member("separator").unwrap_or(separator) == "." { '.' } else { '/' };
        let suffix = member("suffix").unwrap_or_default().to_owned();
        if suffix.contains(['/', '\\', '\0']) {
            // It would name objects elsewhere.
            return Err(Error::invalid(format!("{} has no file extension", what())));
        }
        Ok(Self { rank: spec.shape().len(), prefix, separator, suffix })
    }

    /// The key of a chunk.
    pub fn key(&self, index: &[u64]) -> String {
        let mut key = self.prefix.to_owned();
        // Zarr v3: the only chunk of an array without dimensions is `c`, in version 2 it is `0`.
        if index.is_empty() && key.is_empty() {
            key.push('0');
        }
        for coordinate in index {
            if !key.is_empty() {
                key.push(self.separator);
            }
            // Writing to a string does not fail.
            write!(key, "{coordinate}").ok();
        }
        key.push_str(&self.suffix);
        key
    }

    /// The chunk of a key; `None` for everything that [`ChunkKeys::key`] does not make.
    pub fn parse(&self, key: &str) -> Option<ChunkIndex> {
        let stem = key.strip_suffix(self.suffix.as_str())?;
        if self.rank == 0 {
            return (key == self.key(&[])).then(Vec::new);
        }
        let coordinates = match self.prefix {
            "" => stem,
            prefix => stem.strip_prefix(prefix)?.strip_prefix(self.separator)?,
        };
        let index: Option<ChunkIndex> = coordinates.split(self.separator).map(decimal).collect();
        index.filter(|index| index.len() == self.rank)
    }

    /// The leading coordinates that all chunks with keys beginning with `prefix` share, as far as
    /// the prefix determines them.
    ///
    /// ```
    /// # use chunkyard_array::{ArraySpec, ChunkKeys};
    /// let keys = ChunkKeys::new(&ArraySpec::builder(&[90, 90], &[10, 10], "uint8").build()?)?;
    /// assert_eq!(keys.leading("c/1/"), [1]);
    /// assert!(keys.leading("c/1").is_empty(), "it may be c/1/0 or c/12/0");
    /// # Ok::<(), chunkyard_array::Error>(())
    /// ```
    pub fn leading(&self, prefix: &str) -> ChunkIndex {
        let coordinates = match self.prefix {
            "" => Some(prefix),
            before => prefix.strip_prefix(before).and_then(|it| it.strip_prefix(self.separator)),
        };
        let complete = coordinates.and_then(|text| text.rsplit_once(self.separator));
        let Some((complete, _)) = complete else { return ChunkIndex::new() };
        complete.split(self.separator).map_while(decimal).take(self.rank).collect()
    }

    /// The folder that holds all chunks, relative to the array, if there is one.
    pub fn folder(&self) -> Option<&str> {
        (self.rank > 0 && self.separator == '/' && !self.prefix.is_empty()).then_some(self.prefix)
    }
}

/// A number without sign or leading zeros.
fn decimal(text: &str) -> Option<u64> {
    let canonical = text == "0" || text.starts_with(|first: char| matches!(first, '1'..='9'));
    text.parse().ok().filter(|_| canonical)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};
    use zarrs::array::ChunkKeyEncoding;

    use super::ChunkKeys;
    use crate::{ArraySpec, Error, Result};

    fn spec(rank: usize, encoding: &Value) -> ArraySpec {
        let builder = ArraySpec::builder(&vec![9; rank], &vec![1; rank], "uint8");
        builder.chunk_key_encoding(encoding.clone()).build().unwrap()
    }

    fn keys(rank: usize, encoding: &Value) -> Result<ChunkKeys> {
        ChunkKeys::new(&spec(rank, encoding))
    }

    fn with(name: &str, separator: &str) -> Value {
        json!({"name": name, "configuration": {"separator": separator}})
    }

    fn encodings() -> Vec<Value> {
        let tiff = json!({"suffix": ".tiff"});
        let digits = json!({"suffix": "12", "separator": "."});
        vec![
            json!("default"),
            json!("v2"),
            with("default", "/"),
            with("default", "."),
            with("v2", "/"),
            with("v2", "."),
            json!({"name": "zarrs.default_suffix", "configuration": tiff}),
            json!({"name": "zarrs.default_suffix", "configuration": digits}),
        ]
    }

    #[test]
    fn keys_are_those_of_the_specification() {
        for (encoding, plane, line, scalar) in [
            (json!("default"), "c/0/1", "c/7", "c"),
            (with("default", "."), "c.0.1", "c.7", "c"),
            (json!({"name": "v2"}), "0.1", "7", "0"),
            (with("v2", "/"), "0/1", "7", "0"),
        ] {
            assert_eq!(keys(2, &encoding).unwrap().key(&[0, 1]), plane);
            assert_eq!(keys(1, &encoding).unwrap().key(&[7]), line);
            assert_eq!(keys(0, &encoding).unwrap().key(&[]), scalar);
            assert_eq!(keys(0, &encoding).unwrap().parse(scalar), Some(vec![]));
        }
    }

    #[test]
    fn only_what_would_be_written_is_read() {
        let plane = keys(2, &json!("default")).unwrap();
        for key in [
            "",
            "c",
            "c/",
            "c/0",
            "c/0/1/2",
            "c/0/1/",
            "/c/0/1",
            "c//1",
            "c/00/1",
            "c/01/1",
            "c/+0/1",
            "c/-1/0",
            "c/0.1",
            "c.0.1",
            "0/1",
            "d/0/1",
            "c/0/1 ",
            "c/18446744073709551616/0",
            "c/a/b",
            "c/\u{661}/1",
            "zarr.json",
        ] {
            assert_eq!(plane.parse(key), None, "{key}");
        }
        let scalar = keys(0, &json!("v2")).unwrap();
        assert_eq!((scalar.parse("1"), scalar.parse("")), (None, None));
        assert_eq!(keys(1, &json!("v2")).unwrap().parse(".zarray"), None);
        let suffixed = keys(1, &encodings()[7]).unwrap();
        assert_eq!((suffixed.parse("c.12"), suffixed.parse("c.112")), (None, Some(vec![1])));
    }

    #[test]
    fn encodings_that_are_not_known_or_not_sound_are_refused() {
        let unknown = keys(1, &json!({"name": "hashed"})).unwrap_err();
        assert!(matches!(unknown, Error::Unsupported { .. }), "{unknown}");
        let escape = json!({"name": "zarrs.default_suffix", "configuration": {"suffix": "/../x"}});
        for encoding in [with("default", "-"), with("v2", ""), escape] {
            let error = keys(1, &encoding).unwrap_err();
            assert!(matches!(error, Error::Invalid { .. }), "{error}");
        }
    }

    proptest! {
        #[test]
        fn parsing_undoes_keys_and_keys_are_those_of_zarrs(
            index in prop::collection::vec(prop_oneof![0u64..12, any::<u64>()], 0..5),
            encoding in prop::sample::select(encodings()),
        ) {
            let spec = spec(index.len(), &encoding);
            let keys = ChunkKeys::new(&spec).unwrap();
            let zarrs = ChunkKeyEncoding::from_metadata(&spec.metadata().chunk_key_encoding).unwrap();
            let encoded = zarrs.encode(&index);
            prop_assert_eq!(keys.key(&index), encoded.as_str());
            prop_assert_eq!(keys.parse(encoded.as_str()), Some(index));
        }

        #[test]
        fn what_is_parsed_is_a_key(
            text in "(c[./])?[0-9]{0,2}([./][0-9]{0,2}){0,2}(\\.tiff|12)?",
            rank in 0usize..4,
            encoding in prop::sample::select(encodings()),
        ) {
            let keys = keys(rank, &encoding).unwrap();
            if let Some(index) = keys.parse(&text) {
                prop_assert_eq!(keys.key(&index), text);
            }
        }
    }
}
