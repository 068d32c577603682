//! Label blocks that are rewritten without decoding their voxels, and supervoxels that become bodies.

use std::sync::Arc;

use async_trait::async_trait;
use chunkyard_array::codec::label_block::{Block, encode};
use chunkyard_array::{ArraySpec, Region};
use chunkyard_engine::ErrorKind;
use chunkyard_engine::format::{Meter, OpenOptions, Place, Reader, Source};
use chunkyard_engine::labels::{
    Author, Edit, Ids, Labelmap, Layout, Mapping, Volume, commit_edits,
};
use chunkyard_engine::open::{format_named, open};
use chunkyard_engine::pipeline::{Movement, Plan, RunOptions, Wishes, run};
use chunkyard_engine::repo::Repository;
use chunkyard_engine::store::Result;
use serde_json::{Value, json};

use super::support::{convert, try_convert};

const SHAPE: [u64; 3] = [20, 32, 40];

/// Columns of eight voxels along x; the last one is label 0.
fn label(at: usize) -> u64 {
    (at as u64 % SHAPE[2] / 8 + 1) % 5
}

struct Columns;

#[async_trait]
impl Volume for Columns {
    fn shape(&self) -> [u64; 3] {
        SHAPE
    }

    async fn read(&self, region: &Region) -> Result<Vec<u64>> {
        let row: Vec<u64> = (0..SHAPE[2] as usize).map(label).collect();
        let x = region.origin()[2] as usize..region.end()[2] as usize;
        let rows = region.shape()[0] * region.shape()[1];
        Ok((0..rows).flat_map(|_| row[x.clone()].to_vec()).collect())
    }
}

/// A labelmap in which body 1 has the supervoxels 1 and 2, and body 300 the supervoxel 4.
pub(crate) async fn labelmap(url: &str) -> Arc<dyn Source> {
    let repo = Repository::create(url, Default::default(), Default::default()).await.unwrap();
    let session = repo.writable_session("main").await.unwrap();
    let layout = Layout::new(SHAPE).with_block([16; 3]);
    let (map, _) = Labelmap::import(
        &session,
        "/seg",
        layout,
        &Columns,
        &Mapping::default(),
        &Meter::default(),
    )
    .await
    .unwrap();
    map.commit("import").await.unwrap();
    let edits =
        [Edit::Merge { target: 1, bodies: vec![2] }, Edit::Renumber { body: 4, new_body: 300 }];
    commit_edits(&repo, "main", "/seg", &edits, &Author::default(), "edits").await.unwrap();
    open(url, &OpenOptions::default()).await.unwrap().source
}

pub(crate) fn body(supervoxel: u64) -> u64 {
    match supervoxel {
        2 => 1,
        4 => 300,
        other => other,
    }
}

async fn all(source: &Arc<dyn Source>, path: &str) -> Vec<u8> {
    let reader = Reader::new(source, path).unwrap();
    let shape = reader.codecs().grid().array_shape().to_vec();
    reader.read_region(&Region::whole(&shape)).await.unwrap().to_vec()
}

async fn opened(url: &str) -> Arc<dyn Source> {
    open(url, &OpenOptions::default()).await.unwrap().source
}

fn wish(ids: Option<Ids>) -> Wishes {
    Wishes { ids, arrays: vec!["/seg/s0".into()], ..Wishes::default() }
}

