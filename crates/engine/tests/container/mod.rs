//! Containers: many arrays in one file, with overlays.

mod basics;
mod defects;
mod hierarchy;
mod repair;
pub(crate) mod support;
mod threads;
mod verify;
mod writers;
