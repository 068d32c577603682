//! Segmentations: every command, what it refuses, and the walk of docs/labels.md.

use std::path::Path;

use super::support::{Scratch, npy};

/// Five bodies side by side along x in a volume of 20 × 32 × 80 voxels.
fn volume() -> Vec<u8> {
    let labels = (0..20 * 32 * 80u64).map(|place| place % 80 / 16 + 1);
    npy("<u8", false, &[20, 32, 80], &labels.flat_map(u64::to_le_bytes).collect::<Vec<_>>())
}

/// A mask of the first two voxels of each row, 16 wide.
fn mask() -> Vec<u8> {
    let values: Vec<u8> = (0..20 * 32 * 16).map(|place| u8::from(place % 16 < 2)).collect();
    npy("|b1", false, &[20, 32, 16], &values)
}

fn imported() -> Scratch {
    let scratch = Scratch::new();
    scratch.write("seg.npy", &volume());
    scratch.write("mask.npy", &mask());
    scratch.run(&["labels", "import", "r", "seg.npy", "--block", "16,16,16"]).code(0);
    scratch
}

#[test]
fn bodies_are_edited_compared_and_undone() {
    let scratch = imported();
    let info = scratch.json(&["labels", "info", "r"]);
    assert_eq!((&info["bodies"], &info["voxels"]), (&5.into(), &51200.into()));
    scratch.run(&["repo", "tag", "r", "create", "v1"]).code(0);
    let merged = scratch.json(&["labels", "merge-bodies", "r", "1", "2", "3", "--user", "ann"]);
    assert_eq!(merged["mutations"][0]["kind"], "merge");
    let at = scratch.run(&["labels", "at", "r", "0,0,20", "0,0,79"]).code(0).text();
    assert_eq!(at, "1\n5\n");
    let at = scratch.run_with(&["labels", "at", "r", "-", "--supervoxels"], b"0,0,20\n".to_vec());
    assert_eq!(at.code(0).text(), "2\n");
    let cleaved =
        scratch.json(&["labels", "cleave", "r", "1", "3", "--new-body", "300", "--note", "apart"]);
    assert_eq!(cleaved["mutations"][0]["other"], 300);
    let split = ["labels", "split-supervoxel", "r", "4", "--mask", "mask.npy", "--at", "0,0,48"];
    scratch.run(&[&split[..], &["--part", "401", "--rest", "402"]].concat()).code(0);
    let body = scratch.json(&["labels", "body", "r", "4", "--supervoxels", "--blocks"]);
    assert_eq!(body["supervoxels"][0]["supervoxel"], 401);
    assert_eq!(body["supervoxels"][0]["voxels"], 1280);
    assert_eq!(body["blocks"].as_array().unwrap().len(), 4);
    scratch.run(&["labels", "body", "r", "5", "--rle", "5.rle"]).code(0);
    scratch.run(&["labels", "renumber", "r", "5", "500"]).code(0);
    let refused = scratch.run(&["labels", "split-body", "r", "500", "--rle", "5.rle"]).code(2);
    assert!(refused.stderr.contains("both sides"), "{}", refused.stderr);

    let diff = scratch.json(&["labels", "diff", "r", "v1", "main"]);
    assert_eq!(diff["renamed"][0]["was"], 5);
    assert_eq!(diff["appeared"][0]["body"], 300);
    let blocks = scratch.run(&["labels", "diff", "r", "v1", "main", "--blocks"]).code(0).text();
    assert!(blocks.starts_with("body,z,y,x\n1,0,0,1\n"), "{blocks}");
    let blame = scratch.json(&["labels", "blame", "r", "3"]);
    assert_eq!((&blame[0]["after"], &blame[1]["after"]), (&1.into(), &300.into()));
    assert_eq!(
        (&blame[0]["commit"], &blame[1]["commit"]),
        (&merged["snapshot"], &cleaved["snapshot"])
    );
    assert!(merged["snapshot"].is_string());
    let log = scratch.json(&["labels", "log", "r", "-n", "1"]);
    assert_eq!(log[0]["kind"], "renumber");
    let mutation = log[0]["mutation"].to_string();
    scratch.run(&["labels", "revert", "r", &mutation]).code(0);
    let bodies = scratch.run(&["labels", "bodies", "r", "--in", "0:1,0:1,64:80"]).code(0).text();
    assert!(bodies.contains("\n5,10240,1,0,0,64,20,32,80,"), "{bodies}");
    scratch.run(&["labels", "downres", "r"]).code(0);
    scratch.run(&["labels", "verify", "r"]).code(0);
    scratch.run(&["verify", "r", "--level", "bytes"]).code(0);
}

