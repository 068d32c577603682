//! The versioned repository, from outside.

mod basics;
mod bit_flips;
mod conflict;
mod crash;
mod expire;
mod gc;
mod isolation;
mod lost_reply;
mod model;
mod packs;
mod refs;
mod regions;
mod sessions;
mod stress;
mod support;
mod virtual_chunks;
