//! The files of a container: which of them count as layers, and what each says.
//!
//! ```text
//!  files ─── file_names              where they are: x.af, x.1.af, x.2.af, …
//!  stack ─┐                          those that count, oldest first
//!         ├─ layer ─┬─ footer_reader one open file: the footer, read as far as needed
//!         │         └─ name_index    an array of it by name
//!         ├─ lineage                 which files belong together, oldest to newest
//!         └─ torn                    whether an unreadable file was ever whole
//! ```

pub(crate) mod file_names;
pub(crate) mod files;
pub(crate) mod footer_reader;
pub(crate) mod layer;
mod lineage;
mod name_index;
pub(crate) mod stack;
mod torn;
