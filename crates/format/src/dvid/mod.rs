//! DVID's store: segmentations in a [Badger](crate::badger) directory, at any of their versions. Read only.
//!
//! ```text
//!  url ─▶ store ─┬─ repo (gob, or JSON)   versions and data          dag    which entry counts
//!                ├─ blocks                where each block is         keys   what an entry is about
//!                └─ index                 what DVID counted
//!                source, format           all of it as arrays
//! ```
//!
//! Every entry of the store has the number of a version in its key, so all versions are there at once, each as
//! what it changed. `docs/formats/dvid.md` has it byte by byte.

mod blocks;
mod dag;
mod format;
mod gob;
pub(crate) mod hostile;
mod index;
mod keys;
mod left_out;
mod numbers;
mod repo;
mod source;
mod store;
mod url;

pub use self::blocks::{Blocks, Clash, Found};
pub use self::dag::{Dag, MASTER, Resolver, Stored, VersionNode};
pub use self::format::DvidFormat;
pub use self::index::LabelIndex;
pub use self::keys::BlockAt;
pub use self::repo::{Instance, LABELMAP, Repo};
pub use self::source::DvidSource;
pub use self::store::{DvidOptions, DvidStore, InstanceInfo, ScaleInfo};
pub use self::url::{DvidUrl, SCHEME};
