//! A dataset from an archive may hold symbolic links. Deletes and writes must stay inside the dataset.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use super::support::{Scratch, npy};

/// Directories of a repository.
const DIRECTORIES: [&str; 7] = ["a", "c", "i", "s", "g", "gc", ".tmp"];

/// Makes `elsewhere/`, with files older than a day; gives its content.
fn elsewhere(scratch: &Scratch) -> Vec<(PathBuf, Vec<u8>)> {
    let root = scratch.path("elsewhere");
    fs::create_dir_all(root.join("sub")).unwrap();
    let old = SystemTime::now() - Duration::from_secs(3 * 24 * 3600);
    for name in ["precious", "sub/precious", "00000000000000000001.json", "__2__.blp"] {
        fs::write(root.join(name), "precious").unwrap();
        fs::File::options().write(true).open(root.join(name)).unwrap().set_modified(old).unwrap();
    }
    scratch.files_in("elsewhere")
}

/// Replaces a file or directory with a link to `elsewhere/`.
fn lead_elsewhere(scratch: &Scratch, path: &str) {
    let path = scratch.path(path);
    if path.is_dir() {
        fs::rename(&path, path.with_extension("away")).unwrap();
    }
    symlink(scratch.path("elsewhere"), path).unwrap();
}

#[test]
fn no_upkeep_of_a_repository_leaves_it_through_a_link() {
    for directory in DIRECTORIES {
        let scratch = Scratch::with_array();
        scratch.run(&["repo", "rm", "r", "/a"]).code(0);
        let before = elsewhere(&scratch);
        lead_elsewhere(&scratch, &format!("r/{directory}"));
        let gc = scratch.run(&["repo", "gc", "r"]);
        assert_ne!(gc.code, 0, "{directory}: {}", gc.stderr);
        // In these three it misses files before it lists anything.
        if !["s", "i", "g"].contains(&directory) {
            assert_eq!(gc.code, 5, "{directory}: {}", gc.stderr);
            let named = format!("r/{directory} is corrupt");
            assert!(gc.stderr.contains(&named), "{directory}: {}", gc.stderr);
            assert!(gc.stderr.contains("found a symbolic link to"), "{directory}: {}", gc.stderr);
        }
        for command in [
            &["repo", "gc", "r", "--min-age", "0s"][..],
            &["repo", "expire", "r", "--keep-last", "1"],
            &["repo", "repack", "r"],
            &["repo", "optimise", "r"],
            &["repo", "repair", "r"],
            &["repo", "set", "r", "/b", "a.npy", "-m", "more"],
            &["convert", "r", "r2", "--to", "repo"],
            &["verify", "r"],
        ] {
            scratch.run(command);
            assert_eq!(scratch.files_in("elsewhere"), before, "{directory}: {command:?}");
        }
    }
}

#[test]
fn a_commit_does_not_write_through_a_link() {
    let scratch = Scratch::with_array();
    let before = elsewhere(&scratch);
    lead_elsewhere(&scratch, "r/i");
    let run = scratch.run(&["repo", "set", "r", "/b", "a.npy", "-m", "more"]).code(5);
    assert!(run.stderr.contains("expected a directory, found a symbolic link"), "{}", run.stderr);
    assert_eq!(scratch.files_in("elsewhere"), before);
}

#[test]
fn an_overwritten_target_loses_its_links_but_not_their_targets() {
    for target in ["x.zarr", "x.blz"] {
        let scratch = Scratch::with_array();
        scratch.run(&["convert", "r", target]).code(0);
        let before = elsewhere(&scratch);
        symlink(scratch.path("elsewhere"), scratch.path(target).join("out")).unwrap();
        symlink(scratch.path("elsewhere/precious"), scratch.path(target).join("alias")).unwrap();
        scratch.run(&["convert", "r", target, "--overwrite"]).code(0);
        assert!(!scratch.path(target).join("out").is_symlink());
        assert!(!scratch.path(target).join("alias").is_symlink());
        assert_eq!(scratch.files_in("elsewhere"), before, "{target}");
        assert_eq!(scratch.names().iter().filter(|name| name.starts_with('.')).count(), 0);
    }
}

#[test]
fn a_conversion_does_not_resume_through_a_link() {
    for target in ["x.zarr", "x.blz", "x.af"] {
        for inner in ["", "/data", "/journal", "/attempts", "/parts"] {
            let scratch = Scratch::with_array();
            let before = elsewhere(&scratch);
            let work = format!(".{target}.chunkyard");
            if !inner.is_empty() {
                fs::create_dir(scratch.path(&work)).unwrap();
            }
            lead_elsewhere(&scratch, &format!("{work}{inner}"));
            scratch.run(&["convert", "r", target]);
            assert_eq!(scratch.files_in("elsewhere"), before, "{work}{inner}");
        }
    }
}

