//! A labelmap with merges, a server that serves it, and a worker that keeps what it gets.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;
use std::thread::JoinHandle;

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, UInt8Type, UInt32Type, UInt64Type};
use arrow_flight::decode::{DecodedPayload, FlightDataDecoder};
use arrow_flight::error::FlightError;
use arrow_flight::flight_service_client::FlightServiceClient;
use arrow_flight::{Action, Ticket};
use async_trait::async_trait;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use chunkyard_array::Region;
use chunkyard_array::codec::label_block::Block;
use chunkyard_engine::export::join_labels;
use chunkyard_engine::format::Meter;
use chunkyard_engine::labels::{
    Author, Edit, Ids, Labelmap, Layout, Mapping, Volume, commit_edits, widen,
};
use chunkyard_engine::repo::{CreateOptions, OpenOptions, Repository, Version};
use chunkyard_server::{Config, Listeners, State, serve};
use futures::{StreamExt, TryStreamExt};
use serde_json::{Value, json};
use tokio::sync::oneshot;
use tonic::transport::Channel;
use tonic::{Code, Status};

/// Voxels along z, y and x.
pub(crate) const SHAPE: [u64; 3] = [48, 40, 64];
/// Voxels of a block along each axis.
pub(crate) const BLOCK: u64 = 16;
/// The group of the labelmap.
pub(crate) const PATH: &str = "/seg";

struct Voxels;

/// The supervoxel at a position: slabs of ids above 2⁵³, and nothing in one corner.
pub(crate) fn supervoxel(z: u64, y: u64, x: u64) -> u64 {
    match (z, y, x) {
        (..16, ..16, ..16) => 0,
        _ => (1 << 60) + z / 8 * 100 + y / 8 * 10 + x / 10,
    }
}

#[async_trait]
impl Volume for Voxels {
    fn shape(&self) -> [u64; 3] {
        SHAPE
    }

    async fn read(&self, region: &Region) -> chunkyard_engine::Result<Vec<u64>> {
        let (start, end) = (region.origin(), region.end());
        let mut out = Vec::new();
        for z in start[0]..end[0] {
            for y in start[1]..end[1] {
                out.extend((start[2]..end[2]).map(|x| supervoxel(z, y, x)));
            }
        }
        Ok(out)
    }
}

/// A repository with a labelmap on `main`, some of whose supervoxels were merged. Also says which snapshot that is.
pub(crate) async fn brain(directory: &Path) -> String {
    let url = directory.to_str().unwrap();
    let options = OpenOptions::default();
    let repo = Repository::create(url, options, CreateOptions::default()).await.unwrap();
    let session = repo.writable_session("main").await.unwrap();
    let layout = Layout { scales: 2, ..Layout::new(SHAPE).with_block([16; 3]) };
    let (map, _) =
        Labelmap::import(&session, PATH, layout, &Voxels, &Mapping::default(), &Meter::default())
            .await
            .unwrap();
    map.commit("import").await.unwrap();
    merge(&repo, supervoxel(20, 20, 20), &[supervoxel(40, 0, 0), supervoxel(0, 39, 63)]).await;
    tip(&repo).await.session().snapshot().snapshot_id.clone()
}

/// Merges bodies on `main`.
pub(crate) async fn merge(repo: &Repository, into: u64, bodies: &[u64]) {
    let author = Author { user: "test".into(), note: String::new() };
    let edit = Edit::Merge { target: into, bodies: bodies.to_vec() };
    commit_edits(repo, "main", PATH, &[edit], &author, "merge").await.unwrap();
}

/// The tip of `main`.
pub(crate) async fn tip(repo: &Repository) -> Labelmap {
    let session = repo.readonly_session(&Version::branch("main")).await.unwrap();
    Labelmap::open(&session, PATH).await.unwrap()
}

