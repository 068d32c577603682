//! Several processes edit one segmentation at the same time.

use std::collections::BTreeSet;
use std::thread;

use super::support::{Run, Scratch, npy};

const WRITERS: u64 = 6;
/// The body that every writer wants.
const WANTED: &str = "25";

/// Bodies of two voxels along x, eight to a block; and a mask of one voxel along x.
fn imported() -> Scratch {
    let scratch = Scratch::new();
    let labels = (0..16 * 16 * 56u64).flat_map(|place| (place % 56 / 2 + 1).to_le_bytes());
    scratch.write("seg.npy", &npy("<u8", false, &[16, 16, 56], &labels.collect::<Vec<_>>()));
    scratch.write("mask.npy", &npy("|b1", false, &[16, 16, 1], &[1; 256]));
    scratch.run(&["labels", "import", "r", "seg.npy", "--block", "16,16,16"]).code(0);
    scratch
}

/// The mutations that a run of an edit reports.
fn acknowledged(run: &Run) -> Vec<u64> {
    let mutations = run.json()["mutations"].as_array().unwrap().clone();
    mutations.iter().map(|mutation| mutation["mutation"].as_u64().unwrap()).collect()
}

/// What one writer does: two edits of bodies of its own, and one of the body that all want.
fn edits_of(scratch: &Scratch, writer: u64) -> [Run; 3] {
    let [first, second, third] = [1, 2, 3].map(|at| (writer * 4 + at).to_string());
    let at = format!("0,0,{}", (writer * 4 + 2) * 2);
    let merge = ["labels", "merge-bodies", "r", &first, &second, "--json"];
    let contested = ["labels", "merge-bodies", "r", &first, WANTED, "--json"];
    let mask = ["--mask", "mask.npy", "--at", &at, "--json"];
    let split = [&["labels", "split-supervoxel", "r", &third], &mask[..]].concat();
    [scratch.run(&merge), scratch.run(&contested), scratch.run(&split)]
}

#[test]
fn processes_that_edit_at_once_lose_no_edit() {
    let scratch = imported();
    let runs: Vec<[Run; 3]> = thread::scope(|scope| {
        let scratch = &scratch;
        let writers: Vec<_> =
            (0..WRITERS).map(|writer| scope.spawn(move || edits_of(scratch, writer))).collect();
        writers.into_iter().map(|writer| writer.join().unwrap()).collect()
    });
    let mut known = BTreeSet::new();
    let mut winners = Vec::new();
    for (writer, [merge, contested, split]) in (0..WRITERS).zip(runs) {
        known.extend(acknowledged(&merge.code(0)));
        known.extend(acknowledged(&split.code(0)));
        match contested.code {
            0 => {
                known.extend(acknowledged(&contested));
                winners.push(writer * 4 + 1);
            }
            // Another writer was faster: between our look and our commit, or before both.
            4 => assert!(
                contested.stderr.contains(&format!("body {WANTED} was edited meanwhile")),
                "{}",
                contested.stderr
            ),
            code => {
                assert_eq!(code, 3, "{}", contested.stderr);
                assert!(contested.stderr.contains(WANTED), "{}", contested.stderr);
            }
        }
    }
    let [winner] = winners[..] else { panic!("body {WANTED} went to {winners:?}") };
    let log = scratch.json(&["labels", "log", "r", "-n", "100"]);
    let logged = log.as_array().unwrap().iter().map(|row| row["mutation"].as_u64().unwrap());
    assert_eq!(logged.collect::<BTreeSet<_>>(), known);
    let places: Vec<String> =
        (0..WRITERS).map(|writer| format!("0,0,{}", (writer * 4 + 1) * 2)).collect();
    let places = places.iter().map(String::as_str).chain(["0,0,48"]);
    let found = scratch.run(&["labels", "at", "r"].into_iter().chain(places).collect::<Vec<_>>());
    let expected = (0..WRITERS).map(|writer| writer * 4 + 1).chain([winner]);
    assert_eq!(found.code(0).text(), expected.map(|body| format!("{body}\n")).collect::<String>());
    scratch.run(&["labels", "verify", "r"]).code(0);
}
