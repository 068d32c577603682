//! What tests with hostile bytes reach.

pub use super::gob::{Value, decode as decode_gob};
pub use super::index::LabelIndex;
pub use super::keys::{BlockAt, DataKey, Key, parse_label};
pub use super::repo::Repo;
