//! How many files this process has open while it works.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{JoinHandle, sleep, spawn};
use std::time::Duration;

/// A look every so often: rarely enough to cost nothing.
const EVERY: Duration = Duration::from_millis(10);

/// Counts open files until it is asked.
pub struct OpenFiles {
    over: Arc<AtomicBool>,
    looking: JoinHandle<u64>,
}

impl OpenFiles {
    pub fn watch() -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let told = over.clone();
        let looking = spawn(move || {
            let mut most = 0;
            while !told.load(Ordering::Relaxed) {
                most = most.max(count());
                sleep(EVERY);
            }
            most
        });
        Self { over, looking }
    }

    /// The most that were open at once.
    pub fn most(self) -> u64 {
        self.over.store(true, Ordering::Relaxed);
        self.looking.join().unwrap_or(u64::MAX)
    }
}

/// Files that are open now, without the directory that is read for it.
fn count() -> u64 {
    std::fs::read_dir("/proc/self/fd").map_or(0, |open| open.count() as u64).saturating_sub(1)
}
