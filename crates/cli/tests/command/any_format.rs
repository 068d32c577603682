//! `get`, `set`, `attrs`, `rm` and `resize` on every format. A new format is one more case.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::json;

use super::support::{Scratch, data, npy};

/// A dataset with one array of `uint8`, 4 by 6, counting from 1.
struct Case {
    format: &'static str,
    place: &'static str,
    path: &'static str,
    /// The commands that make it out of `a.npy`.
    make: &'static [&'static [&'static str]],
    /// Whether nodes can be created and removed.
    nodes: bool,
    /// The folder whose largest file holds chunks, and where in that file a flipped byte is in one;
    /// from the end if negative.
    chunk: (&'static str, isize),
}

/// The formats that can change.
const CASES: &[Case] = &[
    Case {
        format: "repo",
        place: "x.repo",
        path: "/g/a",
        make: &[
            &["repo", "init", "x.repo"],
            &["set", "x.repo", "/g/a", "a.npy", "--chunks", "2,3"],
        ],
        nodes: true,
        chunk: ("x.repo/i", 100),
    },
    Case {
        format: "zarr3",
        place: "x.zarr",
        path: "/g/a",
        make: &[&["set", "x.zarr", "/g/a", "a.npy", "--create", "--chunks", "2,3"]],
        nodes: true,
        chunk: ("x.zarr/g/a/c/0", 0),
    },
    Case {
        format: "zarr3",
        place: "shards.zarr",
        path: "/g/a",
        make: &[
            &["set", "x.zarr", "/g/a", "a.npy", "--create", "--chunks", "2,3"],
            &["convert", "x.zarr", "shards.zarr", "--shards", "4,6"],
        ],
        nodes: true,
        chunk: ("shards.zarr/g/a/c/0", 0),
    },
    Case {
        format: "container",
        place: "x.af",
        path: "/g/a",
        make: &[
            &["af", "create", "x.af"],
            &["set", "x.af", "/g/a", "a.npy", "--chunks", "2,3", "--codec", "none"],
            &["af", "compact", "x.af"],
        ],
        nodes: true,
        chunk: (".", 12),
    },
    Case {
        format: "blz",
        place: "x.blz",
        path: "/",
        make: &[&["blz", "append", "x.blz", "a.npy", "--create", "--chunklen", "2"]],
        nodes: false,
        chunk: ("x.blz/data", -6),
    },
];

/// Datasets that are only read, and an array of each.
const READ_ONLY: &[(&str, &str)] = &[
    ("hdf5/netcdf.nc", "/temperature"),
    ("zarr/v2.zarr", "/dots"),
    ("x.blp", "/"),
    ("x.precomputed", "/g/a"),
    ("shards.precomputed", "/g/a"),
];

fn values() -> Vec<u8> {
    (1..=24).collect()
}

impl Case {
    /// The dataset in a directory of its own, with `a.npy` and `fix.npy`, 2 by 3 of 200.
    fn made(&self) -> Scratch {
        let scratch = Scratch::new();
        scratch.write("a.npy", &npy("|u1", false, &[4, 6], &values()));
        scratch.write("fix.npy", &npy("|u1", false, &[2, 3], &[200; 6]));
        for command in self.make {
            scratch.run(command).code(0);
        }
        scratch
    }

    /// The array, or a region of it.
    #[track_caller]
    fn get(&self, scratch: &Scratch, options: &[&str]) -> Vec<u8> {
        let get = [&["get", self.place, self.path, "-o", "-"], options].concat();
        data(&scratch.run(&get).code(0).stdout).to_vec()
    }

    /// A path beside the array, or one that cannot be.
    fn beside(&self) -> String {
        match self.path {
            "/" => "/none".to_owned(),
            path => format!("{path}-none"),
        }
    }
}

/// The array with 200 in rows 1 and 2 of columns 2 to 4.
fn fixed() -> Vec<u8> {
    let inside = |at: usize| (1..3).contains(&(at / 6)) && (2..5).contains(&(at % 6));
    values()
        .into_iter()
        .enumerate()
        .map(|(at, value)| if inside(at) { 200 } else { value })
        .collect()
}

const REGION: &str = "1:3,2:5";

#[test]
fn an_array_and_a_region_of_it_are_read() {
    for case in CASES {
        let scratch = case.made();
        assert_eq!(case.get(&scratch, &[]), values(), "{}", case.place);
        let part = [9, 10, 11, 15, 16, 17];
        assert_eq!(case.get(&scratch, &["--region", REGION]), part, "{}", case.place);
        let get = ["get", case.place, case.path, "-o", "out.npy", "--region", REGION];
        let done = scratch.json(&get);
        assert_eq!(done["format"], case.format);
        assert_eq!((&done["path"], &done["region"]), (&json!(case.path), &json!(REGION)));
        assert_eq!((&done["shape"], &done["bytes"]), (&json!([2, 3]), &json!(6)));
        // A second run replaces the file by the same.
        let first = scratch.read("out.npy");
        scratch.run(&get).code(0);
        assert_eq!((data(&first), &scratch.read("out.npy")), (&part[..], &first), "{}", case.place);
    }
}

#[test]
fn a_region_is_written_again_and_again() {
    for case in CASES {
        let scratch = case.made();
        let set = ["set", case.place, case.path, "fix.npy", "--region", REGION];
        let done = scratch.json(&set);
        assert_eq!((&done["format"], &done["created"]), (&json!(case.format), &json!(false)));
        assert_eq!(case.get(&scratch, &[]), fixed(), "{}", case.place);
        let run = scratch.run(&set).code(0);
        assert!(run.stderr.contains(&format!("set {} at {REGION}", case.path)), "{}", run.stderr);
        assert_eq!(case.get(&scratch, &[]), fixed(), "{}", case.place);
        scratch.run(&["set", case.place, case.path, "a.npy"]).code(0);
        assert_eq!(case.get(&scratch, &[]), values(), "{}", case.place);
        scratch.run(&["verify", case.place]).code(0);
    }
}

#[test]
fn a_version_before_a_change_is_read_where_the_format_keeps_it() {
    for case in CASES {
        let scratch = case.made();
        let get = ["get", case.place, case.path, "-o", "out.npy"];
        let before = scratch.json(&get)["snapshot"].clone();
        let set = ["set", case.place, case.path, "fix.npy", "--region", REGION];
        let after = scratch.json(&set)["snapshot"].clone();
        let Some(before) = before.as_str() else {
            assert!(after.is_null(), "{}", case.place);
            let run = scratch.run(&[&get[..], &["--snapshot", "1"]].concat()).code(2);
            assert!(run.stderr.contains("of which there is one version only"), "{}", run.stderr);
            continue;
        };
        assert_eq!(case.get(&scratch, &["--snapshot", before]), values(), "{}", case.place);
        let after = after.as_str().unwrap();
        assert_eq!(case.get(&scratch, &["--snapshot", after]), fixed(), "{}", case.place);
    }
}

#[test]
fn attributes_are_printed_set_and_removed() {
    for case in CASES {
        let scratch = case.made();
        let attrs = ["attrs", case.place, case.path];
        assert_eq!(scratch.json(&attrs), json!({}), "{}", case.place);
        let set =
            [&attrs[..], &["--set", "units=K", "--set", "n=3", "--set", "note=\"7\""]].concat();
        let done = scratch.json(&set);
        assert_eq!((&done["set"], &done["unset"]), (&json!(3), &json!(0)));
        let all = json!({"units": "K", "n": 3, "note": "7"});
        assert_eq!(scratch.json(&attrs), all, "{}", case.place);
        scratch.run(&set).code(0);
        assert_eq!(scratch.json(&attrs), all, "{}", case.place);
        scratch.run(&[&attrs[..], &["--unset", "n", "--set", "units=C"]].concat()).code(0);
        assert_eq!(scratch.json(&attrs), json!({"units": "C", "note": "7"}), "{}", case.place);
        let run = scratch.run(&[&attrs[..], &["--unset", "n"]].concat()).code(3);
        assert!(run.stderr.contains("attribute not found: n"), "{}", run.stderr);
        assert_eq!(case.get(&scratch, &[]), values(), "{}", case.place);
        scratch.run(&[&attrs[..], &["--set", "novalue"]].concat()).code(2);
        scratch.run(&[&attrs[..], &["-m", "only to change"]].concat()).code(2);
    }
}

#[test]
fn arrays_are_resized() {
    for case in CASES {
        let scratch = case.made();
        let done = scratch.json(&["resize", case.place, case.path, "6,6"]);
        assert_eq!(done["shape"], json!([6, 6]));
        assert_eq!(case.get(&scratch, &["--region", "0:4,:"]), values(), "{}", case.place);
        assert_eq!(case.get(&scratch, &["--region", "4:6,:"]), [0; 12], "{}", case.place);
        scratch.run(&["set", case.place, case.path, "fix.npy", "--region", "4:6,0:3"]).code(0);
        let row = [200, 200, 200, 0, 0, 0];
        assert_eq!(case.get(&scratch, &["--region", "5,:"]), row, "{}", case.place);
        for _ in 0..2 {
            scratch.run(&["resize", case.place, case.path, "3,6"]).code(0);
            assert_eq!(case.get(&scratch, &[]), values()[..18], "{}", case.place);
        }
        for shape in ["3", "3,6,1", "3,x"] {
            scratch.run(&["resize", case.place, case.path, shape]).code(2);
        }
        scratch.run(&["verify", case.place]).code(0);
    }
}

#[test]
fn nodes_are_created_and_deleted_or_the_refusal_says_what_the_format_can() {
    for case in CASES {
        let scratch = case.made();
        let new = case.beside();
        let set = ["set", case.place, &new, "fix.npy", "--chunks", "1,3", "--fill", "7"];
        if !case.nodes {
            for command in [&set[..], &["rm", case.place, case.path]] {
                let run = scratch.run(command).code(6);
                let can = "blz can change by writing, resizing, setting attributes of";
                assert!(run.stderr.contains(can), "{}", run.stderr);
            }
            assert_eq!(case.get(&scratch, &[]), values(), "{}", case.place);
            continue;
        }
        assert_eq!(scratch.json(&set)["created"], true);
        let get = ["get", case.place, &new, "-o", "-"];
        assert_eq!(data(&scratch.run(&get).code(0).stdout), [200; 6], "{}", case.place);
        // It exists now: its chunks are given.
        scratch.run(&set).code(2);
        scratch.run(&["set", case.place, &new, "fix.npy"]).code(0);
        scratch.run(&["resize", case.place, &new, "3,3"]).code(0);
        let grown = [200, 200, 200, 200, 200, 200, 7, 7, 7];
        assert_eq!(data(&scratch.run(&get).code(0).stdout), grown, "{}", case.place);

        assert_eq!(scratch.json(&["rm", case.place, &new])["path"], *new);
        scratch.run(&get).code(3);
        scratch.run(&["rm", case.place, &new]).code(3);
        assert_eq!(case.get(&scratch, &[]), values(), "{}", case.place);
        scratch.run(&["rm", case.place, "/"]).code(2);
    }
}

#[test]
fn a_wrong_path_is_3_and_the_hint_lists_what_is_there() {
    for case in CASES {
        let scratch = case.made();
        let before = scratch.files_in(".");
        let none = case.beside();
        for command in [
            &["get", case.place, &none, "-o", "out.npy"][..],
            &["set", case.place, &none, "fix.npy", "--region", REGION],
            &["attrs", case.place, &none],
            &["attrs", case.place, &none, "--set", "a=1"],
            &["resize", case.place, &none, "1,1"],
        ] {
            let run = scratch.run(command).code(3);
            let hint = format!("hint: `chunkyard ls {}`", case.place);
            assert!(run.stderr.contains(&hint), "{command:?}: {}", run.stderr);
        }
        for command in [&["get", "nothing", "/a", "-o", "o.npy"][..], &["rm", "nothing", "/a"]] {
            let run = scratch.run(command).code(3);
            assert!(run.stderr.contains("nothing is none of these"), "{}", run.stderr);
        }
        assert!(scratch.files_in(".") == before, "{} changed", case.place);
    }
}

#[test]
fn a_region_out_of_bounds_or_of_another_shape_is_2_and_changes_nothing() {
    for case in CASES {
        let scratch = case.made();
        scratch.write("wide.npy", &npy("<u2", false, &[4, 6], &[1; 48]));
        let before = scratch.files_in(".");
        for command in [
            &["get", case.place, case.path, "-o", "out.npy", "--region", "0:5,:"][..],
            &["set", case.place, case.path, "fix.npy", "--region", "3:5,0:3"],
            &["set", case.place, case.path, "fix.npy", "--region", "0:3,0:3"],
            &["set", case.place, case.path, "fix.npy"],
            &["set", case.place, case.path, "wide.npy"],
            &["set", case.place, case.path, "a.npy", "--chunks", "1,1"],
        ] {
            scratch.run(command).code(2);
        }
        assert!(scratch.files_in(".") == before, "{} changed", case.place);
    }
}

#[test]
fn branches_and_messages_are_for_repositories() {
    for case in CASES {
        let scratch = case.made();
        let set = ["set", case.place, case.path, "fix.npy", "--region", REGION];
        let with = |options: &[&str]| scratch.run(&[&set[..], options].concat());
        if case.format != "repo" {
            for options in [&["-m", "text"][..], &["--branch", "main"], &["--rebase"]] {
                let run = with(options).code(2);
                assert!(run.stderr.contains("are for repositories, and"), "{}", run.stderr);
            }
            assert_eq!(case.get(&scratch, &[]), values(), "{}", case.place);
            continue;
        }
        with(&["-m", "mask a sensor"]).code(0);
        with(&[]).code(0);
        scratch.run(&["repo", "branch", case.place, "create", "dev"]).code(0);
        scratch.run(&["attrs", case.place, case.path, "--set", "n=1", "--branch", "dev"]).code(0);
        let log = scratch.json(&["repo", "log", case.place]);
        let messages: Vec<_> = log.as_array().unwrap().iter().map(|it| &it["message"]).collect();
        assert_eq!(messages[..2], [&json!("set /g/a at 1:3,2:5"), &json!("mask a sensor")]);
        assert_eq!(scratch.json(&["attrs", case.place, case.path]), json!({}));
        let dev = ["attrs", case.place, case.path, "--branch", "dev"];
        assert_eq!(scratch.json(&dev), json!({"n": 1}));
        with(&["--branch", "none"]).code(3);
        let tag = ["attrs", case.place, case.path, "--set", "n=2", "--tag", "v1"];
        scratch.run(&tag).code(2);
    }
}

#[test]
fn a_new_array_that_cannot_be_filled_is_not_there() {
    for case in CASES.iter().filter(|case| case.nodes) {
        let scratch = case.made();
        let whole = npy("|u1", false, &[4, 6], &values());
        scratch.write("cut.npy", &whole[..whole.len() - 5]);
        let listed = scratch.run(&["ls", case.place]).code(0).text();
        let new = case.beside();
        let run = scratch.run(&["set", case.place, &new, "cut.npy"]);
        assert_ne!(run.code, 0, "{}", case.place);
        assert_eq!(scratch.run(&["ls", case.place]).code(0).text(), listed, "{}", case.place);
        scratch.run(&["set", case.place, &new, "a.npy"]).code(0);
    }
}

#[test]
fn a_dataset_is_created_only_on_demand() {
    let scratch = Scratch::new();
    scratch.write("a.npy", &npy("|u1", false, &[4, 6], &values()));
    for place in ["n.repo", "n.zarr", "n.af"] {
        scratch.run(&["set", place, "/a", "a.npy"]).code(3);
        assert!(!scratch.path(place).exists());
        scratch.run(&["set", place, "/a", "a.npy", "--create"]).code(0);
        scratch.run(&["set", place, "/b", "a.npy", "--create"]).code(0);
        assert_eq!(scratch.run(&["ls", place]).code(0).text(), "/a\n/b\n");
    }
    let run = scratch.run(&["set", "n.blz", "/", "a.npy", "--create"]).code(6);
    assert!(run.stderr.contains("`chunkyard blz append --create`"), "{}", run.stderr);
    assert!(!scratch.path("n.blz").exists());
}

#[test]
fn what_is_only_read_can_be_read_and_says_so() {
    let scratch = CASES[1].made();
    scratch.run(&["convert", "x.zarr/g/a", "x.blp"]).code(0);
    scratch.run(&["convert", "x.zarr", "x.precomputed"]).code(0);
    let shards = ["convert", "x.zarr", "shards.precomputed", "--shards", "4,6"];
    scratch.run(&shards).code(0);
    for (name, path) in READ_ONLY {
        let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata").join(name);
        let place = if golden.exists() { golden } else { PathBuf::from(name) };
        let place = place.to_str().unwrap();
        let got = scratch.run(&["get", place, path, "-o", "-"]).code(0).stdout;
        let expected = match *name {
            "x.blp" | "x.precomputed" | "shards.precomputed" => values(),
            _ => scratch.elements(place, path),
        };
        assert_eq!(data(&got), expected, "{name}");
        scratch.run(&["attrs", place, path]).code(0);
        for command in [
            &["set", place, path, "a.npy"][..],
            &["attrs", place, path, "--set", "a=1"],
            &["rm", place, path],
            &["resize", place, path, "1"],
        ] {
            let run = scratch.run(command).code(6);
            assert!(run.stderr.contains("not supported: "), "{command:?}: {}", run.stderr);
        }
    }
    let run = scratch.run(&["rm", "x.blp", "/"]).code(6);
    assert!(run.stderr.contains("blz can change by"), "{}", run.stderr);
    let hdf5 = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/hdf5/netcdf.nc");
    let run = scratch.run(&["resize", hdf5.to_str().unwrap(), "/temperature", "1"]).code(6);
    let says = "resizing /temperature: hdf5 is only read; convert it to a format that can change";
    assert!(run.stderr.contains(says), "{}", run.stderr);
}

#[test]
fn damage_is_5_and_leaves_the_output_as_it_was() {
    for case in CASES {
        let scratch = case.made();
        scratch.write("out.npy", b"older");
        let (folder, offset) = case.chunk;
        let files = fs::read_dir(scratch.path(folder)).unwrap().map(|entry| entry.unwrap().path());
        let files =
            files.filter(|file| file.is_file() && file.extension().is_none_or(|it| it != "npy"));
        let victim = files.max_by_key(|file| fs::metadata(file).unwrap().len()).unwrap();
        let mut bytes = fs::read(&victim).unwrap();
        let at = if offset < 0 { bytes.len().strict_add_signed(offset) } else { offset as usize };
        bytes[at] ^= 0xff;
        fs::write(&victim, &bytes).unwrap();
        let run = scratch.run(&["get", case.place, case.path, "-o", "out.npy"]).code(5);
        assert!(run.stderr.contains("hint: `chunkyard verify"), "{}", run.stderr);
        assert_eq!(scratch.read("out.npy"), b"older", "{}", case.place);
        scratch.run(&["verify", case.place, "--level", "bytes"]).code(5);
    }
}

#[test]
fn strings_go_in_and_come_out_as_json() {
    let scratch = Scratch::new();
    scratch.write("in.json", br#"[["one", ""], ["drei", "vier"]]"#);
    scratch.write("part.json", br#"[["zwei"]]"#);
    for place in ["x.repo", "x.zarr", "x.af"] {
        let set = ["set", place, "/g/names", "in.json", "--create"];
        scratch.run(&set).code(2);
        assert_eq!(scratch.json(&[&set[..], &["--dtype", "string"]].concat())["created"], true);
        scratch.run(&["set", place, "/g/names", "part.json", "--region", "0:1,1:2"]).code(0);
        scratch.run(&["get", place, "/g/names", "-o", "out.json"]).code(0);
        let written: serde_json::Value = serde_json::from_slice(&scratch.read("out.json")).unwrap();
        let expected = json!([["one", "zwei"], ["drei", "vier"]]);
        assert_eq!(written, expected, "{place}");
        assert_eq!(scratch.json(&["get", place, "/g/names", "-o", "-"]), expected, "{place}");
        let run = scratch.run(&["get", place, "/g/names", "-o", "out.npy"]).code(6);
        assert!(run.stderr.contains("-o FILE.json"), "{}", run.stderr);
        // The type and the codec of an array that exists are given.
        scratch.run(&[&set[..], &["--dtype", "string"]].concat()).code(2);
        let lists = ["set", place, "/lists", "in.json", "--dtype", "list<string>"];
        scratch.run(&lists).code(if place == "x.af" { 0 } else { 6 });
    }
}

#[test]
fn types_are_for_containers_and_amending_is_for_repositories() {
    for case in CASES {
        let scratch = case.made();
        let attrs = ["attrs", case.place, case.path];
        let typed = [&attrs[..], &["--set", "n=3", "--type", "Int8"]].concat();
        let types = [&attrs[..], &["--types"]].concat();
        if case.format == "container" {
            scratch.run(&typed).code(0);
            assert_eq!(scratch.json(&types)["n"], json!({"type": "Int8", "value": 3}));
        } else {
            for refused in [&typed, &types] {
                let run = scratch.run(refused).code(2);
                assert!(run.stderr.contains("is for containers, and"), "{}", run.stderr);
            }
        }
        let set = ["set", case.place, case.path, "fix.npy", "--region", REGION, "--amend"];
        if case.format == "repo" {
            let length = || scratch.json(&["repo", "log", case.place]).as_array().unwrap().len();
            let before = length();
            scratch.run(&set).code(0);
            assert_eq!((case.get(&scratch, &[]), length()), (fixed(), before));
        } else {
            let run = scratch.run(&set).code(2);
            assert!(run.stderr.contains("are for repositories, and"), "{}", run.stderr);
        }
        // Several at once, as JSON.
        let object = [&attrs[..], &["--set", r#"{"a": 1, "b": [2]}"#]].concat();
        assert_eq!(scratch.json(&object)["set"], 2, "{}", case.place);
        assert_eq!(scratch.json(&attrs)["b"], json!([2]), "{}", case.place);
        scratch.run(&[&attrs[..], &["--set", r#"{"a": "b=c""#]].concat()).code(2);
    }
}
