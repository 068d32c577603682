//! Stores that a real DVID wrote: every version of them, against what DVID answered.

mod damage;
mod described;

use std::collections::BTreeMap;
use std::path::Path;

use chunkyard_array::codec::Codecs;
use chunkyard_format::dvid::{DvidFormat, DvidOptions, DvidSource, DvidStore, DvidUrl};
use chunkyard_format::{Format, Level, Locate, OpenOptions, Place, Probe, Source, Survey};
use chunkyard_store::{Error, ErrorKind};
use chunkyard_test_support::{DVID_STORES, dvid_store, dvid_testdata, hash_of_bytes};
use futures::TryStreamExt;
use serde_json::Value;

/// What DVID answered about the versions of a store, by their labels.
fn answers(name: &str) -> BTreeMap<String, Value> {
    let path = dvid_testdata().join("answers").join(format!("{name}.json"));
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

fn url(directory: &Path, query: &str) -> DvidUrl {
    let url = format!("dvid+badger://{}{query}", directory.join("data/badger").display());
    DvidUrl::parse(&url).unwrap()
}

/// Where the array of a source begins, in its own voxels.
fn origin(source: &DvidSource, path: &str) -> Vec<i64> {
    Survey::of(source.dataset()).space(path).unwrap().origin.clone().unwrap()
}

/// The hashes of all blocks of an array, by `x,y,z`.
async fn hashes(source: &DvidSource, path: &str) -> BTreeMap<String, String> {
    let (hashes, errors) = readable(source, path).await;
    assert!(errors.is_empty(), "{errors:?}");
    hashes
}

/// The hashes of the blocks of an array that can be read, by `x,y,z`, and the errors of the others.
async fn readable(source: &DvidSource, path: &str) -> (BTreeMap<String, String>, Vec<Error>) {
    let node = source.dataset().array(path).unwrap().clone();
    let codecs = Codecs::new(&node.spec).unwrap();
    let whole = chunkyard_array::Region::whole(node.spec.shape());
    let located: Vec<_> = source.chunks(path, &whole).try_collect().await.unwrap();
    let first = origin(source, path);
    let (mut hashes, mut errors) = (BTreeMap::new(), Vec::new());
    for (index, reference) in located {
        assert_eq!(
            source.locate(path, std::slice::from_ref(&index)).await.unwrap(),
            [Some(reference.clone())]
        );
        let value = match source.fetcher().fetch(&[&reference]).await {
            Ok(mut value) => value.remove(0).unwrap(),
            Err(error) => {
                errors.push(error);
                continue;
            }
        };
        let mut voxels = vec![0; 64 * 64 * 64 * 8];
        codecs.decode_into(&value, &mut voxels).unwrap();
        let at: Vec<i64> = (0..3).map(|axis| first[axis] / 64 + index[axis] as i64).collect();
        hashes.insert(format!("{},{},{}", at[2], at[1], at[0]), hash_of_bytes(&voxels));
    }
    (hashes, errors)
}

#[tokio::test]
async fn every_version_has_the_voxels_that_dvid_answered() {
    for name in DVID_STORES {
        let directory = dvid_store(name);
        for (version, answer) in answers(name) {
            let query = format!("?uuid={}&data=seg", answer["uuid"].as_str().unwrap());
            let url = url(directory.path(), &query);
            let source = DvidSource::open(&url, &DvidOptions::default()).await.unwrap();
            for (scale, blocks) in answer["scales"].as_array().unwrap().iter().enumerate() {
                let mut found = hashes(&source, &format!("/seg/s{scale}")).await;
                for (at, expected) in blocks.as_object().unwrap() {
                    let hash = found.remove(at);
                    assert_eq!(
                        hash.as_deref(),
                        expected[0].as_str(),
                        "{name} {version} s{scale} {at}"
                    );
                }
                // DVID was asked for a box; two blocks of one store lie outside of it.
                let outside = found.keys().filter(|at| at.contains('-')).count();
                assert_eq!(found.len(), outside, "{name} {version} s{scale}: {found:?}");
            }
        }
    }
}

#[tokio::test]
async fn every_version_has_the_indices_that_dvid_answered() {
    for name in DVID_STORES {
        let directory = dvid_store(name);
        let store = DvidStore::open(&url(directory.path(), ""), &DvidOptions::default()).await;
        let store = store.unwrap();
        for (version, answer) in answers(name) {
            let (repo, id) = store.find(answer["uuid"].as_str()).unwrap();
            let seg = repo.labelmap(Some("seg")).unwrap();
            let mut found = BTreeMap::new();
            let resolver = repo.dag.resolver(id).unwrap();
            let good = |index: chunkyard_format::dvid::LabelIndex| {
                let mut text = String::new();
                for ([z, y, x], counts) in &index.blocks {
                    for (supervoxel, voxels) in counts {
                        text += &format!("{z} {y} {x} {supervoxel} {voxels}\n");
                    }
                }
                let digest = hash_of_bytes(text.as_bytes())[..8].to_owned();
                found.insert(index.label.to_string(), (index.voxels(), digest));
            };
            let bad = |label, why| panic!("{name} {version} {label}: {why}");
            store.indices(seg, &resolver, good, bad).await.unwrap();
            let expected = answer["bodies"].as_object().unwrap();
            for (label, body) in expected {
                let (voxels, digest) = &found[label];
                assert_eq!(Some(*voxels), body[0].as_u64(), "{name} {version} {label}");
                assert_eq!(Some(digest.as_str()), body[1].as_str(), "{name} {version} {label}");
            }
            assert_eq!(found.len(), expected.len(), "{name} {version}");
        }
    }
}

#[tokio::test]
async fn the_stores_own_metadata_says_what_the_server_said() {
    for name in DVID_STORES {
        let directory = dvid_store(name);
        let options = DvidOptions::default();
        let own = DvidStore::open(&url(directory.path(), ""), &options).await.unwrap();
        let info = format!("?info={}", directory.path().join("repos_info.json").display());
        let told = DvidStore::open(&url(directory.path(), &info), &options).await.unwrap();
        let ([own], [told]) = (own.repos(), told.repos()) else { panic!("{name}") };
        assert_eq!((&own.root, &own.alias), (&told.root, &told.alias));
        assert_eq!(own.dag.in_order(), told.dag.in_order());
        for (own, told) in own.dag.versions().zip(told.dag.versions()) {
            assert_eq!((own.id, &own.uuid, &own.parents), (told.id, &told.uuid, &told.parents));
            assert_eq!(
                (&own.branch, &own.note, own.locked),
                (&told.branch, &told.note, told.locked)
            );
            assert!(own.created_ms.is_some());
        }
        let sorted = |repo: &chunkyard_format::dvid::Repo| {
            let mut instances = repo.instances.clone();
            instances.sort_by(|a, b| a.name.cmp(&b.name));
            instances
        };
        assert_eq!(sorted(own), sorted(told), "{name}");
        assert!(own.instances.iter().all(|instance| instance.id.is_some()));
    }
}

#[tokio::test]
async fn blocks_left_of_zero_are_where_they_were_put() {
    let directory = dvid_store("offset-live");
    let url = url(directory.path(), "");
    let source = DvidSource::open(&url, &DvidOptions::default()).await.unwrap();
    // The least block along z, y, x is -3, -2, -2.
    assert_eq!(origin(&source, "/seg/s0"), [-192, -128, -128]);
    let found = hashes(&source, "/seg/s0").await;
    assert_eq!(found["-1,-2,-3"], "d74b93b2103bd799");
    assert_eq!(found["-2,0,-1"], "49ce520468ad8074");
    assert!(source.cautions().iter().any(|caution| caution.contains("LOCK")));
    let (repo, version) = source.store().find(None).unwrap();
    let seg = repo.labelmap(None).unwrap();
    let info = source.store().describe(repo, seg, version).await.unwrap();
    assert_eq!(info.scales[0].start, [-192, -128, -128]);
    assert_eq!(info.scales[0].blocks, 27);
    assert_eq!(info.instance.voxel_size, Some([8.0; 3]));
}

#[tokio::test]
async fn a_block_that_two_parents_changed_is_an_error_and_the_rest_is_read() {
    let directory = dvid_store("branches");
    let url = url(directory.path(), "?uuid=b0377c0d&data=seg");
    let source = DvidSource::open(&url, &DvidOptions::default()).await.unwrap();
    let array = source.dataset().array("/seg/s0").unwrap().clone();
    let whole = chunkyard_array::Region::whole(array.spec.shape());
    use futures::StreamExt;
    let chunks: Vec<_> = source.chunks("/seg/s0", &whole).collect().await;
    let (good, bad): (Vec<_>, Vec<_>) = chunks.into_iter().partition(Result::is_ok);
    assert_eq!((good.len(), bad.len()), (23, 2));
    let error = bad.into_iter().next().unwrap().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    let text = error.to_string();
    assert!(text.contains("0baed2810eb54fc3aaa5dc28c5446a8f"), "{text}");
    assert!(text.contains("45091e90d5ec4c00a68e0dd135a954eb"), "{text}");
    let findings: Vec<_> = source.inspect(Level::Metadata).try_collect().await.unwrap();
    assert_eq!(findings.iter().filter(|f| f.array.as_deref() == Some("/seg/s0")).count(), 2);
}

#[tokio::test]
async fn a_plain_path_is_recognised_and_a_version_has_to_be_named_where_there_are_several() {
    let options = OpenOptions::default();
    let directory = dvid_store("branches");
    let path = directory.path().join("data/badger").display().to_string();
    let place = Place::new(&path, &options.store).unwrap();
    assert!(matches!(DvidFormat.probe(&place).await.unwrap(), Probe::Yes(_)));
    let error = DvidFormat.open(&place, &options).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert!(error.to_string().contains("979c4b0b7fff4f2aab4f10475dea04da"), "{error}");
    let place = Place::new(&format!("dvid+badger://{path}?uuid=ea6d"), &options.store).unwrap();
    let source = DvidFormat.open(&place, &options).await.unwrap();
    let arrays: Vec<_> = source.dataset().arrays().map(|(path, _)| path.to_owned()).collect();
    // One block was stored as LZ4, and no coarser ones.
    assert!(arrays.contains(&"/other/s0".to_owned()) && arrays.contains(&"/seg/s2".to_owned()));
    let empty = tempfile::tempdir().unwrap();
    let place = Place::new(&empty.path().display().to_string(), &options.store).unwrap();
    assert!(matches!(DvidFormat.probe(&place).await.unwrap(), Probe::No(_)));
}
