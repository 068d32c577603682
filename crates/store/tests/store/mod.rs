//! The store: the same promises on every backend, and each backend's own.

mod change;
mod conformance;
mod crash;
mod crash_change;
mod crash_tree;
mod crash_upload;
mod digests;
mod dvid_http;
mod entries;
mod fetch;
mod fetcher;
mod links;
mod local;
mod object;
mod slices;
mod turns;
mod web;

use bytes::Bytes;
use chunkyard_store::{Error, Meta, Noun, Options, Store};
use chunkyard_test_support::{Scratch, bucket, deaths, scratch};
use futures::TryStreamExt;

/// A store in memory, or in the [bucket] if there is one.
fn memory(name: &str) -> Store {
    let in_memory = || format!("memory://{name}/some/prefix");
    let url = bucket::fresh_url().unwrap_or_else(in_memory);
    Store::open(&url, &Options::default()).unwrap()
}

fn buffers<const N: usize>(parts: [&'static str; N]) -> Vec<Bytes> {
    parts.map(Bytes::from).to_vec()
}

async fn listed(store: &Store, prefix: &str) -> Vec<Meta> {
    let mut all: Vec<Meta> = store.list(prefix).await.unwrap().try_collect().await.unwrap();
    all.sort_by(|a, b| a.path.cmp(&b.path));
    all
}

async fn names(store: &Store, prefix: &str) -> Vec<String> {
    listed(store, prefix).await.into_iter().map(|meta| meta.path).collect()
}

/// The content of an object, or nothing if it is missing.
async fn content(store: &Store, path: &str) -> Option<Bytes> {
    match store.get(path).await {
        Ok(object) => Some(object.bytes),
        Err(Error::NotFound { what: Noun::Object, .. }) => None,
        Err(error) => panic!("{path}: {error}"),
    }
}
