//! Commits, references and history.

use std::error::Error;
use std::sync::Arc;

use bytes::Bytes;
use chunkyard_array::{ArraySpec, Region};
use chunkyard_engine::repo::{
    CommitOptions, CreateOptions, OpenOptions, Repository, Session, Version, Virtual,
};
use serde_json::{Value, json};

use crate::measure::{Samples, start};

type Outcome = Result<Value, Box<dyn Error>>;

async fn create(directory: &str) -> Result<Repository, Box<dyn Error>> {
    Ok(Repository::create(directory, OpenOptions::default(), CreateOptions::default()).await?)
}

fn disk_bytes(directory: &str) -> u64 {
    fn walk(path: &std::path::Path) -> u64 {
        let Ok(entries) = std::fs::read_dir(path) else { return 0 };
        entries
            .flatten()
            .map(|entry| match entry.metadata() {
                Ok(meta) if meta.is_dir() => walk(&entry.path()),
                Ok(meta) => meta.len(),
                Err(_) => 0,
            })
            .sum()
    }
    walk(std::path::Path::new(directory))
}

/// A square-ish grid of one-byte-chunks arrays: `refs` chunks of 1,000 bytes.
fn spec(refs: u64) -> Result<ArraySpec, Box<dyn Error>> {
    let codecs = vec![json!({"name": "bytes"})];
    Ok(ArraySpec::builder(&[refs.div_ceil(1000), 1000, 1000], &[1, 1, 1000], "uint8")
        .codecs(codecs)
        .build()?)
}

fn index(at: u64) -> Vec<u64> {
    vec![at / 1000, at % 1000, 0]
}

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

fn stage(session: &Arc<Session>, refs: u64) -> Result<(), Box<dyn Error>> {
    for at in 0..refs {
        session.set_virtual("/a", &index(at), reference(at))?;
    }
    Ok(())
}

/// A repository with one array of so many references, merged.
pub async fn prepare(directory: &str, refs: u64) -> Outcome {
    let repo = create(directory).await?;
    let session = repo.writable_session("main").await?;
    session.create_array("/a", spec(refs)?).await?;
    stage(&session, refs)?;
    session.commit(CommitOptions::message("all references")).await?;
    Ok(json!({"disk": disk_bytes(directory)}))
}

/// Staging and committing all references at once.
pub async fn bulk(directory: &str, refs: u64) -> Outcome {
    let repo = create(directory).await?;
    let session = repo.writable_session("main").await?;
    session.create_array("/a", spec(refs)?).await?;
    let before = disk_bytes(directory);
    let idle = crate::measure::peak_memory();
    let clock = start();
    stage(&session, refs)?;
    session.commit(CommitOptions::message("all references")).await?;
    let mut samples = Samples::default();
    samples.add(clock);
    let bytes = disk_bytes(directory) - before;
    let memory = crate::measure::peak_memory() - idle;
    Ok(samples.report(json!({
        "bytes-per-reference": bytes as f64 / refs as f64,
        "memory-above-idle": memory,
    })))
}

/// Commits that change so many scattered chunks of a prepared repository.
pub async fn one_chunk(directory: &str, refs: u64, chunks: u64, repeats: u64) -> Outcome {
    let repo = Repository::open(directory, OpenOptions::default()).await?;
    let (mut samples, mut written) = (Samples::default(), u64::MAX);
    for repeat in 0..=repeats {
        let before = disk_bytes(directory);
        let clock = start();
        let session = repo.writable_session("main").await?;
        for at in 0..chunks {
            let target = (repeat * 7919 + at * (refs / chunks.max(1)) + 17) % refs;
            let bytes = Bytes::from(vec![repeat as u8; 1000]);
            session.set_chunk("/a", &index(target), bytes).await?;
        }
        session.commit(CommitOptions::message("one")).await?;
        if repeat > 0 {
            samples.add(clock);
        }
        written = written.min(disk_bytes(directory) - before - chunks * 1000);
    }
    Ok(samples.report(json!({"bytes-besides-chunks": written})))
}

/// A fresh open and one chunk of a prepared repository. Its bytes are inline or native, so that no
/// other store is needed: the chunk read is one that `commit-one` wrote.
pub async fn open_first_chunk(directory: &str, refs: u64, repeats: u64) -> Outcome {
    let mut samples = Samples::default();
    let target = index((7919 + 17) % refs);
    let mut length = 0;
    for _ in 0..=repeats {
        let clock = start();
        let repo = Repository::open(directory, OpenOptions::default()).await?;
        let session = repo.readonly_session(&Version::branch("main")).await?;
        let chunk = session.get_chunk("/a", &target).await?;
        length = chunk.ok_or("the chunk is missing; run commit-one first")?.len();
        samples.add(clock);
    }
    Ok(samples.report(json!({"chunk-bytes": length})))
}

/// Many chunks of 4 KiB in one durable commit.
pub async fn tiny(directory: &str, chunks: u64) -> Outcome {
    let repo = create(directory).await?;
    let session = repo.writable_session("main").await?;
    let codecs = vec![json!({"name": "bytes"})];
    let spec = ArraySpec::builder(&[chunks * 4096], &[4096], "uint8").codecs(codecs).build()?;
    let array = session.create_array("/a", spec).await?;
    let data: Vec<u8> = (0..chunks * 4096).map(|at| (at * 31 + at / 4096) as u8 | 1).collect();
    let clock = start();
    array.write_region(&Region::whole(&[chunks * 4096]), Bytes::from(data)).await?;
    session.commit(CommitOptions::message("tiny chunks")).await?;
    let mut samples = Samples::default();
    samples.add(clock);
    Ok(samples.report(json!({"chunks": chunks, "disk": disk_bytes(directory)})))
}

/// Latency of a one-chunk commit after few and after many commits.
pub async fn history(directory: &str, commits: u64) -> Outcome {
    let repo = create(directory).await?;
    let session = repo.writable_session("main").await?;
    session.create_array("/a", spec(10_000)?).await?;
    session.commit(CommitOptions::message("array")).await?;
    let (mut early, mut late) = (Vec::new(), Vec::new());
    for at in 0..commits {
        let clock = std::time::Instant::now();
        let session = repo.writable_session("main").await?;
        session.set_chunk("/a", &index(at % 10_000), Bytes::from(vec![1; 1000])).await?;
        session.commit(CommitOptions::message(format!("commit {at}"))).await?;
        let seconds = clock.elapsed().as_secs_f64();
        if (5..25).contains(&at) {
            early.push(seconds);
        } else if at >= commits.saturating_sub(20) {
            late.push(seconds);
        }
    }
    early.sort_by(f64::total_cmp);
    late.sort_by(f64::total_cmp);
    let median = |list: &[f64]| list.get(list.len() / 2).copied();
    Ok(json!({"early": median(&early), "late": median(&late), "disk": disk_bytes(directory)}))
}
