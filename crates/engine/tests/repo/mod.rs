//! The versioned repository, from outside.

mod basics;
mod bit_flips;
mod crash;
mod expire;
mod gc;
mod model;
mod stress;
mod support;
