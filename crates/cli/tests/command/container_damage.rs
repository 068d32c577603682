//! Damaged containers: messages, findings and repairs.

use super::support::{Noise, Scratch, npy};

/// A container with an array in each of two layers; the second layer is `x.2.af`.
fn with_layers() -> Scratch {
    let scratch = Scratch::new();
    scratch.run(&["af", "create", "x.af"]).code(0);
    for name in ["a", "b"] {
        let values = Noise(name.len() as u64 + 7).words(250);
        scratch.write("v.npy", &npy("<u4", false, &[250], &values));
        scratch.run(&["af", "set", "x.af", name, "v.npy", "--codec", "none"]).code(0);
    }
    scratch
}

fn bend(scratch: &Scratch, file: &str, at: usize) {
    let mut bytes = scratch.read(file);
    bytes[at] ^= 1;
    scratch.write(file, &bytes);
}

#[test]
fn every_command_reports_a_torn_newest_layer_and_repair_sets_it_aside() {
    let scratch = with_layers();
    let whole = scratch.read("x.2.af");
    scratch.write("x.2.af", &whole[..whole.len() - 5]);
    let warning = "warning: x.2.af, the newest layer, cannot be read";
    for arguments in [
        vec!["info", "x.af"],
        vec!["ls", "x.af"],
        vec!["af", "ls", "x.af"],
        vec!["af", "layers", "x.af", "--json"],
        vec!["af", "get", "x.af", "a", "-o", "a.npy"],
        vec!["convert", "x.af", "y.zarr"],
    ] {
        let run = scratch.run(&arguments).code(0);
        assert!(run.stderr.contains(warning), "{arguments:?}: {}", run.stderr);
    }
    let run = scratch.run(&["verify", "x.af"]).code(5);
    assert!(
        run.text().contains("error: x.2.af: the newest layer cannot be read"),
        "{}",
        run.text()
    );
    let run = scratch.run(&["af", "rm", "x.af", "a"]).code(5);
    assert!(run.stderr.contains("chunkyard af repair"), "{}", run.stderr);

    let run = scratch.run(&["af", "repair", "x.af"]).code(0);
    assert!(run.stderr.contains("x.2.af is x.2.torn now"), "{}", run.stderr);
    assert_eq!(scratch.read("x.2.torn"), &whole[..whole.len() - 5]);
    assert!(scratch.run(&["af", "ls", "x.af"]).code(0).stderr.is_empty());
    scratch.run(&["af", "rm", "x.af", "a"]).code(0);
    let run = scratch.run(&["af", "repair", "x.af"]).code(0);
    assert_eq!(run.stderr, "nothing to repair\n");
}

#[test]
fn a_second_torn_layer_does_not_replace_the_first_one() {
    let scratch = with_layers();
    for (code, bytes) in [(0, b"torn"), (4, b"rent")] {
        scratch.write("x.2.af", bytes);
        scratch.run(&["af", "repair", "x.af"]).code(code);
    }
    assert_eq!(
        (&*scratch.read("x.2.torn"), &*scratch.read("x.2.af")),
        (&b"torn"[..], &b"rent"[..])
    );
}

#[test]
fn verify_finds_flipped_bits_wherever_they_are() {
    let scratch = with_layers();
    assert!(scratch.run(&["verify", "x.af"]).code(0).text().starts_with("sound: 2 arrays"));
    bend(&scratch, "x.1.af", 77);
    let run = scratch.run(&["verify", "x.af"]).code(5);
    assert!(run.text().contains("error: x.1.af: "), "{}", run.text());
    assert!(run.text().contains("in /a chunk [0]"), "{}", run.text());
    scratch.run(&["af", "get", "x.af", "a", "-o", "a.npy"]).code(5);
    // The block counts as damaged even if no chunk leads to it.
    scratch.run(&["af", "rm", "x.af", "a"]).code(0);
    let run = scratch.run(&["verify", "x.af"]).code(5);
    assert!(run.text().contains("error: x.1.af: block 0: "), "{}", run.text());
    scratch.run(&["af", "compact", "x.af"]).code(0);
    scratch.run(&["verify", "x.af"]).code(0);
}

#[test]
fn a_damaged_footer_below_the_newest_layer_is_an_error() {
    let scratch = with_layers();
    let len = scratch.read("x.1.af").len();
    bend(&scratch, "x.1.af", len - 40);
    for arguments in [vec!["verify", "x.af"], vec!["af", "ls", "x.af"]] {
        let run = scratch.run(&arguments).code(5);
        assert!(run.stderr.contains("x.1.af is corrupt"), "{}", run.stderr);
    }
    scratch.run(&["af", "repair", "x.af"]).code(5);
}

