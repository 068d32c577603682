//! What the machine allows, measured in the same run.

use std::error::Error;
use std::io::Write;
use std::time::Instant;

use serde_json::{Value, json};

fn best(mut run: impl FnMut() -> Result<(), Box<dyn Error>>) -> Result<f64, Box<dyn Error>> {
    let mut best = f64::INFINITY;
    for _ in 0..5 {
        let clock = Instant::now();
        run()?;
        best = best.min(clock.elapsed().as_secs_f64());
    }
    Ok(best)
}

/// memcpy into reused memory, file write + fsync, and the floor of a durable commit.
pub fn run(directory: &str) -> Result<Value, Box<dyn Error>> {
    std::fs::create_dir_all(directory)?;
    let source = vec![7u8; 256 << 20];
    let mut target = vec![0u8; 256 << 20];
    let memcpy = best(|| {
        target.copy_from_slice(std::hint::black_box(&source));
        std::hint::black_box(&mut target);
        Ok(())
    })?;
    let path = format!("{directory}/limit");
    let file = best(|| {
        let mut file = std::fs::File::create(&path)?;
        file.write_all(&source)?;
        Ok(file.sync_all()?)
    })?;
    let read = best(|| {
        std::hint::black_box(std::fs::read(&path)?);
        Ok(())
    })?;
    let commit = best(|| {
        let mut file = std::fs::File::create(format!("{path}.new"))?;
        file.write_all(&source[..4096])?;
        file.sync_all()?;
        std::fs::rename(format!("{path}.new"), format!("{path}.state"))?;
        Ok(std::fs::File::open(directory)?.sync_all()?)
    })?;
    let gigabytes = source.len() as f64 / 1e9;
    Ok(json!({
        "memcpy-gbps": gigabytes / memcpy,
        "file-write-fsync-gbps": gigabytes / file,
        "file-read-gbps": gigabytes / read,
        "write-fsync-rename-s": commit,
    }))
}
