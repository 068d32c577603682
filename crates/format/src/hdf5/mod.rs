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
//! The encoded chunks of an HDF5 dataset are ranges of the file, and its filters are codecs that Zarr has
//! too. So a file needs no conversion to be read as arrays: this format locates chunks, like all others.
//! The `hdf5-reader` crate parses the structures; its answers are checked before they are believed.
//!
//! Specification: HDF5 File Format Specification 3.0. Compatible implementations: h5py, netCDF4, xarray.
//! The mapping is in `docs/formats/hdf5.md`, the reasons are in `docs/design/006-hdf5.md`.

mod attributes;
mod bridge;
mod contents;
mod dimensions;
mod dtype;
mod edges;
mod filters;
pub(crate) mod hostile;
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

use std::sync::Arc;

use async_trait::async_trait;

pub use self::source::Hdf5Source;
use chunkyard_store::{Error, Noun, Result};

use super::{Format, OpenOptions, Place, Probe, Source};

/// HDF5, and NetCDF-4, which is built on it. Read, not written.
#[derive(Debug, Clone, Copy)]
pub struct Hdf5;

/// The first bytes of a superblock.
const SIGNATURE: &[u8] = b"\x89HDF\r\n\x1a\n";
/// The superblock follows a block of user data: of no bytes, this many, twice as many …
const USER_BLOCK_BYTES: u64 = 512;
/// … up to this many.
const USER_BLOCK_BYTES_MAX: u64 = 1 << 20;

#[async_trait]
impl Format for Hdf5 {
    fn name(&self) -> &'static str {
        "hdf5"
    }

    async fn probe(&self, place: &Place) -> Result<Probe> {
        let no = |why: &str| Ok(Probe::No(why.to_owned()));
        let Some((store, name)) = place.object() else { return no("it is not one object") };
        let size = match store.head(name).await {
            Ok(meta) => meta.size,
            Err(Error::NotFound { .. }) => return no("there is no such file"),
            Err(error) => return Err(error),
        };
        let len = SIGNATURE.len() as u64;
        let user_blocks =
            std::iter::successors(Some(USER_BLOCK_BYTES), |bytes| bytes.checked_mul(2));
        let user_blocks = user_blocks.take_while(|bytes| *bytes <= USER_BLOCK_BYTES_MAX);
        let starts = std::iter::once(0).chain(user_blocks);
        let ranges: Vec<_> =
            starts.map(|at| at..at + len).take_while(|range| range.end <= size).collect();
        // The first range nearly always decides, and saves reading the others.
        for ranges in [ranges.get(..1), ranges.get(1..)].into_iter().flatten() {
            let found = store.get_ranges(name, ranges, None).await?;
            if found.iter().any(|bytes| bytes == SIGNATURE) {
                return Ok(Probe::Yes("it has the signature of HDF5".to_owned()));
            }
        }
        no("no signature of HDF5")
    }

    async fn open(&self, place: &Place, options: &OpenOptions) -> Result<Arc<dyn Source>> {
        options.refuse_version("HDF5")?;
        let Some((store, name)) = place.object() else {
            return Err(Error::NotFound { what: Noun::File, name: place.url().to_owned() });
        };
        Ok(Arc::new(Hdf5Source::open(store, name).await?))
    }
}
