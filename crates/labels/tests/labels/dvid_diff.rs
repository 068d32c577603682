//! Versions of real DVID stores compared with `diff`, against the mutations and sizes that DVID answered.

use std::collections::{BTreeMap, BTreeSet};

use chunkyard_labels::{BodyChange, Kind, LabelDiff, Mutation, diff};
use chunkyard_repo::{Repository, Version};
use futures::TryStreamExt;
use serde_json::Value;

use super::dvid_history::{answers, at, import_all, snapshot};
use super::support::PATH;

/// The parent by which each recorded version is compared.
fn parents(store: &str) -> Vec<(&'static str, &'static str)> {
    match store {
        "edits" => vec![("root", "v1"), ("v1", "v2")],
        "branches" => vec![("root", "a"), ("a", "a2"), ("root", "b"), ("a2", "joined")],
        _ => {
            let names = [
                "root", "v01", "v02", "v03", "v04", "v05", "v06", "v07", "v08", "v09", "v10",
                "v11", "v12", "v13", "v14", "v15",
            ];
            names.windows(2).map(|pair| (pair[0], pair[1])).collect()
        }
    }
}

fn number(value: &Value, name: &str) -> u64 {
    value[name].as_u64().unwrap_or_else(|| panic!("no {name} in {value}"))
}

fn numbers(value: &Value, name: &str) -> BTreeSet<u64> {
    value[name].as_array().unwrap().iter().map(|one| one.as_u64().unwrap()).collect()
}

/// One mutation of ours is what DVID says of it.
fn assert_mutation(ours: &Mutation, theirs: &Value) {
    assert_eq!(ours.mutation, number(theirs, "MutationID"), "{theirs}");
    let bodies: BTreeSet<u64> = ours.bodies.iter().copied().collect();
    let supervoxels: BTreeSet<u64> = ours.supervoxels.iter().copied().collect();
    match theirs["Action"].as_str().unwrap() {
        "merge-complete" => {
            assert_eq!((ours.kind, ours.body), (Kind::Merge, number(theirs, "Target")));
            let merged = numbers(theirs, "Labels");
            assert!(merged.is_subset(&bodies), "{theirs} {bodies:?}");
        }
        "cleave-complete" => {
            let [from, to] = ["OrigLabel", "CleavedLabel"].map(|name| number(theirs, name));
            assert_eq!((ours.kind, ours.body, ours.other), (Kind::Cleave, from, to));
            assert_eq!(supervoxels, numbers(theirs, "CleavedSupervoxels"), "{theirs}");
            assert_eq!(bodies, BTreeSet::from([from, to]), "{theirs}");
        }
        "renumber-complete" => {
            let [from, to] = ["OrigLabel", "NewLabel"].map(|name| number(theirs, name));
            assert_eq!((ours.kind, ours.body, ours.other), (Kind::Renumber, from, to));
        }
        "split-supervoxel-complete" => {
            assert_eq!((ours.kind, ours.body), (Kind::SplitSupervoxel, number(theirs, "Body")));
            let names = ["Supervoxel", "SplitSupervoxel", "RemainSupervoxel"];
            assert_eq!(supervoxels, names.map(|name| number(theirs, name)).into(), "{theirs}");
        }
        "split-complete" => {
            let [from, to] = ["Target", "NewLabel"].map(|name| number(theirs, name));
            assert_eq!((ours.kind, ours.body, ours.other), (Kind::SplitBody, from, to));
            let splits = theirs["SVSplits"].as_object().unwrap();
            let parts = splits.iter().flat_map(|(old, new)| {
                [old.parse().unwrap(), number(new, "Split"), number(new, "Remain")]
            });
            assert_eq!(supervoxels, parts.collect(), "{theirs}");
        }
        other => panic!("{other}"),
    }
}

/// Ours are DVID's, in order. DVID does not list mappings that were posted in bulk.
fn assert_mutations(ours: &[Mutation], theirs: &[Value], what: &str) {
    let (posted, ours): (Vec<&Mutation>, Vec<&Mutation>) =
        ours.iter().partition(|one| one.kind == Kind::Map);
    assert_eq!(ours.len(), theirs.len(), "{what}: {ours:?}");
    ours.iter().zip(theirs).for_each(|(ours, theirs)| assert_mutation(ours, theirs));
    let expected = usize::from(["edits v1", "edits root"].contains(&what));
    assert_eq!(posted.len(), expected, "{what}: {posted:?}");
}

fn told(answer: &Value) -> Vec<Value> {
    answer["mutations"].as_array().unwrap().clone()
}

/// The voxels of each body, as DVID answered.
fn sizes(answer: &Value) -> BTreeMap<u64, u64> {
    let bodies = answer["bodies"].as_object().unwrap().iter();
    let sizes = bodies.map(|(body, row)| (body.parse().unwrap(), row[0].as_u64().unwrap()));
    sizes.filter(|(_, voxels)| *voxels > 0).collect()
}

/// Voxels before and after of each body whose size differs; a renamed body is gone and another has come.
fn resized(diff: &LabelDiff) -> BTreeMap<u64, (u64, u64)> {
    let lists = [&diff.appeared, &diff.vanished, &diff.grown, &diff.shrunk];
    let row = |change: &BodyChange| (change.body, (change.voxels_before, change.voxels_after));
    let mut found: BTreeMap<u64, (u64, u64)> = lists.into_iter().flatten().map(row).collect();
    for change in &diff.renamed {
        found.insert(change.body, (0, change.voxels_after));
        found.insert(change.was.unwrap(), (change.voxels_before, 0));
    }
    found
}

