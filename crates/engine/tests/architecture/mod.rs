//! `ARCHITECTURE.md` shows which crate uses which. This compares it with the manifests.

mod msrv;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

type Graph = BTreeMap<String, BTreeSet<String>>;

/// Rows such as "| `store` | `array` | where bytes are |" of the first table whose header is "crate".
fn documented(text: &str) -> Graph {
    let rows = text.lines().skip_while(|line| !line.starts_with("| crate |")).skip(2);
    let rows = rows.take_while(|line| line.starts_with('|'));
    let words = |cell: &str| cell.split('`').skip(1).step_by(2).map(str::to_owned).collect();
    rows.map(|row| {
        let mut cells = row.split('|').skip(1);
        let name: Vec<String> = words(cells.next().unwrap());
        (name[0].clone(), words(cells.next().unwrap()).into_iter().collect())
    })
    .collect()
}

/// The crates below `crates/`, and the crates of ours that each names as a dependency.
fn declared(crates: &Path) -> Graph {
    let manifest = |folder: std::fs::DirEntry| {
        let name = folder.file_name().into_string().unwrap();
        let text = std::fs::read_to_string(folder.path().join("Cargo.toml")).unwrap();
        let used = text.lines().skip_while(|line| *line != "[dependencies]").skip(1);
        let used = used.take_while(|line| !line.starts_with('['));
        let ours = used.filter_map(|line| line.strip_prefix("chunkyard-")?.split('.').next());
        (name, ours.map(str::to_owned).collect())
    };
    std::fs::read_dir(crates).unwrap().map(|folder| manifest(folder.unwrap())).collect()
}

#[test]
fn the_picture_of_the_crates_is_true() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let text = std::fs::read_to_string(root.join("ARCHITECTURE.md")).unwrap();
    let (shown, real) = (documented(&text), declared(&root.join("crates")));
    assert!(real.len() >= 7, "{real:?}");
    assert_eq!(shown, real, "ARCHITECTURE.md (left) against the manifests (right)");
}
