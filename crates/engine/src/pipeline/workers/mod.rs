//! The same pipeline by many processes: packs handed out, receipts collected, one commit.
//!
//! ```text
//!  Coordinator                                        Worker, anywhere
//!    plan, create the sink, read the journal
//!    Task = order + packs still to do   ───────────▶    open the source, make the same plan
//!                                                       join the sink, write the packs, sync
//!    adopt: accept each pack, journal   ◀───────────    Done = receipts
//!    finish: verify, commit, once
//! ```
//!
//! This module does not carry tasks and receipts, and does not start workers: any transport for
//! bytes will do.
//!
//! - A task may fail, be killed, be slow, or be done twice at the same time. Only adopted packs
//!   count, each once; the rest is deleted, or collected as garbage.
//! - Worker and coordinator make the same plan or fail: the order contains the plan's name. A
//!   source that changed in between is an error.
//! - After a coordinator dies, start the same one again: adopted packs are in the journal.

mod coordinator;
mod order;
mod worker;

pub use coordinator::Coordinator;
pub use order::{Done, Order, PackRange, Task};
pub use worker::{WorkOptions, Worker, work};