#[tokio::test]
async fn supervoxels_become_bodies_by_every_movement() {
    let source = labelmap("memory://rewrite-bodies").await;
    let voxels = SHAPE.iter().product::<u64>() as usize;
    let bodies: Vec<u64> = (0..voxels).map(|at| body(label(at))).collect();
    let wide: Vec<u8> = bodies.iter().flat_map(|body| body.to_le_bytes()).collect();
    let narrow: Vec<u8> = bodies.iter().flat_map(|body| (*body as u32).to_le_bytes()).collect();
    let wished = wish(Some(Ids::Bodies));
    let cases = [
        (Movement::Rewrite, wished.clone(), &wide),
        (Movement::Rewrite, Wishes { codec: Some("label_block".into()), ..wished.clone() }, &wide),
        (Movement::Transcode, Wishes { codec: Some("zstd:1".into()), ..wished.clone() }, &wide),
        (
            Movement::Transcode,
            Wishes { dtype: Some("uint32".into()), codec: Some("zstd:1".into()), ..wished.clone() },
            &narrow,
        ),
        (Movement::Regrid, Wishes { chunks: Some(vec![8, 16, 24]), ..wished.clone() }, &wide),
    ];
    for (number, (movement, wishes, expected)) in cases.into_iter().enumerate() {
        let target = format!("memory://rewrite-bodies-{number}/out.zarr");
        let done = convert(&source, &target, "zarr3", &wishes).await;
        assert_eq!(done.movement(), movement, "{}", done.plan.arrays[0].why);
        let made = opened(&target).await;
        assert!(all(&made, "/seg/s0").await == *expected, "{number}");
    }
    // Without the wish, voxels stay what they are.
    let target = "memory://rewrite-bodies-not/out.zarr";
    assert_eq!(convert(&source, target, "zarr3", &wish(None)).await.movement(), Movement::Copy);
    assert_eq!(all(&opened(target).await, "/seg/s0").await, all(&source, "/seg/s0").await);
}

/// An array of label blocks in plain Zarr, with other codecs behind them; the first block is cut short if asked.
async fn zarr_of_blocks(url: &str, behind: Value, cut: bool) -> Arc<dyn Source> {
    let codecs = vec![json!({"name": "chunkyard.label_block"}), behind];
    let spec = ArraySpec::builder(&[16, 16, 32], &[16; 3], "uint64").codecs(codecs).build();
    let spec = spec.unwrap();
    let place = Place::new(url, &Default::default()).unwrap();
    place.directory().put("zarr.json", vec![spec.render().into()]).await.unwrap();
    let codecs = chunkyard_array::codec::Codecs::new(&spec).unwrap();
    for x in 0..2u64 {
        let voxels: Vec<u64> = (0..4096).map(|at| at % (7 + x) + 1).collect();
        let mut block = Vec::new();
        encode(&voxels, [16; 3], &mut block).unwrap();
        let mut chunk = codecs.encode_label_block(&block).unwrap();
        assert_eq!(codecs.label_block(&chunk).unwrap(), block);
        if cut && x == 0 {
            chunk.truncate(chunk.len() / 2);
        }
        place.directory().put(&format!("c/0/0/{x}"), vec![chunk.into()]).await.unwrap();
    }
    opened(url).await
}

#[tokio::test]
async fn blocks_take_another_compression_without_being_decoded() {
    let behind = [
        json!({"name": "gzip", "configuration": {"level": 1}}),
        json!({"name": "zstd", "configuration": {"level": 1, "checksum": true}}),
        json!("crc32c"),
    ];
    for (number, behind) in behind.into_iter().enumerate() {
        let source = zarr_of_blocks(&format!("memory://rewrite-{number}"), behind, false).await;
        let wishes = Wishes { codec: Some("label_block+gzip:9".into()), ..Wishes::default() };
        let target = format!("memory://rewrite-{number}-to/out.zarr");
        let done = convert(&source, &target, "zarr3", &wishes).await;
        assert_eq!(done.movement(), Movement::Rewrite, "{}", done.plan.arrays[0].why);
        assert_eq!(all(&opened(&target).await, "/").await, all(&source, "/").await);
    }
}

#[tokio::test]
async fn a_damaged_block_is_named_and_nothing_appears() {
    let gzip = json!({"name": "gzip", "configuration": {"level": 1}});
    let source = zarr_of_blocks("memory://rewrite-damage", gzip, true).await;
    let wishes = Wishes { codec: Some("label_block".into()), ..Wishes::default() };
    let target = "memory://rewrite-damage-to/out.zarr";
    let error = try_convert(&source, target, "zarr3", &wishes).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    assert!(
        error.to_string().contains("0, 0, 0") || error.to_string().contains("0/0/0"),
        "{error}"
    );
    open(target, &OpenOptions::default()).await.unwrap_err();
}

