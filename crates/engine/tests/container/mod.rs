//! Containers: many arrays in one file, with overlays.

mod basics;
pub(crate) mod support;
