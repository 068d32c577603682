//! Arrow shards: the label blocks of a shard as records of one Arrow IPC file, and its index beside it.
//!
//! ```text
//!  s0/2048_0_0.arrow   magic │ schema │ batch │ batch │ … │ end │ footer     a record is a label block
//!  s0/2048_0_0.json    {"2048_0_0": 0, "2112_0_0": 1, …}                     voxels → record
//! ```
//!
//! The stream form has neither magic nor footer. Messages are encoded on compute threads, one batch each, and laid one
//! behind the other: so a shard takes the memory of a few batches, however large it is. docs/formats/arrow-shards.md has
//! the columns and the differences from what DVID writes.

mod file;
mod index;
mod message;
mod schema;
mod writer;

pub use self::file::Container;
pub use self::index::IndexKind;
pub(super) use self::message::Record;
pub use self::schema::{Codec, schema};
pub use self::writer::ArrowOptions;
pub(super) use self::writer::{ArrowShard, BATCH_BYTES_MAX, record};
