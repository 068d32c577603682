//! A container as the source and as the target of a conversion.
//!
//! ```text
//!  source                                 reads all of one
//!  express ─▶ sink ─▶ part_writer         writes one: packs become parts, parts become a base
//!              ├─ worker                  the same from another process
//!              └─ parts                   reads the parts back before they are visible
//! ```

pub(crate) mod express;
mod part_writer;
mod parts;
pub(crate) mod sink;
pub(crate) mod source;
pub(crate) mod worker;
