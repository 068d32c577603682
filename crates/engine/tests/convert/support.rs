//! Samples in every format, conversions, and reading them back.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use chunkyard_array::{ArraySpec, Attributes, GroupSpec, Region, Sharding};
use chunkyard_engine::Result;
use chunkyard_engine::format::{CreateOptions, OpenOptions, Place, Reader, Source};
use chunkyard_engine::open::{format_named, open};
use chunkyard_engine::pipeline::{Movement, Outcome, Plan, RunOptions, Wishes, run};
use chunkyard_engine::repo::{self, CommitOptions, Repository};
use chunkyard_engine::store::{Durability, Options, Store};
use futures::TryStreamExt;
use serde_json::{Value, json};

use super::naive::{self, Naive};
use super::sample::Sample;

/// Where samples keep their array.
pub(crate) const PATH: &str = "/group/t";

/// Somewhere to put datasets; a directory goes away with it.
#[derive(Debug)]
pub(crate) struct Yard {
    root: String,
    directory: Option<tempfile::TempDir>,
}

impl Yard {
    pub(crate) fn memory() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let root = format!("memory://convert-{}", NEXT.fetch_add(1, Ordering::Relaxed));
        Self { root, directory: None }
    }

    pub(crate) fn directory() -> Self {
        let directory = tempfile::tempdir().unwrap();
        Self { root: directory.path().to_str().unwrap().to_owned(), directory: Some(directory) }
    }

    pub(crate) fn both() -> [Self; 2] {
        [Self::memory(), Self::directory()]
    }

    /// The URL of an entry in here.
    pub(crate) fn at(&self, name: &str) -> String {
        format!("{}/{name}", self.root)
    }

    pub(crate) fn store(&self, name: &str) -> Store {
        Store::open(&self.at(name), &options()).unwrap()
    }

    /// Fails if anything but these entries is left.
    pub(crate) fn holds_only(&self, names: &[impl AsRef<str>]) {
        let Some(directory) = &self.directory else { return };
        let entries = std::fs::read_dir(directory.path()).unwrap();
        let mut found: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        found.sort();
        assert_eq!(found, names.iter().map(AsRef::as_ref).collect::<Vec<_>>());
    }
}

/// Options of stores that skip fsync.
pub(crate) fn options() -> Options {
    Options { durability: Durability::None, ..Options::default() }
}

pub(crate) async fn opened(url: &str) -> Arc<dyn Source> {
    let options = OpenOptions { store: options(), ..OpenOptions::default() };
    open(url, &options).await.unwrap().source
}

/// The formats a sample can be in before it is converted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum From {
    Zarr3,
    /// Two chunks of the sample along each axis make a shard.
    Shards,
    Zarr2,
    Repo,
}

impl From {
    pub(crate) const ALL: [Self; 4] = [Self::Zarr3, Self::Shards, Self::Zarr2, Self::Repo];

    /// Writes a sample, without any code of the sinks.
    pub(crate) async fn write(self, yard: &Yard, name: &str, sample: &Sample) -> Arc<dyn Source> {
        match self {
            Self::Zarr3 => write_zarr3(yard, name, &sample.spec, &sample.array).await,
            Self::Shards => {
                let sharding = Sharding::new(&twice(sample.spec.chunk_shape().unwrap()));
                let spec = sample.spec.sharded(&sharding).unwrap();
                write_zarr3(yard, name, &spec, &sample.array).await;
            }
            Self::Zarr2 => write_zarr2(yard, name, sample).await,
            Self::Repo => write_repo(yard, name, &sample.spec, &sample.array).await,
        }
        opened(&yard.at(name)).await
    }
}

pub(crate) fn twice(shape: &[u64]) -> Vec<u64> {
    shape.iter().map(|extent| extent * 2).collect()
}

fn prefix() -> String {
    format!("{}/", PATH.trim_start_matches('/'))
}

/// Writes an array with any metadata at [`PATH`] of a hierarchy.
pub(crate) async fn write_zarr3(yard: &Yard, name: &str, spec: &ArraySpec, array: &Naive) {
    let store = yard.store(name);
    let group = GroupSpec::new(Attributes::new()).render();
    for path in ["zarr.json", "group/zarr.json"] {
        store.put(path, vec![group.clone().into()]).await.unwrap();
    }
    let prefix = prefix();
    store.put(&format!("{prefix}zarr.json"), vec![spec.render().into()]).await.unwrap();
    naive::write_chunks(&store, &prefix, spec, array).await;
}

