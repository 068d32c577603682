//! Any format to any format.

mod chains;
mod matrix;
mod memory;
mod metadata;
mod naive;
mod sample;
mod sparse;
mod support;
