//! Peak memory, in all and above the level before, and bytes read.

/// Peak memory at one moment.
pub struct Idle(u64);

impl Idle {
    /// Forgets earlier peaks, if the kernel allows it, and notes the resident memory now.
    pub fn now() -> Self {
        // 5 resets the high-water mark; without the permission, earlier peaks stay in it.
        std::fs::write("/proc/self/clear_refs", "5").unwrap_or_default();
        Self(field("/proc/self/status", "VmHWM:") * 1024)
    }

    /// How far the peak has risen since, in bytes.
    pub fn above(&self) -> u64 {
        (field("/proc/self/status", "VmHWM:") * 1024).saturating_sub(self.0)
    }
}

/// The peak resident memory of this process, in bytes.
pub fn peak() -> u64 {
    field("/proc/self/status", "VmHWM:") * 1024
}

/// The resident memory of this process now, in bytes.
pub fn resident() -> u64 {
    field("/proc/self/status", "VmRSS:") * 1024
}

/// Bytes this process has read through system calls so far, from disk or from cache.
pub fn bytes_read() -> u64 {
    field("/proc/self/io", "rchar:")
}

/// A number of a file of `NAME VALUE` lines; zero if there is no such file.
fn field(file: &str, name: &str) -> u64 {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    let word = line.and_then(|line| line.split_whitespace().next());
    word.and_then(|word| word.parse().ok()).unwrap_or(0)
}
