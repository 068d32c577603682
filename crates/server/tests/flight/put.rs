//! Writing boxes and label blocks.

use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;

use arrow_array::builder::{BinaryBuilder, ListBuilder, UInt64Builder};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_flight::encode::FlightDataEncoderBuilder;
use arrow_flight::error::FlightError;
use arrow_flight::{FlightData, FlightDescriptor};
use chunkyard_array::{ArraySpec, Region};
use chunkyard_engine::labels::Ids;
use chunkyard_engine::repo::{
    CommitOptions, CreateOptions, OpenOptions, Repository, Session, Version,
};
use futures::{StreamExt, TryStreamExt, stream};
use serde_json::{Value, json};
use tonic::{Code, Status};

use super::support::{Client, Server, brain, labelmap, request, tip, voxels};

async fn repository(directory: &Path) -> Repository {
    let (url, open) = (directory.to_str().unwrap(), OpenOptions::default());
    let repo = Repository::create(url, open, CreateOptions::default()).await.unwrap();
    let session = repo.writable_session("main").await.unwrap();
    let spec = ArraySpec::builder(&[8, 10], &[4, 4], "uint8").fill_value(9).build().unwrap();
    session.create_array("/a", spec).await.unwrap();
    session.commit(CommitOptions::message("empty")).await.unwrap();
    repo
}

async fn now(repo: &Repository) -> Arc<Session> {
    repo.readonly_session(&Version::branch("main")).await.unwrap()
}

fn boxes(rows: &[([u64; 2], [u64; 2], Vec<u8>)]) -> RecordBatch {
    let (mut data, mut lists) = (BinaryBuilder::new(), Vec::new());
    for of in [0, 1] {
        let mut list = ListBuilder::new(UInt64Builder::new());
        for (origin, shape, _) in rows {
            list.values().append_slice(if of == 0 { origin } else { shape });
            list.append(true);
        }
        lists.push(Arc::new(list.finish()) as ArrayRef);
    }
    rows.iter().for_each(|(.., bytes)| data.append_value(bytes));
    let [origins, shapes] = &lists[..] else { panic!() };
    let data: ArrayRef = Arc::new(data.finish());
    let columns = [("origin", origins.clone()), ("shape", shapes.clone()), ("data", data)];
    RecordBatch::try_from_iter(columns).unwrap()
}

type Messages = Pin<Box<dyn futures::Stream<Item = FlightData> + Send>>;

fn messages(command: &Value, batches: Vec<RecordBatch>) -> Messages {
    let descriptor = FlightDescriptor::new_cmd(command.to_string());
    let builder = FlightDataEncoderBuilder::new().with_flight_descriptor(Some(descriptor));
    let encoded = builder.build(stream::iter(batches).map(Ok::<_, FlightError>));
    encoded.map(|message| message.unwrap()).boxed()
}

/// Sends a stream, and gives all answers.
async fn put(client: &mut Client, messages: Messages) -> Result<Vec<Value>, Status> {
    let answers = client.inner.do_put(messages).await?.into_inner();
    let answers: Vec<_> = answers.try_collect().await?;
    Ok(answers.iter().map(|answer| serde_json::from_slice(&answer.app_metadata).unwrap()).collect())
}

fn into_a() -> Value {
    json!({ "array": { "source": "brain", "branch": "main", "path": "/a", "message": "boxes" } })
}

#[tokio::test]
async fn boxes_become_one_commit_when_the_stream_ends() {
    let place = tempfile::tempdir().unwrap();
    let repo = repository(&place.path().join("r")).await;
    let server = Server::start(&place.path().join("r"), &place.path().join("jobs"));
    let mut client = server.client().await;
    let one = boxes(&[([0, 0], [2, 3], vec![1, 2, 3, 4, 5, 6]), ([7, 9], [1, 1], vec![7])]);
    let two = boxes(&[([1, 1], [1, 1], vec![8])]);
    let answers = put(&mut client, messages(&into_a(), vec![one, two])).await.unwrap();
    let [first, second, last] = &answers[..] else { panic!("{answers:?}") };
    assert_eq!(first, &json!({ "received": 2, "durable": 0 }));
    assert_eq!(second, &json!({ "received": 3, "durable": 0 }));
    assert_eq!((&last["received"], &last["durable"]), (&json!(3), &json!(3)));
    let session = now(&repo).await;
    assert_eq!(json!(session.snapshot().snapshot_id), last["snapshot"]);
    assert_eq!(session.snapshot().message, "boxes");
    let array = session.array("/a").await.unwrap();
    let found = array.read_region(&Region::whole(&[8, 10])).await.unwrap();
    let mut expected = [9_u8; 80];
    expected[..3].copy_from_slice(&[1, 2, 3]);
    expected[10..13].copy_from_slice(&[4, 8, 6]);
    expected[79] = 7;
    assert_eq!(&found[..], &expected[..]);
}

