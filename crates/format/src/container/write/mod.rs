//! What is being written: changes, and how they become a layer.
//!
//! ```text
//!          uncommitted                               what a flush has taken, and what waits
//!               ▼
//!  edit ─▶ changes ─▶ flush ─▶ draft ─▶ publish      one more layer, in one exclusive step
//!             │         └─ outcome                    whether it exists, if the reply was lost
//!             └─ spill                                changes that do not fit in memory
//!  writable                                           when a container cannot be changed
//! ```

pub(crate) mod changes;
pub(crate) mod draft;
pub(crate) mod edit;
pub(crate) mod flush;
mod outcome;
pub(crate) mod publish;
mod spill;
pub(crate) mod uncommitted;
mod writable;
