//! Writers that never pause share a repository: each gets its share of the commits, and none waits
//! much longer than the others.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use chunkyard_repo::{Config, OpenOptions, Repository};
use chunkyard_store::{Options, Store};

use super::stress::{commit_cell, prepared};
use super::support::{history, reopen, sound};

const ROOT: &str = "CHUNKYARD_FAIRNESS_ROOT";
const WRITER: &str = "CHUNKYARD_FAIRNESS_WRITER";
/// When to stop, in milliseconds since 1970: all writers at the same time.
const UNTIL: &str = "CHUNKYARD_FAIRNESS_UNTIL";
/// Marks a child's line about a commit, as opposed to output of the test harness.
const TOOK: &str = "microseconds ";
/// Cells of each writer: more than it can commit.
const CELLS: u64 = 1 << 20;

fn now_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis() as u64
}

/// The part of the test that runs in other processes: commit after commit, without a pause.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "a part of another test, which runs it in a process of its own"]
async fn child() {
    let Ok(root) = std::env::var(ROOT) else { return };
    let number = |name: &str| std::env::var(name).unwrap().parse::<u64>().unwrap();
    let (writer, until) = (number(WRITER), number(UNTIL));
    let store = Store::open(&root, &Options::default()).unwrap();
    let repo = Repository::open_in(store, OpenOptions::default()).await.unwrap();
    for at in 0..CELLS {
        if now_ms() >= until {
            break;
        }
        let began = Instant::now();
        commit_cell(&repo, writer, at).await.unwrap();
        println!("{TOOK}{}", began.elapsed().as_micros());
    }
}

fn spawn_child(root: &str, writer: u64, until: u64) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "repo::fairness::child", "--ignored", "--nocapture"])
        .env(ROOT, root)
        .env(WRITER, writer.to_string())
        .env(UNTIL, until.to_string())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// The commits of this many writers, each with the microseconds that it took.
async fn race(writers: u64, time: Duration) -> Vec<Vec<u64>> {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open(directory.path().to_str().unwrap(), &Options::default()).unwrap();
    prepared(&store, Config::default(), writers, CELLS).await;
    let until = now_ms() + time.as_millis() as u64;
    let readers: Vec<_> = (0..writers)
        .map(|writer| {
            let mut child = spawn_child(store.url(), writer, until);
            std::thread::spawn(move || {
                let lines = BufReader::new(child.stdout.take().unwrap()).lines();
                let took = |line: String| line.split_once(TOOK)?.1.trim().parse::<u64>().ok();
                let all: Vec<u64> = lines.map_while(|line| line.ok()).filter_map(took).collect();
                assert!(child.wait().unwrap().success(), "writer {writer}");
                all
            })
        })
        .collect();
    let all: Vec<Vec<u64>> = readers.into_iter().map(|reader| reader.join().unwrap()).collect();
    let repo = reopen(&store).await;
    let commits: usize = all.iter().map(Vec::len).sum();
    assert_eq!(history(&repo, "main").await.len(), commits + 2);
    sound(&repo).await;
    all
}

/// The bounds are far from the measured values, so that a busy machine does not break them. The
/// measured values are printed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "takes a minute; run by `make stress`"]
async fn stress_writers_without_pauses_share_a_repository() {
    for writers in [3, 8] {
        let all = race(writers, Duration::from_secs(20)).await;
        let counts: Vec<usize> = all.iter().map(Vec::len).collect();
        let total: usize = counts.iter().sum();
        let mut took: Vec<u64> = all.iter().flatten().copied().collect();
        took.sort_unstable();
        let at = |share: f64| took[((took.len() - 1) as f64 * share) as usize] as f64 / 1000.0;
        let (median, p99, longest) = (at(0.5), at(0.99), at(1.0));
        let slowest = *counts.iter().min().unwrap() as f64 * writers as f64 / total as f64;
        println!(
            "{writers} writers: {total} commits {counts:?}; the slowest has {slowest:.2} of its \
             share; a commit takes {median:.1} ms, p99 {p99:.1} ms, at most {longest:.1} ms"
        );
        assert!(slowest >= 0.1, "{counts:?}");
        assert!(p99 <= 60.0 * median, "median {median} ms, p99 {p99} ms");
    }
}
