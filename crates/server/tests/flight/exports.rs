//! Exports: claims, acknowledgements, leases, restarts.

use chunkyard_engine::labels::Ids;
use serde_json::{Value, json};
use tonic::Code;

use super::support::{
    Server, Sink, ack, brain, labelmap, merge, named, request, supervoxel, voxels, work,
};

async fn served() -> (tempfile::TempDir, Server) {
    let place = tempfile::tempdir().unwrap();
    brain(&place.path().join("brain")).await;
    let server = Server::start(&place.path().join("brain"), &place.path().join("jobs"));
    (place, server)
}

#[tokio::test]
async fn blocks_put_together_again_are_the_labelmap() {
    let (place, server) = served().await;
    let mut client = server.client().await;
    let started = client.tell("export.start", request("a")).await;
    assert_eq!(started["created"], true);
    let mut sink = Sink::default();
    let done = work(&mut client, "w", &started["job"], &mut sink).await;
    assert_eq!(json!(done), started["tasks"]);
    assert!(done > started["shards"].as_u64().unwrap(), "the index has tasks too");
    sink.check(&labelmap(&place.path().join("brain"), None).await).await;
    let told = client.tell("export.status", json!({ "job": started["job"] })).await;
    assert_eq!((&told["state"], &told["done"]), (&json!("over"), &started["tasks"]));
    assert_eq!(told["shards"], json!({ "total": started["shards"], "done": started["shards"] }));
}

#[tokio::test]
async fn the_index_has_every_voxel_of_every_body() {
    let (place, server) = served().await;
    let mut client = server.client().await;
    let started = client.tell("export.start", request("a")).await;
    let mut sink = Sink::default();
    work(&mut client, "w", &started["job"], &mut sink).await;
    let map = labelmap(&place.path().join("brain"), None).await;
    let mut counted = std::collections::BTreeMap::<u64, u64>::new();
    for label in voxels(&map, Ids::Bodies).await {
        *counted.entry(label).or_default() += 1;
    }
    counted.remove(&0);
    let mut indexed = std::collections::BTreeMap::<u64, u64>::new();
    for (body, _, ids, counts) in &sink.index {
        assert_eq!(ids.len(), counts.len());
        *indexed.entry(*body).or_default() += counts.iter().map(|n| u64::from(*n)).sum::<u64>();
    }
    assert_eq!(indexed, counted);
    let key = |row: &super::support::IndexRow| (row.0, row.1[2], row.1[1], row.1[0]);
    assert!(sink.index.is_sorted_by(|a, b| key(a) < key(b)));
}

#[tokio::test]
async fn the_same_key_gives_the_same_job_and_another_export_is_refused() {
    let (place, server) = served().await;
    let mut client = server.client().await;
    let first = client.tell("export.start", request("a")).await;
    // The branch moves on; the job stays what it was.
    let url = place.path().join("brain").to_str().unwrap().to_owned();
    let repo = chunkyard_engine::repo::Repository::open(&url, Default::default()).await.unwrap();
    merge(&repo, supervoxel(40, 20, 20), &[supervoxel(40, 30, 30)]).await;
    let again = client.tell("export.start", request("a")).await;
    assert_eq!((&again["job"], &again["created"]), (&first["job"], &json!(false)));
    assert_eq!(again["tasks"], first["tasks"]);
    let mut other = request("a");
    other["codec"] = json!("zstd:1");
    let (code, message) = client.refused("export.start", other).await;
    assert_eq!(code, Code::Aborted, "{message}");
    let unnamed = json!({ "source": "brain", "spec": super::support::spec() });
    let one = client.tell("export.start", unnamed.clone()).await;
    let two = client.tell("export.start", unnamed).await;
    assert_ne!(one["job"], two["job"]);
}

