//! A real DVID server, filled by `testdata/dvid/make/fill_dvid.py`. These tests run below `with-dvid-server` (`make test-dvid`), which
//! says where it is.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::sync::Arc;

use bytes::Bytes;
use chunkyard_array::Region;
use chunkyard_array::codec::label_block::Block;
use chunkyard_format::dvid_http::{DvidHttp, DvidSource, repos_info};
use chunkyard_format::{
    Format, Level, Meter, Occupied, OpenOptions, Place, Probe, Reader, Source, Survey, check,
};
use chunkyard_store::{ChunkRef, ErrorKind, Options, Result};
use futures::TryStreamExt;

fn variable(name: &str) -> String {
    let name = format!("CHUNKYARD_TEST_DVID{name}");
    let missing = |_| panic!("{name} is not set: run `make test-dvid`");
    std::env::var(&name).unwrap_or_else(missing)
}

fn url(version: &str, data: &str) -> String {
    format!("dvid+http://{}/{version}/{data}", variable(""))
}

async fn open(version: &str, data: &str) -> Result<Arc<DvidSource>> {
    DvidSource::open(&url(version, data), &Options::default()).await.map(Arc::new)
}

fn numbers(text: &str) -> Vec<u64> {
    text.split(',').map(|n| n.parse().unwrap()).collect()
}

/// The answer of the server about `seg` to a request that the source has no use for.
async fn ask(source: &DvidSource, path: &[&str], query: &str) -> Bytes {
    let path = [&["api", "node", &source.node().uuid, "seg"], path].concat();
    let client = source.client();
    client.get(&client.url(&path, query), None, 1 << 30).await.unwrap()
}

/// Blocks by x, y, z, as the server was given them.
fn volume() -> BTreeMap<[i32; 3], Vec<u8>> {
    let path =
        concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/dvid/labelmap/edits/volume.blocks");
    let bytes = std::fs::read(path).unwrap();
    let (mut blocks, mut rest) = (BTreeMap::new(), &bytes[..]);
    while !rest.is_empty() {
        let number = |at: usize| i32::from_le_bytes(rest[at..at + 4].try_into().unwrap());
        let end = 16 + number(12) as usize;
        blocks.insert([number(0), number(4), number(8)], rest[16..end].to_vec());
        rest = &rest[end..];
    }
    blocks
}

fn voxels(packed: &[u8]) -> Vec<u8> {
    let mut plain = Vec::new();
    flate2::read::MultiGzDecoder::new(packed).read_to_end(&mut plain).unwrap();
    let mut voxels = vec![[0u8; 8]; 64 * 64 * 64];
    Block::parse(&plain).unwrap().decode_into(&mut voxels).unwrap();
    voxels.concat()
}

#[tokio::test]
#[ignore = "needs a DVID server"]
async fn every_scale_is_what_the_server_says() {
    let source = open(&variable("_ROOT"), "seg").await.unwrap();
    let arrays: Vec<_> = source.dataset().arrays().map(|(path, _)| path.to_owned()).collect();
    assert_eq!(arrays, ["/s0", "/s1", "/s2", "/s3"]);
    for (scale, path) in arrays.iter().enumerate() {
        let shape = source.dataset().array(path).unwrap().spec.shape().to_vec();
        let reader = Reader::new(&(source.clone() as Arc<dyn Source>), path).unwrap();
        let ours = reader.read_region(&Region::whole(&shape)).await.unwrap();
        // By a way of its own: the server expands the blocks.
        let size = format!("{}_{}_{}", shape[2], shape[1], shape[0]);
        let query = format!("supervoxels=true&scale={scale}");
        let theirs = ask(&source, &["raw", "0_1_2", &size, "0_0_0"], &query).await;
        assert_eq!(ours.len(), theirs.len(), "{path}");
        assert!(ours[..] == theirs[..], "{path} differs");
        assert!(ours.iter().any(|byte| *byte != 0));
    }
    let report =
        check(&(source as Arc<dyn Source>), Level::Bytes, &Meter::default()).await.unwrap();
    assert!(report.findings.is_empty(), "{:?}", report.findings);
    assert!(report.checked.chunks > 50, "{} chunks", report.checked.chunks);
}

