//! Creating, committing, colliding.

use super::support::{Scratch, npy};

#[test]
fn a_second_init_is_a_conflict_and_changes_no_byte() {
    let scratch = Scratch::with_array();
    let before = scratch.files();
    for arguments in [vec!["repo", "init", "r"], vec!["repo", "init", "r", "--force"]] {
        let run = scratch.run(&arguments).code(4);
        assert!(run.stderr.contains("exists already"), "{}", run.stderr);
        assert_eq!(scratch.files(), before);
    }
}

#[test]
fn init_takes_a_branch_name_properties_and_the_draft() {
    let scratch = Scratch::new();
    let init = ["repo", "init", "r", "--draft", "--default-branch", "trunk"];
    let properties = ["--property", "title=Daily means", "--property", "levels=[1,2]"];
    let arguments: Vec<_> = init.iter().chain(&properties).copied().collect();
    let created = scratch.json(&arguments);
    assert_eq!(created["default-branch"], "trunk");
    let info = scratch.json(&["info", "r"]);
    let expected = serde_json::json!({"title": "Daily means", "levels": [1, 2]});
    assert_eq!(info["properties"], expected);
    assert_eq!(info["config"]["compat"], "draft");
    assert_eq!(info["id"], created["id"]);
}

#[test]
fn a_commit_prints_its_snapshot_with_the_names_of_the_engine() {
    let scratch = Scratch::with_array();
    let set = ["repo", "set", "r", "/a", "a.npy", "--region", "...", "-m", "again"];
    let snapshot = scratch.json(&set);
    assert_eq!(snapshot["message"], "again");
    let log = scratch.json(&["repo", "log", "r"]);
    assert_eq!(log[0]["snapshot-id"], snapshot["snapshot-id"]);
    assert_eq!(log[0]["parent-snapshot-id"], log[1]["snapshot-id"]);
    assert!(log[0]["timestamp-ms"].as_i64() > log[1]["timestamp-ms"].as_i64());
    assert_eq!(log[0]["refs"], serde_json::json!([{"name": "main", "type": "branch"}]));
}

#[test]
fn results_go_to_stdout_and_remarks_to_stderr() {
    let scratch = Scratch::with_array();
    let set = ["repo", "set", "r", "/b", "a.npy", "-m", "talk"];
    let run = scratch.run(&set).code(0);
    assert!(run.stdout.is_empty());
    assert!(run.stderr.starts_with("committed ") && run.stderr.contains("on main: talk"));
    let run = scratch.run(&["repo", "set", "r", "/c", "a.npy", "-q"]).code(0);
    assert!(run.stdout.is_empty() && run.stderr.is_empty(), "{}", run.stderr);
}

#[test]
fn amend_replaces_the_tip() {
    let scratch = Scratch::with_array();
    scratch.write("b.npy", &npy("|u1", false, &[4, 6], &[5; 24]));
    scratch.run(&["repo", "set", "r", "/a", "b.npy", "--amend", "-m", "better"]).code(0);
    let log = scratch.json(&["repo", "log", "r"]);
    assert_eq!(log.as_array().unwrap().len(), 2);
    assert_eq!(log[0]["message"], "better");
    assert_eq!(scratch.get(&["/a"]), [5; 24]);
}

#[test]
fn nodes_are_moved_and_deleted() {
    let scratch = Scratch::with_array();
    scratch.run(&["repo", "mv", "r", "/a", "/deep/er/a", "-m", "move"]).code(0);
    assert_eq!(scratch.run(&["ls", "r"]).text(), "/deep/\n/deep/er/\n/deep/er/a\n");
    assert_eq!(scratch.get(&["/deep/er/a"]).len(), 24);
    scratch.run(&["repo", "rm", "r", "/deep", "-m", "remove"]).code(0);
    assert_eq!(scratch.run(&["ls", "r"]).text(), "");
    scratch.run(&["repo", "rm", "r", "/deep"]).code(3);
    scratch.run(&["repo", "mv", "r", "/x", "/y"]).code(3);
    scratch.run(&["repo", "rm", "r", "/"]).code(2);
}

#[test]
fn attributes_are_merged_removed_and_printed() {
    let scratch = Scratch::with_array();
    let attrs = |options: &[&str]| {
        let arguments: Vec<_> =
            ["repo", "attrs", "r", "/a"].iter().chain(options).copied().collect();
        scratch.run(&arguments)
    };
    attrs(&["--set", r#"{"units": "K", "n": 1}"#, "-m", "units"]).code(0);
    attrs(&["--set", r#"{"n": 2}"#]).code(0);
    assert_eq!(attrs(&[]).code(0).json(), serde_json::json!({"units": "K", "n": 2}));
    attrs(&["--unset", "units"]).code(0);
    assert_eq!(attrs(&["--json"]).code(0).json(), serde_json::json!({"n": 2}));
    attrs(&["--unset", "units"]).code(3);
    attrs(&["--set", "[1]"]).code(2);
    attrs(&["--set", "{"]).code(2);
}

#[test]
fn a_read_only_repository_refuses_and_says_why() {
    let scratch = Scratch::with_array();
    scratch.run(&["repo", "mode", "r", "read-only", "--reason", "moving house"]).code(0);
    let run = scratch.run(&["repo", "set", "r", "/a", "a.npy"]).code(2);
    assert!(run.stderr.contains("moving house"), "{}", run.stderr);
    assert!(scratch.run(&["info", "r"]).text().contains("read-only: moving house"));
    scratch.run(&["repo", "mode", "r", "online"]).code(0);
    scratch.run(&["repo", "set", "r", "/a", "a.npy", "--amend"]).code(0);
}
