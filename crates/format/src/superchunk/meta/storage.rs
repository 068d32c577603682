//! `meta/storage`: the type of a dataset and how it is cut and compressed.

use std::collections::BTreeMap;

use chunkyard_array::non_finite;
use chunkyard_store::{Digest, Result};
use serde_json::{Map, Value};

use super::dflt::dflt_json;
use super::json::{self, object, quoted};
use super::object::Object;
use crate::superchunk::dtype::{self, RowType};
use crate::superchunk::names::parse_field_dir;

/// The content of `meta/storage`.
#[derive(Clone, Debug, PartialEq)]
pub struct Storage {
    /// The type of a row, as NumPy prints it; without the row's shape, which `meta/sizes` has.
    pub dtype: String,
    /// How chunks are compressed.
    pub cparams: CParams,
    /// The key they stand under: `cparams`, or `bparams` in BLZ.
    pub cparams_key: &'static str,
    /// Rows of a chunk, at least one.
    pub chunklen: u64,
    /// The fill value of rows that are added without values.
    pub dflt: Value,
    /// How many rows were expected at first.
    pub expectedlen: u64,
    /// The profile, where it is ours.
    pub format: Option<String>,
    /// Chunks of a file; one in BLZ and bcolz.
    pub superchunk: Option<u64>,
    /// What follows each chunk.
    pub checksum: Option<Digest>,
    /// Spare bytes in each chunk.
    pub slack: u64,
    /// Settings of the columns of a struct, by the path of their directories below `data`.
    pub columns: Option<BTreeMap<String, ColumnStorage>>,
    /// Whether the file ends with a checksum.
    pub sealed: bool,
    /// Keys that are not known here.
    pub other: Map<String, Value>,
}

/// The settings of a column.
#[derive(Clone, Debug, PartialEq)]
pub struct ColumnStorage {
    /// Rows of a chunk, at least one.
    pub chunklen: u64,
    /// How chunks are compressed.
    pub cparams: CParams,
    /// The fill value.
    pub dflt: Value,
    /// Chunks of a file.
    pub superchunk: Option<u64>,
    /// Keys that are not known here.
    pub other: Map<String, Value>,
}

/// How chunks are compressed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CParams {
    /// How hard, 0 to 9.
    pub clevel: u8,
    /// 0 none, 1 by bytes, 2 by bits.
    pub shuffle: u8,
    /// The codec; blosclz if not given.
    pub cname: Option<String>,
    /// Decimal digits to keep of floating-point numbers; none or 0 keeps all.
    pub quantize: Option<i64>,
    /// Bytes of a Blosc block, in our profile.
    pub blocksize: Option<u64>,
}

impl Default for CParams {
    /// What BLZ and bcolz do.
    fn default() -> Self {
        Self { clevel: 5, shuffle: 1, cname: None, quantize: None, blocksize: None }
    }
}

impl Storage {
    /// Reads the file. Only the type and the chunk length are required.
    pub fn parse(file: &str, bytes: &[u8]) -> Result<Self> {
        let mut keys = Object::parse(file, bytes)?;
        let (cparams, cparams_key) = match (keys.object("cparams")?, keys.object("bparams")?) {
            (Some(cparams), _) => (CParams::parse(cparams)?, "cparams"),
            (None, Some(bparams)) => (CParams::parse(bparams)?, "bparams"),
            (None, None) => (CParams::default(), "cparams"),
        };
        let columns = match keys.object("columns")? {
            Some(mut columns) => {
                let mut found = BTreeMap::new();
                for path in columns.keys() {
                    if let Some(column) = columns.object(&path)? {
                        found.insert(path, ColumnStorage::parse(column)?);
                    }
                }
                Some(found)
            }
            None => None,
        };
        Ok(Self {
            dtype: keys.required("dtype", "a text", |value| value.as_str().map(str::to_owned))?,
            cparams,
            cparams_key,
            chunklen: keys.required("chunklen", POSITIVE, positive)?,
            dflt: non_finite::spelled(keys.take("dflt").unwrap_or_default()),
            expectedlen: keys.optional_u64("expectedlen")?.unwrap_or(0),
            format: keys.optional_text("format")?,
            superchunk: keys.optional("superchunk", POSITIVE, positive)?,
            checksum: keys.optional("checksum", "the name of a checksum", |value| {
                Digest::parse(value.as_str()?).ok()
            })?,
            slack: keys.optional_u64("slack")?.unwrap_or(0),
            columns,
            sealed: keys.is_sealed(),
            other: keys.rest(),
        })
    }

