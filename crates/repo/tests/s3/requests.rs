//! How many requests each operation costs, counted on the wire. `docs/s3.md` states them; a change
//! here is a change there.

use chunkyard_array::Region;
use chunkyard_repo::{CommitOptions, Config, OpenOptions, Rebase, Repository, Version};
use chunkyard_store::Store;

use super::proxy::{Plan, Proxy};
use super::{fresh_url, open};
use crate::repo::support::{bytes_spec, collect, create, read_all, write_noise};

/// A counting proxy and a repository behind it: 1,000 chunks of 100 bytes in one pack.
struct Counted {
    proxy: Proxy,
    store: Store,
}

impl Counted {
    async fn new() -> Self {
        let url = fresh_url();
        let proxy = Proxy::start(Plan::Calm);
        let store = proxy.open(&url, &[]);
        let config = Config { inline_chunk_max: 0, own_file_min: 1000, ..Config::default() };
        let repo = create(&open(&url, &[]), config).await;
        let session = repo.writable_session("main").await.unwrap();
        session.create_array("/a", bytes_spec(&[100_000], &[100])).await.unwrap();
        write_noise(&session, "/a", "0:100000", 1).await.unwrap();
        session.commit(CommitOptions::message("base")).await.unwrap();
        Self { proxy, store }
    }

    async fn repository(&self) -> Repository {
        Repository::open_in(self.store.clone(), OpenOptions::default()).await.unwrap()
    }

    /// The requests since the last look: the method, and the directory or file below the root.
    fn requests(&self) -> Vec<String> {
        let short = |line: &String| {
            let (method, path) = line.split_once(' ').unwrap();
            let (path, query) = path.split_once('?').unwrap_or((path, ""));
            let mut parts = path.trim_matches('/').split('/').skip(2);
            let what = match (parts.next(), query.contains("list-type"), method) {
                (_, true, _) => "list",
                (None, _, "POST") => "delete many",
                (part, ..) => part.unwrap_or(""),
            };
            format!("{method} {what}")
        };
        self.proxy.take_log().iter().map(short).collect()
    }
}

#[tokio::test]
#[ignore = "needs an S3 server; run by `make test-s3`"]
async fn reads_cost_what_is_documented() {
    let counted = Counted::new().await;
    let repo = counted.repository().await;
    assert_eq!(counted.requests(), ["GET state.json"], "open");

    repo.state().await.unwrap();
    assert_eq!(counted.requests(), ["GET state.json"], "history");

    let session = repo.readonly_session(&Version::Default).await.unwrap();
    assert_eq!(counted.requests(), ["GET state.json", "GET s"], "a session");

    let array = session.array("/a").await.unwrap();
    assert_eq!(counted.requests(), [""; 0], "an array");
    let region = |text| Region::parse(text, &[100_000]).unwrap();
    array.read_region(&region("500:600")).await.unwrap();
    assert_eq!(counted.requests(), ["GET i", "GET c"], "a chunk");
    array.read_region(&region("700:800")).await.unwrap();
    assert_eq!(counted.requests(), ["GET c"], "another chunk");

    let session = repo.readonly_session(&Version::Default).await.unwrap();
    assert_eq!(counted.requests(), ["GET state.json"], "a second session");
    read_all(&session, "/a").await.unwrap();
    assert_eq!(counted.requests(), ["GET c"], "1,000 chunks");
}

