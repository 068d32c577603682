//! Defects of array-format 0.9, and what happens here instead: a test per defect.
//!
//! | array-format 0.9 | here |
//! |---|---|
//! | chunks of a deleted array come back when its name is used again | a tombstone ends the search |
//! | two writers overwrite each other's layer, the last one wins | the second gets a conflict |
//! | the next layer is numbered by how many there are: a gap lets it overwrite one | by the highest |
//! | any file that is named like a layer counts as one | its content must say so |
//! | extents, chunks and offsets lose all bits above 32 | refused |
//! | a sidecar's attributes point into the dictionary of another layer; merging mixes them | own dictionary |
//! | the 65 537th key gets the value of the first | wide enough indices |
//! | blocks of a user's codec are written and never read again | codecs are registered |
//! | a chunk outside its block panics | corrupt |
//! | creating over a container keeps its old sidecars | refused |
//! | a failed flush drops the changes | they stay |
//! | compaction deletes layers before the base is written | after |
//! | a torn newest layer makes the container unreadable | readers go on below it |
//! | a flipped bit is read as data | checksums |
//! | a path that was written again is served from the cache | caches know which file it was |
//! | compacting with changes pending writes stale layer numbers | they are flushed first |
//! | writing to an array with a zero-length axis panics | nothing to write |
//! | a chunk written twice leaves the first copy as dead bytes | only the last is kept |
//! | a footer longer than its file wraps around | corrupt |
//! | the fill value of strings is ignored | strings never written have it |
//! | strings that are no UTF-8 are changed on reading | corrupt |
//!
//! Opening costs 3 n + 4 requests there; `requests` counts ours. Crashes and writers at the same time
//! have modules of their own.

mod files;
mod layers;
mod values;

use chunkyard_format::container::model::AttributeValue;

/// An attribute.
pub(in crate::container) fn text(value: &str) -> AttributeValue {
    AttributeValue::String(value.to_owned())
}
