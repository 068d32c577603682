//! The versioned repository, from outside.

mod basics;
mod crash;
mod stress;
mod support;
