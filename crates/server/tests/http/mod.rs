//! What all requests have in common.

mod access;
