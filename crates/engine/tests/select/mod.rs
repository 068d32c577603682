//! Selections and points of any array, read and written, compared with one element after the other.

pub(crate) mod model;
mod packed;
mod read;
mod write;
