//! Source and target of a conversion must not lie in each other.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

use super::support::{Scratch, npy};

/// Demands a refusal that names both places and changes nothing.
#[track_caller]
fn refused(scratch: &Scratch, command: &[&str]) {
    let before = everything(scratch);
    let run = scratch.run(command).code(2);
    assert!(run.stderr.contains(command[1]) && run.stderr.contains(command[2]), "{}", run.stderr);
    assert!(run.stderr.contains("elsewhere"), "{}", run.stderr);
    assert!(everything(scratch) == before, "{command:?} changed something");
}

/// All names in the scratch directory, and the files below its directories.
fn everything(scratch: &Scratch) -> (Vec<String>, Vec<(PathBuf, Vec<u8>)>) {
    let names = scratch.names();
    let real = names
        .iter()
        .filter(|name| fs::symlink_metadata(scratch.path(name)).is_ok_and(|found| found.is_dir()));
    let files = real.flat_map(|name| scratch.files_in(name)).collect();
    (names, files)
}

#[test]
fn a_conversion_refuses_to_replace_its_source() {
    let scratch = Scratch::with_array();
    scratch.run(&["convert", "r", "src.zarr"]).code(0);
    fs::create_dir(scratch.path("d")).unwrap();
    scratch.run(&["convert", "r", "d/deep.zarr"]).code(0);
    symlink("src.zarr", scratch.path("alias")).unwrap();
    symlink(scratch.path("src.zarr/new"), scratch.path("ahead")).unwrap();
    let absolute = scratch.path("src.zarr/g").to_str().unwrap().to_owned();
    let url = format!("file://{absolute}");
    for target in [
        "src.zarr",
        "./src.zarr/",
        "src.zarr/a",
        "src.zarr/g",
        "d/../src.zarr/g",
        "alias",
        "alias/g",
        "ahead",
        "ahead/deeper",
        "src.zarr/x.af",
        "src.zarr/x.blz",
        "src.zarr/a/c/repo",
        &absolute,
        &url,
    ] {
        refused(&scratch, &["convert", "src.zarr", target]);
        refused(&scratch, &["convert", "src.zarr", target, "--overwrite"]);
        refused(&scratch, &["convert", "src.zarr", target, "--dry-run"]);
    }
    for target in ["d", "d/deep.zarr", "d/deep.zarr/a"] {
        refused(&scratch, &["convert", "d/deep.zarr", target, "--overwrite", "--to", "zarr3"]);
    }
    refused(&scratch, &["convert", "alias/a", "src.zarr", "--overwrite"]);
    scratch.run(&["convert", "src.zarr", "src.zarr.zarr"]).code(0);
    scratch.run(&["convert", "src.zarr", "d/other.zarr"]).code(0);
}

#[test]
fn a_repository_is_not_put_into_its_source() {
    let scratch = Scratch::with_array();
    scratch.run(&["convert", "r", "src.zarr"]).code(0);
    for target in ["src.zarr", "src.zarr/r"] {
        refused(&scratch, &["link", "src.zarr", target]);
        refused(&scratch, &["convert", "src.zarr", target, "--to", "repo"]);
    }
    refused(&scratch, &["convert", "r", "r", "--into", "copy"]);
    refused(&scratch, &["link", "r", "r", "--into", "copy"]);
    refused(&scratch, &["convert", "r", "r/c/x.zarr"]);
}

#[test]
fn the_data_of_a_repository_that_is_apart_is_its_place_too() {
    let scratch = Scratch::new();
    let root = scratch.path("data").to_str().unwrap().to_owned();
    scratch.run(&["repo", "init", "r", "--store-root", &root]).code(0);
    scratch.write("a.npy", &npy("|u1", false, &[4], &[1, 2, 3, 4]));
    scratch.run(&["repo", "set", "r", "/a", "a.npy", "-m", "x", "--allow", &root]).code(0);
    for command in ["convert", "link"] {
        let run = scratch.run(&[command, "r", "data/x", "--to-branch", "b", "--allow", &root]);
        assert_eq!(run.code, 2, "{}", run.stderr);
        assert!(run.stderr.contains("lies in the source"), "{}", run.stderr);
    }
}

#[test]
fn a_container_is_not_written_over_its_own_layers() {
    let scratch = Scratch::new();
    scratch.write("a.npy", &npy("|u1", false, &[4], &[1, 2, 3, 4]));
    scratch.run(&["af", "create", "x.af"]).code(0);
    scratch.run(&["af", "set", "x.af", "a", "a.npy"]).code(0);
    scratch.run(&["af", "set", "x.af", "b", "a.npy"]).code(0);
    fs::copy(scratch.path("x.af"), scratch.path("y.7.af")).unwrap();
    for target in ["x.af", "./x.af", "x.1.af", "x.2.af", "x.3.af"] {
        refused(&scratch, &["convert", "x.af", target]);
        refused(&scratch, &["convert", "x.af", target, "--overwrite"]);
    }
    refused(&scratch, &["convert", "x.af", "x.stats", "--to", "zarr3"]);
    refused(&scratch, &["convert", "y.7.af", "y.af"]);
    refused(&scratch, &["convert", "x.af", "x.af/inside.zarr"]);
    scratch.run(&["convert", "x.af", "z.af"]).code(0);
}

#[test]
fn work_in_progress_is_no_source_of_its_own_target() {
    let scratch = Scratch::with_array();
    scratch.run(&["convert", "r", "x.zarr"]).code(0);
    fs::create_dir(scratch.path(".y.zarr.chunkyard")).unwrap();
    fs::rename(scratch.path("x.zarr"), scratch.path(".y.zarr.chunkyard/data")).unwrap();
    refused(&scratch, &["convert", ".y.zarr.chunkyard/data", "y.zarr"]);
}

#[test]
fn files_of_a_dataset_do_not_move_into_it() {
    let scratch = Scratch::new();
    let rows: Vec<u8> = (0..100u64).flat_map(u64::to_le_bytes).collect();
    scratch.write("rows.npy", &npy("<u8", false, &[100], &rows));
    let create = ["--create", "--chunklen", "10", "--superchunk", "2"];
    scratch.run(&[&["blz", "append", "t.blz", "rows.npy"], &create[..]].concat()).code(0);
    symlink("t.blz", scratch.path("alias")).unwrap();
    let before = scratch.files_in("t.blz");
    for to in ["t.blz", "t.blz/sub", "alias", "alias/sub", "t.blz/../t.blz"] {
        let run = scratch.run(&["blz", "move", "t.blz", "1:2", "--to", to]).code(2);
        assert!(run.stderr.contains("t.blz") && run.stderr.contains(to), "{}", run.stderr);
        let numbers = |files: Vec<(PathBuf, Vec<u8>)>| {
            files
                .into_iter()
                .filter(|(path, _)| path.parent().is_some_and(|at| at.ends_with("data")))
        };
        assert!(numbers(scratch.files_in("t.blz")).eq(numbers(before.clone())), "{to}");
        scratch.run(&["verify", "t.blz"]).code(0);
    }
    scratch.run(&["blz", "move", "t.blz", "1:2", "--to", "root"]).code(0);
}
