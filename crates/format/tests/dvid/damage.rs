//! Damaged stores: the right error at the right place, and with `skip_corrupt` all else as it was.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use chunkyard_format::dvid::{DvidFormat, DvidOptions, DvidSource, LabelIndex};
use chunkyard_format::{Format, OpenOptions, Place, Probe, Source};
use chunkyard_store::{Error, ErrorKind, Result};
use chunkyard_test_support::dvid_store;

use super::{readable, url};

const SCALES: [&str; 3] = ["/seg/s0", "/seg/s1", "/seg/s2"];

/// The store of one version whose blocks are in one table and one value log.
struct Damaged(tempfile::TempDir);

impl Damaged {
    fn new() -> Self {
        Self(dvid_store("basic"))
    }

    fn path(&self, file: &str) -> PathBuf {
        self.0.path().join("data/badger").join(file)
    }

    fn flip(&self, file: &str, at: u64) {
        let file = fs::File::options().read(true).write(true).open(self.path(file)).unwrap();
        let mut byte = [0];
        file.read_exact_at(&mut byte, at).unwrap();
        file.write_all_at(&[byte[0] ^ 4], at).unwrap();
    }

    fn cut(&self, file: &str, len: u64) {
        fs::File::options().write(true).open(self.path(file)).unwrap().set_len(len).unwrap();
    }

    async fn open(&self, skip_corrupt: bool) -> Result<DvidSource> {
        let options = DvidOptions { skip_corrupt, ..DvidOptions::default() };
        DvidSource::open(&url(self.0.path(), ""), &options).await
    }
}

async fn all(source: &DvidSource) -> (BTreeMap<(usize, String), String>, Vec<Error>) {
    let (mut blocks, mut errors) = (BTreeMap::new(), Vec::new());
    for (scale, path) in SCALES.into_iter().enumerate() {
        // A scale of which nothing is left is no array.
        if source.dataset().array(path).is_err() {
            continue;
        }
        let (hashes, failed) = readable(source, path).await;
        blocks.extend(hashes.into_iter().map(|(at, hash)| ((scale, at), hash)));
        errors.extend(failed);
    }
    (blocks, errors)
}

fn file_of(error: &Error) -> &str {
    match error {
        Error::Corrupt { file, .. } => file,
        other => panic!("{other}"),
    }
}

#[tokio::test]
async fn blocks_that_a_cut_value_log_still_has_are_read_and_the_others_named() {
    let whole = all(&Damaged::new().open(false).await.unwrap()).await.0;
    let damaged = Damaged::new();
    damaged.cut("000001.vlog", 300_000);
    let error = damaged.open(true).await.unwrap_err();
    // What describes the store was written later.
    assert!(error.to_string().contains("info="), "{error}");
    let info = format!("?info={}", damaged.0.path().join("repos_info.json").display());
    let described = async |skip_corrupt: bool| {
        let options = DvidOptions { skip_corrupt, ..DvidOptions::default() };
        DvidSource::open(&url(damaged.0.path(), &info), &options).await
    };
    assert_eq!(file_of(&described(false).await.unwrap_err()), "000001.vlog");
    let source = described(true).await.unwrap();
    let (kept, errors) = all(&source).await;
    assert!(errors.is_empty() && !kept.is_empty() && kept.len() < whole.len());
    assert!(kept.iter().all(|(at, hash)| whole[at] == *hash));
    let left_out = source.left_out();
    for ((scale, at), _) in whole.iter().filter(|(at, _)| !kept.contains_key(*at)) {
        let at: Vec<&str> = at.split(',').collect();
        let name = format!("block z={} y={} x={} of scale {scale} ", at[2], at[1], at[0]);
        let named = left_out.iter().filter(|finding| finding.what.contains(&name));
        assert_eq!(named.count(), 1, "{name}");
    }
}

/// What a version wrote and that is lost is not what its parent has there.
#[tokio::test]
async fn no_block_and_no_index_of_a_parent_shows_where_a_value_log_is_cut() {
    let directory = dvid_store("many");
    let info = format!("info={}", directory.path().join("repos_info.json").display());
    let options = DvidOptions { skip_corrupt: true, ..DvidOptions::default() };
    let answers = super::answers("many");
    let read = async |uuid: &str| {
        let query = format!("?{info}&uuid={uuid}");
        let source = DvidSource::open(&url(directory.path(), &query), &options).await.unwrap();
        let (repo, version) = source.store().find(Some(uuid)).unwrap();
        let resolver = repo.dag.resolver(version).unwrap();
        let (mut indices, mut bad) = (BTreeMap::new(), BTreeSet::new());
        let good = |index: LabelIndex| {
            indices.insert(index.label, index);
        };
        let seg = repo.labelmap(Some("seg")).unwrap();
        let said = |label, _| {
            bad.insert(label);
        };
        source.store().indices(seg, &resolver, good, said).await.unwrap();
        (all(&source).await, indices, bad)
    };
    let some: Vec<&str> =
        answers.values().step_by(6).map(|answer| answer["uuid"].as_str().unwrap()).collect();
    let mut whole = Vec::new();
    for uuid in &some {
        whole.push(read(uuid).await);
    }
    let log = directory.path().join("data/badger/000001.vlog");
    let used = used_bytes(&log);
    fs::File::options().write(true).open(&log).unwrap().set_len(used * 3 / 4).unwrap();
    let (mut blocks_lost, mut indices_lost) = (0, 0);
    for (uuid, ((blocks, _), indices, bad)) in some.iter().zip(whole) {
        assert!(bad.is_empty());
        let ((kept, errors), kept_indices, bad) = read(uuid).await;
        assert_eq!(errors.len(), 0);
        blocks_lost += blocks.len() - kept.len();
        assert!(kept.iter().all(|(at, hash)| blocks.get(at) == Some(hash)), "{uuid}");
        assert!(kept_indices.iter().all(|(label, index)| indices.get(label) == Some(index)));
        assert_eq!(kept_indices.len() + bad.len(), indices.len());
        indices_lost += bad.len();
    }
    assert!(blocks_lost > 0 && indices_lost > 0, "{blocks_lost} {indices_lost}");
}

