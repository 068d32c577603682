//! `chunkyard af`: its files, its output, and its refusals.

use serde_json::json;

use super::support::{Scratch, data, npy};

/// A container `x.af` with an array `g/a` of `uint8`, 4 by 6 in chunks of 2 by 3, counting from 1, in
/// its first layer; the second layer replaces a corner.
fn with_container() -> Scratch {
    let scratch = Scratch::new();
    let values: Vec<u8> = (1..=24).collect();
    scratch.write("a.npy", &npy("|u1", false, &[4, 6], &values));
    scratch.write("corner.npy", &npy("|u1", false, &[2, 2], &[90, 91, 92, 93]));
    scratch.run(&["af", "create", "x.af"]).code(0);
    scratch.run(&["af", "set", "x.af", "g/a", "a.npy", "--chunks", "2,3"]).code(0);
    scratch.run(&["af", "set", "x.af", "/g/a", "corner.npy", "--region", "0:2,0:2"]).code(0);
    scratch
}

fn get(scratch: &Scratch, options: &[&str]) -> Vec<u8> {
    let arguments = [&["af", "get", "x.af"], options, &["-o", "-"]].concat();
    data(&scratch.run(&arguments).code(0).stdout).to_vec()
}

#[test]
fn every_layer_can_be_read_until_they_are_compacted() {
    let scratch = with_container();
    let first: Vec<u8> = (1..=24).collect();
    let mut second = first.clone();
    (second[0], second[1], second[6], second[7]) = (90, 91, 92, 93);
    assert_eq!(get(&scratch, &["g/a", "--at", "1"]), first);
    assert_eq!(get(&scratch, &["g/a"]), second);
    assert_eq!(get(&scratch, &["g/a", "--region", "0:2,0:1"]), [90, 92]);
    scratch.run(&["af", "get", "x.af", "g/a", "-o", "x.npy", "--at", "0"]).code(3);
    let compacted = scratch.json(&["af", "compact", "x.af", "--codec", "lz4"]);
    assert_eq!(compacted["layers"], 3);
    assert_eq!(get(&scratch, &["g/a"]), second);
    let run = scratch.run(&["af", "get", "x.af", "g/a", "-o", "x.npy", "--at", "1"]).code(3);
    assert!(run.stderr.contains("hint: `chunkyard af layers x.af` lists them"), "{}", run.stderr);
    let layers = scratch.json(&["af", "layers", "x.af"]);
    assert_eq!(layers["layers"].as_array().unwrap().len(), 1);
    assert_eq!(layers["layers"][0]["holds-up-to"], 2);
    scratch.run(&["verify", "x.af"]).code(0);
}

#[test]
fn layers_are_listed_with_their_content() {
    let scratch = with_container();
    scratch.run(&["af", "rm", "x.af", "g/a"]).code(0);
    let document = scratch.json(&["af", "layers", "x.af"]);
    let facts: Vec<_> = document["layers"]
        .as_array()
        .unwrap()
        .iter()
        .map(|layer| (layer["file"].as_str().unwrap(), &layer["chunks"], &layer["deleted"]))
        .collect();
    let zero = &json!(0);
    let expected = [
        ("x.af", zero, zero),
        ("x.1.af", &json!(4), zero),
        ("x.2.af", &json!(1), zero),
        ("x.3.af", zero, &json!(1)),
    ];
    assert_eq!(facts, expected);
    assert!(document["layers"][1]["checksums"].as_bool().unwrap());
    let text = scratch.run(&["af", "layers", "x.af"]).code(0).text();
    assert!(text.starts_with("layer  file    bytes"), "{text}");
    assert_eq!(scratch.run(&["af", "ls", "x.af"]).code(0).text(), "");
    assert!(
        scratch.run(&["af", "ls", "x.af", "--at", "2"]).text().starts_with("g/a  uint8  4 × 6")
    );
}

