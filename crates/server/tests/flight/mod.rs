//! Arrow Flight, through Arrow's own client.

mod exports;
mod support;
