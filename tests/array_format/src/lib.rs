//! Test data for containers: scripts that two implementations can play, and the arrays that must be
//! visible afterwards.
//!
//! ```text
//!            ┌─▶ played by array-format 0.9 ─▶ files ─┐
//!  Script ───┤                                        ├─▶ read by either, compared with the model
//!            └─▶ played by us ───────────────▶ files ─┘
//!     └──────▶ model: the naive answer
//! ```
//!
//! An element is its bytes: little-endian numbers, the text of a string, the children of a list back
//! to back. So one description serves every type, and of the engine only the vocabulary of its files
//! is needed, [`chunkyard_engine::format::container::model`].

pub mod cases;
pub mod elements;
pub mod model;
pub mod script;
pub mod statistics;

pub use model::{Expected, visible};
pub use script::{Definition, Element, Script, Step};
