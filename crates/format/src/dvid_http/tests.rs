//! What DVID answered, and documents that it never wrote.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use chunkyard_array::Region;
use chunkyard_store::{ChunkRef, Error, ErrorKind, Options, Result};
use chunkyard_test_support::dvid::Recorded;
use chunkyard_test_support::web::{Reply, Request, WebServer};
use futures::TryStreamExt;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::info::Info;
use super::level::Level;
use super::repos::parse_repos;
use super::{DvidHttp, DvidSource};
use crate::{
    Format, Level as Depth, Meter, Occupied, OpenOptions, Place, Probe, Reader, Source, Survey,
    Version, check,
};

/// A server that answers as DVID did, and the labelmap in it.
async fn open(name: &str) -> (Recorded, WebServer, Arc<dyn Source>) {
    let recorded = Recorded::open(name);
    let answers = recorded.clone();
    let server = WebServer::start(move |_, request| answers.reply(request));
    let url = format!("dvid+http://{}/{}/seg", server.address(), &recorded.uuid[..8]);
    let source = DvidSource::open(&url, &Options::default()).await.unwrap();
    server.take_requests();
    (recorded, server, Arc::new(source))
}

fn typed(source: &Arc<dyn Source>) -> &DvidSource {
    (&**source as &dyn std::any::Any).downcast_ref().unwrap()
}

#[tokio::test]
async fn supervoxels_are_those_that_dvid_gave() {
    for (name, scales) in [("basic", 0..3), ("edits", 1..4), ("offset-live", 0..1)] {
        let (recorded, _server, source) = open(name).await;
        let hashes = recorded.json("hashes.json");
        for scale in scales {
            let path = format!("/s{scale}");
            let survey = Survey::of(source.dataset());
            let origin = survey.space(&path).unwrap().origin.clone().unwrap();
            let shape = source.dataset().array(&path).unwrap().spec.shape().to_vec();
            let reader = Reader::new(&source, &path).unwrap();
            let blocks = hashes[format!("s{scale}")]["blocks"].as_object().unwrap();
            assert!(!blocks.is_empty());
            for (block, expected) in blocks {
                let xyz: Vec<i64> = block.split(',').map(|n| n.parse().unwrap()).collect();
                let start: Vec<u64> = (0..3)
                    .map(|axis| u64::try_from(xyz[2 - axis] * 64 - origin[axis]).unwrap())
                    .collect();
                let extent: Vec<u64> =
                    start.iter().zip(&shape).map(|(start, end)| (end - start).min(64)).collect();
                let region = Region::new(start, extent.clone()).unwrap();
                let inside = reader.read_region(&region).await.unwrap();
                let voxels = padded(&inside, &extent);
                let hash = Sha256::digest(&voxels[..]);
                let hash: String = hash[..16].iter().map(|byte| format!("{byte:02x}")).collect();
                assert_eq!(hash, expected[0].as_str().unwrap(), "{name} {path} {block}");
            }
        }
    }
}

/// The voxels of a block, of which a part lies outside the array: nothing is there.
fn padded(inside: &[u8], extent: &[u64]) -> Vec<u8> {
    let [z, y, x] = [0, 1, 2].map(|axis| extent[axis] as usize);
    let mut block = vec![0; 64 * 64 * 64 * 8];
    for (row, line) in inside.chunks(x * 8).enumerate() {
        let start = (row / y * 64 + row % y) * 64 * 8;
        block[start..start + x * 8].copy_from_slice(line);
    }
    assert_eq!(inside.len(), z * y * x * 8);
    block
}

#[tokio::test]
async fn the_arrays_say_where_they_lie() {
    let (_, _server, source) = open("offset-live").await;
    let survey = Survey::of(source.dataset());
    assert!(survey.findings.is_empty(), "{:?}", survey.findings);
    let shape = |path: &str| source.dataset().array(path).unwrap().spec.shape().to_vec();
    let origin = |path: &str| survey.space(path).unwrap().origin.clone().unwrap();
    assert_eq!((shape("/s0"), origin("/s0")), (vec![512, 576, 512], vec![-192, -128, -128]));
    assert_eq!((shape("/s1"), origin("/s1")), (vec![288, 288, 256], vec![-128, -64, -64]));
    assert_eq!((shape("/s2"), origin("/s2")), (vec![144, 176, 160], vec![-64, -64, -64]));
    let axes = &survey.space("/s1").unwrap().axes;
    let names: Vec<_> = axes.iter().map(|axis| axis.name.clone().unwrap()).collect();
    assert_eq!(names, ["z", "y", "x"]);
    assert_eq!(axes[0].unit.as_deref(), Some("nanometers"));
    assert_eq!(axes[0].scale, Some(16.0));
    let Some(crate::Node::Group(root)) = source.dataset().nodes.get("/") else {
        panic!("no group")
    };
    assert_eq!(root.attributes()["dvid"]["uuid"], "05dfed9f0da74c8d98be7f47d2417d34");
}

