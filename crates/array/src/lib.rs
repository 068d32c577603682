//! wip
mod buffer;
mod copy;
mod dtype;
mod error;
mod fill;
mod grid;
mod region;
mod target;

pub use buffer::Buffer;
pub use copy::{copy_region, fill_region};
pub use dtype::{ByteOrder, DType};
pub use error::{Error, Result};
pub use fill::{fill_element, fill_slice, is_filled};
pub use grid::{ChunkIndex, ChunksIn, Grid};
pub use region::Region;
pub use target::{Output, OutputMemory, View, Views};
