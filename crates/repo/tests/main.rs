//! Repositories from outside: on disks, in memory, and on a real S3 server.

// Clippy lets functions outside `#[test]` unwrap only below a `cfg(test)`.
#[cfg(test)]
mod repo;
#[cfg(test)]
mod s3;
