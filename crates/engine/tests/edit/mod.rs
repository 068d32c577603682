//! Plain Zarr, changed in place.

mod crash;
mod hierarchy;
mod regions;