#[tokio::test]
async fn stored_blocks_are_listed_and_checked() {
    let (recorded, server, source) = open("basic").await;
    let expected: BTreeSet<Vec<u64>> = recorded
        .records(0)
        .keys()
        .map(|[x, y, z]| [z, y, x].map(|n| u64::try_from(*n).unwrap()).to_vec())
        .collect();
    let whole = Region::whole(&[320, 192, 256]);
    let found: Vec<_> = source.chunks("/s0", &whole).try_collect().await.unwrap();
    assert!(found.iter().all(|(_, at)| matches!(at, ChunkRef::Inline(_))));
    assert_eq!(found.into_iter().map(|(chunk, _)| chunk).collect::<BTreeSet<_>>(), expected);
    assert_eq!(server.take_requests().len(), 1);
    let part = Region::parse("70:130,0:64,200:201", &[320, 192, 256]).unwrap();
    let found: Vec<_> = source.chunks("/s0", &part).try_collect().await.unwrap();
    let found: BTreeSet<_> = found.into_iter().map(|(chunk, _)| chunk).collect();
    let within = |chunk: &&Vec<u64>| (1..3).contains(&chunk[0]) && chunk[1] == 0 && chunk[2] == 3;
    assert_eq!(found, expected.iter().filter(within).cloned().collect());

    let Occupied::Cells { cells, .. } = source.occupied("/s0").unwrap() else { panic!("all") };
    assert_eq!(cells.try_collect::<Vec<_>>().await.unwrap(), [[0, 0, 0]]);
    let report = check(&source, Depth::Bytes, &Meter::default()).await.unwrap();
    assert!(report.findings.is_empty(), "{:?}", report.findings);
    let stored: usize = (0..3).map(|scale| recorded.records(scale).len()).sum();
    assert_eq!(report.checked.chunks, stored as u64);
    assert!(source.chunks("/s9", &whole).try_next().await.is_err());
}

/// A labelmap of 10,000 blocks along x, with these in it.
async fn wide(blocks: &'static [i32]) -> (WebServer, DvidSource) {
    let recorded = Recorded::open("basic");
    let uuid = recorded.uuid.clone();
    let payload = recorded.records(0)[&[1, 0, 0]][16..].to_vec();
    let answer = move |request: &Request| {
        let path = request.target.split('?').next().unwrap();
        if path.ends_with("/info") && path.contains("/node/") {
            let mut info = recorded.json("info.json");
            for part in ["Extents", "Extended"] {
                info[part]["MinPoint"] = json!([0, 0, 0]);
                info[part]["MaxPoint"] = json!([639_999, 63, 63]);
            }
            return Reply::ok(info.to_string().as_bytes());
        }
        let Some((_, asked)) = path.split_once("/blocks/") else { return recorded.reply(request) };
        let numbers: Vec<i32> = asked.split(['/', '_']).map(|n| n.parse().unwrap()).collect();
        let (size, start) = (numbers[0] / 64, numbers[3] / 64);
        let record = |x: &i32| {
            let head = [*x, 0, 0, payload.len() as i32].map(i32::to_le_bytes).concat();
            [head, payload.clone()].concat()
        };
        let there = blocks.iter().filter(|x| (start..start + size).contains(x));
        Reply::chunked(&there.flat_map(record).collect::<Vec<_>>())
    };
    let server = WebServer::start(move |_, request| answer(request));
    let url = format!("dvid+http://{}/{uuid}/seg", server.address());
    let source = DvidSource::open(&url, &Options::default()).await.unwrap();
    server.take_requests();
    (server, source)
}

#[tokio::test]
async fn emptiness_costs_few_requests() {
    let stored = &[0, 7, 3000, 3001, 9999];
    let (server, source) = wide(stored).await;
    let Occupied::Cells { cells, .. } = source.occupied("/s0").unwrap() else { panic!("all") };
    let cells: BTreeSet<Vec<u64>> = cells.try_collect().await.unwrap();
    assert_eq!(cells, [0, 375, 1249].map(|x| vec![0, 0, x]).into());
    let requests = server.take_requests().len();
    assert!(requests < 180, "{requests} requests for 1250 cells");
    let whole = Region::whole(&[64, 64, 640_000]);
    let found: Vec<_> = source.chunks("/s0", &whole).try_collect().await.unwrap();
    let found: Vec<i32> = found.into_iter().map(|(chunk, _)| chunk[2] as i32).collect();
    assert_eq!(found, stored);
    assert!(server.take_requests().len() < 180);
}

