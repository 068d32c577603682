//! Wall and CPU time of this process.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// User and system time of this process so far, and of children that have ended, in seconds.
fn cpu_seconds() -> f64 {
    let of = |who| {
        // SAFETY: `getrusage` writes one `rusage`, which is plain data for which zeroes are valid.
        let usage = unsafe {
            let mut usage: libc::rusage = std::mem::zeroed();
            libc::getrusage(who, &mut usage);
            usage
        };
        let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 * 1e-6;
        seconds(usage.ru_utime) + seconds(usage.ru_stime)
    };
    of(libc::RUSAGE_SELF) + of(libc::RUSAGE_CHILDREN)
}

/// Both clocks, running.
#[derive(Clone, Copy)]
pub struct Clock {
    wall: Instant,
    cpu: f64,
}

impl Clock {
    /// Starts both clocks.
    pub fn start() -> Self {
        Self { cpu: cpu_seconds(), wall: Instant::now() }
    }

    /// Wall time since the start.
    pub fn wall(&self) -> Duration {
        self.wall.elapsed()
    }

    /// User and system time since the start, in seconds.
    pub fn cpu(&self) -> f64 {
        cpu_seconds() - self.cpu
    }
}

/// Samples of one measure, in the order they were taken.
#[derive(Default)]
pub struct Samples {
    wall: Vec<f64>,
    cpu: Vec<f64>,
}

impl Samples {
    /// Adds the time since the clock was started.
    pub fn add(&mut self, clock: Clock) {
        self.add_shared(clock, 1);
    }

    /// Adds the time since the clock was started, as the share of each of `count` operations.
    pub fn add_shared(&mut self, clock: Clock, count: u64) {
        self.wall.push(clock.wall().as_secs_f64() / count as f64);
        self.cpu.push(clock.cpu() / count as f64);
    }

    /// All samples.
    pub fn to_json(&self) -> Value {
        json!({"wall": self.wall, "cpu": self.cpu})
    }
}