#[tokio::test]
async fn only_the_worker_of_a_claim_may_fetch_and_acknowledge_it() {
    let (_place, server) = served().await;
    let mut client = server.client().await;
    let started = client.tell("export.start", request("a")).await;
    let claim = client.claim("w", &started["job"]).await;
    assert_eq!(claim["state"], "claimed");
    assert_eq!(claim["about"]["scales"].as_array().unwrap().len(), 2);
    // Nothing was sent yet.
    let marker =
        json!({ "stream": "blocks", "scale": 0, "shard": 0, "rows": 1, "bytes": 1, "crc32c": 1 });
    let early = client.refused("export.ack", ack("w", &claim, &[marker])).await;
    assert_eq!(early.0, Code::InvalidArgument, "{}", early.1);
    let fetched = client.fetch(&claim).await.unwrap();
    let mut wrong = fetched.markers.clone();
    wrong[0]["crc32c"] = json!(1);
    assert_eq!(
        client.refused("export.ack", ack("w", &claim, &wrong)).await.0,
        Code::InvalidArgument
    );
    let stranger = client.refused("export.ack", ack("v", &claim, &fetched.markers)).await;
    assert_eq!(stranger.0, Code::FailedPrecondition, "{}", stranger.1);
    let mut later = claim.clone();
    later["epoch"] = json!(1);
    let stale = client.refused("export.beat", named("w", &later)).await;
    assert_eq!(stale.0, Code::FailedPrecondition);
    // The claim is still the worker's, and the same ack again gets the same answer.
    let done = client.tell("export.ack", ack("w", &claim, &fetched.markers)).await;
    assert_eq!(client.tell("export.ack", ack("w", &claim, &fetched.markers)).await, done);
    let after = client.fetch(&claim).await.err().unwrap();
    assert_eq!(after.code(), Code::FailedPrecondition);
}

#[tokio::test]
async fn a_task_that_is_given_back_is_done_by_another_worker_with_a_new_epoch() {
    let (place, server) = served().await;
    let mut client = server.client().await;
    let started = client.tell("export.start", request("a")).await;
    let claim = client.claim("w", &started["job"]).await;
    let fetched = client.fetch(&claim).await.unwrap();
    let mut fail = named("w", &claim);
    fail["error"] = json!("disk full");
    client.tell("export.fail", fail).await;
    let told = client.tell("export.status", json!({ "job": started["job"] })).await;
    assert_eq!((&told["failed"], &told["claimed"]), (&json!(1), &json!(0)));
    assert!(told["last_error"].as_str().unwrap().contains("disk full"));
    let mut sink = Sink::default();
    work(&mut client, "v", &started["job"], &mut sink).await;
    let late = client.refused("export.ack", ack("w", &claim, &fetched.markers)).await;
    assert_eq!(late.0, Code::FailedPrecondition);
    sink.check(&labelmap(&place.path().join("brain"), None).await).await;
}

#[tokio::test]
async fn a_silent_worker_loses_its_task_to_the_next_one() {
    let place = tempfile::tempdir().unwrap();
    let (source, jobs) = (place.path().join("brain"), place.path().join("jobs"));
    brain(&source).await;
    let server = Server::with(&source, &jobs, |config| config.limits.lease_ms = 200);
    let (mut silent, mut client) = (server.client().await, server.client().await);
    let started = client.tell("export.start", request("a")).await;
    let claim = silent.claim("silent", &started["job"]).await;
    let fetched = silent.fetch(&claim).await.unwrap();
    // The other worker cannot finish without the task of the silent one.
    let mut sink = Sink::default();
    let done = work(&mut client, "w", &started["job"], &mut sink).await;
    assert_eq!(json!(done), started["tasks"]);
    let late = silent.refused("export.ack", ack("silent", &claim, &fetched.markers)).await;
    assert_eq!(late.0, Code::FailedPrecondition);
    sink.check(&labelmap(&source, None).await).await;
}

#[tokio::test]
async fn a_second_stream_of_a_claim_ends_the_first_and_sends_all_again() {
    let (_place, server) = served().await;
    let mut client = server.client().await;
    let started = client.tell("export.start", request("a")).await;
    let claim = client.claim("w", &started["job"]).await;
    let one = client.fetch(&claim).await.unwrap();
    let two = client.fetch(&claim).await.unwrap();
    assert_eq!(one.blocks(), two.blocks());
    assert_eq!(one.markers, two.markers);
    client.tell("export.ack", ack("w", &claim, &two.markers)).await;
}

