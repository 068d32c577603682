//! Datasets that grow and shrink at their end.

mod basics;
mod change;
mod crash;
mod damage;
mod golden;
mod kinds;
mod model;
mod relocate;
mod repair;
mod support;
mod writers;
