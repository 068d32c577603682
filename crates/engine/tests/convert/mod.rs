//! Any format to any format.

mod basics;
mod memory;
mod regrid;
