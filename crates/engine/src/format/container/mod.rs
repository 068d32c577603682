//! Many arrays in one file, with overlays: array-format 0.9, and what it needs to be safe.

pub mod archive;
pub mod elements;
pub mod footer;
pub mod mapping;
pub mod model;
pub mod seal;
pub mod statistics;
pub mod stats_file;
pub mod trailer;
