//! The formats from outside, one module each. Conversions between them are tests of the engine.

// Clippy lets functions outside `#[test]` unwrap only below a `cfg(test)`.
#[cfg(test)]
mod badger;
#[cfg(test)]
mod container;
#[cfg(test)]
mod dvid;
#[cfg(test)]
mod dvid_live;
#[cfg(test)]
mod superchunk;
