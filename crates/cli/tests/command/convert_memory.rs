//! Memory stays within `--memory`, whatever the size of the input.
//!
//! The volume is one chunk of noise under many names: it takes no disk, and no codec makes it
//! smaller.

use std::fs;
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

use super::support::{Noise, Scratch, npy};

const MIB: u64 = 1 << 20;

/// A Zarr `in.zarr` of `mib` MiB of uint32, in chunks of 1 MiB that are all the same file.
fn volume(mib: u64) -> Scratch {
    let scratch = Scratch::with_repo();
    let values = Noise(1).words(64 * 64 * 64);
    scratch.write("chunk.npy", &npy("<u4", false, &[64, 64, 64], &values));
    scratch.run(&["repo", "set", "r", "/a", "chunk.npy", "--chunks", "64,64,64"]).code(0);
    scratch.run(&["convert", "r", "in.zarr", "--array", "/a"]).code(0);
    // The root would still hold the old shape of the array.
    fs::write(scratch.path("in.zarr/zarr.json"), r#"{"zarr_format": 3, "node_type": "group"}"#)
        .unwrap();
    let file = scratch.path("in.zarr/a/zarr.json");
    let mut metadata: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    metadata["shape"] = json!([64 * mib / 64, 512, 512]);
    fs::write(&file, metadata.to_string()).unwrap();
    for z in 0..mib / 64 {
        for y in 0..8 {
            let directory = scratch.path(&format!("in.zarr/a/c/{z}/{y}"));
            fs::create_dir_all(&directory).unwrap();
            for x in 0..8 {
                if (z, y, x) != (0, 0, 0) {
                    let first = scratch.path("in.zarr/a/c/0/0/0");
                    fs::hard_link(first, directory.join(x.to_string())).unwrap();
                }
            }
        }
    }
    scratch
}

/// The peak memory of a run of the binary, in bytes.
fn peak_bytes(scratch: &Scratch, arguments: &[&str]) -> u64 {
    let mut command = Command::new(scratch.command(&[]).get_program());
    command.args(arguments).current_dir(scratch.path(".")).stdin(Stdio::null());
    let mut child = command.stdout(Stdio::null()).spawn().unwrap();
    let status = format!("/proc/{}/status", child.id());
    let mut peak_kib = 0;
    let code = loop {
        if let Ok(text) = fs::read_to_string(&status)
            && let Some(line) = text.lines().find_map(|line| line.strip_prefix("VmHWM:"))
        {
            let found: u64 = line.trim().trim_end_matches(" kB").parse().unwrap();
            peak_kib = found.max(peak_kib);
        }
        match child.try_wait().unwrap() {
            Some(code) => break code,
            None => std::thread::sleep(Duration::from_millis(3)),
        }
    };
    assert!(code.success(), "{arguments:?}");
    peak_kib * 1024
}

/// All three movements, into shards as well.
fn stays_within(mib: u64, limit_mib: u64) {
    if !fs::exists("/proc/self/status").unwrap_or(false) {
        eprintln!("NOT CHECKED HERE: there is no /proc");
        return;
    }
    let scratch = volume(mib);
    let memory = format!("{limit_mib}MiB");
    for (name, options) in [
        ("copy", &[][..]),
        ("transcode", &["--codec", "blosc:lz4:5:shuffle"]),
        ("regrid", &["--chunks", "48,56,64"]),
        ("regrid into shards", &["--chunks", "32,32,32", "--shards", "128,256,256"]),
        ("into a repository", &["--to", "repo", "--chunks", "40,64,60"]),
    ] {
        let arguments = [&["convert", "in.zarr", "out", "--memory", &memory][..], options].concat();
        let peak = peak_bytes(&scratch, &arguments);
        eprintln!("{name}: {} of {limit_mib} MiB for {mib} MiB", peak / MIB);
        assert!(peak <= limit_mib * MIB, "{name}: {} MiB", peak / MIB);
        fs::remove_dir_all(scratch.path("out")).unwrap();
    }
}

#[test]
fn half_a_gibibyte_moves_through_a_quarter() {
    stays_within(512, 256);
}

#[test]
#[ignore = "takes minutes"]
fn stress_eight_gibibytes_move_through_one() {
    stays_within(8192, 1024);
}
