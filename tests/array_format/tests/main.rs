//! Containers and array-format 0.9, in both directions.

// Clippy lets functions outside `#[test]` unwrap only below a `cfg(test)`.
#[cfg(test)]
mod matrix;
#[cfg(test)]
mod ours;
#[cfg(test)]
mod own;
#[cfg(test)]
mod peer;
#[cfg(test)]
mod theirs;
