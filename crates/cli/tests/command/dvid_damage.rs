//! Damaged stores of DVID on the command line: exit code 5, the file by its name, and the rest if it is asked for.

use std::fs;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use chunkyard_test_support::dvid_store;

use super::support::Scratch;

/// A store, and where its Badger directory is.
struct Store {
    _directory: tempfile::TempDir,
    badger: PathBuf,
}

impl Store {
    fn new(name: &str) -> Self {
        let directory = dvid_store(name);
        let badger = directory.path().join("data/badger");
        Self { _directory: directory, badger }
    }

    fn url(&self) -> &str {
        self.badger.to_str().unwrap()
    }

    fn file(&self, name: &str) -> fs::File {
        fs::File::options().read(true).write(true).open(self.badger.join(name)).unwrap()
    }

    fn flip(&self, name: &str, at: u64) {
        let (file, mut byte) = (self.file(name), [0]);
        file.read_exact_at(&mut byte, at).unwrap();
        file.write_all_at(&[byte[0] ^ 0x40], at).unwrap();
    }

    fn cut(&self, name: &str, len: u64) {
        self.file(name).set_len(len).unwrap();
    }
}

/// The length of a file without the zeros at its end.
fn used(path: &Path) -> u64 {
    fs::read(path).unwrap().iter().rposition(|byte| *byte != 0).unwrap() as u64 + 1
}

/// Damage, by the file that it is in.
fn damage() -> Vec<(&'static str, Store)> {
    let mut cases = Vec::new();
    let mut add = |file: &'static str, name: &str, spoil: &dyn Fn(&Store)| {
        let store = Store::new(name);
        spoil(&store);
        cases.push((file, store));
    };
    add("000001.vlog", "basic", &|store| store.flip("000001.vlog", 9_000));
    add("000001.vlog", "basic", &|store| store.cut("000001.vlog", 450_000));
    add("000001.sst", "basic", &|store| store.flip("000001.sst", 2_500));
    add("000077.sst", "basic", &|store| {
        let mut manifest = fs::read(store.badger.join("MANIFEST")).unwrap();
        // Another table, created at level 0.
        let change = [0x0a, 2, 0x08, 77];
        manifest.extend(4u32.to_be_bytes());
        manifest.extend(crc32c::crc32c(&change).to_be_bytes());
        manifest.extend(change);
        fs::write(store.badger.join("MANIFEST"), manifest).unwrap();
    });
    add("000002.sst", "edits", &|store| {
        fs::remove_file(store.badger.join("000002.sst")).unwrap();
    });
    add("00001.mem", "offset-live", &|store| {
        store.cut("00001.mem", used(&store.badger.join("00001.mem")) * 3 / 4);
    });
    cases
}

#[test]
fn damage_of_each_kind_of_file_is_exit_code_5_and_skipped_only_if_asked_for() {
    for (file, store) in damage() {
        let scratch = Scratch::new();
        let checked = scratch.run(&["verify", store.url()]).code(5);
        assert!(checked.text().contains(file), "{file}: {}", checked.text());
        let failed = scratch.run(&["convert", store.url(), "x.zarr"]).code(5);
        assert!(failed.stderr.contains(file), "{file}: {}", failed.stderr);
        // Nothing of it is to be seen.
        scratch.run(&["ls", "x.zarr"]).code(3);
        let kept = scratch.run(&["convert", store.url(), "x.zarr", "--skip-corrupt", "--json"]);
        let kept = kept.code(5);
        let said = kept.stderr.lines().find(|line| line.contains("left out"));
        assert!(said.is_some_and(|line| line.contains(file)), "{file}: {}", kept.stderr);
        let outcome = &kept.json()["outcome"];
        let parts = |name: &str| outcome[name].as_array().unwrap().len();
        assert!(parts("left-out") + parts("damaged") > 0, "{outcome}");
        scratch.run(&["ls", "x.zarr"]).code(0);
    }
}

#[test]
fn an_import_without_damaged_parts_is_made_only_if_asked_for() {
    let (scratch, store) = (Scratch::new(), Store::new("basic"));
    store.cut("000001.vlog", 450_000);
    let failed = scratch.run(&["convert", store.url(), "x.repo"]).code(5);
    assert!(failed.stderr.contains("000001.vlog"), "{}", failed.stderr);
    assert_ne!(scratch.run(&["labels", "info", "x.repo"]).code, 0);
    let kept = scratch.run(&["convert", store.url(), "x.repo", "--skip-corrupt", "--json"]).code(5);
    assert!(kept.stderr.contains("block z="), "{}", kept.stderr);
    assert!(kept.json()["left-out"].as_array().unwrap().len() > 10);
    scratch.run(&["labels", "info", "x.repo"]).code(0);
}

#[test]
fn a_damaged_manifest_and_lost_metadata_cannot_be_skipped() {
    let (scratch, manifest, table) = (Scratch::new(), Store::new("basic"), Store::new("basic"));
    manifest.flip("MANIFEST", 26);
    fs::remove_file(table.badger.join("000001.sst")).unwrap();
    for (file, store) in [("MANIFEST", manifest), ("000001.sst", table)] {
        let explicit = format!("dvid+badger://{}", store.url());
        for command in [
            vec!["info", store.url()],
            vec!["ls", &explicit],
            vec!["verify", store.url()],
            vec!["convert", &explicit, "x.zarr", "--skip-corrupt"],
        ] {
            let failed = scratch.run(&command).code(5);
            assert!(failed.stderr.contains(file), "{command:?}: {}", failed.stderr);
        }
    }
}

#[test]
fn encrypted_stores_are_refused_as_such() {
    let (scratch, store) = (Scratch::new(), Store::new("basic"));
    // What follows the text of a registry are keys.
    let registry = store.badger.join("KEYREGISTRY");
    let mut bytes = fs::read(&registry).unwrap();
    bytes.extend([1; 40]);
    fs::write(&registry, bytes).unwrap();
    let url = format!("dvid+badger://{}", store.url());
    let refused = scratch.run(&["info", &url]).code(6);
    assert!(refused.stderr.contains("encrypted"), "{}", refused.stderr);
}

#[test]
fn what_is_not_there_is_answered_with_what_there_is() {
    let (scratch, store) = (Scratch::new(), Store::new("branches"));
    let info = scratch.json(&["info", store.url()]);
    let versions = info["repositories"][0]["versions"].as_array().unwrap();
    let uuid = versions[0]["uuid"].as_str().unwrap();
    let url = |query: &str| format!("dvid+badger://{}?{query}", store.url());
    let unknown = scratch.run(&["ls", &url("uuid=ffff")]).code(3);
    assert!(unknown.stderr.contains(uuid), "{}", unknown.stderr);
    let many = scratch.run(&["ls", store.url()]).code(2);
    assert!(many.stderr.contains(uuid), "{}", many.stderr);
    let data = scratch.run(&["ls", &url(&format!("uuid={uuid}&data=none"))]).code(2);
    assert!(data.stderr.contains("seg") && data.stderr.contains("other"), "{}", data.stderr);
    scratch.run(&["ls", &url("versoin=1")]).code(2);
    fs::create_dir(scratch.path("empty")).unwrap();
    for url in ["empty", "dvid+badger://empty", "dvid+badger://nowhere"] {
        scratch.run(&["info", url]).code(3);
    }
}
