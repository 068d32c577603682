//! What all requests have in common.

mod access;
mod clients;
mod documentation;
mod tls;
