//! Selections and points of any array, read and written, against one element after the other.

mod model;
mod read;
mod write;
