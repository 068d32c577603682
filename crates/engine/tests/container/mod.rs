//! Containers: many arrays in one file, with overlays.

mod basics;
mod convert;
mod crash;
mod damage;
mod defects;
mod model;
mod requests;
pub(crate) mod support;
mod writers;