#[test]
fn arrays_are_defined_resized_described_and_counted() {
    let scratch = with_container();
    let define = ["af", "define", "x.af", "names", "--dtype", "string", "--shape", "5"];
    scratch.run(&define).code(0);
    scratch.run(&define).code(4);
    let times = ["af", "define", "x.af", "t", "--dtype", "datetime64[ns]", "--shape", "3"];
    scratch.run(&times).code(0);
    scratch.run(&["af", "define", "x.af", "g/a/b", "--dtype", "int8", "--shape", "3"]).code(2);
    scratch.run(&["af", "define", "x.af", "h", "--dtype", "float16", "--shape", "3"]).code(6);
    scratch.run(&["af", "define", "x.af", "h", "--dtype", "int8", "--shape", "4294967296"]).code(2);
    scratch.run(&["af", "resize", "x.af", "g/a", "5,6"]).code(0);
    assert_eq!(get(&scratch, &["g/a", "--region", "4:5,0:6"]), [0; 6]);
    scratch.run(&["af", "resize", "x.af", "g/a", "5"]).code(2);

    let stats = scratch.json(&["af", "stats", "x.af"]);
    let a = json!({"name": "g/a", "known": true, "elements": 30, "null": 6, "min": 3, "max": 93});
    assert_eq!(stats[0], a);
    assert_eq!((&stats[1]["name"], &stats[1]["null"]), (&json!("names"), &json!(5)));
    assert_eq!(scratch.json(&["af", "stats", "x.af", "/g/a"]), json!([a]));

    let set = ["--set", "units=K", "--set", "scale=0.5", "--set", "range=[1, 2]"];
    scratch.run(&[&["af", "attrs", "x.af", "g/a"], &set[..]].concat()).code(0);
    scratch.run(&["af", "attrs", "x.af", "g/a", "--remove", "scale"]).code(0);
    scratch.run(&["af", "attrs", "x.af", "g/a", "--remove", "scale"]).code(3);
    let attributes = json!({"units": "K", "range": [1, 2]});
    assert_eq!(scratch.json(&["af", "attrs", "x.af", "g/a"]), attributes);
    scratch.run(&["af", "attrs", "x.af", "g", "--set", "title=all"]).code(0);
    assert_eq!(scratch.json(&["af", "attrs", "x.af", "/g"]), json!({"title": "all"}));
    scratch.run(&["af", "compact", "x.af"]).code(0);
    assert_eq!(scratch.json(&["af", "attrs", "x.af", "g/a"]), attributes);
}

#[test]
fn input_that_does_not_fit_changes_nothing() {
    let scratch = with_container();
    let before = scratch.names();
    scratch.write("wide.npy", &npy("<u2", false, &[2, 2], &[0; 8]));
    for (code, arguments) in [
        (4, vec!["af", "create", "x.af"]),
        (2, vec!["af", "create", "x.zip"]),
        (2, vec!["af", "set", "x.af", "g/a", "wide.npy", "--region", "0:2,0:2"]),
        (2, vec!["af", "set", "x.af", "g/a", "corner.npy"]),
        (2, vec!["af", "set", "x.af", "g/a", "a.npy", "--chunks", "1,1"]),
        (3, vec!["af", "set", "x.af", "new", "corner.npy", "--region", "0:2,0:2"]),
        (2, vec!["af", "set", "x.af", "new", "a.npy", "--codec", "brotli"]),
        (3, vec!["af", "rm", "x.af", "new"]),
        (3, vec!["af", "get", "x.af", "g", "-o", "g.npy"]),
        (3, vec!["af", "layers", "y.af"]),
    ] {
        scratch.run(&arguments).code(code);
    }
    scratch.run(&["af", "attrs", "x.af", "g/a", "--set", "k=v", "--at", "1"]).code(2);
    let mut after = scratch.names();
    after.retain(|name| name != "wide.npy");
    assert_eq!(after, before);
}

#[test]
fn a_group_is_deleted_with_all_below_it() {
    let scratch = with_container();
    scratch.run(&["af", "set", "x.af", "gx", "a.npy"]).code(0);
    scratch.run(&["af", "rm", "x.af", "g"]).code(0);
    assert!(scratch.run(&["af", "ls", "x.af"]).text().starts_with("gx "));
    assert_eq!(scratch.run(&["ls", "x.af"]).text(), "/gx\n");
}

#[test]
fn containers_are_described_listed_and_converted_both_ways() {
    let scratch = with_container();
    let expected = get(&scratch, &["g/a"]);
    let info = scratch.json(&["info", "x.af"]);
    assert_eq!((&info["format"], &info["stored-files"]), (&"container".into(), &4.into()));
    assert_eq!(info["layers"].as_array().unwrap().len(), 3);
    let text = scratch.run(&["info", "x.af"]).code(0).text();
    for part in ["format  container", "layers  3, all with checksums", "in 4 objects"] {
        assert!(text.contains(part), "{part} in {text}");
    }
    assert_eq!(scratch.run(&["ls", "x.af"]).text(), "/g/\n/g/a\n");
    scratch.run(&["convert", "x.af", "y.zarr", "--verify"]).code(0);
    scratch.run(&["convert", "y.zarr", "z.af", "--verify"]).code(0);
    assert_eq!(scratch.elements("z.af", "/g/a"), expected);
    scratch.run(&["verify", "z.af"]).code(0);
    // An older state, by the number of its layer.
    scratch.run(&["convert", "x.af", "old.zarr", "--snapshot", "1"]).code(0);
    assert_eq!(scratch.elements("old.zarr", "/g/a"), (1..=24).collect::<Vec<u8>>());
    scratch.run(&["ls", "x.af", "--tag", "v1"]).code(2);
}

