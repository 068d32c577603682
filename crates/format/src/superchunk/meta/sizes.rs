//! `meta/sizes`: the shape of a dataset, how many bytes it has, and which files are elsewhere.

use chunkyard_store::Result;
use serde_json::{Map, Value};

use super::json::{self, list, quoted};
use super::object::Object;
use super::roots::Shards;

/// NumPy has no arrays with more dimensions.
const DIMENSIONS_MAX: usize = 64;

/// The content of `meta/sizes`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Sizes {
    /// The shape. Only the first `shape[0]` rows exist, even if the data files hold more.
    pub shape: Vec<u64>,
    /// Bytes of the elements.
    pub nbytes: u64,
    /// Stored bytes. BLZ and bcolz write an estimate that drifts, even below 0, which is read as 0.
    pub cbytes: u64,
    /// How many commits there were; only in our profile.
    pub generation: Option<u64>,
    /// Which files are elsewhere, committed in one step with everything else; only in our profile.
    /// If `None`, `meta/shards` counts.
    pub shards: Option<Shards>,
    /// Tells the dataset from others; its files have the id, too. It is in this file because only one of two
    /// processes that create a dataset at the same place creates this file.
    pub id: Option<String>,
    /// Whether the file ends with a checksum.
    pub sealed: bool,
    /// Unknown keys.
    pub other: Map<String, Value>,
}

impl Sizes {
    /// Reads the file.
    pub fn parse(file: &str, bytes: &[u8]) -> Result<Self> {
        let mut object = Object::parse(file, bytes)?;
        let shape: Vec<u64> = object.required("shape", "a list of whole numbers", |value| {
            let lengths = value.as_array().filter(|shape| shape.len() <= DIMENSIONS_MAX)?;
            lengths.iter().map(Value::as_u64).collect()
        })?;
        if shape.is_empty() {
            return Err(object.wrong("shape", "at least one length", "none"));
        }
        let shards = match object.has("shards") {
            true => Some(Shards::take(&mut object, "shards")?),
            false => None,
        };
        Ok(Self {
            shape,
            nbytes: object.required(
                "nbytes",
                "a whole number from 0 to 2^64 - 1",
                Value::as_u64,
            )?,
            cbytes: object.take("cbytes").and_then(|value| value.as_u64()).unwrap_or(0),
            generation: object.optional_u64("generation")?,
            shards,
            id: object.optional_text("id")?,
            sealed: object.is_sealed(),
            other: object.rest(),
        })
    }

    /// The bytes of the file.
    pub fn render(&self) -> Vec<u8> {
        let mut members = vec![
            ("shape", list(self.shape.iter().map(u64::to_string))),
            ("nbytes", self.nbytes.to_string()),
            ("cbytes", self.cbytes.to_string()),
        ];
        members.extend(self.generation.map(|number| ("generation", number.to_string())));
        members.extend(self.shards.as_ref().map(|shards| ("shards", shards.render_list())));
        members.extend(self.id.as_ref().map(|id| ("id", quoted(id))));
        members.extend(json::members(&self.other));
        json::file(&members, self.sealed)
    }
}
