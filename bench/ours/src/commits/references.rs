//! Many references to chunks elsewhere, staged and committed at once.

use std::error::Error;
use std::path::Path;
use std::sync::Arc;

use bench_measure::{Answer, Clock, Idle, Outcome, Samples};
use chunkyard_engine::repo::{CommitOptions, Session, Virtual};

use super::{create, index, spec};
use crate::disk::Disk;

fn reference(at: u64) -> Virtual {
    Virtual {
        url: "s3://bucket/data/file.nc".into(),
        offset: at * 1000,
        length: 1000,
        etag: None,
        last_modified_ms: Some(1_700_000_000_000),
        crc32c: None,
    }
}

/// Sets all references of the array `/a`.
pub fn stage(session: &Arc<Session>, refs: u64) -> Result<(), Box<dyn Error>> {
    Ok(session.set_virtual_all("/a", (0..refs).map(|at| (index(at), reference(at))))?)
}

/// A repository with one array of many references, and two commits of one chunk on top, so that
/// there is a chunk to read.
pub async fn prepare(directory: &str, refs: u64) -> Outcome {
    let session = create(directory).await?.writable_session("main").await?;
    session.create_array("/a", spec(refs)?).await?;
    stage(&session, refs)?;
    session.commit(CommitOptions::message("all references")).await?;
    super::change(directory, refs, 1, 1).await?;
    Ok(Answer::default())
}

/// Staging and committing all references at once, staging included. Memory is measured in the
/// warm-up: later runs find memory that the allocator kept.
pub async fn bulk(directory: &str, refs: u64, repeats: u64) -> Outcome {
    let (mut samples, mut memory, mut bytes) = (Samples::default(), 0, 0);
    for repeat in 0..=repeats {
        if Path::new(directory).exists() {
            std::fs::remove_dir_all(directory)?;
        }
        let session = create(directory).await?.writable_session("main").await?;
        session.create_array("/a", spec(refs)?).await?;
        let before = Disk::of(directory)?;
        let idle = Idle::now();
        let clock = Clock::start();
        stage(&session, refs)?;
        session.commit(CommitOptions::message("all references")).await?;
        if repeat > 0 {
            samples.add(clock);
        } else {
            memory = idle.above();
        }
        bytes = Disk::of(directory)?.written_since(&before);
    }
    Ok(Answer::default()
        .measure("returned", &samples)
        .measure("durable", &samples)
        .fact("bytes-per-reference", bytes as f64 / refs as f64)
        .fact("memory-above-idle", memory))
}