#[tokio::test]
async fn a_flipped_bit_of_a_value_spoils_one_block() {
    let whole = all(&Damaged::new().open(false).await.unwrap()).await.0;
    let damaged = Damaged::new();
    // The first large values of the log are the blocks that were posted.
    damaged.flip("000001.vlog", 9_000);
    let (kept, errors) = all(&damaged.open(false).await.unwrap()).await;
    assert_eq!((kept.len(), errors.len()), (whole.len() - 1, 1));
    assert!(kept.iter().all(|(at, hash)| whole[at] == *hash));
    assert_eq!(file_of(&errors[0]), "000001.vlog");
    assert!(errors[0].to_string().contains("checksum"), "{}", errors[0]);
}

#[tokio::test]
async fn a_flipped_bit_of_a_table_hides_a_range_of_keys() {
    let whole = all(&Damaged::new().open(false).await.unwrap()).await.0;
    let damaged = Damaged::new();
    let mut met = 0;
    // Keys of blocks are among the first.
    for at in (500..15_000).step_by(1_000) {
        damaged.flip("000001.sst", at);
        let Ok(source) = damaged.open(true).await else {
            // The range had what describes the store.
            damaged.flip("000001.sst", at);
            continue;
        };
        let (kept, errors) = all(&source).await;
        assert!(errors.is_empty());
        assert!(kept.iter().all(|(at, hash)| whole[at] == *hash));
        let left_out = source.left_out();
        if kept.len() < whole.len() {
            met += 1;
            assert_eq!((left_out.len(), left_out[0].file.as_str()), (1, "000001.sst"));
            assert!(left_out[0].what.contains("block at offset"), "{}", left_out[0].what);
            let error = damaged.open(false).await.unwrap_err();
            assert_eq!(file_of(&error), "000001.sst");
        }
        damaged.flip("000001.sst", at);
    }
    assert!(met > 0);
}

#[tokio::test]
async fn a_table_that_manifest_names_and_that_never_was_is_left_out() {
    let whole = all(&Damaged::new().open(false).await.unwrap()).await.0;
    let damaged = Damaged::new();
    let change = [0x0a, 2, 0x08, 77];
    let mut manifest = fs::read(damaged.path("MANIFEST")).unwrap();
    manifest.extend(4u32.to_be_bytes());
    manifest.extend(crc32c::crc32c(&change).to_be_bytes());
    manifest.extend(change);
    fs::write(damaged.path("MANIFEST"), manifest).unwrap();
    assert_eq!(file_of(&damaged.open(false).await.unwrap_err()), "000077.sst");
    let source = damaged.open(true).await.unwrap();
    assert_eq!(all(&source).await.0, whole);
    assert_eq!(source.left_out().len(), 1);
    assert!(source.left_out()[0].what.contains("which keys it held is not known"));
}

/// Without its only table a store has no versions: that is damage, and not a directory of another kind.
#[tokio::test]
async fn a_store_that_lost_its_metadata_says_so_and_takes_them_from_a_file() {
    let damaged = Damaged::new();
    let path = damaged.0.path().join("data/badger").display().to_string();
    fs::remove_file(damaged.path("000001.sst")).unwrap();
    let place = Place::new(&path, &OpenOptions::default().store).unwrap();
    assert!(matches!(DvidFormat.probe(&place).await.unwrap(), Probe::Yes(_)));
    for skip_corrupt in [false, true] {
        let error = damaged.open(skip_corrupt).await.unwrap_err();
        assert_eq!(file_of(&error), "000001.sst", "{error}");
    }
    let info = format!("?info={}", damaged.0.path().join("repos_info.json").display());
    let options = DvidOptions { skip_corrupt: true, ..DvidOptions::default() };
    let error = DvidSource::open(&url(damaged.0.path(), &info), &options).await.unwrap_err();
    // The file has no numbers of instances, and no key is left that would tell.
    assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
}

#[tokio::test]
async fn a_memtable_log_that_is_cut_is_damage_and_the_rest_is_read() {
    let directory = dvid_store("offset-live");
    let open = async |skip_corrupt: bool| {
        let options = DvidOptions { skip_corrupt, ..DvidOptions::default() };
        DvidSource::open(&url(directory.path(), ""), &options).await
    };
    let path = "/seg/s0";
    let whole = readable(&open(false).await.unwrap(), path).await.0;
    let log = directory.path().join("data/badger/00001.mem");
    let used = used_bytes(&log);
    let mut fewer = 0;
    for part in [used - 3, used / 2 + 1] {
        fs::File::options().write(true).open(&log).unwrap().set_len(part).unwrap();
        let error = open(false).await.unwrap_err();
        assert_eq!(file_of(&error), "00001.mem");
        assert!(error.to_string().contains(&format!("the end of the file at {part}")), "{error}");
        let source = open(true).await.unwrap();
        assert!(source.left_out()[0].what.contains("the end of the file"));
        let kept = readable(&source, path).await.0;
        // Blocks that were written twice show their first value; all others are as they were.
        fewer += whole.len() - kept.len();
        assert!(kept.keys().all(|at| whole.contains_key(at)));
    }
    assert!(fewer > 0);
}

/// The length of a file without the zeros at its end.
fn used_bytes(path: &Path) -> u64 {
    let bytes = fs::read(path).unwrap();
    bytes.iter().rposition(|byte| *byte != 0).unwrap() as u64 + 1
}
