//! Chunked n-dimensional arrays, without input or output.
//!
//! This crate knows what an array *is*: everything here is a pure function of bytes and numbers.
//! The layers above know where chunks lie and how to fetch them.
//!
//! ```text
//!  ArraySpec ──▶ Grid ──▶ ChunkIndex          metadata says how an array is cut
//!      │           │
//!      │           ▼
//!      │      Output ──▶ View ◀─┐             a region in memory, one view per chunk
//!      ▼                        │
//!   Codecs ── decode_view ──────┘             encoded chunk in, elements in their place
//! ```
//!
//! - [`ArraySpec`] and [`GroupSpec`] are Zarr v3 metadata, kept without loss; [`parse_v2_array`]
//!   and [`parse_v2_group`] read version 2.
//! - [`Sharding`] is how chunks share an object, [`ChunkKeys`] what the objects are called.
//! - [`Region`] is a box of elements, [`Grid`] tells which chunks it touches. [`Selection`] and
//!   [`Points`] select other sets of elements.
//! - [`DType`] is a data type; [`numpy`] has NumPy's texts for it, and the headers of `.npy` files.
//! - [`Cast`] turns elements of one type into equal ones of another, or names one that cannot be
//!   converted.
//! - [`Codecs`] encodes and decodes chunks; hostile bytes give [`Error::Corrupt`].
//! - [`Output`] is memory for a region that many threads fill at once, each through its own
//!   [`View`]s.
//!
//! ```
//! use chunkyard_array::{ArraySpec, Codecs, Elements, Output, Region};
//!
//! let spec = ArraySpec::builder(&[4, 6], &[2, 3], "uint8").build()?;
//! let (grid, codecs) = (spec.grid()?, Codecs::new(&spec)?);
//! let chunk = codecs.encode(Elements::Fixed(&[1, 2, 3, 4, 5, 6]))?;
//!
//! let region = Region::parse("1:4,2:5", spec.shape())?;
//! let memory = vec![0; region.num_bytes(1)?];
//! let mut output = Output::new(memory, region.shape(), 1)?;
//! for (index, mut view) in output.views(&grid, &region)? {
//!     match index[0] {
//!         0 => codecs.decode_view(&chunk, &mut view)?, // stored
//!         _ => view.fill(codecs.fill_element())?,      // absent
//!     }
//! }
//! assert_eq!(output.into_memory()?, [6, 4, 5, 0, 0, 0, 0, 0, 0]);
//! # Ok::<(), chunkyard_array::Error>(())
//! ```

mod buffer;
mod cast;
pub mod codec;
mod copy;
mod dtype;
mod error;
mod fill;
mod grid;
pub mod numpy;
mod quiet;
mod region;
mod selection;
mod spec;
mod target;

pub use buffer::Buffer;
pub use cast::Cast;
pub use codec::{Assembly, Codecs, Elements, ElementsBuf, Part, ShardEntries, ShardIndex, zeroed};
pub use copy::{contiguous_bytes, copy_region, fill_region};
pub use dtype::{ByteOrder, DType};
pub use error::{Error, Result};
pub use fill::{fill_element, fill_slice, hint_at_non_finite, is_filled, parse_fill};
pub use grid::{ChunkIndex, ChunksIn, Grid, guess_chunks};
pub use quiet::quietly;
pub use region::Region;
pub use selection::{Axis, Cells, Footprint, Points, Selection};
pub use spec::{
    ArrayBuilder, ArraySpec, Attributes, ChunkKeys, GroupSpec, Sharding, non_finite,
    parse_v2_array, parse_v2_group,
};
pub use target::{Output, OutputMemory, View, Views};
