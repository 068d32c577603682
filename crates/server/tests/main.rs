//! The server from outside, each test against a real one on a port of its own.

// Clippy lets functions outside `#[test]` unwrap only below a `cfg(test)`.
#[cfg(test)]
mod dvid;
#[cfg(test)]
mod flight;
#[cfg(test)]
mod harness;
#[cfg(test)]
mod http;
#[cfg(test)]
mod views;
