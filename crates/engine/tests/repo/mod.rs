//! The versioned repository, from outside.

mod basics;
mod bit_flips;
mod crash;
mod expire;
mod gc;
mod lost_reply;
mod model;
mod stress;
mod support;
