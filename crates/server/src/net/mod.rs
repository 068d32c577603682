//! Connections: accepted within limits, guarded against clients that stall, ended in order.
//!
//! ```text
//!  listener ─▶ a place among `connections` ─▶ TLS ─▶ HTTP/1 or HTTP/2 ─▶ router
//!                                                      │
//!                     heads come within `header_seconds`; the end waits `grace_seconds` for requests under way
//! ```
//!
//! Both servers, HTTP and Arrow Flight, run on this. It knows bytes and time, and neither routes nor what is served.

mod connection;
mod listener;

pub(crate) use self::listener::{Listener, Protocol};
