//! The JSON files of a BLZ dataset, read leniently and written as Python writes them.
//!
//! ```text
//!  meta/sizes         Sizes        how long it is: what a commit replaces
//!  meta/storage       Storage      type, chunk length, compression, fill value
//!  meta/attributes    parse_attributes, render_attributes; __attrs__ in BLZ and bcolz
//!  meta/shards        Shards       which files are elsewhere, a copy of what meta/sizes says
//!  __rootdirs__       RootDirs     the columns of a table in BLZ and bcolz
//! ```
//!
//! There is no version in any of them. Those that are written here end with a [checksum](SEAL). Keys that are not known are kept; bcolz ignores those of ours.

mod dflt;
mod json;
mod object;
mod places;
pub mod seal;
mod sizes;
mod storage;
#[cfg(test)]
mod tests;

use serde_json::{Map, Value};

pub use self::dflt::{default_element, default_value};
pub use self::json::ascii_json;
use self::object::Object;
pub use self::places::{RootDirs, ShardRange, Shards};
pub use self::seal::{SEAL, unsealed};
pub use self::sizes::Sizes;
pub use self::storage::{CParams, ColumnStorage, Storage};
use chunkyard_store::{Error, Result};

/// The attributes in a file. One that bcolz has created and not yet written is as good as empty.
///
/// JSON has no NaN and no infinities, and Python writes them all the same: they are numbers here, see
/// [`non_finite`](chunkyard_array::non_finite).
pub fn parse_attributes(file: &str, bytes: &[u8]) -> Result<Map<String, Value>> {
    parse_sealed_attributes(file, bytes).map(|(attributes, _)| attributes)
}

/// The same, and whether the file ends with a checksum, which holds.
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

/// The same of a file that another program may have changed: whatever its checksum says.
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

/// Refuses attributes with the key that the checksum of their file has.
pub fn refuse_seal(attributes: &Map<String, Value>) -> Result<()> {
    match attributes.contains_key(SEAL) {
        true => Err(Error::invalid(format!(
            "an attribute {SEAL:?}: the checksum of the attributes has this key; choose another one"
        ))),
        false => Ok(()),
    }
}
