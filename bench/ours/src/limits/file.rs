//! One large file written, read, and read cold; and the least that makes a small change durable.

use std::error::Error;
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::AsRawFd;

use bench_measure::{Answer, Clock, Samples};

use super::{REPEATS, sample};

const BYTES: usize = 256 << 20;
const STEP: usize = 8 << 20;

/// Write with fsync, read from the page cache, read from the disk.
pub fn transfers(answer: Answer, directory: &str) -> Result<Answer, Box<dyn Error>> {
    // Not all zeroes, and no two blocks alike: a disk must not be able to cheat.
    let content: Vec<u8> =
        (0..BYTES as u64).map(|at| (at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as u8).collect();
    let path = format!("{directory}/large");
    let write = sample(|| {
        let mut file = File::create(&path)?;
        file.write_all(&content)?;
        Ok(file.sync_all()?)
    })?;
    let mut memory = vec![0u8; STEP];
    let mut read = || -> Result<(), Box<dyn Error>> {
        let mut file = File::open(&path)?;
        while file.read(&mut memory)? > 0 {}
        Ok(())
    };
    let cached = sample(&mut read)?;
    let mut cold = Samples::default();
    for _ in 0..REPEATS {
        forget(&File::open(&path)?);
        let clock = Clock::start();
        read()?;
        cold.add(clock);
    }
    Ok(answer
        .measure("file-write-fsync", &write)
        .fact("file-write-fsync", BYTES)
        .measure("file-read", &cached)
        .fact("file-read", BYTES)
        .measure("file-read-cold", &cold)
        .fact("file-read-cold", BYTES))
}

/// Drops the pages of a clean file from the page cache.
fn forget(file: &File) {
    // SAFETY: the call takes a descriptor that is open and no memory of ours.
    unsafe { libc::posix_fadvise(file.as_raw_fd(), 0, 0, libc::POSIX_FADV_DONTNEED) };
}

/// A new small file made durable under its final name, and an append.
pub fn commits(answer: Answer, directory: &str) -> Result<Answer, Box<dyn Error>> {
    let path = format!("{directory}/small");
    let replace = sample(|| {
        let mut file = File::create(format!("{path}.new"))?;
        file.write_all(&[1; 4096])?;
        file.sync_all()?;
        std::fs::rename(format!("{path}.new"), &path)?;
        Ok(File::open(directory)?.sync_all()?)
    })?;
    let mut log = File::create(format!("{directory}/log"))?;
    let append = sample(|| {
        log.write_all(&[1; 4096])?;
        Ok(log.sync_data()?)
    })?;
    Ok(answer.measure("replace-durably", &replace).measure("append-durably", &append))
}