#[tokio::test]
async fn bodies_are_those_that_dvid_gave() {
    let (recorded, server, source) = open("edits").await;
    let source = typed(&source);
    let pairs = recorded.file("mappings.txt");
    let pairs: BTreeMap<u64, u64> = std::str::from_utf8(&pairs)
        .unwrap()
        .lines()
        .map(|line| line.split_once(' ').unwrap())
        .map(|(a, b)| (a.parse().unwrap(), b.parse().unwrap()))
        .collect();
    let mapping: BTreeMap<u64, u64> = source.mapping().try_collect().await.unwrap();
    assert_eq!(mapping, pairs);

    let listed: Vec<_> = source.labels(0, true).try_collect().await.unwrap();
    let expected = recorded.labels();
    assert_eq!(listed, expected.iter().map(|(l, n)| (*l, Some(*n))).collect::<Vec<_>>());
    let labels: Vec<u64> = expected.iter().map(|(label, _)| *label).collect();
    let sizes = source.sizes(&labels, false).await.unwrap();
    assert_eq!(sizes, expected.iter().map(|(_, voxels)| *voxels).collect::<Vec<_>>());
    server.take_requests();

    let wanted = [&labels[..], &[999_999_999_999]].concat();
    let indices: Vec<_> = source.indices(wanted.clone()).unwrap().try_collect().await.unwrap();
    assert_eq!(server.take_requests().len(), 1);
    assert_eq!(indices.iter().map(|(label, _)| *label).collect::<Vec<_>>(), wanted);
    let (missing, found): (Vec<_>, Vec<_>) = indices.iter().partition(|(_, index)| index.is_none());
    assert_eq!(missing.len(), 1);
    // A protocol buffer that begins with the map of blocks.
    assert!(found.iter().all(|(_, index)| index.as_ref().unwrap()[0] == 0x0a));
    assert_eq!(source.indices(vec![0]).err().unwrap().kind(), ErrorKind::Invalid);
}

#[tokio::test]
async fn the_identity_tells_a_locked_version_from_an_open_one() {
    let (recorded, _server, source) = open("edits").await;
    let identity = source.identity();
    assert!(identity.contains(&recorded.uuid) && identity.contains("mutation 1000000100"));
    assert!(matches!(&source.cautions()[..], [caution] if caution.contains("not locked")));
}

#[tokio::test]
async fn the_format_takes_urls_of_its_schemes() {
    let (recorded, server, _) = open("basic").await;
    let url = format!("dvid+http://{}/{}/seg", server.address(), recorded.uuid);
    let place = Place::new(&url, &Options::default()).unwrap();
    assert!(matches!(DvidHttp.probe(&place).await.unwrap(), Probe::Yes(_)));
    assert!(DvidHttp.schemes().contains(&"dvid+https"));
    let opened = DvidHttp.open(&place, &OpenOptions::default()).await.unwrap();
    assert_eq!(opened.dataset().arrays().count(), 3);
    let version = Some(Version::Branch("main".to_owned()));
    let error = DvidHttp.open(&place, &OpenOptions { version, ..OpenOptions::default() }).await;
    assert_eq!(error.err().unwrap().kind(), ErrorKind::Invalid);
    let elsewhere = Place::new("/nowhere", &Options::default()).unwrap();
    assert!(matches!(DvidHttp.probe(&elsewhere).await.unwrap(), Probe::No(_)));
}

#[tokio::test]
async fn a_wrong_number_of_sizes_is_corrupt() {
    let recorded = Recorded::open("basic");
    let url_part = recorded.uuid.clone();
    let server = WebServer::start(move |_, request| match request.target.contains("/sizes") {
        true => Reply::ok(b"[1, 2, 3]"),
        false => recorded.reply(request),
    });
    let url = format!("dvid+http://{}/{url_part}/seg", server.address());
    let source = DvidSource::open(&url, &Options::default()).await.unwrap();
    assert_eq!(source.sizes(&[5, 6, 7], true).await.unwrap(), [1, 2, 3]);
    let error = source.sizes(&[5, 6], false).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
}

fn bent(name: &str, change: impl Fn(&mut Value)) -> Result<Info> {
    let mut info = Recorded::open(name).json("info.json");
    change(&mut info);
    Info::parse(info.to_string().as_bytes())
}

