//! Labelmaps to serve, and requests as clients of DVID make them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use async_trait::async_trait;
use chunkyard_array::Region;
use chunkyard_array::codec::gunzip;
use chunkyard_array::codec::label_block::Block;
use chunkyard_engine::Meter;
use chunkyard_engine::Result;
use chunkyard_engine::format::dvid::{DvidOptions, DvidStore, DvidUrl};
use chunkyard_engine::labels::dvid::{ImportOptions, ImportReport, WhichVersions, import_history};
use chunkyard_engine::labels::{Labelmap, Layout, Mapping, Volume};
use chunkyard_engine::repo::{CreateOptions, OpenOptions, Repository};
use chunkyard_test_support::{dvid_store, dvid_testdata};
use serde_json::Value;

use crate::harness::Server;

/// The group of every labelmap here, and its name as data.
pub(super) const PATH: &str = "/seg";
/// Voxels along an edge of a block of the recorded volumes.
pub(super) const EDGE: u64 = 64;

/// A position x, y, z.
pub(super) type Xyz = [i32; 3];

/// A repository that goes away with the test.
pub(super) async fn repository() -> (tempfile::TempDir, Repository) {
    let directory = tempfile::tempdir().unwrap();
    let url = directory.path().to_str().unwrap();
    let repo =
        Repository::create(url, OpenOptions::default(), CreateOptions::default()).await.unwrap();
    (directory, repo)
}

/// A store that DVID wrote, and all of its versions in a repository.
pub(super) struct Imported {
    pub(super) store: tempfile::TempDir,
    pub(super) directory: tempfile::TempDir,
    pub(super) report: ImportReport,
}

impl Imported {
    pub(super) async fn new(name: &str) -> Self {
        let store = dvid_store(name);
        let url = DvidUrl::parse(&store_url(store.path())).unwrap();
        let opened = DvidStore::open(&url, &DvidOptions::default()).await.unwrap();
        let (directory, repo) = repository().await;
        let options = ImportOptions {
            path: PATH.into(),
            data: Some("seg".into()),
            versions: WhichVersions::All,
            skip_corrupt: name == "branches",
        };
        let report =
            import_history(&repo, &opened, None, &options, &Meter::default()).await.unwrap();
        Self { store, directory, report }
    }

    /// Serves both: the repository as `repo`, the store as `store`.
    pub(super) fn serve(&self) -> Server {
        let badger = self.store.path().join("data/badger");
        Server::start(&[("repo", self.directory.path()), ("store", &badger)])
    }
}

pub(super) fn store_url(directory: &Path) -> String {
    format!("dvid+badger://{}", directory.join("data/badger").display())
}

/// What DVID answered, as `testdata/dvid/README.md` describes it.
pub(super) fn recorded(path: &str) -> PathBuf {
    dvid_testdata().join(path)
}

pub(super) fn recorded_json(path: &str) -> Value {
    serde_json::from_slice(&std::fs::read(recorded(path)).unwrap()).unwrap()
}

/// A volume in memory.
pub(super) struct Voxels {
    pub(super) shape: [u64; 3],
    pub(super) labels: Vec<u64>,
}

#[async_trait]
impl Volume for Voxels {
    fn shape(&self) -> [u64; 3] {
        self.shape
    }

    async fn read(&self, region: &Region) -> Result<Vec<u64>> {
        let (start, shape) = (region.origin(), region.shape());
        let mut out = Vec::new();
        for z in start[0]..start[0] + shape[0] {
            for y in start[1]..start[1] + shape[1] {
                let from = ((z * self.shape[1] + y) * self.shape[2] + start[2]) as usize;
                out.extend_from_slice(&self.labels[from..from + shape[2] as usize]);
            }
        }
        Ok(out)
    }
}

/// Puts a volume into a repository.
pub(super) async fn import(repo: &Repository, layout: Layout, voxels: &Voxels) {
    let session = repo.writable_session("main").await.unwrap();
    let (map, _) =
        Labelmap::import(&session, PATH, layout, voxels, &Mapping::default(), &Meter::default())
            .await
            .unwrap();
    map.commit("import").await.unwrap();
}

/// Four bodies side by side along x, each of 16 voxels, in blocks of 16: 16 × 16 × 64 voxels.
pub(super) async fn four_bodies(repo: &Repository) {
    let shape = [16, 16, 64];
    let labels = (0..16 * 16 * 64).map(|at| at % 64 / 16 + 1).collect();
    import(repo, Layout::new(shape).with_block([16; 3]), &Voxels { shape, labels }).await;
}

/// An answer: its status and its bytes.
pub(super) async fn ask(
    server: &Server,
    method: &str,
    path: &str,
    body: impl Into<reqwest::Body>,
) -> (u16, Vec<u8>) {
    let method = reqwest::Method::from_bytes(method.as_bytes()).unwrap();
    let answer = server.client.request(method, server.at(path)).body(body).send().await.unwrap();
    (answer.status().as_u16(), answer.bytes().await.unwrap().to_vec())
}

/// The bytes of an answer that is there.
pub(super) async fn get(server: &Server, path: &str, body: impl Into<reqwest::Body>) -> Vec<u8> {
    let (status, bytes) = ask(server, "GET", path, body).await;
    assert_eq!(status, 200, "{path}: {}", String::from_utf8_lossy(&bytes));
    bytes
}

/// The JSON of an answer that is there.
pub(super) async fn get_json(server: &Server, path: &str, body: String) -> Value {
    let bytes = get(server, path, body).await;
    serde_json::from_slice(&bytes).unwrap()
}

/// The JSON of a mutation that was made.
pub(super) async fn post(server: &Server, path: &str, body: impl Into<reqwest::Body>) -> Value {
    let (status, bytes) = ask(server, "POST", path, body).await;
    assert_eq!(status, 200, "{path}: {}", String::from_utf8_lossy(&bytes));
    serde_json::from_slice(&bytes).unwrap_or_default()
}

/// The blocks of a stream, by position.
pub(super) fn unstream(mut rest: &[u8]) -> BTreeMap<Xyz, Vec<u8>> {
    let mut blocks = BTreeMap::new();
    while !rest.is_empty() {
        let (head, tail) = rest.split_at(16);
        let words = head.as_chunks::<4>().0;
        let length = u32::from_le_bytes(words[3]) as usize;
        let at = [0, 1, 2].map(|axis| i32::from_le_bytes(words[axis]));
        let (block, tail) = tail.split_at(length);
        assert!(blocks.insert(at, block.to_vec()).is_none(), "{at:?} comes twice");
        rest = tail;
    }
    blocks
}

/// The voxels of a label block in gzip.
pub(super) fn voxels_of(packed: &[u8]) -> Vec<u64> {
    let block = gunzip(packed, 64 << 20).unwrap();
    let block = Block::parse(&block).unwrap();
    let mut voxels = vec![0; block.voxel_count()];
    block.decode_into(&mut voxels).unwrap();
    voxels
}

/// Numbers of 64 bits.
pub(super) fn u64s(bytes: &[u8]) -> Vec<u64> {
    let (words, rest) = bytes.as_chunks::<8>();
    assert!(rest.is_empty(), "{} bytes", bytes.len());
    words.iter().map(|word| u64::from_le_bytes(*word)).collect()
}

/// Pairs of numbers of 64 bits.
pub(super) fn pairs(bytes: &[u8]) -> Vec<(u64, u64)> {
    u64s(bytes).as_chunks::<2>().0.iter().map(|[a, b]| (*a, *b)).collect()
}
