//! The bytes of a container's files, as pure functions: parse and render, no waiting.
//!
//! ```text
//!  blocks … | seal | footer | trailer         a layer
//!                    footer = archive         rkyv's layout, see `archive`
//!  block ⊇ chunk = elements                   a chunk as the container stores it
//!  archive | trailer                          the statistics file
//! ```

pub mod archive;
pub mod elements;
pub mod footer;
pub mod seal;
pub mod stats_file;
pub mod trailer;
