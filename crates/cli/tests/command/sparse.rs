//! Arrays with room for far more chunks than they store.

use std::fs;

use serde_json::json;

use super::support::Scratch;

/// 2^40 elements of int32 in chunks of four. Three chunks are stored, without compression.
const STORED: [u64; 3] = [0, 12_345_678, (1 << 38) - 1];

/// A Zarr array `in.zarr`.
fn immense() -> Scratch {
    let scratch = Scratch::new();
    fs::create_dir_all(scratch.path("in.zarr/c")).unwrap();
    let metadata = json!({
        "zarr_format": 3,
        "node_type": "array",
        "shape": [1u64 << 40],
        "data_type": "int32",
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [4]}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
        "fill_value": 0,
        "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}],
    });
    scratch.write("in.zarr/zarr.json", metadata.to_string().as_bytes());
    for chunk in STORED {
        scratch.write(&format!("in.zarr/c/{chunk}"), &[7; 16]);
    }
    scratch
}

#[test]
fn every_command_costs_only_the_stored_chunks() {
    let scratch = immense();
    let array = &scratch.json(&["info", "in.zarr"])["arrays"][0];
    assert_eq!((&array["refs"], &array["stored-bytes"]), (&3.into(), &48.into()));
    let checked = &scratch.json(&["verify", "in.zarr"])["checked"];
    assert_eq!((&checked["chunks"], &checked["bytes"]), (&3.into(), &48.into()));
    let linked = scratch.json(&["link", "in.zarr", "linked.repo"]);
    assert_eq!(linked["references"], 3);
    let planned = scratch.json(&["convert", "in.zarr", "out.zarr", "--dry-run"]);
    assert_eq!(planned["arrays"][0]["stores-every-chunk"], false);
    for (name, options) in [
        ("copy.zarr", &[][..]),
        ("shards.zarr", &["--shards", "4096"]),
        ("regrid.zarr", &["--chunks", "6", "--codec", "zstd:1"]),
        ("a.repo", &["--chunks", "1000"]),
    ] {
        let convert: Vec<&str> =
            ["convert", "in.zarr", name, "--verify"].iter().chain(options).copied().collect();
        let outcome = &scratch.json(&convert)["outcome"];
        assert_eq!((&outcome["chunks"], &outcome["packs"]), (&3.into(), &3.into()), "{name}");
        assert_eq!(outcome["verified"], true);
        let array = &scratch.json(&["ls", name])[0];
        assert_eq!(array["refs"], 3, "{name}");
    }
    for chunk in STORED {
        assert_eq!(scratch.read(&format!("copy.zarr/c/{chunk}")), [7; 16]);
    }
}

#[test]
fn endless_fill_values_are_refused_if_every_chunk_is_stored() {
    let scratch = immense();
    for options in [&["--dry-run"][..], &[]] {
        let convert: Vec<&str> =
            ["convert", "in.zarr", "out.blz"].iter().chain(options).copied().collect();
        let run = scratch.run(&convert).code(6);
        assert!(run.stderr.contains("4095 GiB of the 4096 GiB"), "{}", run.stderr);
    }
    assert_eq!(scratch.names(), ["in.zarr"]);
    let little = ["convert", "in.zarr", "out.blz", "--region", "0:100", "--dry-run"];
    let run = scratch.run(&little).code(0);
    assert!(
        run.text().contains("every chunk, also those that hold the fill value"),
        "{}",
        run.text()
    );
}
