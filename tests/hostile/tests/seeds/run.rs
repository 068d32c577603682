//! Every input that is kept goes through the check of its target.

use std::collections::{BTreeSet, HashMap};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use bytes::Bytes;
use chunkyard_array::Codecs;
use chunkyard_engine::repo::hostile;
use chunkyard_hostile::codec::cases;
use chunkyard_hostile::{TARGETS, find, split_pages};

pub(crate) fn fuzz_directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz")
}

fn files(directory: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(directory) else { return Vec::new() };
    let mut files: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

fn run_all(kept: &str) -> usize {
    let mut count = 0;
    for target in TARGETS {
        for file in files(&fuzz_directory().join(kept).join(target.name)) {
            let data = std::fs::read(&file).unwrap();
            let outcome = catch_unwind(AssertUnwindSafe(|| (target.check)(&data)));
            assert!(outcome.is_ok(), "{} fails on {}", target.name, file.display());
            count += 1;
        }
    }
    count
}

#[test]
fn every_seed_passes() {
    assert!(run_all("seeds") >= TARGETS.len());
}

#[test]
fn every_input_that_once_broke_something_passes() {
    run_all("regressions");
}

#[test]
fn seeds_cut_and_bent_anywhere_pass() {
    for target in TARGETS {
        for file in files(&fuzz_directory().join("seeds").join(target.name)) {
            let data = std::fs::read(&file).unwrap();
            // Enough places to notice a careless change, few enough for every run of the tests.
            let step = (data.len() / 24).max(1);
            for at in (0..data.len()).step_by(step) {
                let mut bent = data.clone();
                bent[at] ^= 0xff;
                for input in [&data[..at], &bent] {
                    let outcome = catch_unwind(AssertUnwindSafe(|| (target.check)(input)));
                    assert!(outcome.is_ok(), "{} at {at} of {}", target.name, file.display());
                }
            }
        }
    }
}

#[test]
fn every_target_can_be_fuzzed_and_has_seeds() {
    let named = |directory: &str| -> BTreeSet<String> {
        let files = files(&fuzz_directory().join(directory));
        files.iter().map(|file| file.file_stem().unwrap().to_str().unwrap().to_owned()).collect()
    };
    let targets: BTreeSet<String> = TARGETS.iter().map(|t| t.name.to_owned()).collect();
    assert_eq!(named("fuzz_targets"), targets);
    assert_eq!(named("seeds"), targets);
    assert!(named("regressions").is_subset(&targets));
    let manifest = std::fs::read_to_string(fuzz_directory().join("Cargo.toml")).unwrap();
    for target in &targets {
        assert!(manifest.contains(&format!("path = \"fuzz_targets/{target}.rs\"")), "{target}");
    }
    assert!(find("state").is_some() && find("no such target").is_none());
}

/// A seed that is refused at the door leads a fuzzer nowhere.
#[test]
fn seeds_reach_what_is_behind_checksums_and_framing() {
    let seeds = |target: &str| {
        let files = files(&fuzz_directory().join("seeds").join(target));
        files.into_iter().map(|file| std::fs::read(file).unwrap()).collect::<Vec<_>>()
    };
    let dataset = "66f08abx07q8mbwfg5r7fb72rw";
    for seed in seeds("manifest_pages") {
        let (coord, tail, file) = split_pages(&seed).unwrap();
        let file = Bytes::copy_from_slice(file);
        assert!(hostile::read_pages(dataset, &file, tail, coord).unwrap() > 0);
    }
    let accepted = |reread: fn(&str, u64, &[u8]) -> chunkyard_engine::Result<Bytes>| {
        seeds("history").iter().any(|seed| reread(dataset, u64::from(seed[0]), &seed[1..]).is_ok())
    };
    assert!(accepted(|id, _, file| hostile::reread_history_index(id, file)));
    assert!(
        accepted(hostile::reread_history_writes) && accepted(hostile::reread_history_snapshots)
    );
    for seed in seeds("structure").into_iter().map(Bytes::from) {
        assert!(!hostile::parse_structure(dataset, &seed).unwrap().is_empty());
    }
    for seed in seeds("manifest").into_iter().map(Bytes::from) {
        assert!(!hostile::parse_manifest(dataset, &seed).unwrap().is_empty());
    }
    let mut positions = HashMap::<_, u8>::new();
    for case in cases() {
        let position = positions.entry(case.target).or_default();
        let codecs = Codecs::new(&case.spec()).unwrap();
        let decoded = seeds(case.target)
            .iter()
            .filter(|seed| seed[0] == *position)
            .filter(|seed| codecs.decode(&case.seal.close(&seed[1..])).is_ok())
            .count();
        *position += 1;
        assert_eq!(decoded, 2, "{case:?}");
    }
}
