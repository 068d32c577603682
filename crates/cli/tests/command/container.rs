//! `chunkyard af`: what it writes, what it says, and what it refuses.

use serde_json::json;

use super::support::{Scratch, data, npy};

/// A container `x.af` with an array `g/a` of `uint8`, 4 by 6 in chunks of 2 by 3, counting from 1, in
/// its first layer, of which the second one replaces a corner.
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
fn layers_tell_what_they_hold() {
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
fn what_does_not_fit_changes_nothing() {
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