#[tokio::test]
#[ignore = "needs an S3 server; run by `make test-s3`"]
async fn writes_cost_what_is_documented() {
    let counted = Counted::new().await;
    let repo = counted.repository().await;
    let session = repo.writable_session("main").await.unwrap();
    let opened = ["GET state.json", "GET state.json", "GET s"];
    assert_eq!(counted.requests(), opened, "open and a session");
    write_noise(&session, "/a", "500:600", 2).await.unwrap();
    assert_eq!(counted.requests(), [""; 0], "a whole chunk is not read first");
    session.commit(CommitOptions::message("one")).await.unwrap();
    // Whether it replaces a chunk or adds one is in the manifest of the base, not yet read.
    let cold = ["PUT c", "GET state.json", "PUT i", "GET i", "PUT s", "PUT state.json"];
    assert_eq!(sorted(counted.requests()), sorted(cold.to_vec()), "a commit");

    let session = repo.writable_session("main").await.unwrap();
    assert_eq!(counted.requests(), ["GET state.json"], "the next session");
    write_noise(&session, "/a", "0:100000", 3).await.unwrap();
    session.commit(CommitOptions::message("two")).await.unwrap();
    let warm = ["PUT c", "GET state.json", "PUT i", "PUT s", "PUT state.json"];
    assert_eq!(sorted(counted.requests()), sorted(warm.to_vec()), "a commit of 1,000 chunks");

    repo.create_tag("v1", &Version::Default, false).await.unwrap();
    assert_eq!(counted.requests(), ["GET state.json", "PUT state.json"], "a tag");
}

#[tokio::test]
#[ignore = "needs an S3 server; run by `make test-s3`"]
async fn creating_costs_what_is_documented() {
    let proxy = Proxy::start(Plan::Calm);
    let store = proxy.open(&fresh_url(), &[]);
    create(&store, Config::default()).await;
    let created = ["GET state.json", "PUT s", "PUT state.json"];
    let requests = Counted { proxy, store }.requests();
    assert_eq!(sorted(requests), sorted([&created[..], &["GET list"; 5]].concat()));
}

#[tokio::test]
#[ignore = "needs an S3 server; run by `make test-s3`"]
async fn a_rebase_costs_what_is_documented() {
    let counted = Counted::new().await;
    let (ours, theirs) = (counted.repository().await, counted.repository().await);
    let ours = ours.writable_session("main").await.unwrap();
    write_noise(&ours, "/a", "0:100", 2).await.unwrap();
    let theirs = theirs.writable_session("main").await.unwrap();
    write_noise(&theirs, "/a", "500:600", 3).await.unwrap();
    theirs.commit(CommitOptions::message("theirs")).await.unwrap();
    counted.requests();
    let options = CommitOptions::message("ours").with_rebase(Rebase::default());
    ours.commit(options).await.unwrap();
    // Their structure and their change come on top of what a commit costs anyway.
    let commit = ["PUT c", "GET state.json", "PUT i", "GET i", "PUT s", "PUT state.json"];
    let rebased = [commit.to_vec(), vec!["GET s", "GET i"]].concat();
    assert_eq!(sorted(counted.requests()), sorted(rebased));
}

#[tokio::test]
#[ignore = "needs an S3 server; run by `make test-s3`"]
async fn maintenance_costs_what_is_documented() {
    let counted = Counted::new().await;
    let repo = counted.repository().await;
    counted.requests();
    assert_eq!(collect(&repo).await.unwrap().files, 0);
    let lists = vec!["GET list"; 6];
    let looked = ["GET state.json", "GET state.json", "GET s", "GET s", "GET i"];
    assert_eq!(sorted(counted.requests()), sorted([looked.to_vec(), lists.clone()].concat()));

    let dropped = repo.writable_session("main").await.unwrap();
    dropped.create_array("/large", bytes_spec(&[20_000], &[1000])).await.unwrap();
    write_noise(&dropped, "/large", "0:20000", 2).await.unwrap();
    assert_eq!(counted.requests(), [&["GET state.json"][..], &["PUT c"; 20]].concat());

    assert_eq!(collect(&repo).await.unwrap().files, 20);
    let marked = ["GET state.json", "GET state.json", "GET i"];
    let announced = ["PUT gc", "PUT state.json"];
    let deleted = ["GET state.json", "GET gc", "POST delete many"];
    let finished = ["GET state.json", "PUT state.json"];
    let all = [marked.to_vec(), lists, announced.to_vec(), deleted.to_vec(), finished.to_vec()];
    assert_eq!(sorted(counted.requests()), sorted(all.concat()), "20 files");
}

/// Simultaneous requests arrive in any order.
fn sorted<T: Ord>(mut requests: Vec<T>) -> Vec<T> {
    requests.sort();
    requests
}
