//! Many committers on one branch of a repository in a bucket: tasks in this process and other
//! processes, while garbage is collected without any courtesy.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use chunkyard_repo::{Config, Repository, Version};
use chunkyard_store::Error;
use tokio::task::JoinSet;

use super::{fresh_url, open};
use crate::repo::stress::{cell, commit_cell, once_in_history, prepared};
use crate::repo::support::{collect, history, read_at, reopen, sound, tiny};

const TASKS: u64 = 8;
const PROCESSES: u64 = 3;

const URL: &str = "CHUNKYARD_COMMITTER_URL";
const WRITER: &str = "CHUNKYARD_COMMITTER_NUMBER";
const COMMITS: &str = "CHUNKYARD_COMMITTER_COMMITS";
/// Marks a child's line about a commit, as opposed to output of the test harness.
const DONE: &str = "acknowledged ";

/// Commits, in a new session where the collector took the files of the last one.
async fn commit(repo: &Repository, writer: u64, number: u64) -> String {
    loop {
        match commit_cell(repo, writer, number).await {
            Ok(id) => return id,
            Err(Error::SessionCollected { .. }) => {}
            Err(error) => panic!("{writer}.{number}: {error:?}"),
        }
    }
}

/// The part of the tests below that runs in other processes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "a part of another test, which runs it in a process of its own"]
async fn child() {
    let Ok(url) = std::env::var(URL) else { return };
    let number = |name: &str| std::env::var(name).unwrap().parse::<u64>().unwrap();
    let (writer, commits) = (number(WRITER), number(COMMITS));
    let repo = reopen(&open(&url, &[])).await;
    for at in 0..commits {
        println!("{DONE}{}", commit(&repo, writer, at).await);
    }
}

fn spawn_child(url: &str, writer: u64, commits: u64) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "s3::committers::child", "--ignored", "--nocapture"])
        .env(URL, url)
        .env(WRITER, writer.to_string())
        .env(COMMITS, commits.to_string())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

/// What a child acknowledged, once it has ended.
fn acknowledged(mut child: Child) -> Vec<String> {
    let lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(|line| line.ok());
    let ids = lines.filter_map(|line| Some(line.split_once(DONE)?.1.trim().to_owned())).collect();
    assert!(child.wait().unwrap().success());
    ids
}

async fn all_at_once(commits: u64) {
    let url = fresh_url();
    let writers = TASKS + PROCESSES;
    let config = Config { inline_chunk_max: 0, ..tiny() };
    prepared(&open(&url, &[]), config, writers, commits).await;

    let children: Vec<_> = (TASKS..writers)
        .map(|writer| spawn_child(&url, writer, commits))
        .map(|child| tokio::task::spawn_blocking(move || acknowledged(child)))
        .collect();
    let mut tasks = JoinSet::new();
    for writer in 0..TASKS {
        let store = open(&url, &[]);
        tasks.spawn(async move {
            let repo = reopen(&store).await;
            let mut ids = Vec::new();
            for number in 0..commits {
                ids.push(commit(&repo, writer, number).await);
            }
            ids
        });
    }
    let over = Arc::new(AtomicBool::new(false));
    let collector = {
        let (store, over) = (open(&url, &[]), over.clone());
        tokio::spawn(async move {
            let mut files = 0;
            while !over.load(Ordering::Relaxed) {
                files += collect(&reopen(&store).await).await.unwrap().files;
                tokio::time::sleep(Duration::from_millis(300)).await;
            }
            files
        })
    };
    let mut ids: Vec<String> = tasks.join_all().await.into_iter().flatten().collect();
    for child in children {
        ids.extend(child.await.unwrap());
    }
    over.store(true, Ordering::Relaxed);
    let collected = collector.await.unwrap();

    assert_eq!(ids.len() as u64, writers * commits);
    let repo = reopen(&open(&url, &[])).await;
    once_in_history(&repo, &ids).await;
    assert_eq!(history(&repo, "main").await.len() as u64, writers * commits + 2);
    let values = read_at(&repo, &Version::branch("main"), "/a").await.unwrap();
    for (at, value) in values.iter().enumerate() {
        let (writer, number) = (at as u64 / commits, at as u64 % commits);
        assert_eq!(*value, cell(writer, number), "{writer}.{number}");
    }
    sound(&repo).await;
    println!("{} commits, {collected} files collected meanwhile", ids.len());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
#[ignore = "needs an S3 server; run by `make test-s3`"]
async fn tasks_and_processes_commit_beside_a_collector() {
    all_at_once(4).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
#[ignore = "takes minutes and needs an S3 server; run by `make stress`"]
async fn stress_of_tasks_and_processes() {
    for _ in 0..5 {
        all_at_once(25).await;
    }
}