/// Words of DVID's form of masks: cells along each axis, the id, the first block.
fn words(bytes: &[u8]) -> Vec<u32> {
    let words = bytes[..32].as_chunks().0.iter();
    words.map(|word| u32::from_le_bytes(*word)).collect()
}

#[test]
fn a_body_is_found_by_its_supervoxel_and_written_in_both_forms() {
    let scratch = imported();
    scratch.run(&["labels", "merge-bodies", "r", "1", "2"]).code(0);
    let body = scratch.json(&["labels", "body", "r", "2", "--of-supervoxel"]);
    assert_eq!((&body["body"]["body"], &body["body"]["supervoxels"]), (&1.into(), &2.into()));
    scratch.run(&["labels", "body", "r", "1", "--rle", "1.rle", "--masks", "1.masks"]).code(0);
    assert_eq!(scratch.read("1.rle").len(), 12 + 16 * 20 * 32);
    assert_eq!(words(&scratch.read("1.masks")), [2, 2, 2, 1, 0, 0, 0, 0]);
    let cut = ["labels", "split-supervoxel", "r", "4", "--mask", "mask.npy", "--at", "0,0,48"];
    scratch.run(&cut).code(0);
    let refused = scratch.run(&["labels", "body", "r", "4", "--of-supervoxel"]).code(3);
    assert!(refused.stderr.contains("retired by mutation"), "{}", refused.stderr);
    scratch.run(&["labels", "body", "r", "99", "--of-supervoxel"]).code(3);
    scratch.run(&["labels", "body", "r", "1", "--masks", "none/1.masks"]).code(1);
}

#[test]
fn tables_leave_as_files_of_one_version() {
    let scratch = imported();
    scratch.run(&["repo", "tag", "r", "create", "v1"]).code(0);
    scratch.run(&["labels", "merge-bodies", "r", "1", "2"]).code(0);
    let done = scratch.json(&["labels", "table", "r", "bodies", "-o", "bodies.parquet"]);
    let file = scratch.read("bodies.parquet");
    assert_eq!(done["bytes"], file.len());
    assert!(file.starts_with(b"PAR1") && file.ends_with(b"PAR1"));
    let write = |options: &[&str]| {
        let arguments = [&["labels", "table", "r", "bodies", "-o", "-"], options].concat();
        scratch.run(&arguments).code(0).stdout
    };
    assert_eq!(write(&[]), file);
    assert_ne!(write(&["--tag", "v1"]), file);
    assert!(write(&["--columns", "body"]).len() < file.len());
    let wrong = ["labels", "table", "r", "bodies", "-o", "x.parquet", "--columns", "body,colour"];
    let refused = scratch.run(&wrong).code(3);
    assert!(refused.stderr.contains("colour"), "{}", refused.stderr);
    scratch.run(&["labels", "table", "r", "colours", "-o", "x.parquet"]).code(2);
    assert!(!scratch.path("x.parquet").exists());
}

#[test]
fn a_query_is_handed_to_duckdb_with_the_tables_it_names() {
    let scratch = imported();
    let ask = |program: &str| {
        let query = "select * from Bodies join mapping_of_mine using (body)";
        scratch.run(&["labels", "sql", "r", query, "--duckdb", program])
    };
    let told = ask("echo").code(0).text();
    assert!(told.contains("CREATE VIEW bodies AS SELECT * FROM read_parquet('"), "{told}");
    assert_eq!(told.matches("CREATE VIEW").count(), 1, "{told}");
    let refused = ask("false").code(2);
    assert!(refused.stderr.contains("DuckDB refuses the query"), "{}", refused.stderr);
    let missing = ask("no-such-program").code(6);
    assert!(missing.stderr.contains("pip install duckdb-cli"), "{}", missing.stderr);
}

