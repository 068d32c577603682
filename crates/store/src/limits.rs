//! How much of the machine the engine may use at a time.

use std::thread::available_parallelism;

const MIB: usize = 1 << 20;

/// Bounds on the work under way at once, passed explicitly to all code that fetches or computes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes fetched or encoded and not yet written.
    pub bytes_in_flight: usize,
    /// Packs being filled.
    pub packs_in_flight: usize,
    /// Requests to a store.
    pub requests: usize,
    /// Threads that decode and encode.
    pub threads: usize,
}

impl Default for Limits {
    /// All cores, 128 MiB per core but at least 256 MiB and at most 2 GiB, two packs per core so
    /// that one is written while the next is filled, and 32 requests, which is where one client's
    /// throughput from an object store flattens.
    fn default() -> Self {
        let threads = available_parallelism().map_or(1, usize::from);
        Self {
            bytes_in_flight: (threads * 128 * MIB).clamp(256 * MIB, 2048 * MIB),
            packs_in_flight: threads * 2,
            requests: 32,
            threads,
        }
    }
}
