use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::*;
use crate::Mapping;

/// A version that DVID answered for.
#[derive(Deserialize)]
struct Version {
    label: String,
    uuid: String,
    parent: Option<String>,
    log: Option<String>,
    mapping: Vec<(u64, u64)>,
}

fn folder(scenario: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/dvid/mutlog").join(scenario)
}

fn versions(scenario: &str) -> Vec<Version> {
    let text = std::fs::read(folder(scenario).join("versions.json")).unwrap();
    serde_json::from_slice(&text).unwrap()
}

fn log(scenario: &str, name: &str) -> Vec<u8> {
    std::fs::read(folder(scenario).join(name)).unwrap()
}

/// A record as the server writes it.
fn record(kind: u16, content: &[u8]) -> Vec<u8> {
    let length = u32::try_from(content.len()).unwrap();
    [&kind.to_le_bytes()[..], &length.to_le_bytes(), content].concat()
}

#[test]
fn logs_of_a_real_dvid_give_the_mapping_that_it_answered_at_every_version() {
    for scenario in ["edits", "branches", "many", "offset-live"] {
        let mut known: BTreeMap<String, BTreeMap<u64, u64>> = BTreeMap::new();
        for version in versions(scenario) {
            // The mapping follows the first parent alone.
            let mut mapping =
                version.parent.as_ref().map(|uuid| known[uuid].clone()).unwrap_or_default();
            if let Some(name) = &version.log {
                let replay = Replay::of("log", &log(scenario, name)).unwrap();
                assert_eq!(replay.torn_at, None);
                assert!(replay.records > 0);
                mapping.extend(replay.mapping);
            }
            // DVID leaves out supervoxels that are their own body.
            let told: BTreeMap<u64, u64> = mapping
                .iter()
                .filter(|(id, body)| id != body)
                .map(|(id, body)| (*id, *body))
                .collect();
            assert_eq!(told, version.mapping.into_iter().collect(), "{scenario} {}", version.label);
            let flat = Mapping::from_sorted(
                mapping.keys().copied().collect(),
                mapping.values().copied().collect(),
            );
            assert_eq!(flat.unwrap().rows().collect::<BTreeMap<_, _>>(), mapping);
            known.insert(version.uuid, mapping);
        }
    }
}

#[test]
fn a_torn_tail_keeps_everything_before_it_and_says_where_it_begins() {
    let whole = log("many", "v01");
    let starts: Vec<usize> = {
        let mut records = Records::new("log", &whole);
        let mut starts = vec![0];
        while records.next().is_some() {
            starts.push(records.at);
        }
        starts
    };
    assert!(starts.len() > 2, "{starts:?}");
    for length in 0..whole.len() {
        let replay = Replay::of("log", &whole[..length]).unwrap();
        let complete = starts.iter().filter(|start| **start <= length).count() - 1;
        assert_eq!(replay.records, complete as u64, "{length} bytes");
        let torn = (!starts.contains(&length)).then_some(starts[complete] as u64);
        assert_eq!(replay.torn_at, torn, "{length} bytes");
    }
}

#[test]
fn a_renumbered_body_retires_its_new_id_unless_the_log_maps_it() {
    // RenumberOp: mutid 1, target 5, newlabel 9.
    let renumber = record(8, &[0x08, 1, 0x10, 5, 0x18, 9]);
    let replay = Replay::of("log", &renumber).unwrap();
    assert_eq!(replay.mapping, BTreeMap::from([(9, 0)]));
    // MappingOp: mutid 1, mapped 7, original [9], unpacked as old writers did.
    let mapped = record(5, &[0x08, 1, 0x10, 7, 0x18, 9]);
    let replay = Replay::of("log", &[mapped, renumber].concat()).unwrap();
    assert_eq!(replay.mapping, BTreeMap::from([(9, 7)]));
}

#[test]
fn kinds_that_say_nothing_of_bodies_are_passed_over_and_bad_content_is_named() {
    let replay =
        Replay::of("log", &[record(3, &[1]), record(4, &[]), record(77, b"new")].concat()).unwrap();
    assert_eq!((replay.records, replay.mapping), (3, BTreeMap::new()));
    let error =
        Replay::of("log", &[record(3, &[]), record(5, &[0x18, 0xff])].concat()).unwrap_err();
    let text = error.to_string();
    assert!(text.starts_with("log is corrupt: record of kind 5 at byte 6"), "{text}");
    assert_eq!(error.kind(), chunkyard_store::ErrorKind::Corrupt);
}

#[test]
fn a_length_that_promises_gigabytes_takes_no_memory() {
    let bytes = [&5u16.to_le_bytes()[..], &u32::MAX.to_le_bytes(), &[8, 1]].concat();
    let replay = Replay::of("log", &bytes).unwrap();
    assert_eq!((replay.records, replay.torn_at), (0, Some(0)));
}
