//! What a server says about a data instance at a version: the answer to `info`.

use chunkyard_array::codec::label_block::SIZE_MAX;
use chunkyard_store::{Error, Result};
use serde::{Deserialize, Deserializer};

/// The most scales. At the thirty-first, all numbers that a coordinate can have are one voxel.
const LEVELS_MAX: u64 = 31;

/// A labelmap as its server describes it. Points and sizes are x, y, z, as they are there.
#[derive(Debug, Clone, PartialEq)]
pub struct Info {
    /// The identity of the data, whatever its name is.
    pub data_uuid: String,
    /// Voxels of a block.
    pub block_size: [u32; 3],
    /// Size of a voxel of scale 0.
    pub voxel_size: [Option<f64>; 3],
    /// Units of that size.
    pub voxel_units: [Option<String>; 3],
    /// The first and the last voxel of scale 0, or the whole blocks that hold them; `None` before any block is stored.
    pub extents: Option<([i32; 3], [i32; 3])>,
    /// The coarsest scale.
    pub max_level: u8,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Document {
    base: Base,
    #[serde(default, deserialize_with = "nullable")]
    extended: Extended,
    #[serde(default, deserialize_with = "nullable")]
    extents: Extents,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Base {
    type_name: String,
    #[serde(rename = "DataUUID", default)]
    data_uuid: String,
    #[serde(default)]
    compression: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
struct Extended {
    #[serde(deserialize_with = "nullable")]
    block_size: Vec<u32>,
    #[serde(deserialize_with = "nullable")]
    voxel_size: Vec<f64>,
    #[serde(deserialize_with = "nullable")]
    voxel_units: Vec<String>,
    min_point: Option<Vec<i32>>,
    max_point: Option<Vec<i32>>,
    #[serde(deserialize_with = "nullable")]
    max_downres_level: u64,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
struct Extents {
    min_point: Option<Vec<i32>>,
    max_point: Option<Vec<i32>>,
}

/// A server writes `null` for what is empty.
pub(super) fn nullable<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(
    deserializer: D,
) -> Result<T, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

/// The error of a document that is not what the server should say.
pub(super) fn corrupt(what: &str, expected: &str, found: impl std::fmt::Display) -> Error {
    let (file, found) = ("the answer of the DVID server".to_owned(), found.to_string());
    Error::Corrupt { file, what: what.to_owned(), expected: expected.to_owned(), found }
}

impl Info {
    /// Reads the answer, and refuses data that this format cannot read, with the reason.
    pub fn parse(bytes: &[u8]) -> Result<Self> {
        let document: Document = serde_json::from_slice(bytes)
            .map_err(|error| corrupt("info", "the description of a data instance", error))?;
        let Document { base, extended, extents } = document;
        if base.type_name != "labelmap" {
            return Err(Error::unsupported(format!(
                "DVID data of type {:?}; labelmap is read",
                base.type_name
            )));
        }
        // The server passes stored bytes on, whatever they are; only gzip can be asked for.
        if !base.compression.to_ascii_lowercase().starts_with("gzip") {
            return Err(Error::unsupported(format!(
                "a labelmap that is stored with {:?}: DVID sends blocks soundly only if they are stored \
                 with gzip",
                base.compression
            )));
        }
        let block_size = three(&extended.block_size, "BlockSize")?;
        if block_size.iter().any(|&n| n == 0 || n % 8 != 0 || n > SIZE_MAX) {
            let expected = "multiples of 8, at most 1024";
            return Err(corrupt("BlockSize", expected, format!("{block_size:?}")));
        }
        if extended.max_downres_level >= LEVELS_MAX {
            let found = extended.max_downres_level;
            return Err(corrupt("MaxDownresLevel", "fewer than 31", found));
        }
        let own = (extents.min_point, extents.max_point);
        let general = (extended.min_point, extended.max_point);
        let found = [own, general].into_iter().find_map(|(min, max)| min.zip(max));
        let extents = match found {
            None => None,
            Some((min, max)) => {
                let (min, max) = (three(&min, "MinPoint")?, three(&max, "MaxPoint")?);
                if min.iter().zip(&max).any(|(min, max)| min > max) {
                    let found = format!("{min:?} to {max:?}");
                    return Err(corrupt("extents", "MinPoint up to MaxPoint", found));
                }
                Some((min, max))
            }
        };
        let size = |axis: usize| {
            extended.voxel_size.get(axis).copied().filter(|size| size.is_finite() && *size > 0.0)
        };
        let unit = |axis: usize| {
            extended
                .voxel_units
                .get(axis)
                .filter(|unit| !unit.is_empty() && unit.len() <= 256)
                .cloned()
        };
        Ok(Self {
            data_uuid: base.data_uuid,
            block_size,
            voxel_size: [size(0), size(1), size(2)],
            voxel_units: [unit(0), unit(1), unit(2)],
            extents,
            max_level: u8::try_from(extended.max_downres_level).unwrap_or(u8::MAX),
        })
    }
}

fn three<T: Copy + std::fmt::Debug>(values: &[T], what: &str) -> Result<[T; 3]> {
    values.try_into().map_err(|_| corrupt(what, "three numbers", format!("{values:?}")))
}
