//! Many arrays in one file, with overlays: array-format 0.9, with additions that make it safe.
//!
//! ```text
//!  Container ── define, delete, attributes, resize (edit) ─┐
//!     │         array ─▶ ContainerArray: reader, writer ───┤ wait in pending, or aside (spill)
//!     │                                                    ▼
//!     ├─ flush ─▶ draft ─▶ publish      one more layer, in one exclusive step
//!     ├─ compact ─▶ merge ─▶ publish    all layers become the base
//!     └─ stack ─▶ layer ─▶ footer_reader ─▶ footer, seal, archive      which files count, what they say
//!            └─ array_state             one array, put together from all layers
//! ```
//!
//! The bytes are described in `docs/formats/container.md`, the reasons for the protocol are in
//! `docs/design/009-container.md`. [`footer`], [`seal`], [`stats_file`], [`trailer`], [`elements`] and
//! [`mapping`] are pure functions of bytes and values; all waiting is in the files above.
//! [`ContainerSource`] and [`ContainerSink`] are its two ends of the pipeline.

mod adapt;
pub mod archive;
mod array;
mod array_state;
mod attribute_type;
mod attributes;
mod compact;
mod described;
mod draft;
mod edit;
mod editor;
pub mod elements;
mod express;
mod flush;
pub mod footer;
mod footer_reader;
mod format;
mod handle;
mod inspect;
mod judge;
mod layer;
mod layer_names;
pub mod mapping;
mod member;
mod merge;
mod mixed;
pub mod model;
mod names;
mod part_writer;
mod parts;
mod pending;
mod publish;
mod refuse;
mod repair;
pub mod seal;
mod settle;
mod sink;
mod source;
mod spill;
mod stack;
pub mod statistics;
pub mod stats_file;
pub mod trailer;
mod upkeep;
mod wholeness;

pub use self::array::ContainerArray;
pub use self::attribute_type::AttributeType;
pub use self::compact::{CompactOptions, Compacted, LayerInfo};
pub use self::edit::Definition;
pub use self::editor::ContainerEditor;
pub use self::flush::Flushed;
pub use self::format::ContainerFormat;
pub use self::handle::{Container, ContainerOptions};
pub use self::names::share_files;
pub use self::pending::Description;
pub use self::repair::Repaired;
pub use self::sink::ContainerSink;
pub use self::source::ContainerSource;
pub use self::stack::{Ignored, Reason};
