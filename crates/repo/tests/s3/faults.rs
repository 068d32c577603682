//! Writers, readers and a collector behind a network that loses, delays, repeats and cuts.
//!
//! Whatever happens: an acknowledged commit is in history, with its data; no commit is there twice; an
//! error is "the store failed" or "the outcome is unknown", and never damage; a read is right or fails.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use chunkyard_repo::{Config, OpenOptions, Repository, Version};
use chunkyard_store::{Error, Result, Store};
use tokio::task::JoinSet;

use super::proxy::{Harm, Plan, Proxy, STALL, TIMEOUT};
use super::{fresh_url, open};
use crate::repo::stress::{cell, commit_cell, once_in_history, prepared};
use crate::repo::support::{collect, history, read_at, reopen, sound, tiny};

const WRITERS: u64 = 4;

/// Few retries and short patience, so that the engine itself meets most of the harm.
const IMPATIENT: [(&str, &str); 2] = [("timeout", TIMEOUT), ("retries", "1")];

/// All that one run shares.
struct Run {
    url: String,
    proxy: Proxy,
    /// The same repository on a good line.
    calm: Store,
    commits: u64,
    acknowledged: Mutex<Vec<(String, u64, u64)>>,
    over: AtomicBool,
}

impl Run {
    async fn repository(&self) -> Result<Repository> {
        let store = self.proxy.open(&self.url, &IMPATIENT);
        Repository::open_in(store, OpenOptions::default()).await
    }

    /// Makes all commits of one writer, each until it is in history.
    async fn write(&self, writer: u64) {
        for number in 0..self.commits {
            loop {
                let outcome = match self.repository().await {
                    Ok(repo) => commit_cell(&repo, writer, number).await,
                    Err(error) => Err(error),
                };
                let known = match outcome {
                    Ok(id) => Some(id),
                    Err(Error::Store { .. }) => None,
                    // The collector runs without courtesy.
                    Err(Error::SessionCollected { .. }) => None,
                    Err(Error::OutcomeUnknown { .. }) => self.find(writer, number).await,
                    Err(error) => panic!("{writer}.{number}: {error:?}"),
                };
                if let Some(id) = known {
                    self.acknowledged.lock().unwrap().push((id, writer, number));
                    break;
                }
            }
        }
    }

    /// After an unknown outcome: looks once nothing can be on its way any more.
    async fn find(&self, writer: u64, number: u64) -> Option<String> {
        tokio::time::sleep(STALL + Duration::from_millis(300)).await;
        let history = history(&reopen(&self.calm).await, "main").await;
        let message = format!("{writer}.{number}");
        history.iter().find(|snapshot| snapshot.message == message).map(|s| s.snapshot_id.clone())
    }

    /// Reads the tip again and again. Acknowledged values are there, and no value that no writer
    /// wrote. Returns how often it worked.
    async fn read(&self) -> usize {
        let mut right = 0;
        while !self.over.load(Ordering::Relaxed) {
            let before = self.acknowledged.lock().unwrap().clone();
            let found = match self.repository().await {
                Ok(repo) => read_at(&repo, &Version::branch("main"), "/a").await,
                Err(error) => Err(error),
            };
            match found {
                Ok(values) => {
                    right += 1;
                    self.check(&values, &before);
                }
                Err(Error::Store { .. }) => {}
                Err(error) => panic!("{error:?}"),
            }
        }
        right
    }

    fn check(&self, values: &[u8], acknowledged: &[(String, u64, u64)]) {
        for (at, value) in values.iter().enumerate() {
            let (writer, number) = (at as u64 / self.commits, at as u64 % self.commits);
            assert!(*value == 0 || *value == cell(writer, number), "{writer}.{number}: {value}");
        }
        for (id, writer, number) in acknowledged {
            let value = values[(writer * self.commits + number) as usize];
            assert_eq!(value, cell(*writer, *number), "{id}: {writer}.{number}");
        }
    }