/// The labelmap in a directory at the tip of `main`, or at a snapshot.
pub(crate) async fn labelmap(directory: &Path, at: Option<&str>) -> Labelmap {
    let url = directory.to_str().unwrap();
    let repo = Repository::open(url, OpenOptions::default()).await.unwrap();
    match at {
        None => tip(&repo).await,
        Some(at) => {
            let session = repo.readonly_session(&Version::Snapshot(at.to_owned())).await.unwrap();
            Labelmap::open(&session, PATH).await.unwrap()
        }
    }
}

/// All voxels of the labelmap, x fastest.
pub(crate) async fn voxels(map: &Labelmap, ids: Ids) -> Vec<u64> {
    let read = map.array(0).unwrap().read_region(&Region::whole(&SHAPE)).await.unwrap();
    let mut voxels = widen(&read, 8);
    if ids == Ids::Bodies {
        map.load_mapping().await.unwrap().relabel(&mut voxels);
    }
    voxels
}

/// The volume of the labelmap, cut into several shards per scale.
pub(crate) fn spec() -> Value {
    let scale = |scale: u64| {
        let size = [64 >> scale, 40 >> scale, 48 >> scale];
        json!({
            "key": format!("s{scale}"), "size": size, "voxel_offset": [0, 0, 0],
            "resolution": [8 << scale, 8 << scale, 8 << scale], "chunk_sizes": [[16, 16, 16]],
            "encoding": "compressed_segmentation", "compressed_segmentation_block_size": [8, 8, 8],
            "sharding": {
                "@type": "neuroglancer_uint64_sharded_v1", "hash": "identity", "preshift_bits": 1,
                "minishard_bits": 1, "shard_bits": 5, "minishard_index_encoding": "raw", "data_encoding": "raw"
            }
        })
    };
    json!({
        "@type": "neuroglancer_multiscale_volume", "type": "segmentation", "data_type": "uint64",
        "num_channels": 1, "scales": [scale(0), scale(1)]
    })
}

/// The members of `export.start` for the labelmap.
pub(crate) fn request(key: &str) -> Value {
    json!({ "key": key, "source": "brain", "at": "main", "spec": spec() })
}

/// A server on free ports; it stops when it is dropped.
pub(crate) struct Server {
    pub(crate) http: String,
    pub(crate) flight: String,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// Serves the labelmap in `brain` with jobs in `jobs`.
    pub(crate) fn start(brain: &Path, jobs: &Path) -> Self {
        Self::with(brain, jobs, |_| ())
    }

    pub(crate) fn with(brain: &Path, jobs: &Path, change: impl FnOnce(&mut Config)) -> Self {
        let free = SocketAddr::from(([127, 0, 0, 1], 0));
        let mut config = Config { http: free, flight: free, ..Config::default() };
        config.jobs = Some(jobs.to_str().unwrap().to_owned());
        config.places.insert("brain".to_owned(), brain.to_str().unwrap().to_owned());
        // A client of a test does not hang up while the test waits for the server.
        config.limits.grace_seconds = 0;
        change(&mut config);
        let (stop, stopped) = oneshot::channel::<()>();
        let (listens, listening) = std::sync::mpsc::channel();
        let run = async move {
            let state = State::new(config).unwrap();
            let listeners = Listeners::bind(&state).await.unwrap();
            let url = |listener: &tokio::net::TcpListener| {
                format!("http://{}", listener.local_addr().unwrap())
            };
            listens.send((url(&listeners.http), url(&listeners.flight))).unwrap();
            serve(listeners, state, async { drop(stopped.await) }).await.unwrap();
        };
        // Threads of its own: a test that waits does not hold it up.
        let thread = std::thread::spawn(|| tokio::runtime::Runtime::new().unwrap().block_on(run));
        let (http, flight) = listening.recv().unwrap();
        Self { http, flight, stop: Some(stop), thread: Some(thread) }
    }

