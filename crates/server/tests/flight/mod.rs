//! Arrow Flight, through Arrow's own client.

mod arrays;
mod exports;
mod flights;
mod jobs;
mod support;
