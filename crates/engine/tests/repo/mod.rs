//! The versioned repository, from outside.

mod basics;
mod support;