    pub(crate) async fn client(&self) -> Client {
        Client::connect(&self.flight).await
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.stop.take());
        let ended = self.thread.take().map(JoinHandle::join);
        // A second panic would hide the first.
        if !std::thread::panicking() {
            ended.unwrap().unwrap();
        }
    }
}

/// A client.
#[derive(Clone)]
pub(crate) struct Client {
    pub(crate) inner: FlightServiceClient<Channel>,
    pub(crate) token: Option<String>,
}

impl Client {
    pub(crate) async fn connect(url: &str) -> Self {
        let channel = Channel::from_shared(url.to_owned()).unwrap().connect().await.unwrap();
        let inner = FlightServiceClient::new(channel).max_decoding_message_size(usize::MAX);
        Self { inner, token: None }
    }

    pub(crate) fn request<T>(&self, body: T) -> tonic::Request<T> {
        let mut request = tonic::Request::new(body);
        if let Some(token) = &self.token {
            let value = format!("Bearer {token}").parse().unwrap();
            request.metadata_mut().insert("authorization", value);
        }
        request
    }

    /// An action with a body of any sort.
    pub(crate) async fn action(&mut self, name: &str, body: Vec<u8>) -> Result<Value, Status> {
        let request = self.request(Action { r#type: name.to_owned(), body: body.into() });
        let answers = self.inner.do_action(request).await?.into_inner();
        let answers: Vec<_> = answers.try_collect().await?;
        assert_eq!(answers.len(), 1);
        Ok(serde_json::from_slice(&answers[0].body).unwrap())
    }

    pub(crate) async fn ask(&mut self, name: &str, body: Value) -> Result<Value, Status> {
        self.action(name, body.to_string().into_bytes()).await
    }

    /// What must succeed.
    pub(crate) async fn tell(&mut self, name: &str, body: Value) -> Value {
        self.ask(name, body).await.unwrap()
    }

    /// The code of what must fail.
    pub(crate) async fn refused(&mut self, name: &str, body: Value) -> (Code, String) {
        let status = self.ask(name, body).await.unwrap_err();
        (status.code(), status.message().to_owned())
    }

    pub(crate) async fn claim(&mut self, worker: &str, job: &Value) -> Value {
        self.tell("export.claim", json!({ "worker": worker, "job": job })).await
    }

    /// Reads the stream of a ticket to its end.
    pub(crate) async fn get(&mut self, ticket: Vec<u8>) -> Result<Fetched, Status> {
        let request = self.request(Ticket { ticket: ticket.into() });
        let stream = self.inner.do_get(request).await?.into_inner();
        let mut decoder =
            FlightDataDecoder::new(stream.map_err(|status| FlightError::Tonic(Box::new(status))));
        let mut fetched = Fetched::default();
        while let Some(data) = decoder.next().await {
            let data = data.map_err(|error| match error {
                FlightError::Tonic(status) => *status,
                other => panic!("{other}"),
            })?;
            let metadata = data.app_metadata();
            if !metadata.is_empty() {
                fetched.markers.push(serde_json::from_slice(&metadata).unwrap());
            }
            match data.payload {
                DecodedPayload::Schema(schema) => fetched.schemas.push(schema),
                DecodedPayload::RecordBatch(batch) => fetched.batches.push(batch),
                DecodedPayload::None => {}
            }
        }
        Ok(fetched)
    }

    pub(crate) async fn fetch(&mut self, claim: &Value) -> Result<Fetched, Status> {
        self.get(ticket(claim)).await
    }
}

/// The ticket of a claim.
pub(crate) fn ticket(claim: &Value) -> Vec<u8> {
    BASE64_STANDARD.decode(claim["ticket"].as_str().unwrap()).unwrap()
}

/// The members that name a claim.
pub(crate) fn named(worker: &str, claim: &Value) -> Value {
    json!({ "worker": worker, "job": claim["job"], "task": claim["task"], "epoch": claim["epoch"] })
}

/// The body of an ack.
pub(crate) fn ack(worker: &str, claim: &Value, markers: &[Value]) -> Value {
    let mut ack = named(worker, claim);
    ack["shards"] = markers.into();
    ack
}

/// What a stream gave.
#[derive(Default)]
pub(crate) struct Fetched {
    pub(crate) schemas: Vec<arrow_schema::SchemaRef>,
    pub(crate) batches: Vec<RecordBatch>,
    pub(crate) markers: Vec<Value>,
}

/// A row of `blocks`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) shard: u64,
    pub(crate) morton: u64,
    pub(crate) labels: Vec<u64>,
    pub(crate) supervoxels: Vec<u64>,
    pub(crate) data: Vec<u8>,
    pub(crate) codec: String,
}

/// A row of `index`: body, x, y, z, supervoxels, counts.
pub(crate) type IndexRow = (u64, [i32; 3], Vec<u64>, Vec<u32>);

/// What workers have written: a shard becomes visible in one step.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Sink {
    /// By scale, z, y, x.
    pub(crate) blocks: BTreeMap<(u8, [i32; 3]), Row>,
    pub(crate) index: Vec<IndexRow>,
}

