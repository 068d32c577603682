//! Stores that a real DVID wrote, imported with all versions, against what DVID answered at each.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use chunkyard_array::Region;
use chunkyard_format::Meter;
use chunkyard_format::dvid::{DvidOptions, DvidStore, DvidUrl};
use chunkyard_labels::dvid::{
    ImportOptions, ImportReport, WhichVersions, import_history, list, mapping_at,
};
use chunkyard_labels::{Kind, Labelmap};
use chunkyard_repo::{Repository, Version};
use chunkyard_store::ErrorKind;
use chunkyard_test_support::{DVID_STORES, dvid_store, dvid_testdata, hash_of_voxels, memory};
use futures::TryStreamExt;
use serde_json::Value;

use super::support::{PATH, bodies, create};

/// The version of `branches` in which two parents changed the same blocks.
const CONFLICT: &str = "b0377c0dbc9d49d387bfdecbf765c906";
const EDGE: u64 = 64;

pub(super) fn answers(name: &str) -> BTreeMap<String, Value> {
    let path = dvid_testdata().join("answers").join(format!("{name}.json"));
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

async fn open(directory: &Path) -> DvidStore {
    let url = format!("dvid+badger://{}", directory.join("data/badger").display());
    DvidStore::open(&DvidUrl::parse(&url).unwrap(), &DvidOptions::default()).await.unwrap()
}

fn options(skip_corrupt: bool) -> ImportOptions {
    ImportOptions {
        path: PATH.into(),
        data: Some("seg".into()),
        versions: WhichVersions::All,
        skip_corrupt,
    }
}

pub(super) async fn import_all(name: &str) -> (Repository, ImportReport) {
    let directory = dvid_store(name);
    let store = open(directory.path()).await;
    let repo = create(&memory()).await;
    let options = options(name == "branches");
    let report = import_history(&repo, &store, None, &options, &Meter::default()).await.unwrap();
    (repo, report)
}

pub(super) fn snapshot(report: &ImportReport, uuid: &str) -> Version {
    let found = report.versions.iter().find(|version| version.uuid == uuid).unwrap();
    Version::Snapshot(found.snapshot.clone())
}

pub(super) async fn at(repo: &Repository, version: &Version) -> Labelmap {
    let session = repo.readonly_session(version).await.unwrap();
    Labelmap::open(&session, PATH).await.unwrap()
}

#[tokio::test]
async fn every_version_has_the_voxels_and_the_bodies_that_dvid_answered() {
    for name in DVID_STORES {
        let (repo, report) = import_all(name).await;
        for (version, answer) in answers(name) {
            let uuid = answer["uuid"].as_str().unwrap();
            let map = at(&repo, &snapshot(&report, uuid)).await;
            let mapping = map.load_mapping().await.unwrap();
            let mut stored: Vec<(u64, u64)> =
                mapping.rows().filter(|(id, body)| id != body).collect();
            let told: Vec<u64> = serde_json::from_value(answer["mapping"].clone()).unwrap();
            let mut told: Vec<(u64, u64)> =
                told.chunks_exact(2).map(|row| (row[0], row[1])).collect();
            stored.sort_unstable();
            told.sort_unstable();
            assert_eq!(stored, told, "{name} {version}");
            for (scale, blocks) in answer["scales"].as_array().unwrap().iter().enumerate() {
                for (place, expected) in blocks.as_object().unwrap() {
                    let xyz: Vec<i64> = place.split(',').map(|at| at.parse().unwrap()).collect();
                    let start = (0..3).map(|axis| {
                        let origin = map.layout().origin[axis] >> scale;
                        u64::try_from(xyz[2 - axis] * EDGE as i64 - origin).unwrap()
                    });
                    let region = Region::new(start.collect::<Vec<_>>(), vec![EDGE; 3]).unwrap();
                    let array = map.array(scale).unwrap();
                    // The last block of a coarse scale may end beyond the array, where all is 0.
                    let inside = region.intersect(&Region::whole(array.spec().shape())).unwrap();
                    assert_eq!(inside, region, "{name} {version} s{scale} {place}");
                    let bytes = array.read_region(&region).await.unwrap();
                    let mut labels = chunkyard_labels::widen(&bytes, 8);
                    let what = format!("{name} {version} s{scale} {place}");
                    assert_eq!(
                        Some(hash_of_voxels(&labels).as_str()),
                        expected[0].as_str(),
                        "{what}"
                    );
                    mapping.relabel(&mut labels);
                    let mapped = expected.get(1).unwrap_or(&expected[0]);
                    assert_eq!(
                        Some(hash_of_voxels(&labels).as_str()),
                        mapped.as_str(),
                        "{what} mapped"
                    );
                }
            }
            let imported = report.versions.iter().find(|known| known.uuid == uuid).unwrap();
            let differs: BTreeSet<u64> = imported.differences.iter().map(|one| one.body).collect();
            assert_eq!(differs.len() as u64, imported.difference_count);
            let found: BTreeMap<u64, u64> =
                bodies(&map).await.iter().map(|body| (body.body, body.voxels)).collect();
            let told = answer["bodies"].as_object().unwrap();
            for (body, row) in told {
                let body: u64 = body.parse().unwrap();
                if !differs.contains(&body) {
                    assert_eq!(
                        found.get(&body).copied(),
                        row[0].as_u64(),
                        "{name} {version} {body}"
                    );
                }
            }
            for (body, supervoxels) in answer["supervoxels"].as_object().unwrap() {
                let body: u64 = body.parse().unwrap();
                if differs.contains(&body) {
                    continue;
                }
                let told: BTreeSet<u64> = serde_json::from_value(supervoxels.clone()).unwrap();
                let found = map.supervoxels_of(body).await.unwrap();
                let found: BTreeSet<u64> = found.iter().map(|row| row.supervoxel).collect();
                assert_eq!(found, told, "{name} {version} {body}");
            }
        }
    }
}

#[tokio::test]
async fn dvid_counts_what_the_blocks_have_where_nothing_was_overwritten() {
    let (_, report) = import_all("basic").await;
    assert_eq!(report.versions.len(), 1);
    assert_eq!(report.versions[0].difference_count, 0);
}

#[tokio::test]
async fn tables_agree_with_the_voxels_after_every_version() {
    for name in DVID_STORES {
        let (repo, report) = import_all(name).await;
        for version in &report.versions {
            let map = at(&repo, &Version::Snapshot(version.snapshot.clone())).await;
            let found = map.verify(&Meter::default()).await.unwrap();
            let problems: Vec<_> =
                found.problems.iter().filter(|text| !text.contains("is not the vote")).collect();
            assert!(problems.is_empty(), "{name} {}: {problems:#?}", version.uuid);
        }
    }
}

#[tokio::test]
async fn branches_and_joins_are_kept() {
    let (repo, report) = import_all("branches").await;
    let state = repo.state().await.unwrap();
    let names: BTreeSet<&str> = state.refs.keys().map(String::as_str).collect();
    for name in ["main", "side", "third", "fourth"] {
        assert!(names.contains(name), "{names:?}");
    }
    assert!(!names.iter().any(|name| name.contains("importing")), "{names:?}");
    let by_uuid: BTreeMap<&str, &str> = report
        .versions
        .iter()
        .map(|version| (version.uuid.as_str(), version.branch.as_str()))
        .collect();
    // The join of a2 and b goes on where a2 is.
    assert_eq!(by_uuid["979c4b0b7fff4f2aab4f10475dea04da"], "main");
    let tip = state.resolve(&Version::branch("main")).unwrap();
    assert_eq!(tip.properties["dvid_uuid"], "979c4b0b7fff4f2aab4f10475dea04da");
    assert_eq!(tip.properties["dvid_joined"][0], "3bd70b3a595f4b65933f4b775c7fc21b");
    // Two blocks of each scale that both parents changed.
    assert!(report.damaged.iter().all(|block| block.version == CONFLICT));
    assert_eq!(report.damaged.iter().filter(|block| block.scale == 0).count(), 2);
}

#[tokio::test]
async fn blocks_that_cannot_be_read_stop_an_import_that_may_not_skip_them() {
    let directory = dvid_store("branches");
    let store = open(directory.path()).await;
    let repo = create(&memory()).await;
    let before = repo.state().await.unwrap().refs.clone();
    let all = options(false);
    let error = import_history(&repo, &store, None, &all, &Meter::default()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
    assert_eq!(repo.state().await.unwrap().refs, before);
    let some = ImportOptions {
        versions: WhichVersions::These(vec!["ea6d".into(), "979c".into()]),
        ..options(false)
    };
    let report = import_history(&repo, &store, None, &some, &Meter::default()).await.unwrap();
    assert_eq!(report.versions.len(), 2);
    assert!(report.damaged.is_empty());
}

#[tokio::test]
async fn a_later_version_writes_only_what_changed() {
    let (_, report) = import_all("many").await;
    assert_eq!(report.versions.len(), 16);
    assert_eq!(report.versions[0].blocks, 16 + 4 + 1);
    for version in &report.versions[1..] {
        assert!(version.blocks < 16, "{version:?}");
    }
}

#[tokio::test]
async fn mutations_are_what_dvid_logged() {
    let (repo, report) = import_all("edits").await;
    let last = Version::Snapshot(report.versions.last().unwrap().snapshot.clone());
    let map = at(&repo, &last).await;
    let rows: Vec<Vec<_>> = map.mutations(0).unwrap().try_collect().await.unwrap();
    let rows = rows.concat();
    let kinds: BTreeSet<&str> = rows.iter().map(|row| row.kind.name()).collect();
    let expected = [
        Kind::Merge,
        Kind::Cleave,
        Kind::SplitSupervoxel,
        Kind::SplitBody,
        Kind::Renumber,
        Kind::Map,
    ];
    assert_eq!(kinds, expected.map(Kind::name).into_iter().collect());
    let cleave = rows.iter().find(|row| row.kind == Kind::Cleave).unwrap();
    assert!(cleave.bodies.contains(&cleave.body) && cleave.bodies.contains(&cleave.other));
    let moved = cleave.supervoxels[0];
    let blame = map.blame(moved).await.unwrap();
    assert!(
        blame
            .iter()
            .any(|(row, _, after)| row.mutation == cleave.mutation && *after == cleave.other)
    );
}

#[tokio::test]
async fn a_volume_left_of_zero_keeps_its_place() {
    let (repo, report) = import_all("offset-live").await;
    let map = at(&repo, &Version::Snapshot(report.versions[0].snapshot.clone())).await;
    // Scales begin with whole blocks: the least blocks are -3, -2, -2, and a block of the coarsest has four.
    assert_eq!(map.layout().origin, [-256, -256, -256]);
    let session = map.session().clone();
    let ome = session.attributes(PATH).await.unwrap()["ome"].clone();
    let shift = &ome["multiscales"][0]["datasets"][0]["coordinateTransformations"][1];
    assert_eq!(shift["translation"][0], -256.0 * 8.0);
    assert!(report.cautions.iter().any(|caution| caution.contains("LOCK")));
}

#[tokio::test]
async fn the_mapping_of_any_version_can_be_had_without_an_import() {
    for name in DVID_STORES {
        let directory = dvid_store(name);
        let store = open(directory.path()).await;
        for (version, answer) in answers(name) {
            let (repo, id) = store.find(answer["uuid"].as_str()).unwrap();
            let seg = repo.labelmap(Some("seg")).unwrap();
            let mapping = mapping_at(&store, repo, seg, id).await.unwrap();
            let stored: Vec<u64> = mapping
                .rows()
                .filter(|(id, body)| id != body)
                .flat_map(|(id, body)| [id, body])
                .collect();
            let told: Vec<u64> = serde_json::from_value(answer["mapping"].clone()).unwrap();
            assert_eq!(stored, told, "{name} {version}");
        }
        let uuid = answers(name)["root"]["uuid"].as_str().map(str::to_owned);
        let listed = list(&store, uuid.as_deref()).await.unwrap();
        assert!(listed.iter().any(|info| info.instance.name == "seg" && info.scales[0].blocks > 0));
    }
}
