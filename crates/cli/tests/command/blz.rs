//! `chunkyard blz`: its files, its output, and its refusals.

use std::fs;

use serde_json::json;

use super::support::{Scratch, data, npy};

const TYPE: &str = "[('time', '<M8[s]'), ('price', '<f8'), ('at', '<i2', (2,)), ('name', 'S3')]";
const ROWS: &str = "\
price,time,name,\"at[0]\",\"at[1]\"
1.5,2026-01-31T12:00:00Z,ab,1,2
-2,0,\"x,y\",-3,4
NaN,NaT,,5,6
";

/// A table `t.blz` of six rows in chunks of four.
fn with_table() -> Scratch {
    let scratch = Scratch::new();
    scratch.write("rows.csv", ROWS.as_bytes());
    scratch.run(&["blz", "create", "t.blz", "--dtype", TYPE, "--chunklen", "4"]).code(0);
    scratch.run(&["blz", "append", "t.blz", "rows.csv"]).code(0);
    let added = scratch.json(&["blz", "append", "t.blz", "rows.csv"]);
    assert_eq!((&added["added"], &added["rows"]), (&json!(3), &json!(6)));
    scratch
}

fn text(scratch: &Scratch, options: &[&str]) -> String {
    scratch.run(&[&["blz", "get", "t.blz"], options].concat()).code(0).text()
}

#[test]
fn rows_of_text_come_back_as_text() {
    let scratch = with_table();
    let rows =
        "2026-01-31T12:00:00Z,1.5,1,2,ab\n1970-01-01T00:00:00Z,-2,-3,4,\"x,y\"\nNaT,NaN,5,6,\n";
    let all = format!("time,price,\"at[0]\",\"at[1]\",name\n{rows}{rows}").replace('"', "");
    assert_eq!(text(&scratch, &[]).replace('"', ""), all);
    assert_eq!(
        text(&scratch, &["--column", "name,price", "--rows", "::3"]),
        "name,price\nab,1.5\nab,1.5\n"
    );
    let found = text(&scratch, &["--column", "price", "--where", "price < 2 and name != 'ab'"]);
    assert_eq!(found, "price\n-2\n-2\n");
    let lines = scratch.run(&["blz", "get", "t.blz", "--rows", "-1", "--json"]).code(0).text();
    let row: serde_json::Value = serde_json::from_str(&lines).unwrap();
    assert_eq!(row, json!({"time": "NaT", "price": "NaN", "at": [5, 6], "name": ""}));
    scratch.run(&["blz", "get", "t.blz", "-o", "again.tsv"]).code(0);
    scratch.run(&["blz", "append", "t.blz", "again.tsv"]).code(0);
    assert_eq!(text(&scratch, &["--rows", "6:"]), text(&scratch, &["--rows", ":6"]));
    scratch.run(&["verify", "t.blz"]).code(0);
}

#[test]
fn structured_files_of_numpy_go_out_and_in() {
    let scratch = with_table();
    let got = scratch.run(&["blz", "get", "t.blz", "-o", "-"]).code(0).stdout;
    assert!(String::from_utf8_lossy(&got).contains("('at', '<i2', (2,)), ('name', 'S3')]"));
    scratch.run_with(&["blz", "append", "u.blz", "-", "--create"], got.clone()).code(0);
    assert_eq!(scratch.run(&["blz", "get", "u.blz", "-o", "-"]).code(0).stdout, got);
    // Fields are found by name, in any order of bytes.
    let mut other = npy("<i4", false, &[1], &[]);
    let header = String::from_utf8_lossy(&other).replace(
        "'<i4', 'fortran_order': False, 'shape': (1,), }",
        "[('name', 'S3'), ('price', '>f8'), ('at', '>i2', (2,)), ('time', '<M8[s]')], \
         'fortran_order': False, 'shape': (1,), }",
    );
    let text_at = header.find('{').unwrap();
    let dictionary = header[text_at..].trim_end().to_owned();
    other.truncate(8);
    other.extend(u16::try_from(dictionary.len() + 1).unwrap().to_le_bytes());
    other.extend(dictionary.as_bytes());
    other.push(b'\n');
    other.extend(b"zz\0");
    other.extend(2.5f64.to_be_bytes());
    other.extend([0, 7, 0, 8]);
    other.extend(60i64.to_le_bytes());
    scratch.write("other.npy", &other);
    scratch.run(&["blz", "append", "t.blz", "other.npy"]).code(0);
    assert!(text(&scratch, &["--rows", "-1:"]).ends_with("\n1970-01-01T00:01:00Z,2.5,7,8,zz\n"));
}

