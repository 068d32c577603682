//! Many chunks of 4 KiB in one durable commit.

use std::path::Path;

use bench_measure::{Answer, Clock, Outcome, Samples};
use bytes::Bytes;
use chunkyard_array::{ArraySpec, Region};
use chunkyard_engine::repo::{CommitOptions, Version};
use serde_json::json;

use super::create;
use crate::disk::Disk;

const CHUNK: u64 = 4096;

/// Writes and commits many tiny chunks, once after a warm-up.
pub async fn tiny(directory: &str, chunks: u64) -> Outcome {
    let codecs = vec![json!({"name": "bytes"})];
    let spec = ArraySpec::builder(&[chunks * CHUNK], &[CHUNK], "uint8").codecs(codecs).build()?;
    let data: Vec<u8> = (0..chunks * CHUNK).map(|at| (at * 31 + at / CHUNK) as u8 | 1).collect();
    let data = Bytes::from(data);
    let whole = Region::whole(&[chunks * CHUNK]);
    let (mut samples, mut equal) = (Samples::default(), true);
    for repeat in 0..2 {
        if Path::new(directory).exists() {
            std::fs::remove_dir_all(directory)?;
        }
        let repo = create(directory).await?;
        let session = repo.writable_session("main").await?;
        let array = session.create_array("/a", spec.clone()).await?;
        let clock = Clock::start();
        array.write_region(&whole, data.clone()).await?;
        session.commit(CommitOptions::message("tiny chunks")).await?;
        if repeat > 0 {
            samples.add(clock);
            let session = repo.readonly_session(&Version::branch("main")).await?;
            equal = session.array("/a").await?.read_region(&whole).await?[..] == data[..];
        }
    }
    let disk = Disk::of(directory)?;
    Ok(Answer::default()
        .measure("tiny", &samples)
        .fact("stored-bytes", disk.bytes())
        .fact("files", disk.files())
        .equal(equal))
}
