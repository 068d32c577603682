//! Stores whose metadata cannot be read, versions and data that are not there, and directories of other kinds.

use std::fs;
use std::os::unix::fs::FileExt;
use std::path::Path;

use chunkyard_format::badger::{Badger, KeyRange};
use chunkyard_format::dvid::{DvidFormat, DvidOptions, DvidSource, DvidStore, DvidUrl};
use chunkyard_format::{Format, OpenOptions, Place, Probe, Source};
use chunkyard_store::{Check, ChunkRef, Error, ErrorKind, Options, Store};
use chunkyard_test_support::{dvid_store, unpack_store};
use futures::TryStreamExt;

use super::{answers, hashes, url};

/// Makes the metadata of a store a value that is intact for Badger and no repository for DVID.
async fn spoil_metadata(store: &Path) {
    let path = store.join("data/badger");
    let opened = Store::open(path.to_str().unwrap(), &Options::default()).unwrap();
    let badger = Badger::open(&opened).await.unwrap();
    let found: Vec<_> = badger.scan(KeyRange::prefix(&[0, 4, 1])).try_collect().await.unwrap();
    let found = found.concat();
    assert_eq!(found.len(), 1);
    let Some(ChunkRef::Object {
        path: name, range, check: Some(Check::Entry { before, .. }), ..
    }) = &found[0].value
    else {
        panic!("{:?}", found[0]);
    };
    let file = fs::File::options().read(true).write(true).open(path.join(&**name)).unwrap();
    let start = range.start - u64::from(*before);
    let mut entry = vec![0; (range.end - start) as usize];
    file.read_exact_at(&mut entry, start).unwrap();
    let value = entry.len() - (range.end - range.start) as usize;
    entry[value..].fill(0xee);
    file.write_all_at(&entry, start).unwrap();
    file.write_all_at(&crc32c::crc32c(&entry).to_be_bytes(), range.end).unwrap();
}

fn with_info(store: &Path, more: &str) -> DvidUrl {
    url(store, &format!("?info={}{more}", store.join("repos_info.json").display()))
}

#[tokio::test]
async fn a_store_whose_metadata_cannot_be_decoded_needs_the_answer_of_the_server() {
    let directory = dvid_store("basic");
    spoil_metadata(directory.path()).await;
    let options = DvidOptions::default();
    let error = DvidSource::open(&url(directory.path(), ""), &options).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    assert!(error.to_string().contains("info="), "{error}");
    // The only labelmap has the only number that owns blocks.
    let source = DvidSource::open(&with_info(directory.path(), ""), &options).await.unwrap();
    assert!(source.cautions().iter().any(|caution| caution.contains("metadata of the store")));
    let answer = &answers("basic")["root"];
    let found = hashes(&source, "/seg/s0").await;
    let told = answer["scales"][0].as_object().unwrap();
    assert_eq!(found.len(), told.len());
    for (at, expected) in told {
        assert_eq!(found.get(at).map(String::as_str), expected[0].as_str(), "{at}");
    }
}

#[tokio::test]
async fn of_several_labelmaps_the_caller_says_which_number_each_has() {
    let directory = dvid_store("branches");
    let path = directory.path();
    let options = DvidOptions::default();
    let uuid = answers("branches")["a2"]["uuid"].as_str().unwrap().to_owned();
    let known = DvidSource::open(&url(path, &format!("?uuid={uuid}&data=seg")), &options).await;
    let known = known.unwrap();
    let number = |name: &str| {
        let instance = known.store().repos()[0].labelmap(Some(name)).unwrap();
        instance.id.unwrap()
    };
    let (seg, other) = (number("seg"), number("other"));
    let expected = hashes(&known, "/seg/s0").await;

    spoil_metadata(path).await;
    let of = |more: &str| with_info(path, &format!("&uuid={uuid}&data=seg{more}"));
    let error = DvidSource::open(&of(""), &options).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(error.to_string().contains("instance="), "{error}");
    let store = DvidStore::open(&of(""), &options).await.unwrap();
    let cautions = store.cautions().join(" ");
    assert!(cautions.contains(&format!("{}, {}", seg.min(other), seg.max(other))), "{cautions}");
    let source = DvidSource::open(&of(&format!("&instance={seg}")), &options).await.unwrap();
    assert_eq!(hashes(&source, "/seg/s0").await, expected);
    // Where the store knows the number, it cannot be another.
    let sound = dvid_store("branches");
    let wrong = url(sound.path(), &format!("?uuid={uuid}&data=seg&instance={other}"));
    let error = DvidSource::open(&wrong, &options).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
}

#[tokio::test]
async fn what_is_not_there_is_answered_with_what_there_is() {
    let directory = dvid_store("branches");
    let refused = async |query: &str| {
        let url = url(directory.path(), query);
        DvidSource::open(&url, &DvidOptions::default()).await.unwrap_err()
    };
    let first = answers("branches")["root"]["uuid"].as_str().unwrap().to_owned();
    let error = refused("?uuid=ffff&data=seg").await;
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert!(error.to_string().contains(&first), "{error}");
    // Every UUID begins with nothing, and several with the same digit.
    let starts: Vec<char> = answers("branches")
        .values()
        .filter_map(|answer| answer["uuid"].as_str()?.chars().next())
        .collect();
    let twice = starts.iter().find(|one| starts.iter().filter(|other| other == one).count() > 1);
    let error = refused(&format!("?uuid={}&data=seg", twice.unwrap())).await;
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert!(error.to_string().contains("is the beginning of"), "{error}");
    let error = refused(&format!("?uuid={first}:nowhere")).await;
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert!(error.to_string().contains("side"), "{error}");
    let error = refused(&format!("?uuid={first}&data=segments")).await;
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert!(error.to_string().contains("seg, other") || error.to_string().contains("other, seg"));
}

#[tokio::test]
async fn a_badger_directory_of_another_program_is_no_store_of_dvid() {
    let packed = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/badger/none.store");
    let (other, empty) = (unpack_store(&packed), tempfile::tempdir().unwrap());
    fs::create_dir_all(empty.path().join("data/badger")).unwrap();
    for directory in [other.path(), empty.path()] {
        let path = directory.join("data/badger").display().to_string();
        let place = Place::new(&path, &OpenOptions::default().store).unwrap();
        assert!(matches!(DvidFormat.probe(&place).await.unwrap(), Probe::No(_)));
        let error =
            DvidStore::open(&url(directory, ""), &DvidOptions::default()).await.unwrap_err();
        assert!(matches!(error, Error::NotFound { .. }), "{error}");
    }
}
