//! The progress of long work, for display.

use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes and packs done, and those still ahead. The work advances it, a progress bar reads it;
/// neither waits for the other.
#[derive(Debug, Default)]
pub struct Meter {
    done: AtomicU64,
    total: AtomicU64,
    packs_done: AtomicU64,
    packs_total: AtomicU64,
}

impl Meter {
    /// Adds bytes that lie ahead.
    pub fn expect(&self, bytes: u64) {
        self.total.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Adds bytes that are done.
    pub fn advance(&self, bytes: u64) {
        self.done.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Adds packs that lie ahead.
    pub fn expect_packs(&self, packs: u64) {
        self.packs_total.fetch_add(packs, Ordering::Relaxed);
    }

    /// One more pack is done.
    pub fn advance_packs(&self) {
        self.packs_done.fetch_add(1, Ordering::Relaxed);
    }

    /// Bytes done so far.
    pub fn done(&self) -> u64 {
        self.done.load(Ordering::Relaxed)
    }

    /// Bytes in all, as far as known.
    pub fn total(&self) -> u64 {
        self.total.load(Ordering::Relaxed)
    }

    /// Packs done so far, and packs in all; zero for work that has none.
    pub fn packs(&self) -> (u64, u64) {
        (self.packs_done.load(Ordering::Relaxed), self.packs_total.load(Ordering::Relaxed))
    }
}
