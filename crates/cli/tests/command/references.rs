//! Branches, tags, time travel, diff.

use super::support::{Scratch, npy};

/// `/a` counts from 1 at the tag `v1`, and is all 5 at the tip.
fn two_versions() -> Scratch {
    let scratch = Scratch::with_array();
    scratch.run(&["repo", "tag", "r", "create", "v1"]).code(0);
    scratch.write("b.npy", &npy("|u1", false, &[4, 6], &[5; 24]));
    scratch.run(&["repo", "set", "r", "/a", "b.npy", "-m", "second"]).code(0);
    scratch
}

#[test]
fn any_version_can_be_read() {
    let scratch = two_versions();
    let first: Vec<u8> = (1..=24).collect();
    let log = scratch.json(&["repo", "log", "r"]);
    let id = log[1]["snapshot-id"].as_str().unwrap();
    let time = log[1]["timestamp-ms"].to_string();
    assert_eq!(scratch.get(&["/a"]), [5; 24]);
    assert_eq!(scratch.get(&["/a", "--branch", "main"]), [5; 24]);
    assert_eq!(scratch.get(&["/a", "--tag", "v1"]), first);
    assert_eq!(scratch.get(&["/a", "--snapshot", &id[..6]]), first);
    assert_eq!(scratch.get(&["/a", "--as-of", &time]), first);
    assert_eq!(scratch.get(&["/a", "--as-of", "2999-01-01 00:00"]), [5; 24]);
}

#[test]
fn a_time_copied_from_the_log_means_that_snapshot() {
    let scratch = two_versions();
    let log = scratch.run(&["repo", "log", "r"]).code(0).text();
    let line = log.lines().nth(1).unwrap();
    assert!(line.contains("(tag: v1)") && line.contains("first"), "{line}");
    let time: Vec<&str> = line.split_whitespace().skip(2).take(2).collect();
    let first: Vec<u8> = (1..=24).collect();
    assert_eq!(scratch.get(&["/a", "--as-of", &time.join(" ")]), first);
}

#[test]
fn a_missing_version_is_not_found() {
    let scratch = two_versions();
    for version in [["--branch", "x"], ["--tag", "main"], ["--snapshot", "zzzz"]] {
        let get = ["repo", "get", "r", "/a", "-o", "x.npy", version[0], version[1]];
        let run = scratch.run(&get).code(3);
        assert!(run.stderr.contains("not found"), "{}", run.stderr);
    }
    scratch.run(&["repo", "get", "r", "/a", "-o", "x.npy", "--as-of", "1970-01-01"]).code(3);
    scratch.run(&["repo", "get", "r", "/a", "-o", "x.npy", "--as-of", "yesterday"]).code(2);
    scratch.run(&["repo", "log", "r", "--tag", "v1", "--snapshot", "abcd"]).code(2);
}

#[test]
fn branches_are_created_listed_committed_to_and_deleted() {
    let scratch = two_versions();
    scratch.run(&["repo", "branch", "r", "create", "old", "--at", "v1"]).code(0);
    scratch.run(&["repo", "branch", "r", "create", "old"]).code(4);
    scratch.write("c.npy", &npy("|u1", false, &[4, 6], &[7; 24]));
    scratch.run(&["repo", "set", "r", "/a", "c.npy", "--branch", "old", "-m", "third"]).code(0);
    assert_eq!(scratch.get(&["/a"]), [5; 24]);
    assert_eq!(scratch.get(&["/a", "--branch", "old"]), [7; 24]);
    let list = scratch.json(&["repo", "branch", "r", "list"]);
    assert_eq!((&list[0]["name"], &list[1]["name"]), (&"main".into(), &"old".into()));
    let graph = scratch.run(&["repo", "log", "r", "--all"]).text();
    let lines: Vec<&str> = graph.lines().collect();
    assert!(lines[0].starts_with("* ") && lines[1].starts_with("| * "), "{graph}");
    assert_eq!(lines[2], "|/", "{graph}");
    scratch.run(&["repo", "branch", "r", "delete", "old"]).code(0);
    scratch.run(&["repo", "branch", "r", "delete", "old"]).code(3);
    scratch.run(&["repo", "branch", "r", "delete", "main"]).code(2);
}

#[test]
fn a_tag_keeps_its_place_and_a_deleted_one_its_name() {
    let scratch = two_versions();
    scratch.run(&["repo", "tag", "r", "create", "v1"]).code(4);
    scratch.run(&["repo", "tag", "r", "delete", "v1"]).code(0);
    scratch.run(&["repo", "tag", "r", "create", "v1"]).code(4);
    scratch.run(&["repo", "tag", "r", "create", "v1", "--reuse"]).code(0);
    let list = scratch.json(&["repo", "tag", "r", "list"]);
    assert_eq!(list[0]["type"], "tag");
}

#[test]
fn reset_moves_a_branch_only_from_the_expected_snapshot() {
    let scratch = two_versions();
    let log = scratch.json(&["repo", "log", "r"]);
    let (tip, first) =
        (log[0]["snapshot-id"].as_str().unwrap(), log[1]["snapshot-id"].as_str().unwrap());
    let run = scratch.run(&["repo", "reset", "r", "main", "v1", "--expect", first]).code(4);
    assert!(run.stderr.contains("expected"), "{}", run.stderr);
    scratch.run(&["repo", "reset", "r", "main", "v1", "--expect", &tip[..8]]).code(0);
    let first: Vec<u8> = (1..=24).collect();
    assert_eq!(scratch.get(&["/a"]), first);
}

#[test]
fn diff_names_nodes_and_chunks() {
    let scratch = two_versions();
    scratch.write("one.npy", &npy("|u1", false, &[1, 1], &[9]));
    scratch.run(&["repo", "set", "r", "/a", "one.npy", "--region", "0,0"]).code(0);
    scratch.run(&["repo", "set", "r", "/b", "a.npy"]).code(0);
    let log = scratch.json(&["repo", "log", "r"]);
    let before = log[2]["snapshot-id"].as_str().unwrap();
    let diff = scratch.json(&["repo", "diff", "r", before, "main"]);
    assert_eq!(diff["added"][0]["path"], "/b");
    assert_eq!(diff["chunks"][0]["path"], "/a");
    assert_eq!(diff["chunks"][0]["replaced"], serde_json::json!([[0, 0]]));
    let text = scratch.run(&["repo", "diff", "r", before, "main"]).text();
    assert!(text.contains("+ array /b\n"), "{text}");
    assert!(text.contains("~ array /a: 1 chunk replaced: [0, 0]"), "{text}");
    assert_eq!(scratch.run(&["repo", "diff", "r", "main", "main"]).text(), "no difference\n");
    scratch.run(&["repo", "diff", "r", "main", "nowhere"]).code(3);
}
