//! Changing what is there: plain Zarr in place, and one suite for all formats.

mod conformance;
mod crash;
mod hierarchy;
mod regions;
