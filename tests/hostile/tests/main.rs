//! Seeds and regressions of the fuzz targets, run without a fuzzer; and how the seeds are made.

// Clippy lets functions outside `#[test]` unwrap only below a `cfg(test)`.
#[cfg(test)]
mod seeds;
