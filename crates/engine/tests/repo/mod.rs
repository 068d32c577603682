//! The versioned repository, from outside.

mod basics;
mod repair;
mod support;