    async fn collect(&self) {
        while !self.over.load(Ordering::Relaxed) {
            let done = match self.repository().await {
                Ok(repo) => collect(&repo).await.map(drop),
                Err(error) => Err(error),
            };
            match done {
                Ok(()) | Err(Error::Store { .. } | Error::OutcomeUnknown { .. }) => {}
                Err(error) => panic!("{error:?}"),
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }
}

async fn run(seed: u64, one_in: u64, kinds: &[Harm], commits: u64) {
    let url = fresh_url();
    let calm = open(&url, &[]);
    // Chunks of one byte go to packs like large ones.
    let config = Config { inline_chunk_max: 0, ..tiny() };
    prepared(&calm, config, WRITERS, commits).await;
    let proxy = Proxy::start(Plan::random(seed, one_in, kinds));
    let (acknowledged, over) = (Mutex::default(), AtomicBool::new(false));
    let run = Arc::new(Run { url, proxy, calm, commits, acknowledged, over });

    let mut writers = JoinSet::new();
    for writer in 0..WRITERS {
        let run = run.clone();
        writers.spawn(async move { run.write(writer).await });
    }
    let (reading, collecting) = (run.clone(), run.clone());
    let reader = tokio::spawn(async move { reading.read().await });
    let collector = tokio::spawn(async move { collecting.collect().await });
    while let Some(done) = writers.join_next().await {
        done.unwrap();
    }
    run.over.store(true, Ordering::Relaxed);
    let reads = reader.await.unwrap();
    collector.await.unwrap();
    // Requests still on their way arrive, and must change nothing.
    tokio::time::sleep(STALL + Duration::from_millis(100)).await;

    let what = format!("seed {seed}: {} harmed, {reads} reads", run.proxy.harmed());
    assert!(run.proxy.harmed() > 0, "{what}");
    let acknowledged = run.acknowledged.lock().unwrap().clone();
    let ids: Vec<String> = acknowledged.iter().map(|(id, ..)| id.clone()).collect();
    let repo = reopen(&run.calm).await;
    once_in_history(&repo, &ids).await;
    let expected = WRITERS * commits;
    assert_eq!(history(&repo, "main").await.len() as u64, expected + 2, "{what}");
    let values = read_at(&repo, &Version::branch("main"), "/a").await.unwrap();
    run.check(&values, &acknowledged);
    collect(&repo).await.unwrap();
    assert_eq!(sound(&repo).await, 0, "{what}");
    println!("{what}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
#[ignore = "needs an S3 server; run by `make test-s3`"]
async fn nothing_is_lost_or_doubled_by_a_bad_network() {
    for seed in 1..=2 {
        run(seed, 12, &Harm::ALL, 4).await;
    }
}

/// The classic: the put happened and the client cannot know.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
#[ignore = "needs an S3 server; run by `make test-s3`"]
async fn nothing_is_lost_or_doubled_when_replies_are_lost() {
    let lost = [Harm::LoseReply, Harm::ForwardAndAnswer(500), Harm::CutReply];
    run(11, 5, &lost, 4).await;
}

/// The nasty one: the put happens after the client has looked and found nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
#[ignore = "needs an S3 server; run by `make test-s3`"]
async fn nothing_is_lost_or_doubled_when_requests_arrive_late() {
    run(21, 10, &[Harm::DelayRequest(STALL), Harm::HoldReply], 3).await;
}

/// Every put of the new state is late, so no look at the state finds it. "It failed" would be a lie:
/// the first of them lands in the end.
#[tokio::test]
#[ignore = "needs an S3 server; run by `make test-s3`"]
async fn a_commit_that_may_still_land_is_not_reported_as_failed() {
    let url = fresh_url();
    let calm = open(&url, &[]);
    prepared(&calm, tiny(), 1, 1).await;
    // Longer than all attempts of the commit together.
    let late = Duration::from_secs(8);
    let proxy = Proxy::start(Plan::Swaps(Harm::DelayRequest(late)));
    let repo = reopen(&proxy.open(&url, &[("timeout", "500ms"), ("retries", "0")])).await;
    let error = commit_cell(&repo, 0, 0).await.unwrap_err();
    assert!(matches!(error, Error::OutcomeUnknown { .. }), "{error:?}");
    let repo = reopen(&calm).await;
    assert_eq!(history(&repo, "main").await.len(), 2, "nothing has landed yet");
    tokio::time::sleep(late + Duration::from_secs(2)).await;
    let history = history(&repo, "main").await;
    let messages: Vec<_> = history.iter().map(|snapshot| snapshot.message.as_str()).collect();
    assert_eq!(messages, ["0.0", "prepare", "create the repository"]);
    sound(&repo).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
#[ignore = "takes minutes and needs an S3 server; run by `make stress`"]
async fn stress_of_many_seeds() {
    for seed in 100..130 {
        run(seed, 4 + seed % 13, &Harm::ALL, 4).await;
    }
}
