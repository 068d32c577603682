//! `convert`: the result.

use serde_json::json;

use super::support::{Scratch, npy};

/// 1 to 24, as [`Scratch::with_array`] has them at `/a`.
fn values() -> Vec<u8> {
    (1..=24).collect()
}

#[test]
fn a_repository_becomes_zarr_and_zarr_a_repository_again() {
    let scratch = Scratch::with_array();
    scratch.run(&["repo", "set", "r", "/deep/b", "a.npy", "--dims", "y,x"]).code(0);
    scratch.run(&["repo", "attrs", "r", "/deep/b", "--set", "{\"units\": \"K\"}"]).code(0);
    let run = scratch.run(&["convert", "r", "a.zarr"]).code(0);
    assert!(
        run.stdout.is_empty() && run.stderr.starts_with("a.zarr: 2 arrays, "),
        "{}",
        run.stderr
    );
    scratch.run(&["convert", "a.zarr", "back.repo"]).code(0);
    scratch.run(&["convert", "back.repo", "b.zarr"]).code(0);
    let relative = |place: &str| {
        let root = scratch.path(place);
        let files = scratch.files_in(place).into_iter();
        files
            .map(|(path, bytes)| (path.strip_prefix(&root).unwrap().to_owned(), bytes))
            .collect::<Vec<_>>()
    };
    assert_eq!(relative("a.zarr"), relative("b.zarr"));
    for path in ["/a", "/deep/b"] {
        assert_eq!(scratch.elements("a.zarr", path), values());
    }
    let array = &scratch.json(&["info", "b.zarr"])["arrays"][1];
    assert_eq!(array["dimension-names"], json!(["y", "x"]));
    assert_eq!(array["attributes"], json!({"units": "K"}));
    assert_eq!(scratch.names(), ["a.npy", "a.zarr", "b.zarr", "back.repo", "r"]);
}

#[test]
fn chunks_shards_codecs_and_type_are_as_wished() {
    let scratch = Scratch::with_array();
    let convert = [
        "convert",
        "r",
        "x.zarr",
        "--chunks",
        "2,2",
        "--shards",
        "4,4",
        "--codec",
        "gzip:5",
        "--dtype",
        "float32",
        "--verify",
        "--memory",
        "512MiB",
        "--threads",
        "2",
        "--requests",
        "4",
    ];
    let done = scratch.json(&convert);
    assert_eq!(done["arrays"][0]["movement"], "regrid");
    assert_eq!(done["outcome"]["verified"], true);
    assert_eq!((&done["outcome"]["chunks"], &done["outcome"]["bytes"]), (&6.into(), &96.into()));
    let array = &scratch.json(&["ls", "x.zarr"])[0];
    assert_eq!(array["chunk-shape"], json!([2, 2]));
    assert_eq!(array["shard-shape"], json!([4, 4]));
    assert_eq!((&array["data-type"], &array["refs"]), (&"float32".into(), &6.into()));
    assert_eq!(array["codecs"][1]["name"], "gzip");
    let floats: Vec<u8> = (1..=24u8).flat_map(|n| f32::from(n).to_le_bytes()).collect();
    assert_eq!(scratch.elements("x.zarr", "/a"), floats);
    scratch.run(&["convert", "x.zarr", "flat.zarr", "--shards", "none"]).code(0);
    assert_eq!(scratch.json(&["ls", "flat.zarr"])[0].get("shard-shape"), None);
}

#[test]
fn rounding_is_a_loss_that_must_be_accepted() {
    let scratch = Scratch::with_repo();
    let tenths: Vec<u8> = (0..4).flat_map(|n| (f64::from(n) / 10.0).to_le_bytes()).collect();
    scratch.write("t.npy", &npy("<f8", false, &[4], &tenths));
    scratch.run(&["repo", "set", "r", "/t", "t.npy"]).code(0);
    let run = scratch.run(&["convert", "r", "x.zarr", "--dtype", "float32"]).code(2);
    assert!(run.stderr.contains("/t: element 1 is 0.1, a float64"), "{}", run.stderr);
    assert!(run.stderr.contains("hint: to try other options, begin anew with --restart"));
    let accept = ["--dtype", "float32", "--lossy", "rounding", "--restart"];
    scratch.run(&[&["convert", "r", "x.zarr"], &accept[..]].concat()).code(0);
    let rounded: Vec<u8> = [0.0f32, 0.1, 0.2, 0.3].iter().flat_map(|n| n.to_le_bytes()).collect();
    assert_eq!(scratch.elements("x.zarr", "/t"), rounded);
}

#[test]
fn a_region_of_some_arrays_goes_into_a_group() {
    let scratch = Scratch::with_array();
    scratch.run(&["repo", "set", "r", "/b", "a.npy"]).code(0);
    let convert =
        ["convert", "r", "x.zarr", "--array", "/a", "--region", "1:3,-2:", "--into", "in/it"];
    scratch.run(&convert).code(0);
    assert_eq!(scratch.run(&["ls", "x.zarr"]).text(), "/in/\n/in/it/\n/in/it/a\n");
    assert_eq!(scratch.elements("x.zarr", "/in/it/a"), [11, 12, 17, 18]);
}

