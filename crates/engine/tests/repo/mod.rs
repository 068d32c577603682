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
mod stress;
mod support;