#[test]
fn the_upkeep_of_containers_and_superchunks_stays_beside_them() {
    let scratch = Scratch::new();
    scratch.write("a.npy", &npy("|u1", false, &[4, 6], &[7; 24]));
    let before = elsewhere(&scratch);
    scratch.run(&["af", "create", "x.af"]).code(0);
    scratch.run(&["af", "set", "x.af", "a", "a.npy"]).code(0);
    lead_elsewhere(&scratch, ".x.af.chunkyard");
    for command in [
        &["af", "set", "x.af", "b", "a.npy"][..],
        &["af", "compact", "x.af"],
        &["af", "repair", "x.af"],
    ] {
        let run = scratch.run(command);
        assert!(run.code == 0 || run.code == 5, "{command:?}: {}", run.stderr);
        assert_eq!(scratch.files_in("elsewhere"), before, "{command:?}");
    }
    let rows: Vec<u8> = (0..100u64).flat_map(u64::to_le_bytes).collect();
    scratch.write("rows.npy", &npy("<u8", false, &[100], &rows));
    for folder in ["data", "meta"] {
        let create = ["--create", "--chunklen", "10", "--superchunk", "2"];
        let append = [&["blz", "append", "t.blz", "rows.npy"], &create[..]].concat();
        scratch.run(&append).code(0);
        // The links lead to all that was there, so that it can be read.
        let away = scratch.path("away");
        fs::rename(scratch.path("t.blz").join(folder), &away).unwrap();
        symlink(&away, scratch.path("t.blz").join(folder)).unwrap();
        let was = scratch.files_in("away");
        scratch.run(&["blz", "get", "t.blz", "--rows", "0:5"]).code(0);
        for command in [
            &["blz", "append", "t.blz", "rows.npy"][..],
            &["blz", "trim", "t.blz", "15"],
            &["blz", "move", "t.blz", "1:2", "--to", "root"],
            &["blz", "repair", "t.blz"],
        ] {
            scratch.run(command);
            assert_eq!(scratch.files_in("away"), was, "{folder}: {command:?}");
        }
        fs::remove_dir_all(scratch.path("t.blz")).unwrap();
        fs::remove_dir_all(away).unwrap();
        fs::remove_dir_all(scratch.path("root")).ok();
    }
}

#[test]
fn a_target_behind_a_link_is_written_where_the_link_leads() {
    let scratch = Scratch::with_array();
    scratch.run(&["convert", "r", "real.zarr"]).code(0);
    symlink("real.zarr", scratch.path("link.zarr")).unwrap();
    scratch.run(&["convert", "r", "link.zarr"]).code(4);
    scratch.run(&["convert", "r", "link.zarr", "--chunks", "4,6", "--overwrite"]).code(0);
    assert_eq!(fs::read_link(scratch.path("link.zarr")).unwrap(), Path::new("real.zarr"));
    assert!(scratch.path("real.zarr/a/c/0/0").is_file());
    assert!(!scratch.path("real.zarr/a/c/1").exists(), "it is the new one");
    symlink("new.zarr", scratch.path("ahead.zarr")).unwrap();
    scratch.run(&["convert", "r", "ahead.zarr"]).code(0);
    assert!(scratch.path("ahead.zarr").is_symlink() && scratch.path("new.zarr").is_dir());
    assert_eq!(scratch.elements("ahead.zarr", "/a"), (1..=24).collect::<Vec<u8>>());
    assert_eq!(scratch.names().iter().filter(|name| name.starts_with('.')).count(), 0);
}

#[test]
fn chunks_behind_a_link_are_read_linked_and_counted() {
    let scratch = Scratch::with_array();
    scratch.run(&["convert", "r", "x.zarr"]).code(0);
    fs::rename(scratch.path("x.zarr/a/c/1"), scratch.path("far")).unwrap();
    symlink(scratch.path("far"), scratch.path("x.zarr/a/c/1")).unwrap();
    let values: Vec<u8> = (1..=24).collect();
    assert_eq!(scratch.elements("x.zarr", "/a"), values);
    let linked = scratch.json(&["link", "x.zarr", "l"]);
    assert_eq!(linked["references"], 4);
    scratch.run(&["verify", "x.zarr"]).code(0);
}
