//! Values that are hard to keep or to show: numbers beyond 64 bits, numbers that JSON does not have, fill
//! values that do not fit, text without end, text that a terminal would obey.

use super::support::{Scratch, npy};

const LARGE: &str = "123456789012345678901234567890";

#[test]
fn numbers_in_attributes_are_kept_digit_by_digit() {
    let scratch = Scratch::with_array();
    let numbers = format!(
        r#"{{"large": {LARGE}, "low": -{LARGE}, "edge": 18446744073709551616, "deep": [{{"x": {LARGE}}}],
            "digits": 0.1000000000000000055511151231257827, "out": 1E400, "zero": -0}}"#
    );
    scratch.run(&["repo", "attrs", "r", "/a", "--set", &numbers]).code(0);
    let printed = scratch.run(&["repo", "attrs", "r", "/a"]).code(0).text();
    let check = |printed: &str| {
        for number in [
            format!("\"large\": {LARGE}"),
            format!("\"low\": -{LARGE}"),
            "\"edge\": 18446744073709551616".to_owned(),
            format!("\"x\": {LARGE}"),
        ] {
            assert!(printed.contains(&number), "{number} in {printed}");
        }
        assert!(printed.contains("\"out\": 1e+400"), "{printed}");
    };
    check(&printed);
    assert!(printed.contains("0.1000000000000000055511151231257827"), "{printed}");
    for target in ["x.zarr", "x.af", "x.blz"] {
        scratch.run(&["convert", "r", target]).code(0);
        scratch.run(&["convert", target, "back.zarr", "--overwrite"]).code(0);
        check(&String::from_utf8(scratch.read("back.zarr/a/zarr.json")).unwrap());
    }
}

