//! The engine from outside, one module per capability.

// Clippy lets functions outside `#[test]` unwrap only below a `cfg(test)`.
#[cfg(test)]
mod architecture;
#[cfg(test)]
mod convert;
#[cfg(test)]
mod edit;
#[cfg(test)]
mod examples;
#[cfg(test)]
mod export;
#[cfg(test)]
mod link;
#[cfg(test)]
mod select;
#[cfg(test)]
mod view;