#[test]
fn any_version_of_a_repository_is_a_source() {
    let scratch = Scratch::with_array();
    scratch.run(&["repo", "tag", "r", "create", "v1"]).code(0);
    let first = scratch.json(&["repo", "log", "r"])[0].clone();
    scratch.write("n.npy", &npy("|u1", false, &[4, 6], &[9; 24]));
    scratch.run(&["repo", "set", "r", "/a", "n.npy"]).code(0);
    let snapshot = first["snapshot-id"].as_str().unwrap();
    let time = first["timestamp-ms"].to_string();
    for (at, (version, expected)) in [
        (vec![], vec![9; 24]),
        (vec!["--branch", "main"], vec![9; 24]),
        (vec!["--tag", "v1"], values()),
        (vec!["--snapshot", &snapshot[..6]], values()),
        (vec!["--as-of", &time], values()),
    ]
    .into_iter()
    .enumerate()
    {
        let target = format!("{at}.zarr");
        scratch.run(&[&["convert", "r", &target], &version[..]].concat()).code(0);
        assert_eq!(scratch.elements(&target, "/a"), expected, "{version:?}");
    }
    let run = scratch.run(&["convert", "0.zarr", "y.zarr", "--tag", "v1"]).code(2);
    assert!(run.stderr.contains("of which there is one version only"), "{}", run.stderr);
}

#[test]
fn a_conversion_into_a_repository_is_one_commit() {
    let scratch = Scratch::with_array();
    scratch.run(&["convert", "r", "x.zarr"]).code(0);
    let convert = ["convert", "x.zarr", "r", "--into", "copy", "-m", "a copy of all"];
    let done = scratch.json(&convert);
    let log = scratch.json(&["repo", "log", "r"]);
    assert_eq!(log[0]["snapshot-id"], done["outcome"]["snapshot"]);
    assert_eq!(log[0]["message"], "a copy of all");
    assert_eq!(scratch.get(&["/copy/a"]), values());
    let run = scratch.run(&["convert", "x.zarr", "r", "--to-branch", "none"]).code(3);
    assert!(run.stderr.contains("cannot write the target: branch not found"), "{}", run.stderr);
    // A new repository begins with the branch that is asked for.
    scratch.run(&["convert", "x.zarr", "n.repo", "--to-branch", "dev"]).code(0);
    assert_eq!(scratch.json(&["info", "n.repo"])["default-branch"], "dev");
}

#[test]
fn an_array_without_a_name_is_named_after_its_place() {
    let scratch = Scratch::with_array();
    scratch.run(&["convert", "r", "x.zarr"]).code(0);
    std::fs::rename(scratch.path("x.zarr/a"), scratch.path("temperature.zarr")).unwrap();
    scratch.run(&["convert", "temperature.zarr", "r"]).code(0);
    assert_eq!(scratch.get(&["/temperature"]), values());
    // Plain Zarr needs none, unless it goes into a group.
    scratch.run(&["convert", "temperature.zarr", "y.zarr"]).code(0);
    assert_eq!(scratch.run(&["ls", "y.zarr"]).text(), "/\n");
    scratch.run(&["convert", "temperature.zarr", "z.zarr", "--into", "g"]).code(0);
    assert_eq!(scratch.run(&["ls", "z.zarr"]).text(), "/g/\n/g/temperature\n");
}

#[test]
fn a_dry_run_prints_the_plan_and_touches_nothing() {
    let scratch = Scratch::with_array();
    scratch.run(&["repo", "init", "o"]).code(0);
    let before = scratch.files_in(".");
    let regrid = ["convert", "r", "x.zarr", "--chunks", "4,3", "--dry-run"];
    let text = scratch.run(&regrid).code(0).text();
    for part in
        ["target  x.zarr  (zarr3)", "regrid: chunks 2×3 become 4×3", "2 × 3 → 4 × 3", "1 pack"]
    {
        assert!(text.contains(part), "{part} in {text}");
    }
    let plan = scratch.json(&["convert", "r", "x.zarr", "--dry-run"]);
    assert_eq!(
        (&plan["dry-run"], &plan["bytes"], &plan["packs"]),
        (&true.into(), &24.into(), &1.into())
    );
    assert_eq!(plan["arrays"][0]["movement"], "copy");
    assert!(plan["arrays"][0]["why"].is_string() && plan.get("outcome").is_none());
    scratch.run(&["convert", "r", "o", "--into", "g", "--dry-run"]).code(0);
    scratch.run(&["convert", "r", "n.repo", "--dry-run"]).code(0);
    assert_eq!(scratch.files_in("."), before);
    assert_eq!(scratch.names(), ["a.npy", "o", "r"]);
}

#[test]
fn quiet_says_nothing_and_json_one_document() {
    let scratch = Scratch::with_array();
    let run = scratch.run(&["convert", "r", "x.zarr", "--quiet"]).code(0);
    assert!(run.stdout.is_empty() && run.stderr.is_empty());
    let run = scratch.run(&["convert", "x.zarr", "y.zarr", "--json"]).code(0);
    assert!(run.stderr.is_empty());
    let done = run.json();
    assert_eq!(done["source"], json!({"url": "x.zarr", "format": "zarr3"}));
    let outcome = &done["outcome"];
    assert_eq!((&outcome["packs"], &outcome["resumed"]), (&1.into(), &0.into()));
    assert_eq!((&outcome["chunks"], &outcome["snapshot"]), (&4.into(), &json!(null)));
    assert!(outcome["bytes-stored"].as_u64() > Some(0) && outcome["seconds"].as_f64() > Some(0.0));
}
