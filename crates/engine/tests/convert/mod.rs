//! Any format to any format.

mod chains;
mod crash;
mod damage;
mod edges;
mod hdf5;
mod matrix;
mod memory;
mod metadata;
mod naive;
mod random;
mod regrid;
mod sample;
mod sparse;
mod support;
mod workers;
