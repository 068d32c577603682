//! Datasets that grow and shrink at their end.

mod basics;
mod golden;
mod support;
