//! Datasets that grow and shrink at their end.

mod basics;
mod convert;
mod golden;
mod support;
