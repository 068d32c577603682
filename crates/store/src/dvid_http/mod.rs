//! DVID's HTTP interface: label blocks, mappings and label indices of a server, asked for in bulk.
//!
//! ```text
//!  Address ──▶ DvidClient ──▶ Answer         one request: sent again, bounded, known to be complete
//!                  │
//!                  ├── course ─┬─ Blocks     records of blocks, as a list or as a box
//!                  │           ├─ Indices    stored label indices
//!                  │           ├─ Labels     ids of bodies
//!                  │           └─ Mapping    supervoxel → body
//!                  │
//!                  └── DvidBackend           blocks as objects `s<scale>/<z>_<y>_<x>`
//! ```
//!
//! A DVID server streams most answers and has no way to say later that something went wrong: it breaks off, or it
//! writes a message between the records. So an answer counts as complete only if HTTP says where it ends and it gets
//! there, and if every byte of it belongs to a record that was asked for. A block that is missing in a complete answer
//! is not stored; in any other answer it is an error.
//!
//! What is sent again is safe to send again: all requests are reads. After a broken answer only what is still missing is
//! asked for. docs/formats/dvid-http.md has the requests and the limits.

mod address;
mod backend;
mod blocks;
mod client;
mod course;
mod indices;
mod labels;
mod mapping;
mod name;
mod patience;

pub use self::address::{Address, SCHEMES};
pub use self::backend::{DvidBackend, Instance};
pub use self::blocks::{Asked, BlockRecords};
pub use self::client::{Answer, DvidClient};
pub use self::course::{Course, Stream};
pub use self::indices::IndexRecords;
pub use self::labels::LabelRecords;
pub use self::mapping::MappingRecords;
pub use self::name::BlockName;

use crate::error::Error;

/// The error of an answer that is not what was asked for.
fn corrupt(what: &str, expected: impl Into<String>, found: impl Into<String>) -> Error {
    let (expected, found) = (expected.into(), found.into());
    Error::Corrupt {
        file: "the answer of the DVID server".into(),
        what: what.into(),
        expected,
        found,
    }
}
