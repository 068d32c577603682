//! What is committed: arrays as all layers together describe them.
//!
//! ```text
//!  committed                                  the files and their layers, shared by all readers
//!      ▼
//!  array_state ─┬─ attributes ── ambiguous    those that array-format 0.9 reads differently
//!               └─ array_cache                arrays read before, within a bound of memory
//! ```

pub(crate) mod ambiguous;
pub(crate) mod array_cache;
pub(crate) mod array_state;
mod attributes;
pub(crate) mod committed;
