//! The bytes of a container's files, as pure functions: parse and render, no waiting.
//!
//! ```text
//!  blocks … | seal | footer | trailer         a layer
//!                    footer = archive         rkyv's layout, see `archive`
//!  block ⊇ chunk = elements                   a chunk as the container stores it
//!  archive | trailer                          the statistics file
//! ```

pub(crate) mod archive;
pub mod elements;
pub(crate) mod footer;
pub(crate) mod seal;
pub(crate) mod stats_file;
pub(crate) mod trailer;