async fn compared(repo: &Repository, from: &Version, to: &Version) -> LabelDiff {
    diff(repo, from, to, PATH).await.unwrap()
}

#[tokio::test]
async fn a_comparison_has_the_mutations_and_the_sizes_that_dvid_answered() {
    for store in ["edits", "many", "branches"] {
        let (repo, report) = import_all(store).await;
        let answers = answers(store);
        let uuid = |label: &str| answers[label]["uuid"].as_str().unwrap().to_owned();
        // Bodies that DVID itself counts wrong, because blocks were posted over others.
        let miscounted = |label: &str| -> BTreeSet<u64> {
            let uuid = uuid(label);
            let version = report.versions.iter().find(|version| version.uuid == uuid).unwrap();
            version.differences.iter().map(|difference| difference.body).collect()
        };
        for (parent, child) in parents(store) {
            let [from, to] = [parent, child].map(|label| snapshot(&report, &uuid(label)));
            let found = compared(&repo, &from, &to).await;
            let what = format!("{store} {child}");
            // A join has the mutations of its second parent in its mapping, but no log of its own.
            assert_mutations(&found.mutations, &told(&answers[child]), &what);
            let (before, after) = (sizes(&answers[parent]), sizes(&answers[child]));
            let wrong = &miscounted(parent) | &miscounted(child);
            let all: BTreeSet<u64> = before.keys().chain(after.keys()).copied().collect();
            let size = |of: &BTreeMap<u64, u64>, body| of.get(body).copied().unwrap_or_default();
            let expected: BTreeMap<u64, (u64, u64)> = all
                .difference(&wrong)
                .map(|body| (*body, (size(&before, body), size(&after, body))))
                .filter(|(_, (before, after))| before != after)
                .collect();
            let mut ours = resized(&found);
            ours.retain(|body, _| !wrong.contains(body));
            assert_eq!(ours, expected, "{what}");
        }
    }
}

#[tokio::test]
async fn a_comparison_over_several_versions_has_the_mutations_of_all() {
    let (repo, report) = import_all("many").await;
    let answers = answers("many");
    let version = |label: &str| snapshot(&report, answers[label]["uuid"].as_str().unwrap());
    let found = compared(&repo, &version("v03"), &version("v10")).await;
    let between = ["v04", "v05", "v06", "v07", "v08", "v09", "v10"];
    let theirs: Vec<Value> = between.iter().flat_map(|label| told(&answers[*label])).collect();
    assert_eq!(theirs.len(), 10);
    assert_mutations(&found.mutations, &theirs, "many v03..v10");
    // Backwards, the same bodies differ the other way round, and nothing was done.
    let back = compared(&repo, &version("v10"), &version("v03")).await;
    assert!(back.mutations.is_empty());
    let turned = |(body, (before, after))| (body, (after, before));
    assert_eq!(resized(&back), resized(&found).into_iter().map(turned).collect());
}

#[tokio::test]
async fn the_first_version_has_the_mutations_that_dvid_answered() {
    for store in ["basic", "edits", "many", "branches", "offset-live"] {
        let (repo, report) = import_all(store).await;
        let answer = &answers(store)["root"];
        let map = at(&repo, &snapshot(&report, answer["uuid"].as_str().unwrap())).await;
        let rows: Vec<Vec<Mutation>> = map.mutations(0).unwrap().try_collect().await.unwrap();
        assert_mutations(&rows.concat(), &told(answer), &format!("{store} root"));
    }
}

#[tokio::test]
async fn a_comparison_of_versions_names_the_bodies_that_mutations_touched() {
    for name in ["many", "edits"] {
        let (repo, report) = import_all(name).await;
        for pair in report.versions.windows(2) {
            let [from, to] = [&pair[0], &pair[1]].map(|v| Version::Snapshot(v.snapshot.clone()));
            let diff = compared(&repo, &from, &to).await;
            assert_eq!(diff.mutations.len() as u64, pair[1].mutations);
            let lists = [&diff.appeared, &diff.vanished, &diff.grown, &diff.shrunk, &diff.changed];
            let mut changed: BTreeSet<u64> =
                lists.into_iter().flatten().map(|body| body.body).collect();
            for body in &diff.renamed {
                changed.extend([Some(body.body), body.was].into_iter().flatten());
            }
            let touched: BTreeSet<u64> =
                diff.mutations.iter().flat_map(|mutation| mutation.bodies.clone()).collect();
            if pair[1].blocks == 0 {
                // Without new blocks, nothing else can change a body.
                assert!(changed.is_subset(&touched), "{name} {changed:?} {touched:?}");
            }
            let (before, after) = (at(&repo, &from).await, at(&repo, &to).await);
            for body in touched.difference(&changed) {
                // Bodies that came and went in between, or that a mutation named and did not have.
                let rows = [before.find_bodies(&[*body]).await, after.find_bodies(&[*body]).await];
                let [was, is] = rows.map(|row| row.unwrap().pop().flatten());
                assert!(was.map(|b| b.voxels) == is.map(|b| b.voxels), "{name} {body}");
            }
        }
    }
}
