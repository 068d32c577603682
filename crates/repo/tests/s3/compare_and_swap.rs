//! Is the server safe to commit on? Many clients create and replace the same object at the same
//! time; each time exactly one may succeed. A server that checks the condition and then writes,
//! without a lock around both, fails here within seconds.

use std::collections::HashMap;

use bytes::Bytes;
use chunkyard_store::{Created, Kind, Replaced, Store, Version};
use tokio::task::JoinSet;

use super::{fresh_url, open};

const CLIENTS: usize = 16;
const ROUNDS: u64 = 60;

/// A client with connections of its own.
fn clients(url: &str) -> Vec<Store> {
    (0..CLIENTS).map(|_| open(url, &[])).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
#[ignore = "needs an S3 server; run by `make test-s3`"]
async fn of_many_creators_one_succeeds() {
    let clients = clients(&fresh_url());
    for round in 0..ROUNDS {
        let path = format!("ref-{round}");
        let mut tasks = JoinSet::new();
        for (number, store) in clients.iter().cloned().enumerate() {
            let (path, content) = (path.clone(), format!("{number}"));
            tasks.spawn(async move {
                match store.create(&path, content.clone().into()).await.unwrap() {
                    Created::Done(version) => Some((content, version)),
                    Created::Exists => None,
                }
            });
        }
        let winners: Vec<_> = tasks.join_all().await.into_iter().flatten().collect();
        let found = clients[0].get(&path).await.unwrap();
        assert_eq!(
            winners,
            [(String::from_utf8(found.bytes.to_vec()).unwrap(), Version::from(&found.meta))]
        );
    }
}

/// Each client adds one to the value it read, as long as it is below the goal.
async fn count_up(store: Store, client: usize, goal: u64) -> Vec<u64> {
    assert_eq!(store.kind(), Kind::Object { conditional_put: true });
    let mut won = Vec::new();
    loop {
        let object = store.get("counter").await.unwrap();
        let text = String::from_utf8(object.bytes.to_vec()).unwrap();
        let value: u64 = text.split(' ').next().unwrap().parse().unwrap();
        if value >= goal {
            return won;
        }
        // The client's number makes every content, and so every etag, unique.
        let next = Bytes::from(format!("{} by {client}", value + 1));
        match store.replace("counter", next, &Version::from(&object.meta)).await.unwrap() {
            Replaced::Done(_) => won.push(value + 1),
            Replaced::Lost => {}
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
#[ignore = "needs an S3 server; run by `make test-s3`"]
async fn of_many_replacers_one_succeeds() {
    let goal = ROUNDS * 5;
    let clients = clients(&fresh_url());
    clients[0].create("counter", "0 by none".into()).await.unwrap();
    let mut tasks = JoinSet::new();
    for (number, store) in clients.into_iter().enumerate() {
        tasks.spawn(count_up(store, number, goal));
    }
    let mut winners: HashMap<u64, usize> = HashMap::new();
    for value in tasks.join_all().await.into_iter().flatten() {
        *winners.entry(value).or_default() += 1;
    }
    let twice: Vec<_> = winners.iter().filter(|(_, count)| **count != 1).collect();
    assert!(twice.is_empty(), "counted more than once: {twice:?}");
    assert_eq!(winners.len() as u64, goal, "an update was lost");
}
