//! The versioned repository, from outside.

mod basics;
mod bit_flips;
mod crash;
mod stress;
mod support;
