//! Any format to any format.

mod chains;
pub(crate) mod crash;
mod damage;
mod edges;
mod hdf5;
mod immense;
mod matrix;
mod memory;
mod metadata;
pub(crate) mod naive;
mod random;
mod regrid;
pub(crate) mod sample;
mod space;
mod sparse;
pub(crate) mod support;
pub(crate) mod workers;
