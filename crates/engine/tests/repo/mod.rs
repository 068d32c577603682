//! The versioned repository, from outside.

mod attributes;
mod basics;
mod bit_flips;
mod conflict;
mod crash;
mod draft;
mod expire;
mod gc;
mod golden;
mod isolation;
mod layout;
mod lost_reply;
mod merging;
mod model;
mod packs;
mod refs;
mod regions;
mod repair;
mod sessions;
mod stress;
mod support;
mod verify;
mod virtual_chunks;