#[test]
fn numbers_that_json_does_not_have_can_be_set_and_stay_numbers() {
    let scratch = Scratch::with_array();
    let set = r#"{"missing": NaN, "range": [-Infinity, Infinity], "word": "NaN"}"#;
    scratch.run(&["repo", "attrs", "r", "/a", "--set", set]).code(0);
    scratch.run(&["repo", "attrs", "r", "/a", "--set", r#"{"more": 1}"#]).code(0);
    scratch.run(&["repo", "attrs", "r", "/", "--set", r#"{"root": -Infinity}"#]).code(0);
    let shown = scratch.json(&["repo", "attrs", "r", "/a"]);
    assert_eq!(shown["range"], serde_json::json!(["-Infinity", "Infinity"]));
    for source in ["r", "x.zarr", "x.af", "x.blz"] {
        if source != "r" {
            scratch.run(&["convert", "r", source]).code(0);
        }
        scratch.run(&["convert", source, "back.zarr", "--overwrite"]).code(0);
        let text = String::from_utf8(scratch.read("back.zarr/a/zarr.json")).unwrap();
        for part in ["\"missing\": NaN", "-Infinity,", "\"word\": \"NaN\"", "\"more\": 1"] {
            assert!(text.contains(part), "{source}: {part} in {text}");
        }
        assert!(!text.contains("chunkyard"), "{text}");
    }
    let root = String::from_utf8(scratch.read("x.zarr/zarr.json")).unwrap();
    assert!(root.contains("\"root\": -Infinity") && root.contains("\"missing\": NaN"), "{root}");
    // A text takes the place of a number.
    scratch.run(&["repo", "attrs", "r", "/a", "--set", r#"{"missing": "NaN"}"#]).code(0);
    scratch.run(&["convert", "r", "back.zarr", "--overwrite"]).code(0);
    let text = String::from_utf8(scratch.read("back.zarr/a/zarr.json")).unwrap();
    assert!(text.contains("\"missing\": \"NaN\"") && text.contains("-Infinity,"), "{text}");

    scratch.run(&["af", "attrs", "x.af", "a", "--set", "nan=NaN"]).code(0);
    scratch.run(&["blz", "attrs", "x.blz/a", "--set", "nan=NaN"]);
    scratch.run(&["convert", "x.af", "back.zarr", "--overwrite"]).code(0);
    let text = String::from_utf8(scratch.read("back.zarr/a/zarr.json")).unwrap();
    assert!(text.contains("\"nan\": NaN") && text.contains("\"missing\": NaN"), "{text}");
}

#[test]
fn a_fill_value_that_the_type_does_not_hold_is_refused() {
    let scratch = Scratch::with_repo();
    scratch.run(&["af", "create", "x.af"]).code(0);
    for (descr, bytes, fill) in [
        ("<f2", 2, "1e10"),
        ("<f4", 4, "-1e39"),
        ("|u1", 1, "-1"),
        ("|u1", 1, "256"),
        ("<i2", 2, "NaN"),
        ("<i2", 2, "1.5"),
        ("|b1", 1, "2"),
        ("|S3", 3, "four"),
    ] {
        scratch.write("in.npy", &npy(descr, false, &[1], &vec![0; bytes]));
        let refused = scratch.run(&["repo", "set", "r", "/x", "in.npy", "--fill", fill]).code(2);
        assert!(refused.stderr.contains("fill value"), "{}", refused.stderr);
        if descr != "|S3" && descr != "<f2" {
            scratch.run(&["af", "set", "x.af", "x", "in.npy", "--fill", fill]).code(2);
        }
    }
    scratch.write("in.npy", &npy("<f4", false, &[1], &[0; 4]));
    let hint = scratch.run(&["repo", "set", "r", "/x", "in.npy", "--fill", "inf"]).code(2).stderr;
    assert!(hint.contains("takes Infinity, spelled so"), "{hint}");
    scratch.run(&["repo", "set", "r", "/x", "in.npy", "--fill", "-Infinity"]).code(0);
}

#[test]
fn text_without_end_is_cut_and_breaks_nothing() {
    let scratch = Scratch::with_array();
    let long = "x".repeat(65_536);
    for set in [format!("{{\"{long}\": 1}}"), format!("{{\"k\": \"{long}\"}}")] {
        scratch.run(&["repo", "attrs", "r", "/a", "--set", &set, "-m", &long]).code(0);
    }
    for arguments in [vec!["info", "r"], vec!["repo", "log", "r"], vec!["ls", "r", "-l"]] {
        let shown = scratch.run(&arguments).code(0);
        assert!(shown.stdout.len() < 10_000, "{arguments:?}: {}", shown.stdout.len());
        assert!(arguments[0] == "ls" || shown.text().contains("… (65536 characters)"));
    }
    assert_eq!(scratch.json(&["repo", "attrs", "r", "/a"])["k"], *long);
}

#[test]
fn control_characters_are_spelled_out() {
    let scratch = Scratch::with_array();
    let hostile = "\x1b]0;owned\x07\x1b[2J\u{9b}1m\u{202e}evil\r\nerror: forged";
    let set = serde_json::json!({"k\x1b[31m": hostile}).to_string();
    scratch.run(&["repo", "attrs", "r", "/a", "--set", &set, "-m", hostile]).code(0);
    scratch.run(&["repo", "set", "r", "/\u{202e}name", "a.npy"]).code(0);
    let tip = scratch.json(&["repo", "log", "r"])[0]["snapshot-id"].as_str().unwrap().to_owned();
    let shown = [
        vec!["info", "r"],
        vec!["repo", "log", "r"],
        vec!["ls", "r"],
        vec!["ls", "r", "-l"],
        vec!["repo", "diff", "r", "main", &tip],
        vec!["repo", "get", "r", "/no\x1b[2J\u{202e}", "-o", "-"],
        vec!["repo", "branch", "r", "b\x1b[2J"],
        vec!["convert", "r", "x.zarr", "--dry-run"],
    ];
    for arguments in shown {
        let run = scratch.run(&arguments);
        for text in [run.text(), run.stderr] {
            let obeyed = |c: char| (c.is_control() && c != '\n') || "\u{202e}".contains(c);
            assert!(!text.contains(obeyed), "{arguments:?}: {text:?}");
            assert!(!text.lines().any(|line| line.starts_with("error: forged")), "{text}");
        }
    }
    // JSON escapes it, and has it in full.
    assert_eq!(scratch.json(&["repo", "log", "r"])[1]["message"], *hostile);
}

#[test]
fn a_lying_chunk_of_strings_is_damage_without_a_panic() {
    let scratch = Scratch::new();
    std::fs::create_dir_all(scratch.path("s.zarr/c")).unwrap();
    scratch.write(
        "s.zarr/zarr.json",
        br#"{"zarr_format": 3, "node_type": "array", "shape": [2], "data_type": "string",
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [2]}},
            "chunk_key_encoding": {"name": "default"}, "fill_value": "",
            "codecs": [{"name": "vlen-utf8"}], "attributes": {"missing_value": NaN}}"#,
    );
    let lying = [2u32.to_le_bytes(), 5000u32.to_le_bytes(), *b"abcd", 0u32.to_le_bytes()].concat();
    scratch.write("s.zarr/c/0", &lying);
    for arguments in
        [vec!["verify", "s.zarr"], vec!["convert", "s.zarr", "x.zarr", "--chunks", "1"]]
    {
        let run = scratch.run(&arguments).code(5);
        assert!(!run.stderr.contains("panicked"), "{}", run.stderr);
        let said = run.text() + &run.stderr;
        assert!(said.contains("ends in element 0 of 2"), "{said}");
    }
}