#[tokio::test]
async fn a_cancelled_job_gives_no_more_tasks_and_refuses_acks() {
    let (_place, server) = served().await;
    let mut client = server.client().await;
    let started = client.tell("export.start", request("a")).await;
    let job = started["job"].clone();
    let claim = client.claim("w", &job).await;
    let fetched = client.fetch(&claim).await.unwrap();
    assert_eq!(
        client.tell("export.cancel", json!({ "job": job })).await,
        json!({ "cancelled": true })
    );
    let late = client.refused("export.ack", ack("w", &claim, &fetched.markers)).await;
    assert_eq!(late.0, Code::FailedPrecondition);
    assert_eq!(client.tell("export.beat", named("w", &claim)).await["cancelled"], true);
    assert_eq!(client.claim("w", &job).await["state"], "cancelled");
    let told = client.tell("export.list", json!({})).await;
    assert_eq!(told["jobs"][0]["state"], "cancelled");
    let any = client.claim("w", &Value::Null).await;
    assert_eq!(any["state"], "wait");
}

#[tokio::test]
async fn a_claim_waits_for_a_job_that_is_started_later() {
    let (_place, server) = served().await;
    let (mut early, mut client) = (server.client().await, server.client().await);
    let ask = json!({ "worker": "w", "wait_ms": 30_000 });
    let (claim, started) =
        tokio::join!(early.ask("export.claim", ask), client.tell("export.start", request("a")));
    assert_eq!(claim.unwrap()["job"], started["job"]);
}

#[tokio::test]
async fn blocks_that_are_kept_are_those_of_the_store_with_their_labels() {
    let (_place, server) = served().await;
    let mut client = server.client().await;
    let mut ask = request("a");
    ask["codec"] = json!("keep");
    let kept = client.tell("export.start", ask).await;
    let packed = client.tell("export.start", request("b")).await;
    let (mut one, mut two) = (Sink::default(), Sink::default());
    work(&mut client, "w", &kept["job"], &mut one).await;
    work(&mut client, "w", &packed["job"], &mut two).await;
    assert!(one.blocks.keys().eq(two.blocks.keys()));
    for (row, stripped) in one.blocks.values().zip(two.blocks.values()) {
        let raw = match row.codec.as_str() {
            "zstd" => zstd::decode_all(&row.data[..]).unwrap(),
            "none" => row.data.clone(),
            other => panic!("{other}"),
        };
        let stripped_raw = zstd::decode_all(&stripped.data[..]).unwrap();
        let joined =
            chunkyard_engine::export::join_labels(&stripped_raw, &stripped.supervoxels).unwrap();
        assert_eq!(raw, joined);
    }
}

#[tokio::test]
async fn the_next_server_goes_on_and_what_was_acknowledged_stays_so() {
    let place = tempfile::tempdir().unwrap();
    let (source, jobs) = (place.path().join("brain"), place.path().join("jobs"));
    brain(&source).await;
    let first = Server::with(&source, &jobs, |config| config.limits.lease_ms = 500);
    let mut client = first.client().await;
    let started = client.tell("export.start", request("a")).await;
    let job = started["job"].clone();
    let mut sink = Sink::default();
    let done = client.claim("w", &job).await;
    let fetched = client.fetch(&done).await.unwrap();
    sink.write(&fetched);
    let acked = client.tell("export.ack", ack("w", &done, &fetched.markers)).await;
    let held = client.claim("w", &job).await;
    let lost = client.fetch(&held).await.unwrap();
    drop(client);
    drop(first);
    let second = Server::with(&source, &jobs, |config| config.limits.lease_ms = 500);
    let mut client = second.client().await;
    assert_eq!(client.tell("export.ack", ack("w", &done, &fetched.markers)).await, acked);
    let refused = client.refused("export.ack", ack("w", &held, &lost.markers)).await;
    assert_eq!(refused.0, Code::FailedPrecondition);
    work(&mut client, "w", &job, &mut sink).await;
    sink.check(&labelmap(&source, None).await).await;
}

