//! Many arrays in one file, with overlays: array-format 0.9, with additions that make it safe.
//!
//! A container is a base, `x.af`, and layers over it, `x.1.af`, `x.2.af`, …. A layer holds the arrays and
//! chunks that one flush changed; for each array and each chunk the newest layer that has it counts. Files
//! never change: a flush adds a layer, and a compaction replaces the base by one that holds all layers.
//!
//! An open container has two halves. `Committed` is the layers that were found; it never changes, so that
//! readers share it without a lock. `Uncommitted` is the changes since, which its own handles read on top.
//! A flush writes the second as a layer on the first, and the two give another `Committed`.
//!
//! ```text
//!  handle   Container ─▶ array   ContainerArray: reader, writer
//!     │              └─▶ editor  ContainerEditor: groups and arrays by path
//!     │
//!     ├── layers/      which files count, and what each says
//!     │      ▲
//!     ├── read/        one array, put together from all layers
//!     │      ▲
//!     ├── write/       changes that wait; a flush makes them one more layer, in one exclusive step
//!     ├── compact/     all layers become the base
//!     ├── repair/      finds damage; sets an unreadable newest layer aside
//!     ├── statistics/  smallest and largest element, carried on from layer to layer
//!     └── convert/     ContainerSource and ContainerSink, its two ends of the pipeline
//!
//!  bytes/              footer, seal, trailer, archive, elements: pure functions of bytes
//!  model               the values that the bytes mean
//!  mapping/            these values ⇄ the shared data model
//! ```
//!
//! The bytes are described in `docs/formats/container.md`, the reasons for the protocol are in
//! `docs/design/009-container.md`.

mod array;
mod as_editor;
mod bytes;
mod compact;
mod convert;
mod editor;
mod format;
mod handle;
mod layers;
pub mod mapping;
pub mod model;
mod read;
mod repair;
pub mod statistics;
mod write;

pub use self::array::ContainerArray;
pub use self::as_editor::parse_packing;
pub use self::bytes::elements;
pub(crate) use self::bytes::{archive, footer, seal, stats_file, trailer};
pub use self::compact::{CompactOptions, Compacted, LayerInfo};
pub use self::convert::sink::ContainerSink;
pub use self::convert::source::ContainerSource;
pub use self::editor::ContainerEditor;
pub use self::format::ContainerFormat;
pub use self::handle::{Container, ContainerOptions};
pub use self::layers::file_names::share_files;
pub use self::layers::stack::{Ignored, Reason};
pub use self::mapping::attribute_type::AttributeType;
pub use self::repair::Repaired;
pub use self::write::changes::Description;
pub use self::write::edit::Definition;
pub use self::write::flush::Flushed;
