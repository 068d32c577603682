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
//! There is no version in any of them. Keys that are not known are kept; bcolz ignores those of ours.

mod dflt;
mod json;
mod object;
mod places;
mod sizes;
mod storage;
#[cfg(test)]
mod tests;

use serde_json::{Map, Value};

pub use self::dflt::{default_element, default_value};
pub use self::json::ascii_json;
use self::object::Object;
pub use self::places::{RootDirs, ShardRange, Shards};
pub use self::sizes::Sizes;
pub use self::storage::{CParams, ColumnStorage, Storage};
use crate::error::Result;

/// The attributes in a file. One that bcolz has created and not yet written is as good as empty.
///
/// JSON has no NaN and no infinities, and Python writes them all the same: they are numbers here, see
/// [`non_finite`](chunkyard_array::non_finite).
pub fn parse_attributes(file: &str, bytes: &[u8]) -> Result<Map<String, Value>> {
    match bytes.trim_ascii() {
        [] => Ok(Map::new()),
        text => Object::parse(file, text).map(Object::rest),
    }
}

/// The file with these attributes.
pub fn render_attributes(attributes: &Map<String, Value>) -> Vec<u8> {
    json::line(&json::members(attributes))
}