impl Fetched {
    /// Checks every sum, and gives the rows of blocks.
    pub(crate) fn blocks(&self) -> Vec<((u8, [i32; 3]), Row)> {
        let mut rows = Vec::new();
        for batch in &self.batches {
            let small = |name: &str| batch[name].as_primitive::<UInt8Type>().clone();
            let long = |name: &str| batch[name].as_primitive::<UInt64Type>().clone();
            let word = |name: &str| batch[name].as_primitive::<UInt32Type>().clone();
            let place = |name: &str| batch[name].as_primitive::<Int32Type>().clone();
            let list = |name: &str, at: usize| {
                let list = batch[name].as_list::<i32>().value(at);
                list.as_primitive::<UInt64Type>().values().to_vec()
            };
            for at in 0..batch.num_rows() {
                let data = batch["data"].as_binary::<i32>().value(at).to_vec();
                assert_eq!(word("nbytes").value(at) as usize, data.len());
                assert_eq!(word("crc32c").value(at), crc32c::crc32c(&data));
                let codec = batch["codec"].as_string::<i32>().value(at).to_owned();
                if codec == "zstd" {
                    let raw = zstd::decode_all(&data[..]).unwrap();
                    assert_eq!(word("raw_nbytes").value(at) as usize, raw.len());
                }
                let row = Row {
                    shard: long("shard_id").value(at),
                    morton: long("morton").value(at),
                    labels: list("labels", at),
                    supervoxels: list("supervoxels", at),
                    data,
                    codec,
                };
                let at_voxel = ["z", "y", "x"].map(|axis| place(axis).value(at));
                rows.push(((small("scale").value(at), at_voxel), row));
            }
        }
        rows
    }

    pub(crate) fn index(&self) -> Vec<IndexRow> {
        let mut rows = Vec::new();
        for batch in &self.batches {
            for at in 0..batch.num_rows() {
                let place = |name: &str| batch[name].as_primitive::<Int32Type>().value(at);
                let ids = batch["supervoxels"].as_list::<i32>().value(at);
                let counts = batch["counts"].as_list::<i32>().value(at);
                rows.push((
                    batch["body"].as_primitive::<UInt64Type>().value(at),
                    ["x", "y", "z"].map(place),
                    ids.as_primitive::<UInt64Type>().values().to_vec(),
                    counts.as_primitive::<UInt32Type>().values().to_vec(),
                ));
            }
        }
        rows
    }