#[tokio::test]
async fn nothing_is_kept_of_a_stream_that_breaks_off_or_is_wrong() {
    let place = tempfile::tempdir().unwrap();
    let repo = repository(&place.path().join("r")).await;
    let server = Server::start(&place.path().join("r"), &place.path().join("jobs"));
    let mut client = server.client().await;
    let before = now(&repo).await.snapshot().snapshot_id.clone();
    let good = || boxes(&[([0, 0], [1, 1], vec![1])]);
    // The client hangs up when the first batch is answered, with the stream still open.
    let open = messages(&into_a(), vec![good()]).chain(stream::pending()).boxed();
    let mut answers = client.inner.do_put(open).await.unwrap().into_inner();
    answers.message().await.unwrap().unwrap();
    drop(answers);
    for bad in [
        boxes(&[([8, 0], [1, 1], vec![1])]),
        boxes(&[([0, 0], [1, 2], vec![1])]),
        boxes(&[([0, u64::MAX], [1, 2], vec![1, 2])]),
        boxes(&[([0, 0], [u64::MAX, u64::MAX], vec![])]),
        good().project(&[0, 1]).unwrap(),
    ] {
        let status = put(&mut client, messages(&into_a(), vec![bad])).await.unwrap_err();
        assert_eq!(status.code(), Code::InvalidArgument, "{}", status.message());
    }
    let into = |member: &str, value: &str| {
        let mut command = into_a();
        command["array"][member] = json!(value);
        command
    };
    for (command, code) in [
        (json!({}), Code::InvalidArgument),
        (json!({ "array": {} }), Code::InvalidArgument),
        (into("more", "x"), Code::InvalidArgument),
        (into("path", "/none"), Code::NotFound),
        (into("branch", "none"), Code::NotFound),
        (into("source", "none"), Code::NotFound),
    ] {
        let status = put(&mut client, messages(&command, vec![good()])).await.unwrap_err();
        assert_eq!(status.code(), code, "{command}: {}", status.message());
    }
    let garbage = FlightData { data_header: vec![7; 100].into(), ..FlightData::default() };
    let described = FlightData {
        flight_descriptor: Some(FlightDescriptor::new_cmd(into_a().to_string())),
        ..garbage.clone()
    };
    for stream in [vec![], vec![garbage], vec![described]] {
        let status = put(&mut client, stream::iter(stream).boxed()).await.unwrap_err();
        assert_eq!(status.code(), Code::InvalidArgument, "{}", status.message());
    }
    assert_eq!(now(&repo).await.snapshot().snapshot_id, before);
}

#[tokio::test]
async fn the_blocks_of_one_labelmap_become_another() {
    let place = tempfile::tempdir().unwrap();
    let source = place.path().join("brain");
    brain(&source).await;
    let server = Server::start(&source, &place.path().join("jobs"));
    let mut client = server.client().await;
    let mut ask = request("a");
    ask["scales"] = json!(1);
    let started = client.tell("export.start", ask).await;
    let ticket = json!({ "read": { "job": started["job"], "worker": 0, "workers": 1 } });
    let fetched = client.get(ticket.to_string().into_bytes()).await.unwrap();
    let target = json!({
        "source": "brain", "branch": "main", "path": "/copy", "message": "copied", "size": [64, 40, 48]
    });
    let command = json!({ "labelmap": target });
    let batches = fetched.batches.clone();
    let answers = put(&mut client, messages(&command, batches)).await.unwrap();
    let url = source.to_str().unwrap();
    let repo = Repository::open(url, OpenOptions::default()).await.unwrap();
    let copy = chunkyard_engine::labels::Labelmap::open(&now(&repo).await, "/copy").await.unwrap();
    assert_eq!(json!(copy.session().snapshot().snapshot_id), answers.last().unwrap()["snapshot"]);
    let original = labelmap(&source, None).await;
    assert!(voxels(&copy, Ids::Supervoxels).await == voxels(&original, Ids::Supervoxels).await);
    assert!(copy.verify(&Default::default()).await.unwrap().is_sound());
    assert!(copy.session().node("/waiting").is_err());
    // A second time it is there.
    let status = put(&mut client, messages(&command, fetched.batches.clone())).await.unwrap_err();
    assert_eq!(status.code(), Code::Aborted, "{}", status.message());
    let mut smaller = command.clone();
    smaller["labelmap"]["path"] = json!("/other");
    smaller["labelmap"]["size"] = json!([32, 40, 48]);
    let before = tip(&repo).await.session().snapshot().snapshot_id.clone();
    let status = put(&mut client, messages(&smaller, fetched.batches)).await.unwrap_err();
    assert_eq!(status.code(), Code::InvalidArgument, "{}", status.message());
    assert_eq!(tip(&repo).await.session().snapshot().snapshot_id, before);
}