#[tokio::test]
#[ignore = "needs a DVID server"]
async fn stored_blocks_are_found_without_asking_for_each() {
    let source = open(&variable("_ROOT"), "sparse").await.unwrap();
    let expected = [[-3, 0, -1], [-1, -2, -3], [2, 1, 0], [90, 3, 17]];
    let node = source.dataset().array("/s0").unwrap();
    assert_eq!(node.spec.shape(), [1344, 384, 6016]);
    let survey = Survey::of(source.dataset());
    let space = survey.space("/s0").unwrap();
    assert_eq!(space.origin, Some(vec![-192, -128, -192]));
    assert_eq!(space.scale(), Some(vec![8.0; 3]));
    assert_eq!(survey.space("/s1").unwrap().origin, Some(vec![-128, -64, -128]));

    let whole = Region::whole(node.spec.shape());
    let found: Vec<_> = source.chunks("/s0", &whole).try_collect().await.unwrap();
    let block = |chunk: &[u64]| [chunk[2] as i32 - 3, chunk[1] as i32 - 2, chunk[0] as i32 - 3];
    let found: BTreeMap<[i32; 3], ChunkRef> =
        found.into_iter().map(|(chunk, at)| (block(&chunk), at)).collect();
    assert_eq!(found.keys().copied().collect::<BTreeSet<_>>(), expected.into());
    let given: Vec<Vec<u8>> = volume().into_values().collect();
    // As they were put, one after the other in the order of the file.
    for at in found.values() {
        let ChunkRef::Inline(bytes) = at else { panic!("{at:?}") };
        assert!(given.iter().any(|block| voxels(block) == voxels(bytes)));
    }

    let Occupied::Cells { grid, cells } = source.occupied("/s0").unwrap() else { panic!("all") };
    let cells: BTreeSet<Vec<u64>> = cells.try_collect().await.unwrap();
    let chunks = expected.map(|[x, y, z]| [z + 3, y + 2, x + 3].map(|n| n as u64 / 8).to_vec());
    assert_eq!(cells, chunks.into());
    assert_eq!(grid.chunk_shape(), [512; 3]);
    // No lower scale was made: there is nothing, and that is known.
    let shape = source.dataset().array("/s1").unwrap().spec.shape().to_vec();
    let whole = Region::whole(&shape);
    assert!(source.chunks("/s1", &whole).try_next().await.unwrap().is_none());
}

#[tokio::test]
#[ignore = "needs a DVID server"]
async fn bodies_and_mapping_follow_the_edits() {
    let root = open(&variable("_ROOT"), "seg").await.unwrap();
    assert!(root.mapping().try_next().await.unwrap().is_none());
    let child = open(&variable("_CHILD"), "seg").await.unwrap();
    let (merged, cleaved) = (numbers(&variable("_MERGED")), numbers(&variable("_CLEAVED")));
    let mapping: BTreeMap<u64, u64> = child.mapping().try_collect().await.unwrap();
    assert_eq!(mapping.get(&merged[1]), Some(&merged[0]));
    assert_eq!(mapping.get(&cleaved[1]), Some(&cleaved[2]));
    assert_eq!(mapping.get(&cleaved[2]), Some(&0), "the id of the new body is no supervoxel");

    let listed: Vec<(u64, Option<u64>)> = child.labels(0, true).try_collect().await.unwrap();
    let labels: Vec<u64> = listed.iter().map(|(label, _)| *label).collect();
    assert!(labels.contains(&cleaved[2]) && !labels.contains(&merged[1]));
    let without: Vec<(u64, Option<u64>)> = child.labels(0, false).try_collect().await.unwrap();
    assert_eq!(without.iter().map(|(label, _)| *label).collect::<Vec<_>>(), labels);
    let behind: Vec<_> = child.labels(labels[3] + 1, false).try_collect::<Vec<_>>().await.unwrap();
    assert_eq!(behind.len(), labels.len() - 4);
    let sizes = child.sizes(&labels, false).await.unwrap();
    assert_eq!(sizes, listed.iter().map(|(_, voxels)| voxels.unwrap()).collect::<Vec<_>>());

    // The server unpacks the indices itself for this answer; one label is not there.
    let mut wanted = labels.clone();
    wanted.push(999_999_999_999);
    let found: Vec<_> = child.indices(wanted.clone()).unwrap().try_collect().await.unwrap();
    assert_eq!(found.iter().map(|(label, _)| *label).collect::<Vec<_>>(), wanted);
    for (label, index) in &found {
        match index {
            None => assert_eq!(*label, 999_999_999_999),
            Some(index) => {
                let theirs = ask(&child, &["index", &label.to_string()], "").await;
                assert_eq!(index.len(), theirs.len(), "index of {label}");
            }
        }
    }
}

