//! Broken input and broken repositories.

use std::fs;

use super::support::{Scratch, npy};

#[test]
fn a_truncated_file_is_refused_before_anything_is_committed() {
    let scratch = Scratch::with_repo();
    let whole = npy("<f8", false, &[100], &[1; 800]);
    scratch.write("cut.npy", &whole[..500]);
    let run = scratch.run(&["repo", "set", "r", "/a", "cut.npy"]).code(5);
    assert!(run.stderr.contains("cut.npy") && run.stderr.contains("truncated"), "{}", run.stderr);
    // A pipe shows its length only at its end.
    let set = ["repo", "set", "r", "/a", "-"];
    let run = scratch.run_with(&set, whole[..500].to_vec()).code(5);
    assert!(run.stderr.contains("truncated") && !run.stderr.contains("hint"), "{}", run.stderr);
    assert_eq!(scratch.json(&["repo", "log", "r"]).as_array().unwrap().len(), 1);
    assert_eq!(scratch.json(&["ls", "r"]), serde_json::json!([]));
}

#[test]
fn a_file_that_is_not_npy_is_named() {
    let scratch = Scratch::with_repo();
    scratch.write("notes.txt", b"not an array at all");
    scratch.write("empty.npy", b"");
    for file in ["notes.txt", "empty.npy"] {
        let run = scratch.run(&["repo", "set", "r", "/a", file]).code(2);
        assert!(run.stderr.contains("is no .npy file"), "{}", run.stderr);
    }
    scratch.write("pickle.npy", &npy("|O", false, &[1], &[0; 8]));
    scratch.run(&["repo", "set", "r", "/a", "pickle.npy"]).code(6);
    let run = scratch.run(&["repo", "set", "r", "/a", "missing.npy"]).code(3);
    assert!(run.stderr.contains("file not found: missing.npy"), "{}", run.stderr);
}

#[test]
fn a_failed_get_leaves_the_old_file_and_no_other() {
    let scratch = Scratch::with_array();
    scratch.write("out.npy", b"precious");
    for chunk in chunk_files(&scratch) {
        fs::write(chunk, b"garbage").unwrap();
    }
    for manifest in fs::read_dir(scratch.path("r/i")).unwrap() {
        let path = manifest.unwrap().path();
        let mut bytes = fs::read(&path).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 0x10;
        fs::write(path, bytes).unwrap();
    }
    scratch.run(&["repo", "get", "r", "/a", "-o", "out.npy"]).code(5);
    assert_eq!(scratch.read("out.npy"), b"precious");
    scratch.run(&["repo", "get", "r", "/none", "-o", "out.npy"]).code(3);
    let names = fs::read_dir(scratch.path(".")).unwrap();
    let names: Vec<_> = names.map(|entry| entry.unwrap().file_name()).collect();
    assert!(names.iter().all(|name| !name.to_string_lossy().ends_with(".part")), "{names:?}");
}

fn chunk_files(scratch: &Scratch) -> Vec<std::path::PathBuf> {
    let files = scratch.files().into_iter().map(|(path, _)| path);
    files.filter(|path| path.starts_with(scratch.path("r/c"))).collect()
}

#[test]
fn verify_finds_damage_and_says_so_in_the_exit_code() {
    let scratch = Scratch::with_repo();
    let noise: Vec<u8> =
        (0..40_000u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    scratch.write("a.npy", &npy("|u1", false, &[200, 200], &noise));
    scratch.run(&["repo", "set", "r", "/a", "a.npy", "--chunks", "100,100"]).code(0);
    for level in ["state", "metadata", "existence", "bytes"] {
        let report = scratch.json(&["verify", "r", "--level", level]);
        assert_eq!(
            (report["level"].as_str(), &report["findings"]),
            (Some(level), &serde_json::json!([]))
        );
    }
    assert!(scratch.run(&["verify", "r"]).code(0).text().starts_with("sound: "));

    let victim = &chunk_files(&scratch)[0];
    let mut bytes = fs::read(victim).unwrap();
    bytes[1000] ^= 1;
    fs::write(victim, bytes).unwrap();
    scratch.run(&["verify", "r", "--level", "existence"]).code(0);
    let run = scratch.run(&["verify", "r", "--level", "bytes", "--json"]).code(5);
    let report = run.json();
    assert_eq!(report["findings"][0]["severity"], "error");
    assert_eq!(report["findings"][0]["array"], "/a");
    let run = scratch.run(&["repo", "get", "r", "/a", "-o", "x.npy"]).code(5);
    assert!(run.stderr.contains("hint: `chunkyard verify r --level bytes`"), "{}", run.stderr);

    fs::remove_file(victim).unwrap();
    let run = scratch.run(&["verify", "r"]).code(5);
    assert!(run.text().contains("missing") && run.text().contains("damaged: "), "{}", run.text());
}

#[test]
fn a_broken_state_file_is_corrupt() {
    let scratch = Scratch::with_array();
    let mut bytes = scratch.read("r/state.json");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0x10;
    scratch.write("r/state.json", &bytes);
    scratch.run(&["verify", "r"]).code(5);
    scratch.run(&["info", "r"]).code(5);
}
