//! HDF5 files on any store, by reference and by copy.

use std::sync::Arc;

use bytes::Bytes;
use chunkyard_array::{ElementsBuf, Region};
use chunkyard_engine::format::{CreateOptions, OpenOptions, Place, Reader, Source};
use chunkyard_engine::open::{format_named, open};
use chunkyard_engine::pipeline::{Plan, RunOptions, Wishes, link, run};
use chunkyard_engine::store::{Options, Store};
use chunkyard_engine::{Error, Meter};

const FILES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/hdf5");

/// A golden file in memory, which is a store like a bucket.
async fn in_memory(store: &str, file: &str) -> String {
    let bytes = Bytes::from(std::fs::read(format!("{FILES}/{file}")).unwrap());
    let url = format!("memory://{store}");
    Store::open(&url, &Options::default()).unwrap().put(file, vec![bytes]).await.unwrap();
    format!("{url}/{file}")
}

async fn source(url: &str, allowed: &str) -> Arc<dyn Source> {
    let options = OpenOptions { allowed: vec![allowed.to_owned()], ..OpenOptions::default() };
    open(url, &options).await.unwrap().source
}

async fn elements(source: &Arc<dyn Source>, path: &str) -> ElementsBuf {
    let region = Region::whole(source.dataset().array(path).unwrap().spec.shape());
    Reader::new(source, path).unwrap().read_elements(&region).await.unwrap()
}

async fn assert_same(found: &Arc<dyn Source>, expected: &Arc<dyn Source>) {
    let paths = |source: &Arc<dyn Source>| -> Vec<String> {
        source.dataset().nodes.keys().cloned().collect()
    };
    assert_eq!(paths(found), paths(expected));
    for (path, array) in expected.dataset().arrays() {
        let other = &found.dataset().array(path).unwrap().spec;
        assert_eq!(other.attributes(), array.spec.attributes(), "{path}");
        assert_eq!(other.dimension_names(), array.spec.dimension_names(), "{path}");
        assert_eq!(elements(found, path).await, elements(expected, path).await, "{path}");
    }
}

#[tokio::test]
async fn a_netcdf_file_in_a_bucket_is_linked_without_its_data() {
    let file = in_memory("hdf5-linked", "netcdf.nc").await;
    let netcdf = source(&file, "").await;
    let place = Place::new("memory://hdf5-linked/repo", &Options::default()).unwrap();
    let options = CreateOptions { message: Some("link".into()), ..CreateOptions::default() };
    let meter = Meter::default();
    let from = Place::new(&file, &Options::default()).unwrap();
    let wishes = Wishes::default();
    let linked = link(&netcdf, &from, &place, &wishes, "", options, &meter).await.unwrap();
    assert_eq!(linked.arrays, 9);
    assert_eq!(linked.copied.0, 1, "only the strings");
    let repo = source("memory://hdf5-linked/repo", "memory://hdf5-linked").await;
    assert_same(&repo, &netcdf).await;
}

#[tokio::test]
async fn files_are_converted_and_resharded() {
    let file = in_memory("hdf5-converted", "user_block.h5").await;
    let wishes = Wishes { lossy: ["/virtual".to_owned()].into(), ..Wishes::default() };
    let (format, hdf5) = (format_named("zarr3").unwrap(), source(&file, "").await);
    let refused = Plan::new(&hdf5, &Wishes::default(), format, "").await.unwrap_err();
    assert!(
        matches!(&refused, Error::Unsupported { what } if what.contains("/virtual")),
        "{refused}"
    );
    let plan = Plan::new(&hdf5, &wishes, format, "").await.unwrap();
    let place = Place::new("memory://hdf5-converted/out.zarr", &Options::default()).unwrap();
    let sink = format.create(&place, plan.dataset.clone(), CreateOptions::default()).await.unwrap();
    run(&hdf5, sink, &plan, &RunOptions { verify: true, ..RunOptions::default() }).await.unwrap();
    assert_same(&source("memory://hdf5-converted/out.zarr", "").await, &hdf5).await;
}

#[tokio::test]
async fn a_file_that_changes_while_it_is_read_is_an_error() {
    let file = in_memory("hdf5-changed", "netcdf.nc").await;
    let netcdf = source(&file, "").await;
    in_memory("hdf5-changed", "netcdf.nc").await;
    let region = Region::whole(&[5]);
    let error = Reader::new(&netcdf, "/time").unwrap().read_region(&region).await.unwrap_err();
    assert!(matches!(error, Error::VirtualSourceChanged { .. }), "{error}");
}

#[tokio::test]
async fn only_stored_chunks_of_a_file_are_visited() {
    for index in ["earliest", "latest"] {
        let root = format!("memory://hdf5-sparse-{index}");
        let file = in_memory(&format!("hdf5-sparse-{index}"), &format!("sparse_{index}.h5")).await;
        let hdf5 = source(&file, "").await;
        let format = format_named("zarr3").unwrap();
        for (number, chunks) in [vec![2, 2], vec![3, 5]].into_iter().enumerate() {
            let wishes = Wishes { chunks: Some(chunks), ..Wishes::default() };
            let plan = Plan::new(&hdf5, &wishes, format, "").await.unwrap();
            let target = format!("{root}/{number}.zarr");
            let place = Place::new(&target, &Options::default()).unwrap();
            let sink = format.create(&place, plan.dataset.clone(), CreateOptions::default()).await;
            let options = RunOptions { verify: true, ..RunOptions::default() };
            let done = run(&hdf5, sink.unwrap(), &plan, &options).await.unwrap();
            assert_eq!(done.packs, 3, "{target}");
            let reader = Reader::new(&source(&target, "").await, "/t").unwrap();
            let last = (1 << 20) - 2;
            for (first, origin) in [(1, [0, 0]), (5, [10, 154]), (9, [last, last])] {
                let region = Region::new(origin, [2, 2]).unwrap();
                let found = reader.read_region(&region).await.unwrap().to_vec();
                let expected: Vec<u8> = (first..first + 4).flat_map(i32::to_le_bytes).collect();
                assert_eq!(found, expected, "{target} {region}");
            }
        }
    }
}
