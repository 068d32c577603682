//! Clocks: wall and CPU.

use std::time::Instant;

use serde_json::{Value, json};

/// User and system time of this process so far, in seconds.
pub fn cpu_seconds() -> f64 {
    // SAFETY: `getrusage` writes one `rusage`, which is plain data for which zeroes are valid.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_SELF, &mut usage);
        usage
    };
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 * 1e-6;
    seconds(usage.ru_utime) + seconds(usage.ru_stime)
}

/// The largest resident size of this process so far, in bytes.
pub fn peak_memory() -> u64 {
    // SAFETY: as above.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_SELF, &mut usage);
        usage
    };
    usage.ru_maxrss as u64 * 1024
}

/// Samples of one workload.
#[derive(Default)]
pub struct Samples {
    seconds: Vec<f64>,
    cpu: Vec<f64>,
}

impl Samples {
    /// Adds what passed since `start`.
    pub fn add(&mut self, start: (Instant, f64)) {
        self.seconds.push(start.0.elapsed().as_secs_f64());
        self.cpu.push(cpu_seconds() - start.1);
    }

    /// The result line.
    pub fn report(mut self, extra: Value) -> Value {
        self.seconds.sort_by(f64::total_cmp);
        self.cpu.sort_by(f64::total_cmp);
        let count = self.seconds.len();
        let mut report = json!({
            "best": self.seconds.first(),
            "median": self.seconds.get(count / 2),
            "p99": self.seconds.get((count * 99 / 100).min(count.saturating_sub(1))),
            "cpu": self.cpu.first(),
            "samples": count,
            "peak-memory": peak_memory(),
        });
        if let (Some(report), Value::Object(extra)) = (report.as_object_mut(), extra) {
            report.extend(extra);
        }
        report
    }
}

/// Starts both clocks.
pub fn start() -> (Instant, f64) {
    (Instant::now(), cpu_seconds())
}
