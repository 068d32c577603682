//! The three movements, once each, there and back.

use std::sync::Arc;

use chunkyard_array::{ArraySpec, Region, codec};
use chunkyard_engine::format::{CreateOptions, OpenOptions, Place, Reader, Source};
use chunkyard_engine::open::{format_named, open};
use chunkyard_engine::pipeline::{Movement, Outcome, Plan, RunOptions, Wishes, run};
use chunkyard_engine::repo::{self, CommitOptions, Repository};
use serde_json::json;

const SHAPE: [u64; 3] = [37, 41, 29];

fn values() -> Vec<u8> {
    (0..37 * 41 * 29u32).flat_map(|n| (n / 7).to_le_bytes()).collect()
}

async fn sample(url: &str) -> Arc<dyn Source> {
    let repo =
        Repository::create(url, repo::OpenOptions::default(), repo::CreateOptions::default())
            .await
            .unwrap();
    let session = repo.writable_session("main").await.unwrap();
    let attributes = json!({"units": "K", "nested": {"a": [1, 2.5, null]}});
    let spec = ArraySpec::builder(&SHAPE, &[10, 10, 10], "uint32")
        .attributes(attributes.as_object().unwrap().clone())
        .dimension_names(["z", "y", "x"])
        .build()
        .unwrap();
    let array = session.create_array("/group/t", spec).await.unwrap();
    array.write_region(&Region::whole(&SHAPE), values().into()).await.unwrap();
    session.commit(CommitOptions::message("sample")).await.unwrap();
    open(url, &OpenOptions::default()).await.unwrap().source
}

async fn convert(
    source: &Arc<dyn Source>,
    target: &str,
    to: &str,
    wishes: &Wishes,
) -> (Plan, Outcome) {
    let format = format_named(to).unwrap();
    let plan = Plan::new(&**source, wishes, format, "").unwrap();
    let place = Place::new(target, &Default::default()).unwrap();
    let options = CreateOptions { plan: plan.name.clone(), ..CreateOptions::default() };
    let sink = format.create(&place, plan.dataset.clone(), options).await.unwrap();
    let options = RunOptions { verify: true, ..RunOptions::default() };
    let outcome = run(source, sink, &plan, &options).await.unwrap();
    (plan, outcome)
}

async fn read(url: &str) -> Vec<u8> {
    let source = open(url, &OpenOptions::default()).await.unwrap().source;
    let spec = &source.dataset().array("/group/t").unwrap().spec;
    assert_eq!(spec.attributes()["nested"], json!({"a": [1, 2.5, null]}));
    let reader = Reader::new(&source, "/group/t").unwrap();
    reader.read_region(&Region::whole(&SHAPE)).await.unwrap().to_vec()
}

async fn there_and_back(root: &str) {
    let source = sample(&format!("{root}/source")).await;
    let (a, b, c) = (format!("{root}/a.zarr"), format!("{root}/b.zarr"), format!("{root}/c"));
    let (plan, outcome) = convert(&source, &a, "zarr3", &Wishes::default()).await;
    assert_eq!(plan.arrays[0].movement, Movement::Copy);
    assert_eq!(outcome.chunks, 4 * 5 * 3);
    assert_eq!(read(&a).await, values());

    let sharded = Wishes {
        chunks: Some(vec![8, 8, 8]),
        shards: Some(Some(vec![16, 16, 32])),
        codec: Some("blosc:lz4:5:shuffle".into()),
        ..Wishes::default()
    };
    let source = open(&a, &OpenOptions::default()).await.unwrap().source;
    let (plan, _) = convert(&source, &b, "zarr3", &sharded).await;
    assert_eq!(plan.arrays[0].movement, Movement::Regrid);
    assert_eq!(read(&b).await, values());

    let source = open(&b, &OpenOptions::default()).await.unwrap().source;
    let wishes = Wishes { codec: Some("zstd:3+crc32c".into()), ..Wishes::default() };
    let (plan, outcome) = convert(&source, &c, "repo", &wishes).await;
    assert_eq!(plan.arrays[0].movement, Movement::Transcode);
    assert!(outcome.published.snapshot.is_some());
    assert_eq!(read(&c).await, values());
    let dtype = codec::parse_shorthand(
        "zstd",
        &Reader::new(&source, "/group/t").unwrap().codecs().whole().dtype().clone(),
    );
    assert!(dtype.is_ok());
}

#[tokio::test]
async fn arrays_go_round_all_formats_in_memory() {
    there_and_back("memory://convert-basics").await;
}

#[tokio::test]
async fn arrays_go_round_all_formats_on_disk() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().to_str().unwrap();
    there_and_back(root).await;
    let mut left: Vec<_> = std::fs::read_dir(root)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    left.sort();
    assert_eq!(left, ["a.zarr", "b.zarr", "c", "source"]);
}