#[tokio::test]
async fn bodies_of_a_source_without_any_are_refused() {
    let plain = json!({"name": "zstd", "configuration": {"level": 1, "checksum": false}});
    let source = zarr_of_blocks("memory://rewrite-no-bodies", plain, false).await;
    let wishes = Wishes { ids: Some(Ids::Bodies), ..Wishes::default() };
    let target = "memory://rewrite-no-bodies-to/out.zarr";
    let error = try_convert(&source, target, "zarr3", &wishes).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
}

#[tokio::test]
async fn bodies_that_vanish_leave_no_chunk() {
    let url = "memory://rewrite-vanished";
    let repo = Repository::create(url, Default::default(), Default::default()).await.unwrap();
    let session = repo.writable_session("main").await.unwrap();
    let layout = Layout::new([16, 16, 16]).with_block([16; 3]);
    let map = Labelmap::create(&session, "/seg", layout).await.unwrap();
    let mut block = Vec::new();
    encode(&[9u64; 4096], [16; 3], &mut block).unwrap();
    assert_eq!(Block::parse(&block).unwrap().solid_label(), Some(9));
    let chunk = map.array(0).unwrap().reader().codecs().whole().encode_label_block(&block).unwrap();
    session.set_chunk("/seg/s0", &[0, 0, 0], chunk.into()).await.unwrap();
    let batch = arrow_array::RecordBatch::try_from_iter([
        ("supervoxel", Arc::new(arrow_array::UInt64Array::from(vec![9])) as arrow_array::ArrayRef),
        ("body", Arc::new(arrow_array::UInt64Array::from(vec![0])) as arrow_array::ArrayRef),
    ])
    .unwrap();
    map.table("mapping").unwrap().upsert(batch).await.unwrap();
    map.commit("a retired supervoxel").await.unwrap();
    let source = opened(url).await;
    let target = "memory://rewrite-vanished-to/out.zarr";
    let done = convert(&source, target, "zarr3", &wish(Some(Ids::Bodies))).await;
    assert_eq!((done.movement(), done.outcome.chunks), (Movement::Rewrite, 0));
}

#[tokio::test]
async fn damaged_chunks_are_left_out_and_listed_if_asked_for() {
    let gzip = json!({"name": "gzip", "configuration": {"level": 1}});
    let source = zarr_of_blocks("memory://rewrite-left-out", gzip, true).await;
    let ways = [
        (Movement::Copy, Wishes::default()),
        (Movement::Rewrite, Wishes { codec: Some("label_block".into()), ..Wishes::default() }),
        (Movement::Transcode, Wishes { codec: Some("zstd:1".into()), ..Wishes::default() }),
        (Movement::Regrid, Wishes { chunks: Some(vec![8, 16, 16]), ..Wishes::default() }),
    ];
    for (movement, wishes) in ways {
        let format = format_named("zarr3").unwrap();
        let plan = Plan::new(&source, &wishes, format, "").await.unwrap();
        assert_eq!(plan.arrays[0].movement, movement);
        let target = format!("memory://rewrite-left-out-{movement}/out.zarr");
        let place = Place::new(&target, &Default::default()).unwrap();
        let sink = format.create(&place, plan.dataset.clone(), Default::default()).await.unwrap();
        let options = RunOptions { skip_corrupt: true, ..RunOptions::default() };
        let done = run(&source, sink, &plan, &options).await;
        if movement == Movement::Regrid {
            assert_eq!(done.unwrap_err().kind(), ErrorKind::Unsupported);
            continue;
        }
        let done = done.unwrap();
        let left: Vec<_> =
            done.damaged.iter().map(|one| (one.array.as_str(), &one.chunk)).collect();
        assert_eq!(left, [("/", &vec![0, 0, 0])], "{movement}");
        assert_eq!(done.chunks, 1);
        let made = all(&opened(&target).await, "/").await;
        let first = u64::from_le_bytes(made[..8].try_into().unwrap());
        let other = u64::from_le_bytes(made[16 * 8..17 * 8].try_into().unwrap());
        assert_eq!((first, other), (0, 1), "{movement}");
    }
}
