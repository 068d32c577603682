//! `repo set` and `repo get`: the same elements come back.

use super::support::{Scratch, npy};

/// Bytes that are no palindrome in any group, and no fill value.
fn noise(count: usize) -> Vec<u8> {
    (0..count).map(|at| (at * 7 + 3) as u8).collect()
}

#[test]
fn every_data_type_round_trips_byte_for_byte() {
    let scratch = Scratch::with_repo();
    let types = [
        ("|b1", 1),
        ("|i1", 1),
        ("|u1", 1),
        ("<i2", 2),
        ("<u2", 2),
        ("<i4", 4),
        ("<u4", 4),
        ("<i8", 8),
        ("<u8", 8),
        ("<f2", 2),
        ("<f4", 4),
        ("<f8", 8),
        ("<c8", 8),
        ("<c16", 16),
        ("<M8[ns]", 8),
        ("<M8[25s]", 8),
        ("<m8[D]", 8),
        ("<U3", 12),
        ("|S5", 5),
        ("|V5", 5),
    ];
    for (at, (descr, item_size)) in types.into_iter().enumerate() {
        let bytes = match descr {
            "|b1" => (0..15).map(|at| at % 2).collect(),
            // Text must be text.
            "<U3" => (0..45).flat_map(|at: u32| [b'a' + at as u8 % 26, 0, 0, 0]).collect(),
            _ => noise(15 * item_size),
        };
        let file = npy(descr, false, &[3, 5], &bytes);
        scratch.write("in.npy", &file);
        let path = format!("/t{at}");
        scratch.run(&["repo", "set", "r", &path, "in.npy", "--chunks", "2,2"]).code(0);
        scratch.run(&["repo", "get", "r", &path, "-o", "out.npy"]).code(0);
        assert_eq!(scratch.read("out.npy"), file, "{descr}");
    }
}

#[test]
fn big_endian_input_is_kept_as_values() {
    let scratch = Scratch::with_repo();
    let numbers = [1.5f64, -2.25, 1e300, 0.1, f64::MAX, 7.0];
    let big: Vec<u8> = numbers.iter().flat_map(|n| n.to_be_bytes()).collect();
    let little: Vec<u8> = numbers.iter().flat_map(|n| n.to_le_bytes()).collect();
    for (descr, shape) in [(">f8", vec![2, 3]), (">c16", vec![3])] {
        scratch.write("big.npy", &npy(descr, false, &shape, &big));
        let path = format!("/{}", &descr[1..]);
        scratch.run(&["repo", "set", "r", &path, "big.npy"]).code(0);
        assert_eq!(scratch.get(&[&path]), little, "{descr}");
    }
}

#[test]
fn fortran_order_input_is_kept_as_values() {
    let scratch = Scratch::with_repo();
    // [[[0, 1, 2, 3], …], …] of shape 2, 3, 4, first index fastest.
    let index = |i: u16, j: u16, k: u16| i * 12 + j * 4 + k;
    let mut fortran = Vec::new();
    for k in 0..4 {
        for j in 0..3 {
            for i in 0..2 {
                fortran.extend(index(i, j, k).to_be_bytes());
            }
        }
    }
    scratch.write("f.npy", &npy(">u2", true, &[2, 3, 4], &fortran));
    scratch.run(&["repo", "set", "r", "/f", "f.npy", "--chunks", "1,2,3"]).code(0);
    let expected: Vec<u8> = (0u16..24).flat_map(u16::to_le_bytes).collect();
    assert_eq!(scratch.get(&["/f"]), expected);
}

#[test]
fn byte_strings_come_back_as_byte_strings() {
    let scratch = Scratch::with_repo();
    let file = npy("|S4", false, &[2], b"ab\0\0wxyz");
    scratch.write("s.npy", &file);
    scratch.run(&["repo", "set", "r", "/s", "s.npy", "--fill", "no"]).code(0);
    scratch.run(&["repo", "get", "r", "/s", "-o", "out.npy"]).code(0);
    assert_eq!(scratch.read("out.npy"), file);
    assert_eq!(
        scratch.json(&["info", "r"])["arrays"][0]["data-type"]["name"],
        "null_terminated_bytes"
    );
    // A region of either kind of bytes goes in, and text of another length does not.
    scratch.write("one.npy", &npy("|S4", false, &[1], b"one\0"));
    scratch.run(&["repo", "set", "r", "/s", "one.npy", "--region", "1:2"]).code(0);
    scratch.write("raw.npy", &npy("|V4", false, &[1], b"raw\0"));
    scratch.run(&["repo", "set", "r", "/s", "raw.npy", "--region", "0:1"]).code(0);
    assert_eq!(scratch.get(&["/s"]), b"raw\0one\0");
    scratch.write("long.npy", &npy("|S5", false, &[1], b"long\0"));
    scratch.run(&["repo", "set", "r", "/s", "long.npy", "--region", "0:1"]).code(2);
}

#[test]
fn scalars_and_empty_arrays_round_trip() {
    let scratch = Scratch::with_repo();
    for (path, shape, bytes) in [("/scalar", vec![], noise(4)), ("/empty", vec![0, 3], vec![])] {
        let file = npy("<i4", false, &shape, &bytes);
        scratch.write("in.npy", &file);
        scratch.run(&["repo", "set", "r", path, "in.npy"]).code(0);
        scratch.run(&["repo", "get", "r", path, "-o", "out.npy"]).code(0);
        assert_eq!(scratch.read("out.npy"), file, "{path}");
    }
}

#[test]
fn pipes_work_on_both_sides() {
    let scratch = Scratch::with_repo();
    let file = npy("<u2", false, &[50, 40], &noise(4000));
    scratch.run_with(&["repo", "set", "r", "/p", "-", "-m", "piped"], file.clone()).code(0);
    let got = scratch.run(&["repo", "get", "r", "/p", "-o", "-"]).code(0);
    assert_eq!(got.stdout, file);
}

#[test]
fn every_codec_keeps_the_values() {
    let scratch = Scratch::with_repo();
    let file = npy("<f4", false, &[64, 64], &noise(4 * 64 * 64));
    scratch.write("in.npy", &file);
    let codecs = ["none", "zstd:3", "gzip:5", "zlib", "bz2", "blosc:lz4:5:shuffle", "zstd+crc32c"];
    for (at, codec) in codecs.into_iter().enumerate() {
        let path = format!("/c{at}");
        scratch.run(&["repo", "set", "r", &path, "in.npy", "--codec", codec]).code(0);
        scratch.run(&["repo", "get", "r", &path, "-o", "out.npy"]).code(0);
        assert_eq!(scratch.read("out.npy"), file, "{codec}");
    }
}

#[test]
fn options_of_a_new_array_are_kept() {
    let scratch = Scratch::with_repo();
    scratch.write("in.npy", &npy("<f4", false, &[4, 6], &noise(96)));
    let set = ["repo", "set", "r", "/deep/a", "in.npy", "--dims", "y,x", "--fill", "NaN"];
    scratch.run(&set).code(0);
    let listed = scratch.json(&["ls", "r", "/deep/a"]);
    assert_eq!(listed[0]["dimension-names"], serde_json::json!(["y", "x"]));
    assert_eq!(listed[0]["fill-value"], "NaN");
    assert_eq!(listed[0]["chunk-shape"], serde_json::json!([4, 6]));
}
