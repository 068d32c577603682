//! Arrow Flight, through Arrow's own client.

mod arrays;
mod exports;
mod flights;
mod jobs;
mod memory;
mod put;
mod support;