#[test]
fn a_stream_without_a_header_is_durable_in_steps() {
    let scratch = Scratch::new();
    let create = ["blz", "create", "x.blz", "--dtype", "<i4", "--chunklen", "8"];
    scratch.run(&create).code(0);
    let bytes: Vec<u8> = (0..50i32).flat_map(i32::to_le_bytes).collect();
    let append = ["blz", "append", "x.blz", "-", "--durable-every", "20"];
    scratch.run_with(&append, bytes.clone()).code(0);
    let got = scratch.run(&["blz", "get", "x.blz", "-o", "-"]).code(0).stdout;
    assert_eq!(data(&got), bytes);
    // Rows that were durable before the stream was cut stay.
    let run = scratch.run_with(&append, [&bytes[..], &[1]].concat()).code(5);
    assert!(run.stderr.contains("40 rows were added before, and stay"), "{}", run.stderr);
    let thin = scratch.run(&["blz", "get", "x.blz", "--rows", "80:90:5", "-o", "-"]).code(0).stdout;
    assert_eq!(data(&thin), [30i32, 35].map(i32::to_le_bytes).concat());
}

#[test]
fn length_attributes_and_files_are_printed() {
    let scratch = with_table();
    assert_eq!(scratch.json(&["blz", "resize", "t.blz", "9"])["rows"], 9);
    assert_eq!(scratch.json(&["blz", "trim", "t.blz", "1"])["rows"], 8);
    let files = scratch.json(&["blz", "files", "t.blz"]);
    let first = &files[0];
    assert_eq!(first["column"], "/time");
    assert_eq!(
        (&first["number"], &first["rows"], &first["chunks"]),
        (&json!(1), &json!(8), &json!(2))
    );
    assert_eq!(first["file"], "data/time/__1__.bin");
    assert_eq!(files.as_array().unwrap().len(), 4);
    scratch.run(&["blz", "attrs", "t.blz", "--set", "unit=K", "--set", "n=[1]"]).code(0);
    scratch.run(&["blz", "attrs", "t.blz", "--remove", "unit"]).code(0);
    assert_eq!(scratch.json(&["blz", "attrs", "t.blz"]), json!({"n": [1]}));
    assert_eq!(scratch.json(&["blz", "attrs", "t.blz", "n"]), json!([1]));
    scratch.run(&["blz", "attrs", "t.blz", "unit"]).code(3);
}

#[test]
fn input_that_does_not_fit_is_refused_and_changes_nothing() {
    let scratch = with_table();
    let before = scratch.files_in("t.blz");
    scratch.write("flat.npy", &npy("<f8", false, &[2], &[0; 16]));
    scratch.write("few.csv", b"price,time\n1,2\n");
    scratch.write("many.csv", ROWS.replace("price,time", "cost,price,time").as_bytes());
    scratch.write("bad.csv", ROWS.replace("1.5", "cheap").as_bytes());
    scratch.write("long.csv", ROWS.replace(",ab,", ",abcd,").as_bytes());
    scratch.write("ragged.csv", ROWS.replace("ab,1,2", "ab,1").as_bytes());
    for (arguments, code) in [
        (vec!["append", "t.blz", "flat.npy"], 2),
        (vec!["append", "t.blz", "few.csv"], 2),
        (vec!["append", "t.blz", "many.csv"], 2),
        (vec!["append", "t.blz", "bad.csv"], 2),
        (vec!["append", "t.blz", "long.csv"], 2),
        (vec!["append", "t.blz", "ragged.csv"], 2),
        (vec!["append", "t.blz", "missing.npy"], 3),
        (vec!["append", "none.blz", "flat.npy"], 3),
        (vec!["append", "none.blz", "rows.csv", "--create"], 2),
        (vec!["create", "t.blz", "--dtype", "<f8"], 4),
        (vec!["create", "none.blz", "--dtype", "O"], 6),
        (vec!["create", "none.blz", "--dtype", "<f8", "--codec", "rar"], 2),
        (vec!["get", "t.blz", "--column", "cost"], 3),
        (vec!["get", "t.blz", "--rows", "1:2:0"], 2),
        (vec!["get", "t.blz", "--where", "price >"], 2),
        (vec!["get", "t.blz", "--where", "at > 1"], 6),
        (vec!["get", "none.blz"], 3),
        (vec!["trim", "t.blz", "99"], 2),
    ] {
        let run = scratch.run(&[vec!["blz"], arguments.clone()].concat());
        assert_eq!(run.code, code, "{arguments:?}: {}", run.stderr);
    }
    let mut after = scratch.files_in("t.blz");
    after.retain(|(path, _)| before.iter().any(|(known, _)| known == path));
    assert!(before == after);
    assert!(!fs::exists(scratch.path("none.blz")).unwrap());
}

