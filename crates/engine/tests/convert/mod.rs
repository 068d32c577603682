//! Any format to any format.

mod chains;
mod matrix;
mod metadata;
mod naive;
mod sample;
mod sparse;
mod support;
