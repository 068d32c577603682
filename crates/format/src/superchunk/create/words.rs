//! The wishes for a new dataset, in words: as people type them and as Python passes them.

use std::collections::BTreeMap;

use chunkyard_array::Attributes;
use chunkyard_array::codec::blosc::{Compressor, Shuffle};
use chunkyard_store::{Digest, Error, Noun, Result};
use serde::Deserialize;
use serde_json::Value;

use super::{Compression, Creation, Wish};
use crate::superchunk::dtype::{self, Field, RowType};
use crate::superchunk::model::Style;
use crate::superchunk::names;

/// The level where only the compressor or the filter is given.
const LEVEL: u8 = 5;

/// The words. The engine chooses what is missing.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CreationWords {
    /// NumPy's text for the type of a row; a list of fields makes it a table.
    pub dtype: String,
    /// Shape of a row.
    pub row_shape: Vec<u64>,
    /// About how many rows it will have.
    pub expected_rows: Option<u64>,
    /// Rows of a chunk.
    pub chunklen: Option<u64>,
    /// Chunks of a file.
    pub superchunk: Option<u64>,
    /// A compressor: `blosclz`, `lz4`, `lz4hc`, `zlib`, `zstd` or `snappy`.
    pub codec: Option<String>,
    /// How hard it compresses, 0 to 9.
    pub level: Option<u8>,
    /// The shuffle before compression: `none`, `byte` or `bit`.
    pub shuffle: Option<String>,
    /// The digest behind each chunk: `none`, `adler32`, `crc32`, `md5`, `sha1`, `sha256`, …
    pub checksum: Option<String>,
    /// Bytes of room in each chunk.
    pub slack: u64,
    /// The default row; for a table a list by field, or an object by column.
    pub default: Option<Value>,
    /// `superchunk`, `document` or `bcolz`.
    pub style: Option<String>,
    /// Attributes.
    pub attributes: Attributes,
}

impl CreationWords {
    /// What these words mean.
    pub fn creation(self) -> Result<Creation> {
        let row = dtype::parse(&self.dtype)?;
        if let (RowType::Struct(_), false) = (&row, self.row_shape.is_empty()) {
            let what = "a table has no row shape; give shapes in the types of its columns";
            return Err(Error::invalid(what));
        }
        let wish = Wish {
            chunklen: self.chunklen,
            superchunk: self.superchunk,
            compression: self.compression()?,
            ..Wish::default()
        };
        let usual = Creation::new(row, &self.row_shape);
        let (default, columns) = match (&usual.row, self.default) {
            (RowType::Struct(fields), Some(value)) => (None, defaults(fields, &value, &wish)?),
            (_, value) => (value, BTreeMap::new()),
        };
        Ok(Creation {
            style: self.style.as_deref().map_or(Ok(usual.style), Style::parse)?,
            expected_len: self.expected_rows.unwrap_or(usual.expected_len),
            attributes: self.attributes,
            digest: self.checksum.as_deref().map_or(Ok(usual.digest), Digest::parse)?,
            slack: self.slack,
            wish: Wish { default, ..wish },
            columns,
            ..usual
        })
    }

    /// How chunks are compressed, if the words say anything about it.
    fn compression(&self) -> Result<Option<Compression>> {
        if self.codec.is_none() && self.level.is_none() && self.shuffle.is_none() {
            return Ok(None);
        }
        let shuffle = match self.shuffle.as_deref() {
            Some("none") => Shuffle::None,
            Some("byte") | None => Shuffle::Byte,
            Some("bit") => Shuffle::Bit,
            Some(other) => {
                let what = format!("there is no shuffle {other:?}; use none, byte or bit");
                return Err(Error::invalid(what));
            }
        };
        let level = self.level.unwrap_or(LEVEL);
        if level > 9 {
            return Err(Error::invalid(format!("level {level}: expected 0 to 9")));
        }
        let compressor = self.codec.as_deref().map_or(Ok(Compressor::Lz4), Compressor::parse)?;
        let block_bytes = compressor.block_bytes();
        Ok(Some(Compression { compressor, level, shuffle, block_bytes }))
    }
}

