//! Any format to any format.

mod hdf5;
mod matrix;
mod naive;
mod sample;
mod support;
