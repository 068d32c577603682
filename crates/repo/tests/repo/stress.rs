//! Many writers at once, in one process and in several that get killed: each acknowledged commit is
//! in history exactly once, and nothing is broken.

use std::collections::HashMap;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use chunkyard_repo::{CommitOptions, Config, OpenOptions, Rebase, Repository, Version};
use chunkyard_store::{Durability, Options, Result, Store};

use super::support::{
    Place, bytes_spec, collect, create, history, read_at, reopen, sound, tiny, write,
};

/// One array with a chunk for every commit of every writer.
pub(crate) async fn prepared(
    store: &Store,
    config: Config,
    writers: u64,
    commits: u64,
) -> Repository {
    let repo = create(store, config).await;
    let session = repo.writable_session("main").await.unwrap();
    session.create_array("/a", bytes_spec(&[writers, commits], &[1, 1])).await.unwrap();
    session.commit(CommitOptions::message("prepare")).await.unwrap();
    repo
}

/// Commits one chunk, rebasing as often as needed, and returns the snapshot's id.
pub(crate) async fn commit_cell(repo: &Repository, writer: u64, number: u64) -> Result<String> {
    let session = repo.writable_session("main").await?;
    let region = format!("{writer}:{},{number}:{}", writer + 1, number + 1);
    write(&session, "/a", &region, cell(writer, number)).await?;
    let message = CommitOptions::message(format!("{writer}.{number}"));
    Ok(session.commit(message.with_rebase(Rebase::default())).await?.snapshot_id.clone())
}

async fn commit_chunk(repo: &Repository, writer: u64, number: u64) -> String {
    commit_cell(repo, writer, number).await.unwrap()
}

/// What a writer puts into its cells.
pub(crate) fn cell(writer: u64, number: u64) -> u8 {
    (1 + (writer * 31 + number * 7) % 255) as u8
}

/// Every acknowledged id is in the history of `main` once, and no commit is there that no writer
/// made.
pub(crate) async fn once_in_history(repo: &Repository, acknowledged: &[String]) {
    let history = history(repo, "main").await;
    let mut counts: HashMap<&str, usize> = HashMap::new();
    for snapshot in &history {
        *counts.entry(&snapshot.snapshot_id).or_default() += 1;
    }
    for id in acknowledged {
        assert_eq!(counts.get(id.as_str()), Some(&1), "{id}");
    }
    let mut messages: HashMap<&str, usize> = HashMap::new();
    for snapshot in &history {
        *messages.entry(&snapshot.message).or_default() += 1;
    }
    let twice: Vec<_> = messages.iter().filter(|(_, count)| **count != 1).collect();
    assert!(twice.is_empty(), "{twice:?}");
}

