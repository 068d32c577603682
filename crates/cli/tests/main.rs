//! The `chunkyard` binary from outside: every command, its exit codes, its JSON.

// Clippy lets functions outside `#[test]` unwrap only below a `cfg(test)`.
#[cfg(test)]
mod command;
