//! The engine from outside, one module per capability.

// Clippy lets functions outside `#[test]` unwrap only below a `cfg(test)`.
#[cfg(test)]
mod architecture;
#[cfg(test)]
mod bucket;
#[cfg(test)]
mod cases;
#[cfg(test)]
mod container;
#[cfg(test)]
mod convert;
#[cfg(test)]
mod edit;
#[cfg(test)]
mod examples;
#[cfg(test)]
mod link;
#[cfg(test)]
mod repo;
#[cfg(test)]
mod s3;
#[cfg(test)]
mod select;
#[cfg(test)]
mod store;
#[cfg(test)]
mod superchunk;
