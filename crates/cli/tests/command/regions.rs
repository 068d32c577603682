//! Parts of arrays, written and read.

use super::support::{Scratch, npy};

#[test]
fn a_region_is_read_as_numpy_would_slice() {
    let scratch = Scratch::with_array();
    assert_eq!(scratch.get(&["/a", "--region", "1:3,2:4"]), [9, 10, 15, 16]);
    assert_eq!(scratch.get(&["/a", "--region", "-1,:2"]), [19, 20]);
    assert_eq!(scratch.get(&["/a", "--region", "...,0"]), [1, 7, 13, 19]);
}

#[test]
fn a_region_is_written_in_place() {
    let scratch = Scratch::with_array();
    scratch.write("fix.npy", &npy("|u1", false, &[2, 2], &[101, 102, 103, 104]));
    scratch.run(&["repo", "set", "r", "/a", "fix.npy", "--region", "1:3,2:4", "-m", "fix"]).code(0);
    let mut expected: Vec<u8> = (1..=24).collect();
    for (at, value) in [(8, 101), (9, 102), (14, 103), (15, 104)] {
        expected[at] = value;
    }
    assert_eq!(scratch.get(&["/a"]), expected);
}

#[test]
fn one_row_may_come_without_its_axis() {
    let scratch = Scratch::with_array();
    scratch.write("row.npy", &npy("|u1", true, &[6], &[9; 6]));
    scratch.run(&["repo", "set", "r", "/a", "row.npy", "--region", "3"]).code(0);
    assert_eq!(scratch.get(&["/a", "--region", "3"]), [9; 6]);
}

#[test]
fn a_whole_array_is_replaced_when_shape_and_type_agree() {
    let scratch = Scratch::with_array();
    scratch.write("b.npy", &npy("|u1", false, &[4, 6], &[5; 24]));
    scratch.run(&["repo", "set", "r", "/a", "b.npy"]).code(0);
    assert_eq!(scratch.get(&["/a"]), [5; 24]);
}

#[test]
fn disagreements_name_both_sides_and_change_nothing() {
    let scratch = Scratch::with_array();
    let before = scratch.json(&["repo", "log", "r"]);
    scratch.write("wide.npy", &npy("|u1", false, &[4, 7], &[0; 28]));
    scratch.write("other.npy", &npy("<f4", false, &[4, 6], &[0; 96]));
    let run = |options: &[&str]| {
        let arguments: Vec<_> = ["repo", "set", "r", "/a"].iter().chain(options).copied().collect();
        scratch.run(&arguments).code(2).stderr
    };
    let shape = run(&["wide.npy"]);
    assert!(shape.contains("[4, 6]") && shape.contains("[4, 7]"), "{shape}");
    let region = run(&["wide.npy", "--region", "0:2"]);
    assert!(region.contains("[2, 6]") && region.contains("[4, 7]"), "{region}");
    let dtype = run(&["other.npy"]);
    assert!(dtype.contains("uint8") && dtype.contains("float32"), "{dtype}");
    let outside = run(&["a.npy", "--region", "0:9"]);
    assert!(outside.contains("out of bounds"), "{outside}");
    let chunks = run(&["a.npy", "--chunks", "1,1"]);
    assert!(chunks.contains("/a exists"), "{chunks}");
    assert_eq!(scratch.json(&["repo", "log", "r"]), before);
}

#[test]
fn a_region_of_a_missing_array_is_not_found() {
    let scratch = Scratch::with_array();
    let run = scratch.run(&["repo", "set", "r", "/b", "a.npy", "--region", "0:1"]).code(3);
    assert!(run.stderr.contains("/b") && run.stderr.contains("chunkyard ls r"), "{}", run.stderr);
}