/// The `.zarray` of a sample, if version 2 can express it: compressed by zlib, big-endian.
pub(crate) fn zarray(sample: &Sample) -> Option<Value> {
    let dtype = sample.spec.dtype().unwrap();
    let (descr, filters) = match dtype.name() {
        "string" => ("|O".to_owned(), json!([{"id": "vlen-utf8"}])),
        "bytes" => ("|O".to_owned(), json!([{"id": "vlen-bytes"}])),
        _ => (dtype.to_numpy()?.replace('<', ">"), Value::Null),
    };
    Some(json!({
        "zarr_format": 2,
        "shape": sample.spec.shape(),
        "chunks": sample.spec.chunk_shape().unwrap(),
        "dtype": descr,
        "compressor": {"id": "zlib", "level": 1},
        "fill_value": match (filters.is_null(), fill_value(&sample.spec)) {
            (false, _) => Value::Null,
            (true, Value::Array(bytes)) if descr.starts_with("|V") => base64(&bytes),
            (true, value) => value,
        },
        "order": "F",
        "filters": filters,
        "dimension_separator": "/",
    }))
}

/// Bytes as version 2 spells them.
fn base64(bytes: &[Value]) -> Value {
    let bytes: Vec<u8> = bytes.iter().map(|byte| byte.as_u64().unwrap() as u8).collect();
    BASE64_STANDARD.encode(bytes).into()
}

/// The fill value as its metadata spells it.
pub(crate) fn fill_value(spec: &ArraySpec) -> Value {
    serde_json::to_value(&spec.metadata().fill_value).unwrap()
}

async fn write_zarr2(yard: &Yard, name: &str, sample: &Sample) {
    let store = yard.store(name);
    let zarray = serde_json::to_vec(&zarray(sample).unwrap()).unwrap();
    let zattrs = serde_json::to_vec(sample.spec.attributes()).unwrap();
    let spec = chunkyard_array::parse_v2_array(&zarray, Some(&zattrs)).unwrap();
    let prefix = prefix();
    for (path, document) in [
        (".zgroup".to_owned(), br#"{"zarr_format": 2}"#.to_vec()),
        ("group/.zgroup".to_owned(), br#"{"zarr_format": 2}"#.to_vec()),
        (format!("{prefix}.zarray"), zarray),
        (format!("{prefix}.zattrs"), zattrs),
    ] {
        store.put(&path, vec![document.into()]).await.unwrap();
    }
    naive::write_chunks(&store, &prefix, &spec, &sample.array).await;
}

pub(crate) async fn write_repo(yard: &Yard, name: &str, spec: &ArraySpec, array: &Naive) {
    let open = repo::OpenOptions { store: options(), ..Default::default() };
    let repo = Repository::create(&yard.at(name), open, Default::default()).await.unwrap();
    let session = repo.writable_session("main").await.unwrap();
    let created = session.create_array(PATH, spec.clone()).await.unwrap();
    let (grid, fill) = (spec.grid().unwrap(), naive::fill_of(spec));
    for index in naive::indices(&grid.grid_shape()) {
        let region = grid.clipped_region(&index);
        let chunk = array.region(&region, &fill);
        if chunk.cells.iter().any(|cell| *cell != fill) {
            let elements = chunk.to_elements(spec.dtype().unwrap().item_size());
            created.write_elements(&region, elements).await.unwrap();
        }
    }
    session.commit(CommitOptions::message("sample")).await.unwrap();
}

/// The formats that are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum To {
    Zarr3,
    Shards,
    Repo,
    Container,
    Superchunk,
    /// A file of one array, which is its root.
    Bloscpack,
}

impl To {
    /// Formats that keep chunks of any shape, and leave missing ones out.
    pub(crate) const ALL: [Self; 3] = [Self::Zarr3, Self::Shards, Self::Repo];
    /// Formats that keep any array.
    pub(crate) const EVERY: [Self; 5] =
        [Self::Zarr3, Self::Shards, Self::Repo, Self::Container, Self::Superchunk];

    pub(crate) fn format(self) -> &'static str {
        match self {
            Self::Zarr3 | Self::Shards => "zarr3",
            Self::Repo => "repo",
            Self::Container => "container",
            Self::Superchunk | Self::Bloscpack => "blz",
        }
    }

    /// A name that shows the format of the target.
    pub(crate) fn named(self, name: &str) -> String {
        match self {
            Self::Zarr3 | Self::Shards | Self::Repo => name.to_owned(),
            Self::Container => format!("{name}.af"),
            Self::Superchunk => format!("{name}.blz"),
            Self::Bloscpack => format!("{name}.blp"),
        }
    }

    /// The files of a target with this name.
    pub(crate) fn files(self, name: &str) -> Vec<String> {
        let statistics = (self == Self::Container).then(|| format!("{name}.stats"));
        [self.named(name)].into_iter().chain(statistics).collect()
    }

    /// Wishes for an array of a shape with about such chunks, in several packs.
    pub(crate) fn packs(self, shape: &[u64], chunks: &[u64]) -> Wishes {
        let wishes = match self {
            Self::Superchunk | Self::Bloscpack => {
                // Whole rows only.
                let rows = |rows| [&[rows], &shape[1..]].concat();
                let shards = Some(Some(rows(2 * chunks[0])));
                let codec = Some("blosc:lz4:1".to_owned());
                Wishes { chunks: Some(rows(chunks[0])), shards, codec, ..Wishes::default() }
            }
            _ => self.wishes(chunks),
        };
        Wishes { pack_bytes: Some(1), ..wishes }
    }

    /// Wishes for chunks of a shape.
    pub(crate) fn wishes(self, chunks: &[u64]) -> Wishes {
        let shards = (self == Self::Shards).then(|| twice(chunks));
        Wishes { chunks: Some(chunks.to_vec()), shards: Some(shards), ..Wishes::default() }
    }
}

