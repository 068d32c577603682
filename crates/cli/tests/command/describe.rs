//! `info`, `ls`, `log`: the first questions of a new user.

use super::support::Scratch;

#[test]
fn info_describes_the_repository_and_its_arrays() {
    let scratch = Scratch::with_array();
    let info = scratch.json(&["info", "r"]);
    assert_eq!(info["branches"]["main"], info["snapshot"]["snapshot-id"]);
    assert_eq!(info["snapshots"], 2);
    let array = &info["arrays"][0];
    assert_eq!(array["path"], "/a");
    assert_eq!(array["shape"], serde_json::json!([4, 6]));
    assert_eq!(array["chunk-shape"], serde_json::json!([2, 3]));
    assert_eq!(array["data-type"], "uint8");
    assert_eq!((&array["refs"], &array["bytes"]), (&4.into(), &24.into()));
    assert!(info["stored-bytes"].as_u64() > Some(0));
    let text = scratch.run(&["info", "r"]).code(0).text();
    for part in ["/a", "4 × 6", "uint8", "zstd", "2 × 3, 4 of 4 stored", "main ("] {
        assert!(text.contains(part), "{part} in {text}");
    }
}

#[test]
fn an_older_version_is_described_as_it_was() {
    let scratch = Scratch::with_array();
    let log = scratch.json(&["repo", "log", "r"]);
    let first = log[1]["snapshot-id"].as_str().unwrap();
    assert_eq!(scratch.json(&["info", "r", "--snapshot", first])["arrays"], serde_json::json!([]));
    let text = scratch.run(&["info", "r", "--snapshot", first]).text();
    assert!(text.contains("no arrays yet"), "{text}");
}

#[test]
fn ls_is_short_or_long() {
    let scratch = Scratch::with_array();
    scratch.run(&["repo", "set", "r", "/g/b", "a.npy"]).code(0);
    assert_eq!(scratch.run(&["ls", "r"]).text(), "/a\n/g/\n/g/b\n");
    assert_eq!(scratch.run(&["ls", "r", "/g"]).text(), "/g/\n/g/b\n");
    let long = scratch.run(&["ls", "r", "-l"]).text();
    assert!(long.contains("uint8  4 × 6  chunks 2 × 3  4 chunks stored"), "{long}");
    scratch.run(&["ls", "r", "/nowhere"]).code(3);
}

#[test]
fn log_can_be_cut() {
    let scratch = Scratch::with_array();
    assert_eq!(scratch.json(&["repo", "log", "r", "-n", "1"]).as_array().unwrap().len(), 1);
    assert_eq!(scratch.run(&["repo", "log", "r", "-n", "1"]).text().lines().count(), 1);
}

#[test]
fn an_empty_place_is_exit_code_3_and_a_hint() {
    let scratch = Scratch::new();
    // Commands for any format do not advise to create a repository at a mistyped path.
    let any = "hint: is that the right place?\n";
    let repository = "hint: is that the right place? `chunkyard repo init nothing`";
    for (hint, arguments) in [
        (any, vec!["info", "nothing"]),
        (any, vec!["ls", "nothing"]),
        (any, vec!["verify", "nothing"]),
        (repository, vec!["repo", "log", "nothing"]),
        (repository, vec!["repo", "get", "nothing", "/a", "-o", "x.npy"]),
    ] {
        let run = scratch.run(&arguments).code(3);
        assert!(run.stderr.contains(hint), "{}", run.stderr);
        assert!(!scratch.path("nothing").exists());
    }
    scratch.run(&["info", "gopher://x"]).code(2);
}