#[test]
fn a_description_is_read_or_refused_with_the_reason() {
    let info = bent("offset-live", |_| {}).unwrap();
    assert_eq!(info.block_size, [64; 3]);
    assert_eq!(info.extents, Some(([-128, -128, -192], [383, 447, 319])));
    assert_eq!((info.max_level, info.voxel_size[0]), (2, Some(8.0)));
    let without = |info: &mut Value| {
        for part in ["Extents", "Extended"] {
            info[part]["MinPoint"] = Value::Null;
            info[part]["MaxPoint"] = Value::Null;
        }
    };
    assert_eq!(bent("basic", without).unwrap().extents, None);
    assert_eq!(
        bent("basic", |info| info["Extents"] = Value::Null).unwrap().extents,
        Some(([0; 3], [255, 191, 319]))
    );
    let kind = |change: fn(&mut Value)| bent("basic", change).unwrap_err().kind();
    assert_eq!(kind(|info| info["Base"]["TypeName"] = json!("uint8blk")), ErrorKind::Unsupported);
    assert_eq!(
        kind(|info| info["Base"]["Compression"] = json!("LZ4 compression, level -1")),
        ErrorKind::Unsupported
    );
    for change in [
        |info: &mut Value| info["Extended"]["BlockSize"] = json!([64, 64]),
        |info: &mut Value| info["Extended"]["BlockSize"] = json!([64, 0, 64]),
        |info: &mut Value| info["Extended"]["BlockSize"] = json!([64, 64, 1032]),
        |info: &mut Value| info["Extended"]["BlockSize"] = Value::Null,
        |info: &mut Value| info["Extended"]["MaxDownresLevel"] = json!(31),
        |info: &mut Value| info["Extended"]["MaxDownresLevel"] = json!(-1),
        |info: &mut Value| info["Extents"]["MinPoint"] = json!([1, 2]),
        |info: &mut Value| info["Extents"]["MinPoint"] = json!([4_000_000_000u64, 2, 3]),
        |info: &mut Value| info["Extents"]["MinPoint"] = json!([400, 0, 0]),
        |info: &mut Value| info["Base"] = Value::Null,
        |info: &mut Value| *info = json!([]),
    ] {
        assert_eq!(kind(change), ErrorKind::Corrupt);
    }
    assert_eq!(Info::parse(b"<html>").unwrap_err().kind(), ErrorKind::Corrupt);
}

#[test]
fn the_largest_extents_have_a_place() {
    let mut info = bent("basic", |_| {}).unwrap();
    info.extents = Some(([i32::MIN; 3], [i32::MAX; 3]));
    info.block_size = [8; 3];
    for scale in [0, 1, 30] {
        let level = Level::new(&info, scale).unwrap();
        let last: Vec<u64> = level.grid.grid_shape().iter().map(|n| n - 1).collect();
        for chunk in [vec![0; 3], last] {
            let block = level.block(&chunk).unwrap();
            assert_eq!(level.chunk(block.zyx).unwrap(), chunk, "scale {scale}");
        }
        assert_eq!(level.block(&level.grid.grid_shape()), None);
        assert_eq!(level.block(&[0, 0]), None);
    }
    info.extents = None;
    let level = Level::new(&info, 0).unwrap();
    assert_eq!((level.node.spec.shape(), level.grid.num_chunks()), (&[0, 0, 0][..], 0));
    assert!(level.chunk([0, 0, 0]).is_err());
}

#[test]
fn versions_are_found_and_joins_are_known() {
    let repos = parse_repos(&Recorded::open("edits").file("repos_info.json")).unwrap();
    let repo = repos.values().next().unwrap();
    assert_eq!(repo.nodes().count(), 3);
    let node = repo.version("110e").unwrap();
    assert!(!node.locked && !repo.is_joined(node));
    assert_eq!(repo.version("x").unwrap_err().kind(), ErrorKind::NotFound);
    assert!(matches!(repo.version(""), Err(Error::Invalid { .. })));

    let node = |uuid: &str, id: u64, parents: &[u64]| {
        let node = json!({"UUID": uuid, "VersionID": id, "Parents": parents, "Children": null});
        (uuid.to_owned(), node)
    };
    let nodes: serde_json::Map<String, Value> = [
        node("a1", 1, &[]),
        node("b2", 2, &[1]),
        node("c3", 3, &[1, 2]),
        node("d4", 4, &[3]),
        // A loop, which must not be followed for ever, and a name that is no UUID.
        node("e5", 5, &[6]),
        node("f6", 6, &[5]),
        node("g/../7", 7, &[]),
    ]
    .into_iter()
    .collect();
    let document = json!({"a1": {"Root": "a1", "DAG": {"Nodes": nodes}}}).to_string();
    let repos = parse_repos(document.as_bytes()).unwrap();
    let repo = &repos["a1"];
    let joined = |uuid: &str| repo.is_joined(repo.version(uuid).unwrap());
    assert_eq!(["a1", "b2", "c3", "d4", "e5"].map(joined), [false, false, true, true, false]);
    assert_eq!(repo.version("g").unwrap_err().kind(), ErrorKind::Corrupt);
    assert!(parse_repos(b"[]").is_err());
}
