//! Few chunks of an array that has many references.

use bench_measure::{Answer, Clock, Outcome, Samples};
use bytes::Bytes;
use chunkyard_engine::repo::{CommitOptions, OpenOptions, Repository, Version};

use super::{CHUNK, index};
use crate::disk::Disk;

/// The chunk that the commit number `repeat` changes as its `at`-th of `chunks`.
fn target(repeat: u64, at: u64, chunks: u64, refs: u64) -> u64 {
    (repeat * 7919 + at * (refs / chunks.max(1)) + 17) % refs
}

/// Commits that change a number of scattered chunks of a prepared repository.
pub async fn change(directory: &str, refs: u64, chunks: u64, repeats: u64) -> Outcome {
    let repo = Repository::open(directory, OpenOptions::default()).await?;
    let (mut samples, mut besides) = (Samples::default(), Vec::new());
    for repeat in 0..=repeats {
        let before = Disk::of(directory)?;
        let clock = Clock::start();
        let session = repo.writable_session("main").await?;
        for at in 0..chunks {
            let bytes = Bytes::from(vec![repeat as u8 + 1; CHUNK]);
            session.set_chunk("/a", &index(target(repeat, at, chunks, refs)), bytes).await?;
        }
        session.commit(CommitOptions::message("some chunks")).await?;
        if repeat > 0 {
            samples.add(clock);
        }
        let written = Disk::of(directory)?.written_since(&before);
        besides.push(written.saturating_sub(chunks * CHUNK as u64));
    }
    besides.sort_unstable();
    let session = repo.readonly_session(&Version::branch("main")).await?;
    let last = index(target(repeats, 0, chunks, refs));
    let equal = session.get_chunk("/a", &last).await?.as_deref()
        == Some(&vec![repeats as u8 + 1; CHUNK][..]);
    Ok(Answer::default()
        .measure("returned", &samples)
        .measure("durable", &samples)
        .fact("bytes-besides-chunks", besides.get(besides.len() / 2).copied())
        .equal(equal))
}

/// A fresh open and one chunk of a prepared repository: one that `change` wrote, so that no other
/// store is needed. Without repeats the first counts, for a caller that has dropped the page cache.
pub async fn open_chunk(directory: &str, refs: u64, repeats: u64) -> Outcome {
    let (mut samples, mut equal) = (Samples::default(), true);
    let chunk = index(target(1, 0, 1, refs));
    for repeat in 0..=repeats {
        let clock = Clock::start();
        let repo = Repository::open(directory, OpenOptions::default()).await?;
        let session = repo.readonly_session(&Version::branch("main")).await?;
        let bytes = session.get_chunk("/a", &chunk).await?;
        if repeat > 0 || repeats == 0 {
            samples.add(clock);
        }
        equal &= bytes.as_deref() == Some(&[2; CHUNK][..]);
    }
    Ok(Answer::default().measure("open", &samples).equal(equal))
}
