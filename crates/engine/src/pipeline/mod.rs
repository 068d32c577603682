//! The one pipeline: any source into any sink.
//!
//! ```text
//!  Wishes ──▶ Plan ──▶ run ──▶ finish         what is wanted, what that means, doing it, the commit
//!                       │
//!        packs that hold anything, in the target's order, several at a time
//!                       │
//!        locate ▶ fetch ▶ decode ▶ cast ▶ encode ▶ push          per pack, in bounded memory
//! ```
//!
//! There are four movements, and the [`Plan`] says which one an array takes and why:
//!
//! - [`Movement::Copy`]: source and target encode chunks the same way; bytes are copied verbatim,
//!   after a check that they decode.
//! - [`Movement::Rewrite`]: the same grid, and label blocks on both sides; their compression or their labels
//!   change, and no voxel is decoded.
//! - [`Movement::Transcode`]: the same grid; each chunk is decoded and encoded.
//! - [`Movement::Regrid`]: n chunks to m. Tiles that hold whole chunks of both grids, where that is
//!   affordable, so that no chunk is decoded twice.
//!
//! [`link`] moves nothing: it puts references to a source's chunks into a repository.
//!
//! A pack is the unit of resume: the `journal` holds the receipts of durable packs. It is also the
//! unit of distribution: a [`Coordinator`] hands out packs to workers of other processes, collects
//! their receipts and finishes.

mod budget;
mod conversion;
mod copy;
mod damage;
mod encode;
mod fill;
mod journal;
mod link;
mod mover;
mod occupied;
mod overlap;
mod pack_shape;
mod pieces;
mod plan;
mod regrid;
mod relabel;
mod rewrite;
mod route;
mod run;
mod same_grid;
mod transcode;
mod verify;
mod wishes;
mod workers;

pub use conversion::{Conversion, Origin, Request, stem};
pub use damage::Damaged;
pub(crate) use encode::Encoder;
pub use link::{Linked, link};
pub(crate) use overlap::refuse_overlap;
pub use plan::{ArrayPlan, Movement, Plan};
pub(crate) use relabel::{Relabel, mappings};
pub(crate) use rewrite::rewrite_chunk;
pub use run::{Outcome, RunOptions, run};
pub use wishes::Wishes;
pub use workers::{Coordinator, Done, Order, PackRange, Task, WorkOptions, Worker, work};