#[test]
fn files_that_do_not_count_are_noted() {
    let scratch = with_layers();
    let layer = scratch.read("x.1.af");
    scratch.run(&["af", "compact", "x.af"]).code(0);
    // As after a compaction that was killed before it deleted this layer.
    scratch.write("x.1.af", &layer);
    scratch.run(&["af", "create", "other.af"]).code(0);
    scratch.write("x.9.af", &scratch.read("other.af"));
    scratch.write("x.stats", b"rubbish");
    let run = scratch.run(&["verify", "x.af"]).code(0);
    for part in [
        "note: x.1.af: a layer that is not needed any more",
        "note: x.9.af: named like a layer, and none of this container",
        "note: x.stats: it cannot be read",
    ] {
        assert!(run.text().contains(part), "{part} in {}", run.text());
    }
    let layers = scratch.json(&["af", "layers", "x.af"]);
    assert_eq!(layers["ignored"][0]["reason"], "merged");
    assert_eq!(layers["ignored"][1]["reason"], "foreign");
    let repaired = scratch.json(&["af", "repair", "x.af"]);
    assert_eq!(repaired.as_array().unwrap().len(), 1);
    assert!(!scratch.path("x.1.af").exists() && scratch.path("x.9.af").exists());
}

#[test]
fn a_damaged_newest_layer_is_skipped_only_on_request() {
    let scratch = with_layers();
    let first = scratch.json(&["af", "stats", "x.af", "a"]);
    let len = scratch.read("x.2.af").len();
    // In its footer, in the length of the footer, and in the mark at its end.
    for at in [len - 40, len - 12, len - 1] {
        bend(&scratch, "x.2.af", at);
        for arguments in [
            vec!["info", "x.af"],
            vec!["ls", "x.af"],
            vec!["verify", "x.af"],
            vec!["af", "ls", "x.af"],
            vec!["-q", "af", "get", "x.af", "a", "-o", "a.npy"],
            vec!["af", "rm", "x.af", "a"],
            vec!["convert", "x.af", "y.zarr"],
        ] {
            let run = scratch.run(&arguments).code(5);
            assert!(run.stderr.contains("x.2.af is corrupt"), "{arguments:?}: {}", run.stderr);
        }
        let run = scratch.run(&["af", "ls", "x.af"]).code(5);
        assert!(
            run.stderr.contains("--at 1") && run.stderr.contains("af repair"),
            "{}",
            run.stderr
        );
        assert_eq!(scratch.json(&["af", "stats", "x.af", "a", "--at", "1"]), first);
        scratch.run(&["ls", "x.af", "--snapshot", "1"]).code(0);
        bend(&scratch, "x.2.af", at);
    }
    scratch.run(&["verify", "x.af"]).code(0);
    bend(&scratch, "x.2.af", len - 1);
    let run = scratch.run(&["af", "repair", "x.af"]).code(0);
    assert!(run.stderr.contains("x.2.af is x.2.damaged now"), "{}", run.stderr);
    scratch.run(&["verify", "x.af"]).code(0);
}

#[test]
fn a_layer_under_the_name_of_another_is_corrupt() {
    let scratch = with_layers();
    let layers = [scratch.read("x.1.af"), scratch.read("x.2.af")];
    scratch.write("x.2.af", &layers[0]);
    for arguments in [vec!["verify", "x.af"], vec!["af", "get", "x.af", "a", "-o", "a.npy"]] {
        let run = scratch.run(&arguments).code(5);
        assert!(run.stderr.contains("expected layer 2 of this container"), "{}", run.stderr);
    }
    scratch.write("x.1.af", &layers[1]);
    scratch.run(&["verify", "x.af"]).code(5);
}

#[test]
fn a_damaged_base_is_corrupt_for_every_command() {
    let scratch = with_layers();
    scratch.run(&["af", "compact", "x.af"]).code(0);
    let whole = scratch.read("x.af");
    let seal = whole.windows(8).position(|bytes| bytes == b"CYARDAF1").unwrap();
    let mut damaged: Vec<Vec<u8>> = Vec::new();
    // The version and the flags in the seal, the mark at its end, the footer, its length, the mark.
    for at in [seal - 8, seal - 12, seal, whole.len() - 108, whole.len() - 12, whole.len() - 2] {
        let mut bytes = whole.clone();
        bytes[at] ^= 8;
        damaged.push(bytes);
    }
    for keep in [0, 5, 40, whole.len() - 1] {
        damaged.push(whole[..keep].to_vec());
    }
    for (number, bytes) in damaged.iter().enumerate() {
        scratch.write("x.af", bytes);
        for arguments in [
            vec!["info", "x.af"],
            vec!["ls", "x.af"],
            vec!["verify", "x.af"],
            vec!["af", "ls", "x.af"],
            vec!["af", "attrs", "x.af", "a", "--set", "k=1"],
            vec!["af", "repair", "x.af"],
            vec!["convert", "x.af", "y.zarr"],
        ] {
            let run = scratch.run(&arguments).code(5);
            assert!(
                run.stderr.contains("x.af is corrupt"),
                "{number} {arguments:?}: {}",
                run.stderr
            );
        }
    }
}

#[test]
fn verify_says_what_it_cannot_check() {
    let scratch = Scratch::new();
    let theirs = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/container/af9-layers.af");
    scratch.write("af9-layers.af", &std::fs::read(theirs).unwrap());
    let run = scratch.run(&["verify", "af9-layers.af"]).code(0);
    let text = run.text();
    assert!(text.contains("note: af9-layers.af: another program wrote it"), "{text}");
    assert!(text.contains("nor whether it is in its place"), "{text}");
}