#[test]
fn existing_rows_change_only_with_mutable() {
    let scratch = with_table();
    scratch.write("one.csv", b"price\n7\n8\n");
    let set = ["blz", "set", "t.blz", "1:3", "one.csv", "--column", "price"];
    let run = scratch.run(&set).code(6);
    assert!(run.stderr.contains("mutable"), "{}", run.stderr);
    scratch.run(&[&set[..], &["--mutable"]].concat()).code(0);
    assert_eq!(text(&scratch, &["--column", "price"]), "price\n1.5\n7\n8\n1.5\n-2\nNaN\n");
    let wrong = ["blz", "set", "t.blz", "1:4", "one.csv", "--column", "price", "--mutable"];
    scratch.run(&wrong).code(2);
    scratch.run(&["verify", "t.blz"]).code(0);
}

#[test]
fn full_files_move_and_torn_files_are_set_aside() {
    let scratch = Scratch::new();
    let create = ["blz", "create", "x.blz", "--dtype", "u1", "--chunklen", "4"];
    scratch.run(&[&create[..], &["--superchunk", "2"]].concat()).code(0);
    let bytes: Vec<u8> = (0..30).collect();
    scratch.run_with(&["blz", "append", "x.blz", "-"], bytes.clone()).code(0);
    let away = scratch.path("away").to_str().unwrap().to_owned();
    scratch.run(&["blz", "move", "x.blz", "1:2", "--to", &away]).code(0);
    let allowed = ["blz", "get", "x.blz", "-o", "-", "--allow", &away];
    assert_eq!(data(&scratch.run(&allowed).code(0).stdout), bytes);
    assert_ne!(scratch.run(&["blz", "get", "x.blz", "-o", "-"]).code, 0);
    let files = scratch.run(&["blz", "files", "x.blz", "--json", "--allow", &away]).code(0).json();
    assert_eq!((&files[0]["elsewhere"], &files[2]["elsewhere"]), (&json!(true), &json!(false)));
    fs::remove_file(scratch.path("x.blz/data/__3__.bin")).unwrap();
    let repair = ["blz", "repair", "x.blz", "--allow", &away, "--json"];
    let would = scratch.run(&[&repair[..], &["--dry-run"]].concat()).code(0).json();
    assert_eq!((&would["rows-before"], &would["rows-after"]), (&json!(30), &json!(16)));
    assert_eq!(scratch.run(&repair).code(0).json()["rows-after"], 16);
    assert_eq!(data(&scratch.run(&allowed).code(0).stdout), &bytes[..16]);
}

#[test]
fn a_failed_append_removes_the_dataset_that_it_created() {
    let scratch = Scratch::new();
    let mut short = npy("<i8", false, &[100], &[0; 800]);
    short.truncate(short.len() - 8);
    scratch.write("short.npy", &short);
    for style in ["superchunk", "document", "bcolz"] {
        let append = ["blz", "append", "x.blz", "short.npy", "--create", "--style", style];
        let run = scratch.run(&append).code(5);
        assert!(run.stderr.contains("truncated"), "{}", run.stderr);
        assert!(!scratch.path("x.blz").exists(), "{:?}", scratch.names());
    }
    // An older dataset stays, with its rows.
    scratch.write("rows.npy", &npy("<i8", false, &[3], &[1; 24]));
    scratch.run(&["blz", "append", "x.blz", "rows.npy", "--create"]).code(0);
    scratch.run(&["blz", "append", "x.blz", "short.npy", "--create"]).code(5);
    assert_eq!(scratch.json(&["blz", "trim", "x.blz", "0"])["rows"], 3);
}

