//! Chunks large enough to have memory of their own while they are made, over grids with no common
//! edges.

use std::sync::Arc;

use chunkyard_array::{ArraySpec, Region};
use chunkyard_engine::format::{CreateOptions, MemorySource, OpenOptions, Place, Reader, Source};
use chunkyard_engine::open::{format_named, open};
use chunkyard_engine::pipeline::{Movement, Plan, RunOptions, Wishes, run};

const SHAPE: [u64; 3] = [70, 130, 150];

fn values() -> Vec<u8> {
    (1..=70 * 130 * 150u32).flat_map(u32::to_le_bytes).collect()
}

async fn convert(source: &Arc<dyn Source>, target: &str, wishes: &Wishes) -> Arc<dyn Source> {
    let format = format_named("zarr3").unwrap();
    let plan = Plan::new(source, wishes, format, "").await.unwrap();
    assert_eq!(plan.arrays[0].movement, Movement::Regrid);
    let place = Place::new(target, &Default::default()).unwrap();
    let sink = format.create(&place, plan.dataset.clone(), CreateOptions::default()).await.unwrap();
    run(source, sink, &plan, &RunOptions::default()).await.unwrap();
    open(target, &OpenOptions::default()).await.unwrap().source
}

async fn read(source: &Arc<dyn Source>, region: &Region) -> Vec<u8> {
    let reader = Reader::new(source, "/a").unwrap();
    reader.read_region(region).await.unwrap().to_vec()
}

#[tokio::test]
async fn large_chunks_are_cut_anew_with_all_codecs() {
    let spec = ArraySpec::builder(&SHAPE, &SHAPE, "uint32").build().unwrap();
    let memory = MemorySource::new("/a", &spec, values().into()).unwrap();
    let memory: Arc<dyn Source> = Arc::new(memory);
    let whole = Region::whole(&SHAPE);
    for (number, codec) in ["none", "zstd:1", "blosc:zstd:2:shuffle", "gzip:1"].iter().enumerate() {
        let root = format!("memory://convert-regrid-{number}");
        let (a, b, c) = (format!("{root}/a"), format!("{root}/b"), format!("{root}/c"));
        let codec = Some((*codec).to_owned());
        let plain = Wishes { chunks: Some(vec![32, 64, 64]), codec, ..Wishes::default() };
        let source = convert(&memory, &a, &plain).await;
        assert_eq!(read(&source, &whole).await, values());
        let shards = Some(Some(vec![96, 48, 160]));
        let other = Wishes { chunks: Some(vec![48, 48, 80]), shards, ..Wishes::default() };
        let sharded = convert(&source, &b, &other).await;
        assert_eq!(read(&sharded, &whole).await, values());
        let region = Some("5:70,1:129,30:150".to_owned());
        let part = Wishes { chunks: Some(vec![65, 30, 60]), region, ..Wishes::default() };
        let cut = convert(&sharded, &c, &Wishes { shards: Some(None), ..part }).await;
        let within = Region::parse("5:70,1:129,30:150", &SHAPE).unwrap();
        let expected = read(&source, &within).await;
        assert_eq!(read(&cut, &Region::whole(within.shape())).await, expected);
    }
}

/// A row of the target lies across a whole layer of the source. The layer exceeds the limit of
/// memory; the row does not.
#[tokio::test]
async fn a_layer_that_does_not_fit_is_read_batch_by_batch() {
    const SHAPE: [u64; 3] = [64, 1024, 2048];
    let spec = ArraySpec::builder(&SHAPE, &SHAPE, "uint8").build().unwrap();
    let mut values = vec![0; 1 << 27];
    values.iter_mut().step_by(99_991).enumerate().for_each(|(at, value)| *value = at as u8 | 1);
    let memory = MemorySource::new("/a", &spec, values.clone().into()).unwrap();
    let memory: Arc<dyn Source> = Arc::new(memory);
    let codec = Some("none".to_owned());
    let cubes =
        Wishes { chunks: Some(vec![64, 64, 64]), codec: codec.clone(), ..Wishes::default() };
    let source = convert(&memory, "memory://convert-layer/cubes", &cubes).await;

    let format = format_named("zarr3").unwrap();
    let rows = Wishes { chunks: Some(vec![1, 1024, 2048]), codec, ..Wishes::default() };
    let plan = Plan::new(&source, &rows, format, "").await.unwrap();
    let target = "memory://convert-layer/rows";
    let place = Place::new(target, &Default::default()).unwrap();
    let sink = format.create(&place, plan.dataset.clone(), CreateOptions::default()).await.unwrap();
    let mut how = RunOptions::default();
    how.limits.bytes_in_flight = 180 << 20;
    run(&source, sink, &plan, &how).await.unwrap();
    let target = open(target, &OpenOptions::default()).await.unwrap().source;
    assert!(read(&target, &Region::whole(&SHAPE)).await == values);
}
