//! Who a worker is, and whether its process is known to be gone.

use std::fs;

use chunkyard_store::{Result, Uid};
use serde::{Deserialize, Serialize};

/// A worker, as it introduces itself in the job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Identity {
    /// Random, so that no two workers are the same.
    pub(super) worker: Uid,
    /// Name of the machine, for people.
    pub(super) host: String,
    /// Number of the process there.
    pub(super) pid: u32,
    /// The running system and the processes it can see: process numbers mean the same for workers that agree in this.
    /// Empty where the system does not tell.
    pub(super) machine: String,
    /// When the process was started, as its system counts: a later process may have the same number.
    pub(super) started: u64,
}

impl Identity {
    /// This process, as a new worker.
    pub(super) fn fresh() -> Result<Self> {
        let pid = std::process::id();
        let process = process(pid);
        Ok(Self {
            worker: Uid::fresh()?,
            host: host(),
            pid,
            machine: process.as_ref().and_then(|_| machine()).unwrap_or_default(),
            started: process.map_or(0, |process| process.started),
        })
    }

    /// Whether `other` ran on this machine and its process is there no more. `false` where that cannot be told.
    pub(super) fn sees_end_of(&self, other: &Self) -> bool {
        if self.machine.is_empty() || self.machine != other.machine {
            return false;
        }
        match process(other.pid) {
            Some(process) => process.started != other.started || process.has_ended,
            None => true,
        }
    }
}

fn host() -> String {
    let name = fs::read_to_string("/proc/sys/kernel/hostname").ok();
    let name = name.or_else(|| std::env::var("HOSTNAME").ok()).unwrap_or_default();
    match name.trim() {
        "" => "unknown".to_owned(),
        name => name.chars().take(255).collect(),
    }
}

/// The boot of the system, and the name space of process numbers.
fn machine() -> Option<String> {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    let space = fs::read_link("/proc/self/ns/pid").ok()?;
    Some(format!("{} {}", boot.trim(), space.to_str()?))
}

/// A process that the system lists.
struct Process {
    started: u64,
    /// It has ended, and its parent has not asked how.
    has_ended: bool,
}

fn process(pid: u32) -> Option<Process> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // proc(5): number, name in parentheses, which may hold anything, state; the start is field 22.
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_ascii_whitespace();
    let has_ended = matches!(fields.next()?, "Z" | "X");
    Some(Process { started: fields.nth(18)?.parse().ok()?, has_ended })
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn a_process_is_known_to_be_gone_once_it_is_killed_and_not_before() {
        let me = Identity::fresh().unwrap();
        assert!(!me.sees_end_of(&me));
        let mut child = Command::new("sleep").arg("600").stdin(Stdio::null()).spawn().unwrap();
        let started = process(child.id()).unwrap().started;
        let other = Identity { pid: child.id(), started, ..me.clone() };
        assert!(!me.sees_end_of(&other));
        let reused = Identity { started: started + 1, ..other.clone() };
        assert!(me.sees_end_of(&reused), "another process has its number");
        let elsewhere = Identity { machine: "another".to_owned(), ..reused };
        assert!(!me.sees_end_of(&elsewhere));
        child.kill().unwrap();
        // Killed and not waited for, it is still listed.
        while !process(child.id()).is_none_or(|process| process.has_ended) {
            std::thread::yield_now();
        }
        assert!(me.sees_end_of(&other));
        child.wait().unwrap();
        assert!(me.sees_end_of(&other));
    }
}
