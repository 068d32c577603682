//! Memory of the caller, written in any format.

use std::sync::Arc;

use bytes::Bytes;
use chunkyard_array::{ArraySpec, Region};
use chunkyard_engine::format::{CreateOptions, MemorySource, OpenOptions, Place, Reader, Source};
use chunkyard_engine::open::{format_named, open};
use chunkyard_engine::pipeline::{Plan, RunOptions, Wishes, run};
use chunkyard_engine::store::Limits;
use serde_json::json;

const SHAPE: [u64; 3] = [37, 41, 29];

fn values() -> Vec<u8> {
    (1..=37 * 41 * 29u32).flat_map(u32::to_le_bytes).collect()
}

fn spec() -> ArraySpec {
    let attributes = json!({"units": "K"});
    ArraySpec::builder(&SHAPE, &[5, 5, 5], "uint32")
        .attributes(attributes.as_object().unwrap().clone())
        .build()
        .unwrap()
}

/// Writes the values as wished and reads everything back, padding included.
async fn written(target: &str, to: &str, wishes: Wishes, options: &RunOptions) -> Vec<u8> {
    let source: Arc<dyn Source> =
        Arc::new(MemorySource::new("/a", &spec(), values().into()).unwrap());
    let format = format_named(to).unwrap();
    let plan = Plan::new(&source, &wishes, format, "").await.unwrap();
    let place = Place::new(target, &Default::default()).unwrap();
    let sink = format.create(&place, plan.dataset.clone(), CreateOptions::default()).await.unwrap();
    run(&source, sink, &plan, options).await.unwrap();
    let source = open(target, &OpenOptions::default()).await.unwrap().source;
    let spec = &source.dataset().array("/a").unwrap().spec;
    assert_eq!(spec.attributes()["units"], "K");
    let reader = Reader::new(&source, "/a").unwrap();
    reader.read_region(&Region::whole(spec.shape())).await.unwrap().to_vec()
}

fn chunks(shape: [u64; 3]) -> Wishes {
    Wishes { chunks: Some(shape.to_vec()), codec: Some("zstd:1".into()), ..Wishes::default() }
}

#[tokio::test]
async fn memory_becomes_chunks_shards_and_commits() {
    let root = "memory://convert-from-memory";
    let verify = RunOptions { verify: true, ..RunOptions::default() };
    let plain = written(&format!("{root}/a.zarr"), "zarr3", chunks([10, 41, 7]), &verify).await;
    assert_eq!(plain, values());
    let shards = Wishes { shards: Some(Some(vec![16, 16, 16])), ..chunks([8, 8, 8]) };
    let sharded = written(&format!("{root}/b.zarr"), "zarr3", shards, &verify).await;
    assert_eq!(sharded, values());
    let repo = written(&format!("{root}/c"), "repo", chunks([10, 10, 10]), &verify).await;
    assert_eq!(repo, values());
    let one = written(&format!("{root}/d.zarr"), "zarr3", chunks(SHAPE), &verify).await;
    assert_eq!(one, values());
}

#[tokio::test]
async fn a_region_of_memory_is_written_and_nothing_beside_it() {
    let target = "memory://convert-region-of-memory/a.zarr";
    let wishes = Wishes { region: Some("3:30,0:41,2:28".into()), ..chunks([10, 10, 10]) };
    let found = written(target, "zarr3", wishes, &RunOptions::default()).await;
    let whole = values();
    let row = |z: usize, y: usize| {
        let at = (z * 41 + y) * 29;
        &whole[(at + 2) * 4..(at + 28) * 4]
    };
    let expected: Vec<u8> =
        (3..30).flat_map(|z| (0..41).flat_map(move |y| row(z, y).to_vec())).collect();
    assert_eq!(found, expected);
    let source = open(target, &OpenOptions::default()).await.unwrap().source;
    let reader = Reader::new(&source, "/a").unwrap();
    let edge = reader.fetch_chunks(&[vec![2, 4, 2]]).await.unwrap().remove(0).unwrap();
    let mut chunk = vec![0; 4000];
    reader.codecs().whole().decode_into(&edge, &mut chunk).unwrap();
    // Seven planes of one row of six elements are in the array; the rest is padding.
    let inside = |at: usize| at / 100 < 7 && at / 10 % 10 < 1 && at % 10 < 6;
    let elements = chunk.chunks_exact(4).enumerate();
    assert!(elements.into_iter().all(|(at, element)| (element != [0; 4]) == inside(at)));
}

#[tokio::test]
async fn memory_may_be_larger_than_the_limit_of_bytes_in_flight() {
    let source = vec![7; 64 << 20];
    let spec = ArraySpec::builder(&[64, 1 << 20], &[1, 1 << 20], "uint8").build().unwrap();
    let source: Arc<dyn Source> = Arc::new(MemorySource::new("/a", &spec, source.into()).unwrap());
    let format = format_named("zarr3").unwrap();
    let wishes = Wishes { chunks: Some(vec![1, 1 << 20]), ..Wishes::default() };
    let plan = Plan::new(&source, &wishes, format, "").await.unwrap();
    let place = Place::new("memory://convert-much-memory/a.zarr", &Default::default()).unwrap();
    let sink = format.create(&place, plan.dataset.clone(), CreateOptions::default()).await.unwrap();
    let limits = Limits { bytes_in_flight: 128 << 20, ..Limits::default() };
    run(&source, sink, &plan, &RunOptions { limits, ..RunOptions::default() }).await.unwrap();
}

#[test]
fn memory_of_another_length_is_refused() {
    let short = MemorySource::new("/a", &spec(), Bytes::from_static(&[1, 2, 3]));
    assert_eq!(short.unwrap_err().kind(), chunkyard_engine::ErrorKind::Invalid);
    let text = ArraySpec::builder(&[1], &[1], "string").build().unwrap();
    let text = MemorySource::new("/a", &text, Bytes::from_static(&[1]));
    assert_eq!(text.unwrap_err().kind(), chunkyard_engine::ErrorKind::Unsupported);
}
