//! The versioned repository, from outside.

mod attributes;
mod basics;
mod bit_flips;
mod conflict;
mod crash;
mod draft;
mod exhaustion;
mod expire;
mod gc;
mod golden;
mod isolation;
mod keys;
mod layout;
mod long_history;
mod lost_reply;
mod merging;
mod model;
mod packs;
mod refs;
mod regions;
mod repair;
mod sessions;
mod sleepers;
pub(crate) mod stress;
pub(crate) mod support;
mod verify;
mod virtual_chunks;
