//! The JSON files of a BLZ dataset, read leniently and written as Python writes them.
//!
//! ```text
//!  meta/sizes         Sizes        how long it is: what a commit replaces
//!  meta/storage       Storage      type, chunk length, compression, fill value
//!  meta/attributes    parse_attributes, render_attributes; __attrs__ in BLZ and bcolz
//!  meta/shards        Shards       which files are elsewhere, a copy of the list in meta/sizes
//!  __rootdirs__       RootDirs     the columns of a table in BLZ and bcolz
//! ```
//!
//! None of them has a version. The ones written here end with a [checksum](SEAL). Unknown keys are kept; bcolz
//! ignores our keys.

mod dflt;
mod json;
mod object;
mod roots;
pub mod seal;
mod sizes;
mod storage;
#[cfg(test)]
mod tests;

use serde_json::{Map, Value};

pub use self::dflt::{default_element, default_value};
pub use self::json::ascii_json;
use self::object::Object;
pub use self::roots::{RootDirs, ShardRange, Shards};
pub use self::seal::{SEAL, unsealed};
pub use self::sizes::Sizes;
pub use self::storage::{CParams, ColumnStorage, Storage};
use chunkyard_store::{Error, Result};

/// The attributes in a file. A file that bcolz has created and not yet written holds none.
///
/// JSON has no NaN and no infinities, but Python writes them all the same: here they are numbers, see
/// [`non_finite`](chunkyard_array::non_finite).
pub fn parse_attributes(file: &str, bytes: &[u8]) -> Result<Map<String, Value>> {
    parse_sealed_attributes(file, bytes).map(|(attributes, _)| attributes)
}

/// The same, and whether the file ends with a valid checksum.
pub fn parse_sealed_attributes(file: &str, bytes: &[u8]) -> Result<(Map<String, Value>, bool)> {
    match bytes.trim_ascii() {
        [] => Ok((Map::new(), false)),
        _ => {
            let object = Object::parse(file, bytes)?;
            let sealed = object.is_sealed();
            Ok((object.rest(), sealed))
        }
    }
}

/// The same for a file that another program may have changed: the checksum is not compared.
pub fn salvage_attributes(file: &str, bytes: &[u8]) -> Result<Map<String, Value>> {
    Object::salvage(file, bytes).map(Object::rest)
}

/// The file with these attributes.
pub fn render_attributes(attributes: &Map<String, Value>) -> Vec<u8> {
    json::line(&json::members(attributes))
}

/// The same with a checksum.
pub fn render_sealed_attributes(attributes: &Map<String, Value>) -> Vec<u8> {
    json::file(&json::members(attributes), true)
}

/// Refuses attributes that use the key of the checksum.
pub fn refuse_seal(attributes: &Map<String, Value>) -> Result<()> {
    match attributes.contains_key(SEAL) {
        true => Err(Error::invalid(format!(
            "an attribute {SEAL:?}: the checksum of the attributes has this key; choose another one"
        ))),
        false => Ok(()),
    }
}
