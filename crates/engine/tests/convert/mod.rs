//! Any format to any format.

pub(crate) mod by_hand;
mod chains;
mod container;
pub(crate) mod crash;
mod damage;
mod edges;
pub(crate) mod formats;
mod hdf5;
mod immense;
mod jobs;
mod matrix;
mod memory;
mod metadata;
pub(crate) mod naive;
mod random;
mod regrid;
pub(crate) mod rewrite;
pub(crate) mod sample;
mod space;
mod sparse;
mod superchunk;
pub(crate) mod support;
pub(crate) mod workers;