    /// The bytes of the file, with the keys in the order in which bcolz writes them, then ours.
    pub fn render(&self) -> Vec<u8> {
        // The type only decides how values that JSON lacks are spelled, so an unknown one is no error.
        let kind = dtype::parse(&self.dtype).ok();
        let mut members = vec![
            ("dtype", quoted(&self.dtype)),
            (self.cparams_key, self.cparams.json()),
            ("chunklen", self.chunklen.to_string()),
            ("expectedlen", self.expectedlen.to_string()),
            ("dflt", dflt_json(&self.dflt, kind.as_ref())),
        ];
        members.extend(self.format.as_ref().map(|format| ("format", quoted(format))));
        members.extend(self.superchunk.map(|chunks| ("superchunk", chunks.to_string())));
        members.extend(self.checksum.map(|digest| ("checksum", quoted(digest.name()))));
        if self.format.is_some() || self.slack > 0 {
            members.push(("slack", self.slack.to_string()));
        }
        if let Some(columns) = &self.columns {
            let columns = columns.iter().map(|(path, column)| {
                let kind = kind.as_ref().and_then(|kind| within(kind, path));
                (path.as_str(), column.json(kind))
            });
            members.push(("columns", object(&columns.collect::<Vec<_>>())));
        }
        members.extend(json::members(&self.other));
        json::file(&members, self.sealed)
    }
}

impl ColumnStorage {
    fn parse(mut keys: Object<'_>) -> Result<Self> {
        let cparams = keys.object("cparams")?.map(CParams::parse).transpose()?;
        Ok(Self {
            chunklen: keys.required("chunklen", POSITIVE, positive)?,
            cparams: cparams.unwrap_or_default(),
            dflt: non_finite::spelled(keys.take("dflt").unwrap_or_default()),
            superchunk: keys.optional("superchunk", POSITIVE, positive)?,
            other: keys.rest(),
        })
    }

    fn json(&self, kind: Option<&RowType>) -> String {
        let mut members = vec![
            ("chunklen", self.chunklen.to_string()),
            ("cparams", self.cparams.json()),
            ("dflt", dflt_json(&self.dflt, kind)),
        ];
        members.extend(self.superchunk.map(|chunks| ("superchunk", chunks.to_string())));
        members.extend(json::members(&self.other));
        object(&members)
    }
}

impl CParams {
    fn parse(mut keys: Object<'_>) -> Result<Self> {
        let default = Self::default();
        let up_to = |most: u64| {
            move |value: &Value| {
                let number = value.as_u64().filter(|&number| number <= most);
                number.and_then(|number| u8::try_from(number).ok())
            }
        };
        let shuffle = keys.optional("shuffle", "true, false, 0, 1 or 2", |value| {
            value.as_bool().map(u8::from).or_else(|| up_to(2)(value))
        })?;
        Ok(Self {
            clevel: keys.optional("clevel", "0 to 9", up_to(9))?.unwrap_or(default.clevel),
            shuffle: shuffle.unwrap_or(default.shuffle),
            cname: keys.optional_text("cname")?,
            quantize: keys.optional("quantize", "a whole number", Value::as_i64)?,
            blocksize: keys.optional_u64("blocksize")?,
        })
    }

    /// With a codec name it is written as in bcolz; without one, as in BLZ and the document.
    fn json(&self) -> String {
        let shuffle = match (&self.cname, self.shuffle) {
            (None, shuffle @ 0..=1) => (shuffle == 1).to_string(),
            (_, shuffle) => shuffle.to_string(),
        };
        let mut members = vec![("clevel", self.clevel.to_string()), ("shuffle", shuffle)];
        members.extend(self.cname.as_ref().map(|cname| ("cname", quoted(cname))));
        members.extend(self.quantize.map(|digits| ("quantize", digits.to_string())));
        members.extend(self.blocksize.map(|bytes| ("blocksize", bytes.to_string())));
        object(&members)
    }
}

const POSITIVE: &str = "a whole number from 1 to 2^64 - 1";

fn positive(value: &Value) -> Option<u64> {
    value.as_u64().filter(|&number| number > 0)
}

/// The type of the column whose directory has this path.
fn within<'a>(kind: &'a RowType, path: &str) -> Option<&'a RowType> {
    path.split('/').try_fold(kind, |kind, directory| {
        let RowType::Struct(fields) = kind else { return None };
        let name = parse_field_dir(directory)?;
        fields.iter().find(|field| field.name == name).map(|field| &field.kind)
    })
}