/// The wish for each column of a table with a default row.
fn defaults(fields: &[Field], value: &Value, wish: &Wish) -> Result<BTreeMap<String, Wish>> {
    let of = |default: &Value| Wish { default: Some(default.clone()), ..wish.clone() };
    match value {
        Value::Object(named) => {
            let mut columns = BTreeMap::new();
            for (name, default) in named {
                let path = names::field_path(name);
                let key = path.trim_start_matches('/');
                if !is_column(fields, key) {
                    return Err(Error::NotFound { what: Noun::Column, name: name.clone() });
                }
                columns.insert(key.to_owned(), of(default));
            }
            Ok(columns)
        }
        Value::Array(listed) if listed.len() == fields.len() => {
            let mut columns = BTreeMap::new();
            for (field, default) in fields.iter().zip(listed) {
                let dir = names::field_dir(&field.name);
                match &field.kind {
                    RowType::Struct(inner) if field.shape.is_empty() => {
                        let below = defaults(inner, default, wish)?.into_iter();
                        columns.extend(below.map(|(key, wish)| (format!("{dir}/{key}"), wish)));
                    }
                    _ => {
                        columns.insert(dir, of(default));
                    }
                }
            }
            Ok(columns)
        }
        other => Err(Error::invalid(format!(
            "the default row {other}: expected a value for each of {} fields, or values by column",
            fields.len()
        ))),
    }
}

/// Whether these names lead to a column.
fn is_column(fields: &[Field], key: &str) -> bool {
    let (first, rest) = key.split_once('/').unwrap_or((key, ""));
    let field = fields.iter().find(|field| names::field_dir(&field.name) == first);
    match field.map(|field| (&field.kind, field.shape.is_empty())) {
        Some((RowType::Struct(inner), true)) => is_column(inner, rest),
        Some(_) => rest.is_empty(),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn creation(words: Value) -> Result<Creation> {
        serde_json::from_value::<CreationWords>(words).unwrap().creation()
    }

    #[test]
    fn nothing_said_of_compression_leaves_it_to_a_trial() {
        let usual = creation(json!({"dtype": "<f8"})).unwrap();
        assert_eq!(usual.wish.compression, None);
        let by_shuffle = creation(json!({"dtype": "<f8", "shuffle": "bit"})).unwrap();
        let compression = by_shuffle.wish.compression.unwrap();
        assert_eq!((compression.compressor, compression.level), (Compressor::Lz4, LEVEL));
        assert_eq!(compression.shuffle, Shuffle::Bit);
    }

    #[test]
    fn a_default_row_reaches_its_columns() {
        let dtype = "[('x', '<f8'), ('n', [('a b', '<i4'), ('c', '<i4')])]";
        let listed = creation(json!({"dtype": dtype, "default": [1.5, [2, 3]]})).unwrap();
        let named = json!({"x": 1.5, "n/a b": 2, "n/c": 3});
        let named = creation(json!({"dtype": dtype, "default": named})).unwrap();
        for found in [listed, named] {
            let value = |key: &str| found.columns[key].default.clone();
            assert_eq!(value("x"), Some(json!(1.5)));
            assert_eq!(value("n/a%20b"), Some(json!(2)));
            assert_eq!(value("n/c"), Some(json!(3)));
        }
    }

    #[test]
    fn words_that_mean_nothing_are_refused() {
        for words in [
            json!({"dtype": "f9"}),
            json!({"dtype": "<f8", "codec": "rar"}),
            json!({"dtype": "<f8", "level": 10}),
            json!({"dtype": "<f8", "shuffle": "cards"}),
            json!({"dtype": "<f8", "checksum": "crc7"}),
            json!({"dtype": "<f8", "style": "baroque"}),
            json!({"dtype": "[('x', '<f8')]", "row_shape": [3]}),
            json!({"dtype": "[('x', '<f8')]", "default": {"y": 1}}),
            json!({"dtype": "[('x', '<f8')]", "default": 1}),
        ] {
            assert!(creation(words.clone()).is_err(), "{words}");
        }
    }
}