#[tokio::test]
#[ignore = "needs a DVID server"]
async fn versions_are_found_by_beginnings_and_branches() {
    let (root, child) = (variable("_ROOT"), variable("_CHILD"));
    let by_beginning = open(&root[..10], "seg").await.unwrap();
    assert_eq!(by_beginning.node().uuid, root);
    assert!(by_beginning.identity().ends_with(&format!("{root} locked")));
    assert!(by_beginning.cautions().is_empty());
    let by_branch = open(&format!("{root}:work"), "seg").await.unwrap();
    assert_eq!(by_branch.node().uuid, child);
    assert!(by_branch.identity().contains("open"), "{}", by_branch.identity());
    assert!(matches!(&by_branch.cautions()[..], [caution] if caution.contains("not locked")));
    for (version, data) in
        [("ffffffff", "seg"), (&*root, "nothing"), (&*format!("{root}:no"), "seg")]
    {
        let error = open(version, data).await.unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::Store | ErrorKind::NotFound), "{error}");
    }
    let repos = repos_info(by_branch.client()).await.unwrap();
    assert_eq!(repos[&root].data["notes"].type_name(), "keyvalue");
    assert!(repos[&root].version(&root).unwrap().locked);
    let place = Place::new(&url(&root, "seg"), &Options::default()).unwrap();
    assert!(matches!(DvidHttp.probe(&place).await.unwrap(), Probe::Yes(_)));
    DvidHttp.open(&place, &OpenOptions::default()).await.unwrap();
}

#[tokio::test]
#[ignore = "needs a DVID server"]
async fn what_cannot_be_read_is_refused_with_the_reason() {
    let root = variable("_ROOT");
    for (data, word) in [("notes", "keyvalue"), ("packed", "LZ4")] {
        let error = open(&root, data).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
        assert!(error.to_string().contains(word), "{error}");
    }
    let empty = open(&root, "empty").await.unwrap();
    assert_eq!(empty.dataset().array("/s1").unwrap().spec.shape(), [0, 0, 0]);
    let Occupied::Cells { cells, .. } = empty.occupied("/s0").unwrap() else { panic!("all") };
    assert!(cells.try_collect::<Vec<_>>().await.unwrap().is_empty());
}

#[tokio::test]
#[ignore = "needs a DVID server"]
async fn a_block_with_two_values_is_an_error_and_never_zeros() {
    let joined = open(&variable("_JOINED"), "contested").await.unwrap();
    assert!(joined.cautions().iter().any(|caution| caution.contains("joined")));
    let reader = Reader::new(&(joined.clone() as Arc<dyn Source>), "/s0").unwrap();
    let error = reader.read_region(&Region::whole(&[64, 64, 64])).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Store, "{error}");
    let whole = Region::whole(&[64, 64, 64]);
    assert!(joined.chunks("/s0", &whole).try_next().await.is_err());
}
