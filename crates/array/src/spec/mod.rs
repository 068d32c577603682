//! Metadata of arrays and groups, as Zarr v3 writes it in `zarr.json`.
//!
//! A spec keeps the document it was read from beside its typed view, so that unknown parts are
//! written back as they were: unknown members, attributes in their order, a codec given as
//! `"crc32c"` or as `{"name": "crc32c"}`. Rendering puts the members of the document in one fixed
//! order, which makes equal specs equal bytes.

mod array;
mod builder;
mod chunk_key;
mod derive;
mod document;
mod group;
pub mod non_finite;
mod sharding;
#[cfg(test)]
mod tests;
mod v2;

pub(crate) use document::typed_value;

pub use array::ArraySpec;
pub use builder::ArrayBuilder;
pub use chunk_key::ChunkKeys;
pub use group::GroupSpec;
pub use sharding::Sharding;
pub use v2::{parse_v2_array, parse_v2_group};

/// User attributes. Numbers are kept verbatim, whatever their size.
pub type Attributes = serde_json::Map<String, serde_json::Value>;
