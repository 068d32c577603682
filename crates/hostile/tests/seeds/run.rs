//! Every input that is kept goes through the check of its target.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use chunkyard_hostile::{TARGETS, find};

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
    assert!(find("state").is_some() && find("no such target").is_none());
}
