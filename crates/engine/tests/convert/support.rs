//! Places for samples, conversions, and reading them back.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use chunkyard_array::Region;
use chunkyard_engine::Result;
use chunkyard_engine::format::{CreateOptions, OpenOptions, Place, Reader, Source};
use chunkyard_engine::open::{format_named, open};
use chunkyard_engine::pipeline::{Movement, Outcome, Plan, RunOptions, Wishes, run};
use chunkyard_engine::store::{Durability, Options, Store};
use futures::TryStreamExt;

use super::naive::{self, Naive};

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

    pub(crate) fn is_directory(&self) -> bool {
        self.directory.is_some()
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
    try_open(url).await.unwrap()
}

async fn try_open(url: &str) -> Result<Arc<dyn Source>> {
    let options = OpenOptions { store: options(), ..OpenOptions::default() };
    Ok(open(url, &options).await?.source)
}

/// The dataset at a URL, if it is one with an array.
pub(crate) async fn open_array(url: &str) -> Option<Arc<dyn Source>> {
    let found = try_open(url).await.ok()?;
    let some = found.dataset().arrays().count() > 0;
    some.then_some(found)
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
    convert_as(source, target, to, wishes, "").await
}

/// The same; an array at the root gets a name where the format names every array.
pub(crate) async fn convert_as(
    source: &Arc<dyn Source>,
    target: &str,
    to: &str,
    wishes: &Wishes,
    name: &str,
) -> Result<Done> {
    let format = format_named(to).unwrap();
    let name = if format.names_every_array() { name } else { "" };
    let plan = Plan::new(source, wishes, format, name).await?;
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

/// Where the only array of a dataset is.
pub(crate) fn only_array(source: &Arc<dyn Source>) -> String {
    let arrays: Vec<&str> = source.dataset().arrays().map(|(path, _)| path).collect();
    assert_eq!(arrays.len(), 1, "{arrays:?}");
    arrays[0].to_owned()
}

/// The only array of the dataset of a name. Plain Zarr is read the naive way too.
pub(crate) async fn read_back(yard: &Yard, name: &str) -> Naive {
    let source = opened(&yard.at(name)).await;
    let path = only_array(&source);
    let found = read(&source, &path).await;
    let store = yard.store(name);
    if store.head("zarr.json").await.is_ok() {
        let folder = format!("{}/", path.trim_matches('/'));
        let prefix = folder.trim_start_matches('/');
        let (_, naive) = naive::read_chunks(&store, prefix).await;
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
