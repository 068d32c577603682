//! Samples written without any code of the sinks, as other programs lay them out.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use chunkyard_array::{ArraySpec, Attributes, GroupSpec, Sharding};
use chunkyard_engine::repo::{self, CommitOptions, Repository};
use serde_json::{Value, json};

use super::formats::twice;
use super::naive::{self, Naive};
use super::sample::Sample;
use super::support::{PATH, Yard, options};

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

/// The same in shards, each of two chunks of the sample along each axis.
pub(crate) async fn write_shards(yard: &Yard, name: &str, sample: &Sample) {
    let sharding = Sharding::new(&twice(sample.spec.chunk_shape().unwrap()));
    write_zarr3(yard, name, &sample.spec.sharded(&sharding).unwrap(), &sample.array).await;
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

pub(crate) async fn write_zarr2(yard: &Yard, name: &str, sample: &Sample) {
    let store = yard.store(name);
    let zarray = serde_json::to_vec(&zarray(sample).unwrap()).unwrap();
    let mut attributes = sample.spec.attributes().clone();
    if let Some(names) = sample.spec.dimension_names() {
        attributes.insert("_ARRAY_DIMENSIONS".into(), json!(names));
    }
    let zattrs = serde_json::to_vec(&attributes).unwrap();
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
