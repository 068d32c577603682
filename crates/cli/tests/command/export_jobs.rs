//! Jobs that are exports: workers are killed and put to sleep, and the shards are those of one process.

use std::collections::BTreeMap;
use std::fs;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::Value;

use super::jobs::{spawn, steps, tree};
use super::support::{Noise, Scratch, npy};

/// Voxels along z, y and x: 2 × 3 × 4 blocks.
const SHAPE: [u64; 3] = [128, 192, 256];
pub(super) const EMIT: [&str; 4] = ["--emit", "arrow,precomputed,table", "--spec", "spec.json"];
const WORK: [&str; 2] = ["work", "job"];

/// A labelmap `brain`, and a specification by which every block is a shard.
pub(super) fn source() -> Scratch {
    let scratch = Scratch::new();
    let [depth, height, width] = SHAPE;
    let label = |n: u64| {
        let (z, y, x) = (n / (height * width), n / width % height, n % width);
        u32::try_from(1 + x / 48 + 10 * (y / 40) + 100 * (z / 56)).unwrap()
    };
    let labels: Vec<u8> =
        (0..depth * height * width).flat_map(|n| label(n).to_le_bytes()).collect();
    scratch.write("segmentation.npy", &npy("<u4", false, &SHAPE, &labels));
    scratch.run(&["labels", "import", "brain", "segmentation.npy"]).code(0);
    fs::remove_file(scratch.path("segmentation.npy")).unwrap();
    scratch.run(&["export-shards", "brain", "chosen"]).code(0);
    let spec = fs::read(scratch.path("chosen/spec.json")).unwrap();
    let mut spec: Value = serde_json::from_slice(&spec).unwrap();
    for scale in spec["scales"].as_array_mut().unwrap() {
        let sharding = &mut scale["sharding"];
        sharding["preshift_bits"] = 0.into();
        sharding["minishard_bits"] = 0.into();
        sharding["shard_bits"] = 6.into();
    }
    scratch.write("spec.json", spec.to_string().as_bytes());
    scratch
}

/// All that an export leaves, with its lines in order, and without the time it took.
fn exported(scratch: &Scratch, target: &str) -> BTreeMap<String, Vec<u8>> {
    let mut files = tree(&scratch.path(target));
    assert!(files.contains_key("info"), "{target} is not finished");
    files.remove(".export.lock");
    let mut log: Value = serde_json::from_slice(&files["export.log.json"]).unwrap();
    for time in ["seconds", "resumed"] {
        log.as_object_mut().unwrap().remove(time);
    }
    files.insert("export.log.json".to_owned(), log.to_string().into());
    let mut lines: Vec<&[u8]> =
        files["export.jsonl"].split_inclusive(|byte| *byte == b'\n').collect();
    lines.sort_unstable();
    let lines = lines.concat();
    files.insert("export.jsonl".to_owned(), lines);
    files
}

/// Makes a job of a task per shard.
fn make(scratch: &Scratch, more: &[&str]) -> Value {
    let job = ["--job", "job", "--task-size", "2MiB", "--json"];
    let made = [&["export-shards", "brain", "out"], &EMIT[..], &job[..], more].concat();
    let made = scratch.run(&made).code(0).json();
    assert!(made["tasks"].as_u64().unwrap() >= 24, "{made}");
    made
}

