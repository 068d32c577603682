//! How arrays are laid out in files: one folder per format.

pub mod hdf5;
