//! Exports of stores that a real DVID wrote: against what DVID answered, and against what its own exporter made of them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, UInt32Type};
use arrow_ipc::reader::FileReader;
use chunkyard_array::codec::gunzip;
use chunkyard_engine::ErrorKind;
use chunkyard_engine::export::{
    ArrowOptions, Codec, Emit, Exporter, PLAN, Plan, Progress, Request,
};
use chunkyard_engine::format::dvid::{DvidOptions, DvidSource, DvidUrl};
use chunkyard_engine::format::precomputed::Info;
use chunkyard_engine::format::{Place, Source};
use chunkyard_engine::store::{Limits, Options};
use chunkyard_test_support::{
    DVID_STORES, directory, dvid_store, dvid_testdata, hash_of_bytes, hash_of_voxels,
};
use serde_json::Value;

use super::support::{Row, export, rows, volume};

async fn source(store: &Path, uuid: &str, data: &str) -> Arc<dyn Source> {
    let url =
        format!("dvid+badger://{}?uuid={uuid}&data={data}", store.join("data/badger").display());
    let source = DvidSource::open(&DvidUrl::parse(&url).unwrap(), &DvidOptions::default()).await;
    Arc::new(source.unwrap())
}

fn read_json(path: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

/// An export that DVID made.
struct Made {
    uuid: String,
    spec: Value,
    /// Per scale, by `x,y,z`: file, and hashes of labels, of supervoxels and of the block.
    scales: Vec<BTreeMap<[i32; 3], [String; 4]>>,
}

impl Made {
    fn read(name: &str) -> Self {
        let document = read_json(&dvid_testdata().join("exports").join(format!("{name}.json")));
        let blocks = |blocks: &Value| {
            let block = |(place, record): (&String, &Value)| {
                let at: Vec<i32> = place.split(',').map(|at| at.parse().unwrap()).collect();
                let record: Vec<String> = serde_json::from_value(record.clone()).unwrap();
                (at.try_into().unwrap(), record.try_into().unwrap())
            };
            blocks.as_object().unwrap().iter().map(block).collect()
        };
        Self {
            uuid: document["uuid"].as_str().unwrap().to_owned(),
            spec: document["spec"].clone(),
            scales: document["scales"].as_array().unwrap().iter().map(blocks).collect(),
        }
    }

    fn request(&self, scales: usize) -> Request {
        let spec = Some(self.spec.to_string().into_bytes());
        Request { spec, scales: Some(scales), ..Request::default() }
    }
}

fn record(row: &Row) -> [String; 4] {
    [
        row.stem.clone(),
        hash_of_voxels(&row.labels),
        hash_of_voxels(&row.supervoxels),
        hash_of_bytes(&row.block),
    ]
}

#[tokio::test]
async fn records_equal_those_of_dvid_where_dvid_is_right() {
    for (name, data, scales) in [
        ("basic-cubic-3scales", "seg", 3),
        ("edits-root-4scales", "seg", 4),
        ("edits-v1-unaligned", "seg", 1),
        ("edits-v2-capped", "seg", 9),
        ("branches-a2-2scales", "seg", 2),
        ("branches-joined-2scales", "seg", 2),
        ("branches-resolved", "seg", 2),
        ("branches-other-root", "other", 1),
        ("many-v07", "seg", 1),
        ("many-v15-3scales", "seg", 3),
        ("offset-live-root", "seg", 1),
    ] {
        let made = Made::read(name);
        let store = dvid_store(DVID_STORES.iter().find(|store| name.starts_with(*store)).unwrap());
        let source = source(store.path(), &made.uuid, data).await;
        let (out, target) = directory();
        let report = export(&source, &made.request(scales), &target).await.unwrap();
        assert_eq!(report.scales.len(), made.scales.len(), "{name}");
        for (scale, expected) in made.scales.iter().enumerate() {
            let found: BTreeMap<[i32; 3], [String; 4]> =
                rows(out.path(), scale).iter().map(|(at, row)| (*at, record(row))).collect();
            assert_eq!(found, *expected, "{name} s{scale}");
            assert_eq!(report.scales[scale].totals.blocks, expected.len() as u64);
        }
        // Two blocks of one store lie at negative coordinates: DVID leaves them out without a word.
        let outside = if name == "offset-live-root" { 2 } else { 0 };
        assert_eq!(report.total.outside, outside, "{name}");
    }
}

#[tokio::test]
async fn blocks_are_kept_as_they_are_stored() {
    let made = Made::read("basic-cubic-3scales");
    let store = dvid_store("basic");
    let source = source(store.path(), &made.uuid, "seg").await;
    let (out, target) = directory();
    let arrow = ArrowOptions { codec: Codec::Keep, ..ArrowOptions::default() };
    let request = Request { arrow, ..made.request(1) };
    export(&source, &request, &target).await.unwrap();
    let mut seen = 0;
    for file in std::fs::read_dir(out.path().join("s0")).unwrap() {
        let path = file.unwrap().path();
        if path.extension().unwrap() != "arrow" {
            continue;
        }
        let reader = FileReader::try_new(File::open(&path).unwrap(), None).unwrap();
        assert_eq!(reader.schema().field(5).metadata()["codec"], "gzip");
        for batch in reader.map(Result::unwrap) {
            let at: [i32; 3] =
                [0, 1, 2].map(|axis| batch.column(axis).as_primitive::<Int32Type>().value(0));
            let stored = batch.column(5).as_binary::<i32>().value(0);
            let size = batch.column(6).as_primitive::<UInt32Type>().value(0);
            let block = gunzip(stored, size as usize).unwrap();
            assert_eq!(hash_of_bytes(&block), made.scales[0][&at][3], "{at:?}");
            seen += 1;
        }
    }
    assert_eq!(seen, made.scales[0].len());
}

/// The origin of the shard that a block is in, as a name.
fn true_origin(at: [i32; 3], cell: [i32; 3]) -> String {
    let axis = |axis: usize| (at[axis].div_euclid(cell[axis]) * cell[axis] * 64).to_string();
    [axis(0), axis(1), axis(2)].join("_")
}

#[tokio::test]
async fn shards_that_are_no_cubes_are_whole_files_of_their_own() {
    let right = Made::read("basic-cubic-3scales");
    let store = dvid_store("basic");
    for (name, cell, volume) in
        [("basic-noncubic-4x2x2", [4, 2, 2], [4, 3, 5]), ("basic-thin-3x2x2", [3, 2, 2], [3, 2, 5])]
    {
        let made = Made::read(name);
        let source = source(store.path(), &made.uuid, "seg").await;
        let (out, target) = directory();
        let report = export(&source, &made.request(1), &target).await.unwrap();
        let found = rows(out.path(), 0);
        let inside = |at: &[i32; 3]| (0..3).all(|axis| at[axis] < volume[axis]);
        let expected: BTreeMap<[i32; 3], [String; 4]> = right.scales[0]
            .iter()
            .filter(|(at, _)| inside(at))
            .map(|(at, [_, rest @ ..])| {
                let [labels, supervoxels, block] = rest.clone();
                (*at, [true_origin(*at, cell), labels, supervoxels, block])
            })
            .collect();
        let found: BTreeMap<[i32; 3], [String; 4]> =
            found.iter().map(|(at, row)| (*at, record(row))).collect();
        assert_eq!(found, expected, "{name}");
        let outside = right.scales[0].keys().filter(|at| !inside(at)).count() as u64;
        // Blocks of nothing but label 0 are stored as well, so outside may be more.
        assert!(report.total.outside >= outside, "{name}: {}", report.total.outside);
        let files: BTreeSet<&String> = found.values().map(|[stem, ..]| stem).collect();
        assert_eq!(report.total.shards, files.len() as u64, "{name}");
    }
}

#[tokio::test]
async fn blocks_outside_of_the_volume_are_left_out_and_counted() {
    let made = Made::read("basic-smaller-volume");
    let store = dvid_store("basic");
    let source = source(store.path(), &made.uuid, "seg").await;
    let (out, target) = directory();
    let report = export(&source, &made.request(1), &target).await.unwrap();
    let found = rows(out.path(), 0);
    let mut expected = made.scales[0].clone();
    // DVID puts twelve blocks of x = 2 into the shards of x = 0, and names a file after one of them.
    expected.retain(|at, _| at[0] < 2);
    assert_eq!(made.scales[0].len() - expected.len(), 12);
    for (at, [stem, rest @ ..]) in &expected {
        let [_, own @ ..] = record(&found[at]);
        assert_eq!(own, *rest, "{at:?}");
        assert_eq!(found[at].stem, true_origin(*at, [2, 2, 2]));
        assert!(*stem == found[at].stem || stem == "128_0_0");
    }
    assert_eq!(found.len(), expected.len());
    assert!(report.total.outside > 0);
}

#[tokio::test]
async fn a_block_that_two_parents_changed_fails_the_export() {
    let made = Made::read("branches-conflict");
    let store = dvid_store("branches");
    let source = source(store.path(), &made.uuid, "seg").await;
    let (out, target) = directory();
    let error = export(&source, &made.request(1), &target).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
    // DVID wrote 23 of the 25 blocks and said nothing. What is there now lacks the shards of the other two.
    let found = rows(out.path(), 0);
    assert!(found.len() < 25 - 2);
    for (at, row) in &found {
        assert_eq!(record(row), made.scales[0][at], "{at:?}");
    }
}

#[tokio::test]
async fn every_version_has_the_voxels_and_labels_that_dvid_answered() {
    for name in DVID_STORES {
        let store = dvid_store(name);
        let answers = read_json(&dvid_testdata().join("answers").join(format!("{name}.json")));
        for (version, answer) in answers.as_object().unwrap() {
            let source = source(store.path(), answer["uuid"].as_str().unwrap(), "seg").await;
            let (out, target) = directory();
            let last = answers.as_object().unwrap().keys().next_back() == Some(version);
            let both = [Emit::Arrow, Emit::Precomputed];
            let emit = both.into_iter().take(if last { 2 } else { 1 }).collect();
            let request = Request { emit, ..Request::default() };
            let report = export(&source, &request, &target).await.unwrap();
            assert_eq!(report.total.outside, 0, "{name} {version}");
            let negative = |at: &[i32; 3]| at.iter().any(|at| *at < 0);
            for (scale, expected) in answer["scales"].as_array().unwrap().iter().enumerate() {
                let found = rows(out.path(), scale);
                let what = format!("{name} {version} s{scale}");
                let (mut seen, mut empty) = (0, 0);
                for (place, hashes) in expected.as_object().unwrap() {
                    let at: Vec<i32> = place.split(',').map(|at| at.parse().unwrap()).collect();
                    let Some(row) = found.get(&<[i32; 3]>::try_from(at).unwrap()) else {
                        assert_eq!(
                            hashes[0],
                            hash_of_voxels(&vec![0; 64 * 64 * 64]),
                            "{what} {place}"
                        );
                        empty += 1;
                        continue;
                    };
                    seen += 1;
                    assert_eq!(hashes[0], hash_of_voxels(&row.voxels(false)), "{what} {place}");
                    let mapped = hashes.get(1).unwrap_or(&hashes[0]);
                    match row.labels == row.supervoxels {
                        true => assert_eq!(*mapped, hashes[0], "{what} {place} mapped"),
                        false => {
                            let found = hash_of_voxels(&row.voxels(true));
                            assert_eq!(*mapped, found, "{what} {place} mapped");
                        }
                    }
                }
                // DVID was asked for a box; two blocks of one store lie outside of it.
                assert_eq!(found.keys().filter(|at| !negative(at)).count(), seen, "{what}");
                assert_eq!(report.scales[scale].totals.empty, empty, "{what}");
            }
            if last {
                assert_volume(out.path(), &format!("{name} {version}"));
            }
        }
    }
}

/// The volume has the voxels of the Arrow shards with their labels, chunk by chunk.
fn assert_volume(directory: &Path, what: &str) {
    let info = Info::parse("info", &std::fs::read(directory.join("info")).unwrap()).unwrap();
    for (number, scale) in info.scales.iter().enumerate() {
        let mut chunks = volume(directory, scale);
        for (at, row) in rows(directory, number) {
            let chunk = chunks.remove(&at).unwrap_or_else(|| panic!("{what} s{number} {at:?}"));
            assert!(chunk == row.voxels(true), "{what} s{number} {at:?}");
        }
        assert!(chunks.is_empty(), "{what} s{number}: {:?}", chunks.keys());
    }
}

#[tokio::test]
async fn a_target_gets_one_mapping_only() {
    let made = Made::read("edits-v1-unaligned");
    let store = dvid_store("edits");
    let source = source(store.path(), &made.uuid, "seg").await;
    let (_out, target) = directory();
    let place = Place::new("memory://export-source", &Options::default()).unwrap();
    let plan = Plan::of(&source, &place, &made.request(1), &target).unwrap();
    let open = |plan| Exporter::new(plan, source.clone(), target.clone(), Limits::default());
    let exporter = open(plan).await.unwrap();
    let mut other = exporter.plan().clone();
    assert!(other.mapping.is_some());
    exporter.run(&Progress::default()).await.unwrap();
    open(exporter.plan().clone()).await.unwrap();
    // Bodies were merged since the plan was made, and no block has changed.
    other.mapping = Some("3 supervoxels, 0123".to_owned());
    let error = open(other.clone()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
    assert!(error.to_string().contains("3 supervoxels, 0123"), "{error}");
    target.put(PLAN, vec![other.render().unwrap().into()]).await.unwrap();
    let error = exporter.run(&Progress::default()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
    assert!(error.to_string().contains("another mapping of supervoxels"), "{error}");
}