#[test]
fn workers_killed_at_random_leave_the_shards_of_one_process() {
    let scratch = source();
    scratch.run(&[&["export-shards", "brain", "whole"], &EMIT[..]].concat()).code(0);
    let whole = exported(&scratch, "whole");
    let mut noise = Noise(7);
    for round in 0..4 {
        let made = make(&scratch, &[]);
        // Two workers, then three.
        let count = 2 + round % 2;
        let mut workers: Vec<Child> = (0..count).map(|_| spawn(&scratch, &WORK)).collect();
        for kill in 0..2 * count {
            let (before, wanted) = (steps(&scratch), (noise.next() % 12) as usize);
            while steps(&scratch) < before + wanted && !scratch.path("out/info").exists() {
                std::thread::sleep(Duration::from_millis(1));
            }
            let worker = &mut workers[kill % count];
            worker.kill().unwrap();
            worker.wait().unwrap();
            if kill < count {
                workers[kill % count] = spawn(&scratch, &WORK);
            }
        }
        let done = scratch.run(&[&WORK[..], &["--json"]].concat()).code(0).json();
        assert_eq!((&done["finished"], &done["refused"]), (&true.into(), &0.into()), "{round}");
        assert!(exported(&scratch, "out") == whole, "round {round}: other bytes");
        let status = scratch.run(&["work", "job", "--status", "--json"]).code(0).json();
        assert_eq!(status["kind"], "export-shards");
        assert_eq!((&status["done"], &status["free"]), (&made["tasks"], &0.into()), "{status}");
        scratch.run(&["export-shards", "brain", "out", "--check"]).code(0);
        fs::remove_dir_all(scratch.path("out")).unwrap();
        fs::remove_dir_all(scratch.path("job")).unwrap();
    }
}

pub(super) fn signal(worker: &Child, name: &str) {
    let sent = Command::new("kill").args([name, &worker.id().to_string()]).status().unwrap();
    assert!(sent.success());
}

/// A worker is put to sleep in the middle; others take over what it held, and it wakes up when all is over.
#[test]
fn a_shard_of_a_stale_lease_counts_once() {
    let scratch = source();
    scratch.run(&[&["export-shards", "brain", "whole"], &EMIT[..]].concat()).code(0);
    let made = make(&scratch, &["--lease", "400ms"]);
    let mut command = Command::new(scratch.command(&[]).get_program());
    command.args(["work", "job", "--json"]).current_dir(scratch.path("."));
    let sleeper = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
    while steps(&scratch) < 4 {
        std::thread::sleep(Duration::from_millis(1));
    }
    signal(&sleeper, "-STOP");
    let other = spawn(&scratch, &WORK);
    let done = scratch.run(&["work", "job", "--json"]).code(0).json();
    assert_eq!(done["finished"], true, "{done}");
    assert!(other.wait_with_output().unwrap().status.success());
    let status = scratch.run(&["work", "job", "--status", "--json"]).code(0).json();
    signal(&sleeper, "-CONT");
    let woken = sleeper.wait_with_output().unwrap();
    assert!(woken.status.success(), "a worker that was given up is no failure");
    let woken: Value = serde_json::from_slice(&woken.stdout).unwrap();
    assert_eq!(woken["finished"], true, "{woken}");
    let after = scratch.run(&["work", "job", "--status", "--json"]).code(0).json();
    assert_eq!((&after["done"], &after["outcome"]), (&made["tasks"], &status["outcome"]));
    assert!(exported(&scratch, "out") == exported(&scratch, "whole"));
}

#[test]
fn a_job_leaves_finished_shards_alone_and_refuses_other_exports() {
    let scratch = source();
    scratch.run(&[&["export-shards", "brain", "out"], &EMIT[..]].concat()).code(0);
    let before = fs::metadata(scratch.path("out/s0/0_0_0.arrow")).unwrap().modified().unwrap();
    fs::remove_file(scratch.path("out/s0/64_0_0.arrow")).unwrap();
    make(&scratch, &[]);
    assert_eq!(make(&scratch, &[])["new"], false);
    scratch.run(&WORK).code(0);
    let after = fs::metadata(scratch.path("out/s0/0_0_0.arrow")).unwrap().modified().unwrap();
    assert_eq!(before, after, "a finished shard was written again");
    assert!(scratch.path("out/s0/64_0_0.arrow").exists());

    let refused = ["export-shards", "brain", "other", "--job", "job"];
    scratch.run(&refused).code(4);
    assert!(!scratch.path("other").exists());
    scratch.run(&["export-shards", "brain", "out", "--job", "job2"]).code(2);
    scratch.run(&["export-shards", "brain", "out", "--job", "job2", "--check"]).code(2);
    scratch.run(&["export-shards", "brain", "out", "--task-size", "1MiB"]).code(2);
    assert!(!scratch.path("job2").exists());
}
