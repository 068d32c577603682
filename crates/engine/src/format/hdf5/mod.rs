//! HDF5 and NetCDF-4 files as a source of chunks.
//!
//! ```text
//!  Hdf5 ── bridge ──▶ tree, links       which groups and datasets there are
//!            │          │
//!            │          ▼
//!          store     contents ─┬▶ dtype, filters, attributes, dimensions ──▶ metadata   one ArraySpec each
//!                              └▶ index, slabs                                          where chunks lie
//! ```
//!
//! The encoded chunks of an HDF5 dataset are ranges of the file, and its filters are codecs that Zarr
//! has too. So a file needs no conversion to be read as arrays: this format locates, like all others.
//! Structures are parsed by the `hdf5-reader` crate; what it gives is checked before it is believed.
//!
//! Specification: HDF5 File Format Specification 3.0. Compatible implementations: h5py, netCDF4,
//! xarray. What maps to what is in `docs/formats/hdf5.md`, why it is so in `docs/design/006-hdf5.md`.

mod attributes;
mod bridge;
mod contents;
mod dimensions;
mod dtype;
mod filters;
mod index;
mod links;
mod metadata;
mod slabs;
mod source;
#[cfg(test)]
mod tests;
mod text;
mod tree;
mod value;

pub use contents::LeftOut;
pub use source::Source;