    /// Checks the marker of the only unit of the stream against its rows.
    pub(crate) fn check(&self) {
        assert_eq!(self.schemas.len(), 1, "one schema, first");
        let [marker] = &self.markers[..] else { panic!("{:?}", self.markers) };
        let (bytes, rows, crc) = match marker["stream"].as_str().unwrap() {
            "blocks" => {
                let rows = self.blocks();
                let data: Vec<u8> = rows.iter().flat_map(|(_, row)| row.data.clone()).collect();
                let codes: Vec<u64> = rows.iter().map(|(_, row)| row.morton).collect();
                assert!(codes.is_sorted_by(|a, b| a < b), "in the order of Morton codes");
                assert!(rows.iter().all(|(_, row)| json!(row.shard) == marker["shard"]));
                (data.len(), rows.len(), crc32c::crc32c(&data))
            }
            _ => {
                let (rows, mut data) = (self.index(), Vec::new());
                for (body, at, ids, counts) in &rows {
                    data.extend(body.to_le_bytes());
                    at.iter().for_each(|at| data.extend(at.to_le_bytes()));
                    ids.iter().for_each(|id| data.extend(id.to_le_bytes()));
                    counts.iter().for_each(|count| data.extend(count.to_le_bytes()));
                }
                (data.len(), rows.len(), crc32c::crc32c(&data))
            }
        };
        assert_eq!(marker["bytes"], json!(bytes));
        assert_eq!(marker["rows"], json!(rows));
        assert_eq!(marker["crc32c"], json!(crc));
    }
}

impl Sink {
    /// Takes the rows of a unit; each block may come once.
    pub(crate) fn write(&mut self, fetched: &Fetched) {
        fetched.check();
        if fetched.markers[0]["stream"] == "index" {
            self.index.extend(fetched.index());
            return;
        }
        for (place, row) in fetched.blocks() {
            assert_eq!(self.blocks.insert(place, row), None, "{place:?} came twice");
        }
    }

    /// Compares all blocks, put together again, with the labelmap, voxel by voxel.
    pub(crate) async fn check(&self, map: &Labelmap) {
        for ids in [Ids::Bodies, Ids::Supervoxels] {
            let mut found = vec![0; SHAPE.iter().product::<u64>() as usize];
            for ((scale, at), row) in &self.blocks {
                if *scale > 0 {
                    continue;
                }
                let list = if ids == Ids::Bodies { &row.labels } else { &row.supervoxels };
                let raw = zstd::decode_all(&row.data[..]).unwrap();
                let block = join_labels(&raw, list).unwrap();
                let block = Block::parse(&block).unwrap();
                let mut voxels = vec![0; block.voxel_count()];
                block.decode_into(&mut voxels).unwrap();
                for (number, voxel) in voxels.into_iter().enumerate() {
                    let number = number as u64;
                    let inside = [number / BLOCK / BLOCK, number / BLOCK % BLOCK, number % BLOCK];
                    let voxel_at: [u64; 3] =
                        std::array::from_fn(|axis| at[axis] as u64 + inside[axis]);
                    if (0..3).all(|axis| voxel_at[axis] < SHAPE[axis]) {
                        let [z, y, x] = voxel_at;
                        found[((z * SHAPE[1] + y) * SHAPE[2] + x) as usize] = voxel;
                    }
                }
            }
            let expected = voxels(map, ids).await;
            assert!(found == expected, "{ids:?}");
        }
    }
}

/// Does tasks of a job until it is over; how many.
pub(crate) async fn work(client: &mut Client, worker: &str, job: &Value, sink: &mut Sink) -> u64 {
    let mut done = 0;
    loop {
        let claim = json!({ "worker": worker, "job": job, "wait_ms": 20_000 });
        let claim = client.tell("export.claim", claim).await;
        match claim["state"].as_str().unwrap() {
            "claimed" => {}
            "wait" => continue,
            "over" => return done,
            other => panic!("{other}"),
        }
        let fetched = client.fetch(&claim).await.unwrap();
        sink.write(&fetched);
        client.tell("export.ack", ack(worker, &claim, &fetched.markers)).await;
        done += 1;
    }
}