#[test]
fn impossible_lengths_are_refused_with_a_message() {
    let scratch = Scratch::new();
    let create = ["blz", "create", "x.blz", "--dtype", "<i8", "--chunklen", "0"];
    let run = scratch.run(&create).code(2);
    assert!(run.stderr.contains("error: chunks of 0 rows"), "{}", run.stderr);
    let table = "[('x', '<i8')]";
    let run = scratch.run(&["blz", "create", "x.blz", "--dtype", table, "--chunklen", "0"]).code(2);
    assert!(run.stderr.contains("error: column \"x\": chunks of 0 rows"), "{}", run.stderr);
    let run =
        scratch.run(&["blz", "create", "x.blz", "--dtype", "<f8", "--default", "-inf"]).code(2);
    assert!(run.stderr.contains("takes -Infinity, spelled so"), "{}", run.stderr);
}

#[test]
fn the_example_of_the_document_is_created_as_it_says() {
    let scratch = Scratch::new();
    let create = ["blz", "create", "x.blz", "--dtype", "<f8", "--expected-rows", "10000000"];
    scratch.run(&[&create[..], &["--style", "document"]].concat()).code(0);
    let storage: serde_json::Value =
        serde_json::from_slice(&scratch.read("x.blz/meta/storage")).unwrap();
    let said = json!({
        "dtype": "float64", "cparams": {"shuffle": true, "clevel": 5}, "chunklen": 16384,
        "dflt": 0.0, "expectedlen": 10_000_000,
    });
    for (key, value) in said.as_object().unwrap() {
        assert_eq!(storage[key], *value, "{key}");
    }
}

#[test]
fn verify_counts_the_tail_and_says_what_it_cannot_check() {
    let scratch = Scratch::new();
    scratch.write("rows.npy", &npy("<i8", false, &[13], &[7; 104]));
    for style in ["superchunk", "document", "bcolz"] {
        let place = format!("{style}.blz");
        let append = ["blz", "append", &place, "rows.npy", "--create", "--chunklen", "5"];
        let files = ["--superchunk", "1", "--style", style];
        scratch.run(&[&append[..], &files].concat()).code(0);
        let found = scratch.json(&["verify", &place]);
        let text = scratch.run(&["verify", &place]).code(0).text();
        let checked = &found["checked"];
        assert_eq!((&checked["chunks"], &checked["objects"]), (&json!(3), &json!(3)), "{found}");
        if style == "bcolz" {
            assert_eq!((&found["verdict"], &checked["unchecked"]), (&json!("readable"), &json!(3)));
            assert!(text.contains("readable: 1 array, 3 stored chunks, 3 objects"), "{text}");
            assert!(text.contains("cannot be checked: 3 chunks, 3 meta files"), "{text}");
        } else {
            assert_eq!((&found["verdict"], &checked["unchecked"]), (&json!("sound"), &json!(0)));
            assert!(text.starts_with("sound: 1 array, 3 stored chunks, 3 objects"), "{text}");
        }
        let sizes: serde_json::Value =
            serde_json::from_slice(&scratch.read(&format!("{place}/meta/sizes"))).unwrap();
        assert_eq!(checked["bytes"], sizes["cbytes"], "{found}");
    }
}

#[test]
fn files_of_a_converted_dataset_know_where_they_belong() {
    let scratch = Scratch::new();
    for (name, byte) in [("a", 1), ("b", 2)] {
        scratch.write("rows.npy", &npy("<i8", false, &[40], &[byte; 320]));
        let source = format!("{name}-source.blz");
        let append = ["blz", "append", &source, "rows.npy", "--create", "--chunklen", "10"];
        scratch.run(&append).code(0);
        let target = format!("{name}.blz");
        scratch.run(&["convert", &source, &target, "--shards", "20"]).code(0);
        assert!(scratch.run(&["verify", &target]).code(0).text().starts_with("sound: "));
    }
    for other in ["a.blz/data/__2__.bin", "b.blz/data/__1__.bin"] {
        let whole = scratch.read("a.blz/data/__1__.bin");
        scratch.write("a.blz/data/__1__.bin", &scratch.read(other));
        scratch.run(&["verify", "a.blz"]).code(5);
        scratch.run(&["blz", "get", "a.blz"]).code(5);
        scratch.write("a.blz/data/__1__.bin", &whole);
    }
    scratch.run(&["verify", "a.blz"]).code(0);
}
