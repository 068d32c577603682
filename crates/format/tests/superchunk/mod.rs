//! Datasets that grow and shrink at their end.

mod basics;
mod batches;
mod bombs;
mod change;
mod check;
mod crash;
mod damage;
mod golden;
mod interrupted;
mod kinds;
mod late;
mod model;
mod relocate;
mod repair;
mod sealed;
mod sleepers;
mod support;
mod writers;
