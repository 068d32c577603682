//! Any format to any format.

mod matrix;
mod naive;
mod sample;
mod support;
