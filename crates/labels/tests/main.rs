//! Labelmaps from outside.

// Clippy lets functions outside `#[test]` unwrap only below a `cfg(test)`.
#[cfg(test)]
mod labels;
