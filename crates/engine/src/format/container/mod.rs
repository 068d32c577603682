//! Many arrays in one file, with overlays: array-format 0.9, and what it needs to be safe.

pub mod elements;
pub mod mapping;
pub mod model;
pub mod statistics;