async fn concurrent_commits(place: Place, writers: u64, commits: u64) {
    let (_guard, store) = place.open();
    prepared(&store, tiny(), writers, commits).await;
    let acknowledged = Arc::new(Mutex::new(Vec::new()));
    let mut tasks = tokio::task::JoinSet::new();
    for writer in 0..writers {
        let (store, acknowledged) = (store.clone(), acknowledged.clone());
        tasks.spawn(async move {
            let repo = reopen(&store).await;
            for number in 0..commits {
                let id = commit_chunk(&repo, writer, number).await;
                acknowledged.lock().unwrap().push(id);
            }
        });
    }
    while let Some(done) = tasks.join_next().await {
        done.unwrap();
    }
    let acknowledged = acknowledged.lock().unwrap().clone();
    assert_eq!(acknowledged.len() as u64, writers * commits);
    let repo = reopen(&store).await;
    once_in_history(&repo, &acknowledged).await;
    assert_eq!(history(&repo, "main").await.len() as u64, writers * commits + 2);
    let values = read_at(&repo, &Version::branch("main"), "/a").await.unwrap();
    for (at, value) in values.iter().enumerate() {
        let (writer, number) = (at as u64 / commits, at as u64 % commits);
        assert_eq!(*value, cell(writer, number), "{place:?} {writer}.{number}");
    }
    let state = repo.state().await.unwrap();
    let tip = repo.readonly_session(&Version::Default).await.unwrap();
    assert_eq!(tip.node("/a").unwrap().refs_count, writers * commits);
    assert!(state.generation > writers * commits);
    sound(&repo).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn concurrent_commits_are_all_in_history_once() {
    for place in Place::ALL {
        concurrent_commits(place, 4, 8).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 8)]
#[ignore = "takes minutes; run by `make stress`"]
async fn many_concurrent_commits_are_all_in_history_once() {
    for place in Place::ALL {
        concurrent_commits(place, 8, 20).await;
    }
}

const ROOT: &str = "CHUNKYARD_STRESS_ROOT";
const WRITER: &str = "CHUNKYARD_STRESS_WRITER";
const COMMITS: &str = "CHUNKYARD_STRESS_COMMITS";
/// Marks a child's line about a commit, as opposed to output of the test harness.
const DONE: &str = "acknowledged ";

/// The part of [`killed_processes_lose_nothing`] that runs in other processes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "a part of another test, which runs it in a process of its own"]
async fn child() {
    let Ok(root) = std::env::var(ROOT) else { return };
    let number = |name: &str| std::env::var(name).unwrap().parse::<u64>().unwrap();
    let (writer, commits) = (number(WRITER), number(COMMITS));
    let options = Options { durability: Durability::None, ..Options::default() };
    let store = Store::open(&root, &options).unwrap();
    let repo = Repository::open_in(store, OpenOptions::default()).await.unwrap();
    for at in 0..commits {
        println!("{DONE}{}", commit_chunk(&repo, writer, at).await);
    }
}

fn spawn_child(root: &str, writer: u64, commits: u64) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "repo::stress::child", "--ignored", "--nocapture", "--test-threads=1"])
        .env(ROOT, root)
        .env(WRITER, writer.to_string())
        .env(COMMITS, commits.to_string())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

async fn killed_processes(writers: u64, commits: u64, kills: u64) {
    let (_guard, store) = Place::Local.open();
    prepared(&store, tiny(), writers, commits).await;
    let mut readers = Vec::new();
    for writer in 0..writers {
        let mut child = spawn_child(store.url(), writer, commits);
        // Each doomed child dies after a different number of acknowledgements, at any point of its
        // work.
        let doomed = (writer < kills).then_some(1 + (writer * 7) % (commits - 1));
        let pause = Duration::from_micros(700 * (1 + writer * 13 % 11));
        readers.push(std::thread::spawn(move || {
            let mut ids = Vec::new();
            let lines = BufReader::new(child.stdout.take().unwrap()).lines();
            for line in lines.map_while(|line| line.ok()) {
                let Some((_, id)) = line.split_once(DONE) else { continue };
                ids.push(id.trim().to_owned());
                if doomed == Some(ids.len() as u64) {
                    std::thread::sleep(pause);
                    child.kill().unwrap();
                }
            }
            let status = child.wait().unwrap();
            assert!(doomed.is_some() || status.success(), "writer {writer}: {status}");
            ids
        }));
    }
    let per_writer: Vec<Vec<String>> = readers.into_iter().map(|r| r.join().unwrap()).collect();
    let acknowledged: Vec<String> = per_writer.iter().flatten().cloned().collect();
    assert!(acknowledged.len() as u64 >= (writers - kills) * commits + kills);

    let repo = reopen(&store).await;
    once_in_history(&repo, &acknowledged).await;
    sound(&repo).await;
    let values = read_at(&repo, &Version::branch("main"), "/a").await.unwrap();
    for (writer, ids) in per_writer.iter().enumerate() {
        for number in 0..ids.len() {
            let at = writer * commits as usize + number;
            assert_eq!(values[at], cell(writer as u64, number as u64), "{writer}.{number}");
        }
    }
    let session = repo.writable_session("main").await.unwrap();
    write(&session, "/a", "0:1,0:1", 255).await.unwrap();
    session.commit(CommitOptions::message("afterwards")).await.unwrap();
    collect(&repo).await.unwrap();
    assert_eq!(sound(&repo).await, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_processes_lose_nothing() {
    killed_processes(3, 10, 2).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "takes minutes; run by `make stress`"]
async fn many_killed_processes_lose_nothing() {
    for _ in 0..5 {
        killed_processes(6, 60, 4).await;
    }
}