#[test]
fn branches_of_edits_come_together() {
    let scratch = imported();
    scratch.run(&["repo", "branch", "r", "create", "ann"]).code(0);
    scratch.write(
        "session.jsonl",
        b"{\"edit\": \"merge\", \"target\": 1, \"bodies\": [2]}\n\n\
          {\"edit\": \"renumber\", \"body\": 1, \"new_body\": 100}\n",
    );
    scratch
        .run(&["labels", "edit", "r", "session.jsonl", "--branch", "ann", "-m", "monday"])
        .code(0);
    scratch.run(&["labels", "merge-bodies", "r", "4", "5"]).code(0);
    let joined = scratch.json(&["labels", "merge", "r", "ann"]);
    assert_eq!(joined["taken"].as_array().unwrap().len(), 2);
    let again = scratch.json(&["labels", "merge", "r", "ann"]);
    assert!(again["snapshot"].is_null());
    scratch.write("map.csv", b"supervoxel,body\n3,4\n");
    scratch.run(&["labels", "map", "r", "map.csv", "--branch", "ann"]).code(0);
    scratch.run(&["labels", "merge-bodies", "r", "100", "3"]).code(0);
    let refused = scratch.run(&["labels", "merge", "r", "ann"]).code(4);
    assert!(refused.stderr.contains("both branches edited the same bodies"), "{}", refused.stderr);
    assert!(refused.stderr.contains("--ours BODY or --theirs BODY"), "{}", refused.stderr);
    scratch.run(&["labels", "merge", "r", "ann", "--theirs", "3"]).code(0);
    assert_eq!(scratch.run(&["labels", "at", "r", "0,0,40"]).code(0).text(), "4\n");
    scratch.run(&["labels", "verify", "r"]).code(0);
}

#[test]
fn refusals_have_their_exit_codes_and_change_nothing() {
    let scratch = imported();
    scratch.write("words.csv", b"1,one\n");
    scratch.write("words.jsonl", b"merge 1 2\n");
    scratch.write("float.npy", &npy("<f4", false, &[2, 2, 2], &[0; 32]));
    scratch.write("flat.npy", &npy("<u8", false, &[2, 2], &[0; 32]));
    let before = scratch.files();
    for (code, arguments) in [
        (2, vec!["merge-bodies", "r", "1", "1"]),
        (3, vec!["merge-bodies", "r", "1", "99"]),
        (2, vec!["cleave", "r", "1", "1"]),
        (4, vec!["renumber", "r", "1", "2"]),
        (3, vec!["body", "r", "99"]),
        (2, vec!["at", "r", "0,0,80"]),
        (2, vec!["at", "r", "0,0"]),
        (3, vec!["revert", "r", "7"]),
        (3, vec!["blame", "r", "99"]),
        (2, vec!["map", "r", "words.csv"]),
        (2, vec!["edit", "r", "words.jsonl"]),
        (3, vec!["map", "r", "none.csv"]),
        (2, vec!["split-supervoxel", "r", "1"]),
        (2, vec!["split-supervoxel", "r", "1", "--mask", "seg.npy"]),
        (4, vec!["import", "r", "seg.npy"]),
        (2, vec!["import", "r", "float.npy", "--path", "/b"]),
        (2, vec!["import", "r", "flat.npy", "--path", "/b"]),
        (2, vec!["import", "r", "seg.npy", "--path", "/b", "--block", "30,30,30"]),
        (3, vec!["info", "r", "--path", "/none"]),
        (3, vec!["merge", "r", "none"]),
    ] {
        let arguments = [vec!["labels"], arguments].concat();
        let run = scratch.run(&arguments);
        assert_eq!(run.code, code, "{arguments:?}: {}", run.stderr);
    }
    let state = |files: &[(std::path::PathBuf, Vec<u8>)]| {
        files.iter().find(|(path, _)| path.ends_with("state.json")).cloned()
    };
    assert_eq!(state(&scratch.files()), state(&before));
}

/// Runs each command of the guide, in order, in one directory.
#[test]
fn the_guide_works_as_it_is_written() {
    let guide = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/labels.md");
    let guide = std::fs::read_to_string(guide).unwrap();
    let scratch = Scratch::new();
    scratch.write("segmentation.npy", &volume());
    scratch.write("mask.npy", &mask());
    let mut count = 0;
    for line in guide.lines().filter_map(|line| line.strip_prefix("$ chunkyard ")) {
        let arguments: Vec<&str> =
            line.split_whitespace().take_while(|word| *word != "#").collect();
        scratch.run(&arguments).code(0);
        count += 1;
    }
    assert!(count > 10, "{count} commands");
}
