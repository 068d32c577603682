//! What a server has in hand while clients do not read, and what ends when they hang up.

use std::net::SocketAddr;
use std::time::Duration;

use arrow_array::cast::AsArray;
use chunkyard_array::{ArraySpec, Region};
use chunkyard_engine::repo::{CommitOptions, CreateOptions, OpenOptions, Repository};
use chunkyard_server::{Config, Listeners, State, serve};
use chunkyard_test_support::noise;
use serde_json::json;
use tokio::sync::oneshot;
use tonic::Code;

use super::support::Client;

/// Bytes of the array: many times what may be in hand.
const BYTES: u64 = 64 << 20;

/// Waits until something holds; only a server that never gets there makes this fail.
async fn until(what: &str, holds: impl Fn() -> bool) {
    for _ in 0..3000 {
        if holds() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("{what} does not come");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_does_not_read_leaves_two_messages_waiting_and_one_that_hangs_up_none() {
    let place = tempfile::tempdir().unwrap();
    let url = place.path().join("r").to_str().unwrap().to_owned();
    let (open, create) = (OpenOptions::default(), CreateOptions::default());
    let repo = Repository::create(&url, open, create).await.unwrap();
    let session = repo.writable_session("main").await.unwrap();
    let spec = ArraySpec::builder(&[BYTES], &[1 << 20], "uint8").build().unwrap();
    let array = session.create_array("/a", spec).await.unwrap();
    let bytes = noise(BYTES as usize, 1);
    array.write_region(&Region::whole(&[BYTES]), bytes.into()).await.unwrap();
    session.commit(CommitOptions::message("noise")).await.unwrap();
    let free = SocketAddr::from(([127, 0, 0, 1], 0));
    let mut config = Config { http: free, flight: free, ..Config::default() };
    config.places.insert("noise".to_owned(), url);
    config.limits.streams = 3;
    config.limits.grace_seconds = 0;
    let state = State::new(config).unwrap();
    let listeners = Listeners::bind(&state).await.unwrap();
    let flight = format!("http://{}", listeners.flight.local_addr().unwrap());
    let (stop, stopped) = oneshot::channel::<()>();
    let serving = tokio::spawn(serve(listeners, state.clone(), async { drop(stopped.await) }));
    let ticket = json!({ "array": { "source": "noise" } }).to_string();
    let mut streams = Vec::new();
    for _ in 0..3 {
        let mut client = Client::connect(&flight).await;
        let ticket = arrow_flight::Ticket::new(ticket.clone());
        let mut messages = client.inner.do_get(ticket).await.unwrap().into_inner();
        assert!(messages.message().await.unwrap().is_some(), "the schema");
        streams.push((client, messages));
    }
    // All are full: two messages of up to 2 MiB wait in each, and what the connection has taken.
    let (message, full) = (2 << 20, 3 * (2 << 20));
    until("a full stream", || state.streaming().1 >= full).await;
    // Nothing more is made, however long it takes.
    for _ in 0..50 {
        tokio::time::sleep(Duration::from_millis(2)).await;
        let (open, waiting) = state.streaming();
        assert_eq!(open, 3);
        assert!(waiting <= 3 * 2 * (message + 4096), "{waiting} bytes wait");
    }
    let mut client = Client::connect(&flight).await;
    let status = client.get(ticket.clone().into_bytes()).await.err().unwrap();
    assert_eq!(status.code(), Code::ResourceExhausted, "{}", status.message());
    drop(streams);
    until("the end of all streams", || state.streaming() == (0, 0)).await;
    // There is room again, and a client that reads gets everything.
    let fetched = client.get(ticket.into_bytes()).await.unwrap();
    let data =
        |batch: &arrow_array::RecordBatch| batch["data"].as_binary::<i32>().value_data().len();
    assert_eq!(fetched.batches.iter().map(data).sum::<usize>() as u64, BYTES);
    drop(stop);
    serving.await.unwrap().unwrap();
}