/// A conversion that was carried out.
#[derive(Debug)]
pub(crate) struct Done {
    pub(crate) plan: Plan,
    pub(crate) outcome: Outcome,
}

impl Done {
    pub(crate) fn movement(&self) -> Movement {
        self.plan.arrays[0].movement
    }
}

/// Converts, reads back and compares.
pub(crate) async fn try_convert(
    source: &Arc<dyn Source>,
    target: &str,
    to: &str,
    wishes: &Wishes,
) -> Result<Done> {
    let format = format_named(to).unwrap();
    let plan = Plan::new(&**source, wishes, format, "")?;
    let place = Place::new(target, &options())?;
    let create =
        CreateOptions { plan: plan.name.clone(), store: options(), ..CreateOptions::default() };
    let sink = format.create(&place, plan.dataset.clone(), create).await?;
    let run_options = RunOptions { verify: true, ..RunOptions::default() };
    let outcome = run(source, sink, &plan, &run_options).await?;
    Ok(Done { plan, outcome })
}

pub(crate) async fn convert(
    source: &Arc<dyn Source>,
    target: &str,
    to: &str,
    wishes: &Wishes,
) -> Done {
    let done = try_convert(source, target, to, wishes).await;
    done.unwrap_or_else(|error| panic!("{target}: {error:#?}"))
}

/// The array at a path, by the engine's own reader.
pub(crate) async fn read(source: &Arc<dyn Source>, path: &str) -> Naive {
    let reader = Reader::new(source, path).unwrap();
    let shape = reader.codecs().grid().array_shape().to_vec();
    let elements = reader.read_elements(&Region::whole(&shape)).await.unwrap();
    Naive::from_elements(&shape, &elements, reader.codecs().whole().item_size())
}

/// The array at [`PATH`] of the dataset at a URL. Plain Zarr is read the naive way too.
pub(crate) async fn read_back(yard: &Yard, name: &str) -> Naive {
    let found = read(&opened(&yard.at(name)).await, PATH).await;
    let store = yard.store(name);
    if store.head("zarr.json").await.is_ok() {
        let (_, naive) = naive::read_chunks(&store, &prefix()).await;
        assert!(found == naive, "{name}: the naive reader finds other elements");
    }
    found
}

/// Indices of the chunks that are stored, sorted.
pub(crate) async fn stored(source: &Arc<dyn Source>, path: &str) -> Vec<Vec<u64>> {
    let shape = source.dataset().array(path).unwrap().spec.shape().to_vec();
    let whole = Region::whole(&shape);
    let chunks = source.chunks(path, &whole).map_ok(|(index, _)| index.to_vec());
    let mut found: Vec<Vec<u64>> = chunks.try_collect().await.unwrap();
    found.sort();
    found
}

/// Every object of a store, by path.
pub(crate) async fn objects(store: &Store) -> BTreeMap<String, Bytes> {
    let listed: Vec<_> = store.list("").await.unwrap().try_collect().await.unwrap();
    let mut all = BTreeMap::new();
    for meta in listed {
        let bytes = store.get(&meta.path).await.unwrap().bytes;
        all.insert(meta.path, bytes);
    }
    all
}
