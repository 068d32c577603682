//! The chunkyard command.
fn main() {}
