//! Far more than usual of one thing: references, arrays, or commits.
//!
//! `scale-prepare` makes the repository; every other step is then one process, so that its peak
//! memory is its own.

use std::error::Error;
use std::sync::Arc;

use bench_measure::{Answer, Clock, Idle, Options, Outcome, Samples, bytes_read};
use bytes::Bytes;
use chunkyard_array::ArraySpec;
use chunkyard_engine::repo::{
    CommitOptions, GcOptions, Level, OpenOptions, Repository, Session, Version,
};
use serde_json::{Value, json};

use crate::commits::{self, CHUNK};
use crate::disk::Disk;

/// The kind of scale.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Much {
    /// References of one array.
    References,
    /// Arrays with one chunk each.
    Arrays,
    /// Commits of one chunk each.
    Commits,
}

impl Much {
    /// By its word on the command line.
    fn parse(word: &str) -> Result<Self, Box<dyn Error>> {
        match word {
            "references" => Ok(Self::References),
            "arrays" => Ok(Self::Arrays),
            "commits" => Ok(Self::Commits),
            other => Err(format!("no scale of {other:?}").into()),
        }
    }

    /// The chunk that the step `commit` writes and the step `read` reads.
    fn chunk(self, count: u64) -> (String, Vec<u64>) {
        match self {
            Self::References => ("/a".into(), commits::index(count / 2)),
            Self::Arrays => (array_path(count / 2), vec![0]),
            Self::Commits => ("/a".into(), commits::index(4321)),
        }
    }
}

fn array_path(at: u64) -> String {
    format!("/group-{}/array-{}", at / 1000, at % 1000)
}

fn chunk_bytes(at: u64) -> Bytes {
    Bytes::from(vec![at as u8 | 1; CHUNK])
}

/// Makes the repository: `of=references|arrays|commits count=N`. Commits stop after `seconds=N`.
pub async fn prepare(directory: &str, options: &Options) -> Outcome {
    let (much, count) = (Much::parse(options.text("of"))?, options.number("count", 1000)?);
    let (mut staging, mut all) = (Samples::default(), Samples::default());
    let (idle, clock) = (Idle::now(), Clock::start());
    let repo = commits::create(directory).await?;
    let session = repo.writable_session("main").await?;
    match much {
        Much::References => {
            session.create_array("/a", commits::spec(count)?).await?;
            commits::stage(&session, count)?;
        }
        Much::Arrays => create_arrays(&session, count).await?,
        Much::Commits => {
            session.create_array("/a", commits::spec(10_000)?).await?;
        }
    }
    staging.add(clock);
    session.commit(CommitOptions::message("prepare")).await?;
    let mut reached = count;
    if much == Much::Commits {
        for at in 0..count {
            if clock.wall().as_secs() >= options.number("seconds", 600)? {
                reached = at;
                break;
            }
            let session = repo.writable_session("main").await?;
            session.set_chunk("/a", &commits::index(at % 10_000), chunk_bytes(at)).await?;
            session.commit(CommitOptions::message(format!("commit {at}"))).await?;
        }
    }
    all.add(clock);
    let memory = idle.above();
    let disk = Disk::of(directory)?;
    Ok(Answer::default()
        .measure("staging", &staging)
        .measure("step", &all)
        .fact("memory", memory)
        .fact("reached", reached)
        .fact("written-bytes", disk.bytes())
        .fact("files", disk.files()))
}

async fn create_arrays(session: &Arc<Session>, count: u64) -> Result<(), Box<dyn Error>> {
    let codecs = vec![json!({"name": "bytes"})];
    let size = [CHUNK as u64];
    let spec = ArraySpec::builder(&size, &size, "uint8").codecs(codecs).build()?;
    for at in 0..count {
        session.create_array(&array_path(at), spec.clone()).await?;
        session.set_chunk(&array_path(at), &[0], chunk_bytes(at)).await?;
    }
    Ok(())
}

/// One step on a prepared repository: `of=… count=N step=open|commit|read|…`.
pub async fn step(directory: &str, options: &Options) -> Outcome {
    let (much, count) = (Much::parse(options.text("of"))?, options.number("count", 1000)?);
    let before = Disk::of(directory)?;
    let mut samples = Samples::default();
    let (idle, read, clock) = (Idle::now(), bytes_read(), Clock::start());
    let found = run(directory, much, count, options.text("step")).await?;
    samples.add(clock);
    let (memory, read) = (idle.above(), bytes_read() - read);
    let written = Disk::of(directory)?.written_since(&before);
    Ok(Answer::default()
        .measure("step", &samples)
        .fact("memory", memory)
        .fact("read-bytes", read)
        .fact("written-bytes", written)
        .fact("found", found))
}

async fn run(directory: &str, much: Much, count: u64, step: &str) -> Result<Value, Box<dyn Error>> {
    let repo = Repository::open(directory, OpenOptions::default()).await?;
    let read_only = async || repo.readonly_session(&Version::branch("main")).await;
    let (path, index) = much.chunk(count);
    match step {
        "open" => drop(read_only().await?),
        "commit" => {
            let session = repo.writable_session("main").await?;
            session.set_chunk(&path, &index, chunk_bytes(6)).await?;
            session.commit(CommitOptions::message("one chunk")).await?;
        }
        "read" => {
            let session = read_only().await?;
            if session.get_chunk(&path, &index).await? != Some(chunk_bytes(6)) {
                return Err("the chunk that the step `commit` wrote is not there".into());
            }
        }
        "locate" => {
            // A reference of the oldest manifest; `read` reads one of the newest.
            let old = match much {
                Much::References => ("/a".to_owned(), commits::index(count / 3)),
                Much::Arrays => (array_path(count / 3), vec![0]),
                Much::Commits => ("/a".to_owned(), commits::index(0)),
            };
            let located = read_only().await?.locate(&old.0, &[old.1]).await?;
            if located.iter().all(Option::is_none) {
                return Err("a reference is lost".into());
            }
        }
        "list" => return Ok(read_only().await?.tree().nodes().count().into()),
        "log" => {
            let state = repo.state().await?;
            let tip = state.tip("main")?;
            return Ok(state.ancestry(&tip.snapshot_id).count().into());
        }
        "gc" => {
            let options = GcOptions { min_age_ms: 0, dry_run: false };
            return Ok(serde_json::to_value(repo.garbage_collect(&options).await?)?);
        }
        "verify" => {
            // The virtual references point at nothing, so existence cannot be checked there.
            let level = if much == Much::References { Level::Metadata } else { Level::Bytes };
            let report = repo.verify(level).await?;
            if !report.is_sound() {
                return Err(format!("not sound: {:?}", report.findings.first()).into());
            }
            return Ok(serde_json::to_value(report.checked)?);
        }
        other => return Err(format!("no step {other:?}").into()),
    }
    Ok(Value::Null)
}