#[test]
fn attributes_keep_their_types_and_new_ones_get_one() {
    let scratch = with_container();
    let attrs = |options: &[&str]| {
        scratch.run(&[&["af", "attrs", "x.af", "g/a"], options].concat()).code(0)
    };
    let types = || scratch.json(&["af", "attrs", "x.af", "g/a", "--types"]);
    attrs(&["--set", "min=-5", "--type", "Int8"]);
    attrs(&[
        "--set",
        "scale=0.1",
        "--set",
        "code=007",
        "--type",
        "float32",
        "--type",
        "code=String",
    ]);
    attrs(&["--set", "count=3"]);
    let expected = json!({
        "min": {"type": "Int8", "value": -5},
        "scale": {"type": "Float32", "value": f64::from(0.1f32)},
        "code": {"type": "String", "value": "007"},
        "count": {"type": "Int64", "value": 3},
    });
    assert_eq!(types(), expected);
    attrs(&["--remove", "count"]);
    assert_eq!(types()["min"]["type"], "Int8");
    scratch.run(&["af", "compact", "x.af"]).code(0);
    assert_eq!(types()["scale"]["type"], "Float32");
    for refused in [
        vec!["--set", "min=200", "--type", "Int8"],
        vec!["--set", "min=1", "--type", "Int7"],
        vec!["--set", "min=[1]", "--type", "Int8"],
        vec!["--set", "min=1", "--type", "max=Int8"],
    ] {
        scratch.run(&[&["af", "attrs", "x.af", "g/a"], &refused[..]].concat()).code(2);
    }
}

#[test]
fn elements_of_every_sort_go_in_and_come_out_as_json() {
    let scratch = with_container();
    for (name, dtype, values) in [
        ("names", "string", json!([["one", ""], ["drei", "vier"], ["5", "6"]])),
        ("blobs", "bytes", json!(["", "AP8=", "YWJj"])),
        ("times", "datetime64[ns]", json!(["2026-01-31T12:00:00.5Z", "NaT"])),
        ("lists", "list<int32>", json!([[1, 2, 3], [], [-4]])),
        ("words", "list<string>", json!([["a", "b"], []])),
        ("pairs", "fixed<2,float32>", json!([[0.5, 1.5], ["NaN", 3.0]])),
        ("one", "string", json!("a scalar")),
    ] {
        scratch.write("in.json", values.to_string().as_bytes());
        let set = ["af", "set", "x.af", name, "in.json"];
        scratch.run(&set).code(2);
        scratch.run(&[&set[..], &["--dtype", dtype]].concat()).code(0);
        assert_eq!(scratch.json(&["af", "get", "x.af", name, "-o", "-"]), values, "{name}");
        scratch.run(&["af", "get", "x.af", name, "-o", "out.json"]).code(0);
        let written: serde_json::Value = serde_json::from_slice(&scratch.read("out.json")).unwrap();
        assert_eq!(written, values, "{name}");
        // The output goes in again.
        scratch.run(&["af", "set", "x.af", name, "out.json"]).code(0);
    }
    scratch.write("in.json", br#"[["zwei"]]"#);
    scratch.run(&["af", "set", "x.af", "names", "in.json", "--region", "0:1,1:2"]).code(0);
    let region = ["af", "get", "x.af", "names", "-o", "-", "--region", "0:2,1:2"];
    assert_eq!(scratch.json(&region), json!([["zwei"], ["vier"]]));
    let run = scratch.run(&["af", "get", "x.af", "names", "-o", "n.npy"]).code(6);
    assert!(run.stderr.contains("-o FILE.json"), "{}", run.stderr);
    for (text, options) in [
        ("[[1, 2], [3]]", &["--dtype", "int8"][..]),
        ("[300]", &["--dtype", "int8"]),
        ("[1", &["--dtype", "int8"]),
        ("[1]", &["--dtype", "int7"]),
    ] {
        scratch.write("in.json", text.as_bytes());
        scratch.run(&[&["af", "set", "x.af", "new", "in.json"], options].concat()).code(2);
    }
    scratch
        .run(&["af", "define", "x.af", "l", "--dtype", "list<list<int8>>", "--shape", "2"])
        .code(0);
    assert_eq!(scratch.json(&["af", "get", "x.af", "l", "-o", "-"]), json!([[], []]));
    scratch.run(&["verify", "x.af"]).code(0);
}

#[test]
fn hints_name_only_options_and_commands_that_exist() {
    let scratch = with_container();
    scratch.write("half.npy", &npy("<f2", false, &[2], &[0; 4]));
    let run = scratch.run(&["af", "set", "x.af", "half", "half.npy"]).code(6);
    assert!(!run.stderr.contains("--dtype") && !run.stderr.contains("--array"), "{}", run.stderr);
    let run = scratch.run(&["convert", "x.af", "y.npy"]).code(2);
    for part in ["--to", "chunkyard get"] {
        assert!(run.stderr.contains(part), "{part} in {}", run.stderr);
    }
    assert!(!run.stderr.contains("hdf5"), "{}", run.stderr);
}
