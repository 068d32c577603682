//! Connections: accepted within limits, guarded against clients that stall, ended in order.
//!
//! ```text
//!  listener ─▶ a place among `connections` ─▶ TLS ─▶ HTTP/1.1 or HTTP/2 ─▶ router
//!                                              │         │
//!                                              │     answers are taken: at most `stall-seconds` without a byte
//!                                          heads come within `header-seconds`
//! ```
//!
//! Both servers, HTTP and Arrow Flight, run on this. It knows bytes and time, and neither routes nor what is served.

mod connection;
mod listener;
mod stall;
mod tls;

pub(crate) use self::listener::{Listener, Protocol};
pub(crate) use self::tls::encryption;