#[tokio::test]
async fn two_servers_on_one_directory_share_a_job() {
    let place = tempfile::tempdir().unwrap();
    let (source, jobs) = (place.path().join("brain"), place.path().join("jobs"));
    brain(&source).await;
    let servers = [Server::start(&source, &jobs), Server::start(&source, &jobs)];
    let (mut one, mut two) = (servers[0].client().await, servers[1].client().await);
    let started = one.tell("export.start", request("a")).await;
    let job = started["job"].clone();
    let (mut left, mut right) = (Sink::default(), Sink::default());
    let (a, b) =
        tokio::join!(work(&mut one, "a", &job, &mut left), work(&mut two, "b", &job, &mut right));
    assert_eq!(json!(a + b), started["tasks"]);
    for (place, row) in right.blocks {
        assert_eq!(left.blocks.insert(place, row), None, "{place:?} went to both");
    }
    left.check(&labelmap(&source, None).await).await;
}

#[tokio::test]
async fn what_makes_no_sense_is_refused_and_the_server_stays_up() {
    let (_place, server) = served().await;
    let mut client = server.client().await;
    let zeros = "0".repeat(32);
    for (name, body, code) in [
        ("export.start", json!({}), Code::InvalidArgument),
        ("export.start", json!([]), Code::InvalidArgument),
        ("export.start", json!({ "source": "nothing" }), Code::NotFound),
        ("export.start", json!({ "source": "../brain" }), Code::NotFound),
        ("export.start", json!({ "source": "brain", "at": "no such branch" }), Code::NotFound),
        ("export.start", json!({ "source": "brain", "path": "/none" }), Code::NotFound),
        ("export.start", json!({ "source": "brain", "scales": 0 }), Code::InvalidArgument),
        ("export.start", json!({ "source": "brain", "scales": -1 }), Code::InvalidArgument),
        ("export.start", json!({ "source": "brain", "spec": {} }), Code::InvalidArgument),
        ("export.start", json!({ "source": "brain", "spec": [1] }), Code::InvalidArgument),
        ("export.start", json!({ "source": "brain", "codec": "lzma" }), Code::InvalidArgument),
        ("export.claim", json!({}), Code::InvalidArgument),
        ("export.claim", json!({ "worker": "" }), Code::InvalidArgument),
        ("export.claim", json!({ "worker": "w".repeat(257) }), Code::InvalidArgument),
        ("export.claim", json!({ "worker": "w", "wait_ms": 30_001 }), Code::InvalidArgument),
        ("export.claim", json!({ "worker": "w", "job": "../.." }), Code::InvalidArgument),
        ("export.claim", json!({ "worker": "w", "job": zeros }), Code::NotFound),
        ("export.status", json!({ "job": zeros }), Code::NotFound),
        ("export.status", json!({ "job": zeros, "more": 1 }), Code::InvalidArgument),
        ("export.cancel", json!({ "job": "ZZ" }), Code::InvalidArgument),
        ("export.list", json!({ "all": true }), Code::InvalidArgument),
        ("export.explode", json!({}), Code::Unimplemented),
    ] {
        let (found, message) = client.refused(name, body.clone()).await;
        assert_eq!(found, code, "{name} {body}: {message}");
    }
    for body in [&b"{"[..], b"\xff\xfe", b"null", &[b'['; 100_000]] {
        let status = client.action("export.start", body.to_vec()).await.unwrap_err();
        assert_eq!(status.code(), Code::InvalidArgument);
    }
    for ticket in [&b""[..], b"{}", b"\xff", b"{\"claim\": 1}", &[b'['; 60_000]] {
        let status = client.get(ticket.to_vec()).await.err().unwrap();
        assert_eq!(status.code(), Code::InvalidArgument);
    }
    let started = client.tell("export.start", request("a")).await;
    let claim = client.claim("w", &started["job"]).await;
    for (member, value) in
        [("task", json!(u64::MAX)), ("epoch", json!(u32::MAX)), ("worker", json!("x"))]
    {
        let mut forged: Value = serde_json::from_slice(&super::support::ticket(&claim)).unwrap();
        forged["claim"][member] = value.clone();
        let status = client.get(forged.to_string().into_bytes()).await.err().unwrap();
        assert_eq!(status.code(), Code::FailedPrecondition);
        let mut body = named("w", &claim);
        body[member] = value;
        assert_eq!(client.refused("export.beat", body.clone()).await.0, Code::FailedPrecondition);
        body["shards"] = json!([]);
        assert_eq!(client.refused("export.ack", body).await.0, Code::FailedPrecondition);
    }
    assert_eq!(client.claim("w", &started["job"]).await["state"], "claimed");
}
