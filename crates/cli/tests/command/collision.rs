//! Two processes at once, on an array that is moved in several slabs.

use std::fs::File;
use std::io::Write;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use super::support::{Scratch, npy};

const MIB: usize = 1 << 20;
/// One row is one chunk of 40 MiB, so that the first slab is two rows and the second is one.
const ROW: usize = 40 * MIB;
const SHAPE: [u64; 2] = [3, ROW as u64];

/// A process that has written its first slab (we wait a minute at most) and waits for the rest of
/// its input.
fn writer_in_the_middle(scratch: &Scratch, options: &[&str]) -> Child {
    let files_before = scratch.files().len();
    let mut child = Command::new(scratch.command(&[]).get_program())
        .args(["repo", "set", "r", "/a", "-", "-m", "slow"])
        .args(options)
        .current_dir(scratch.path("."))
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let stdin = child.stdin.as_mut().unwrap();
    stdin.write_all(&npy("|u1", false, &SHAPE, &[])).unwrap();
    stdin.write_all(&vec![1; 2 * ROW]).unwrap();
    let mut waits = 0..600;
    while scratch.files().len() < files_before + 2 && waits.next().is_some() {
        sleep(Duration::from_millis(100));
    }
    child
}

#[test]
fn a_slow_writer_loses_to_a_fast_one_and_is_told_which_chunk() {
    let scratch = Scratch::with_repo();
    let header = npy("|u1", false, &SHAPE, &[]);
    let sparse = File::create(scratch.path("zeros.npy")).unwrap();
    (&sparse).write_all(&header).unwrap();
    sparse.set_len((header.len() + 3 * ROW) as u64).unwrap();
    let chunks = format!("1,{ROW}");
    let set = ["repo", "set", "r", "/a", "zeros.npy", "--chunks", &chunks, "--codec", "none"];
    scratch.run(&set).code(0);

    let mut slow = writer_in_the_middle(&scratch, &["--rebase"]);
    scratch.write("few.npy", &npy("|u1", false, &[1, 4], &[7; 4]));
    scratch.run(&["repo", "set", "r", "/a", "few.npy", "--region", "1,:4", "-m", "fast"]).code(0);
    slow.stdin.take().unwrap().write_all(&vec![1; ROW]).unwrap();
    let output = slow.wait_with_output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(4), "{stderr}");
    assert!(stderr.starts_with("error: conflict: "), "{stderr}");
    assert!(stderr.contains("/a: both changed chunks [1, 0] (commit "), "{stderr}");
    assert!(stderr.contains("hint: nothing was committed"), "{stderr}");
    assert_eq!(scratch.get(&["/a", "--region", "0:2,:6"]), [0, 0, 0, 0, 0, 0, 7, 7, 7, 7, 0, 0]);

    // Alone, all slabs arrive.
    let mut slow = writer_in_the_middle(&scratch, &[]);
    slow.stdin.take().unwrap().write_all(&vec![2; ROW]).unwrap();
    assert!(slow.wait_with_output().unwrap().status.success());
    assert_eq!(scratch.get(&["/a", "--region", ":,-1"]), [1, 1, 2]);
    let whole = scratch.get(&["/a"]);
    assert!(whole.len() == 3 * ROW && whole[..2 * ROW].iter().all(|&value| value == 1));
}
