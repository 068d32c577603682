//! Containers: many arrays in one file, with overlays.

mod basics;
mod bombs;
mod crash;
mod damage;
mod defects;
mod hierarchy;
mod late;
mod model;
mod place;
mod repair;
mod requests;
mod sleepers;
pub(crate) mod support;
mod threads;
mod verify;
mod writers;
