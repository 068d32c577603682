//! Containers: many arrays in one file, with overlays.

mod basics;
mod defects;
pub(crate) mod support;
mod writers;
