//! A real DVID server on the command line. Filled by `testdata/dvid/make/fill_dvid.py`; these tests run below
//! `with-dvid-server` (`make test-dvid`).

use std::fs;

use chunkyard_test_support::dvid_testdata;

use super::support::Scratch;

fn variable(name: &str) -> String {
    let name = format!("CHUNKYARD_TEST_DVID{name}");
    std::env::var(&name).unwrap_or_else(|_| panic!("{name} is not set: run `make test-dvid`"))
}

fn url(version: &str, data: &str) -> String {
    format!("dvid+http://{}/{}/{data}", variable(""), variable(version))
}

/// How many blocks the server was given, and their bytes.
fn posted() -> (u64, u64) {
    let volume = fs::read(dvid_testdata().join("labelmap/edits/volume.blocks")).unwrap();
    let (mut blocks, mut bytes, mut rest) = (0, 0, &volume[..]);
    while let Some((head, more)) = rest.split_at_checked(16) {
        let length = u32::from_le_bytes(head[12..].try_into().unwrap());
        rest = &more[length as usize..];
        blocks += 1;
        bytes += u64::from(length);
    }
    (blocks, bytes)
}

#[test]
#[ignore = "needs a DVID server"]
fn a_server_is_described_listed_and_checked() {
    let scratch = Scratch::new();
    let url = url("_ROOT", "seg");
    let info = scratch.json(&["info", &url]);
    assert_eq!(info["version"], *variable("_ROOT"));
    let repo = &info["repositories"][0];
    assert_eq!(repo["versions"].as_array().unwrap().len(), 5);
    let child = repo["versions"].as_array().unwrap().iter();
    let mut child = child.filter(|version| version["uuid"] == *variable("_CHILD"));
    let child = child.next().unwrap();
    assert_eq!((&child["parents"][0], &child["branch"]), (&repo["root"], &"work".into()));
    let names: Vec<_> = repo["data"].as_array().unwrap().iter().map(|data| &data["name"]).collect();
    assert_eq!(names, ["contested", "empty", "notes", "packed", "seg", "sparse"]);
    let scales = info["labelmap"]["scales"].as_array().unwrap();
    assert_eq!(scales.len(), 4);
    let (blocks, bytes) = posted();
    assert_eq!((&scales[0]["blocks"], &scales[0]["stored-bytes"]), (&blocks.into(), &bytes.into()));
    let text = scratch.run(&["info", &url]).code(0).text();
    assert!(text.contains(&format!("{blocks} blocks")) && text.contains("keyvalue"), "{text}");
    // A large box with four blocks in it is not fetched to count them.
    let sparse = scratch.json(&["info", &self::url("_ROOT", "sparse")]);
    assert!(sparse["labelmap"]["scales"][0]["blocks"].is_null());
    assert_eq!(sparse["labelmap"]["scales"][0]["blocks-possible"], 21 * 6 * 94);

    let listed = scratch.run(&["ls", &url]).code(0).text();
    assert!(listed.contains("s3"), "{listed}");
    let checked = scratch.json(&["verify", &url]);
    assert!(checked["checked"]["chunks"].as_u64().unwrap() > blocks, "{checked}");
}

#[test]
#[ignore = "needs a DVID server"]
fn voxels_are_bodies_at_the_version_unless_supervoxels_are_asked_for() {
    let scratch = Scratch::new();
    let url = url("_CHILD", "seg");
    let numbers = |name| -> Vec<u64> {
        variable(name).split(',').map(|number: &str| number.parse().unwrap()).collect()
    };
    let (merged, cleaved) = (numbers("_MERGED"), numbers("_CLEAVED"));
    scratch.run(&["convert", &url, "sv.zarr", "--supervoxels"]).code(0);
    for target in ["bodies.zarr", "bodies.repo", "bodies.af"] {
        scratch.run(&["convert", &url, target]).code(0);
        scratch.run(&["verify", target]).code(0);
    }
    for scale in ["/s1", "/s3"] {
        let supervoxels = scratch.elements("sv.zarr", scale);
        let body = |label: u64| match label {
            label if label == merged[1] => merged[0],
            label if label == cleaved[1] => cleaved[2],
            label => label,
        };
        let labels = supervoxels.as_chunks::<8>().0.iter().map(|label| u64::from_le_bytes(*label));
        let expected: Vec<u8> = labels.flat_map(|label| body(label).to_le_bytes()).collect();
        assert!(expected != supervoxels, "{scale}");
        for target in ["bodies.zarr", "bodies.repo", "bodies.af"] {
            assert!(scratch.elements(target, scale) == expected, "{target} {scale}");
        }
    }
}

#[test]
#[ignore = "needs a DVID server"]
fn what_cannot_be_read_ends_with_the_right_exit_code() {
    let scratch = Scratch::new();
    for (url, code) in [
        (url("_ROOT", "notes"), 6),
        (url("_ROOT", "packed"), 6),
        (format!("dvid+http://{}/{}:nowhere/seg", variable(""), variable("_ROOT")), 1),
        ("dvid+http://127.0.0.1:9/abc/seg".to_owned(), 1),
    ] {
        let store = ["--storage", "retries=0"];
        let refused = scratch.run(&[&["info", &url][..], &store].concat());
        assert!(
            refused.code == code || (code == 1 && refused.code == 3),
            "{url}: {}",
            refused.stderr
        );
    }
    let joined = url("_JOINED", "contested");
    scratch.run(&["convert", &joined, "x.zarr"]).code(1);
    scratch.run(&["ls", "x.zarr"]).code(3);
}
