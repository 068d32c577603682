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
//! Who carries tasks and receipts to and fro, and who starts workers, is not for this module: whatever
//! can send bytes will do.
//!
//! - A task may fail, be killed, be slow, or be done twice at the same time. Only what is adopted
//!   counts, each pack once; the rest is rubbish that is deleted, or collected as garbage.
//! - Worker and coordinator make the same plan or none: the order says its name. A source that changed
//!   in between is an error.
//! - A coordinator that dies is replaced by the same one again: what was adopted is in the journal.

mod coordinator;
mod order;
mod worker;

pub use coordinator::Coordinator;
pub use order::{Done, Order, PackRange, Task};
pub use worker::{WorkOptions, Worker, work};
