//! Each edit, what it refuses and why, and what diff, blame and revert say of it.

use std::collections::BTreeSet;

use chunkyard_array::Region;
use chunkyard_format::Meter;
use chunkyard_labels::{
    Author, Edit, Ids, Kind, Labelmap, Layout, Mapping, Resolution, Run, Runs, Side, diff,
    merge_branch,
};
use chunkyard_repo::{Repository, Version};
use chunkyard_store::{Error, ErrorKind};
use chunkyard_test_support::memory;

use super::naive::Naive;
use super::support::{PATH, Voxels, assert_sound, create, edit, import, tip};

/// Four columns of 16 voxels along x, 1 to 4, in a volume of 2 × 3 × 4 blocks that does not fill its blocks.
fn columns() -> Voxels {
    let shape = [20, 40, 64];
    let count = shape.iter().product::<u64>() as usize;
    let labels = (0..count).map(|place| (place as u64 % 64) / 16 + 1).collect();
    Voxels { shape, labels }
}

async fn small() -> (Repository, Naive) {
    let repo = create(&memory()).await;
    let voxels = columns();
    import(&repo, Layout::new(voxels.shape).with_block([16; 3]), &voxels).await;
    let naive = Naive::new(&voxels);
    naive.assert_equals(&tip(&repo, "main").await).await;
    (repo, naive)
}

/// The first `count` voxels of each row of column 1.
fn slab(count: u64) -> Runs {
    let rows = (0..20).flat_map(|z| (0..40).map(move |y| [z, y, 0]));
    Runs::new(rows.map(|start| Run { start, length: count }).collect())
}

#[tokio::test]
async fn edits_are_refused_with_the_reason() {
    let (repo, naive) = small().await;
    let merge = |target, bodies: &[u64]| Edit::Merge { target, bodies: bodies.to_vec() };
    let cleave = |body, supervoxels: &[u64], new_body| Edit::Cleave {
        body,
        supervoxels: supervoxels.to_vec(),
        new_body,
    };
    let split =
        |supervoxel, voxels| Edit::SplitSupervoxel { supervoxel, voxels, part: None, rest: None };
    let refusals = [
        (merge(1, &[]), ErrorKind::Invalid, "nothing to merge"),
        (merge(1, &[1]), ErrorKind::Invalid, "into itself"),
        (merge(1, &[99]), ErrorKind::NotFound, "99"),
        (merge(99, &[1]), ErrorKind::NotFound, "99"),
        (merge(0, &[1]), ErrorKind::NotFound, "body not found: 0"),
        (cleave(1, &[], None), ErrorKind::Invalid, "no supervoxels"),
        (cleave(1, &[1], None), ErrorKind::Invalid, "renumber it instead"),
        (cleave(1, &[2], None), ErrorKind::Invalid, "belongs to body 2"),
        (cleave(99, &[1], None), ErrorKind::NotFound, "99"),
        (split(1, Runs::default()), ErrorKind::Invalid, "on both sides"),
        (split(1, slab(16)), ErrorKind::Invalid, "on both sides"),
        (split(9, slab(3)), ErrorKind::NotFound, "9"),
        (
            split(1, Runs::new(vec![Run { start: [0, 0, 60], length: 9 }])),
            ErrorKind::Invalid,
            "leave the volume",
        ),
        (
            split(1, Runs::new(vec![Run { start: [u64::MAX; 3], length: u64::MAX }])),
            ErrorKind::Invalid,
            "leave the volume",
        ),
        (Edit::Renumber { body: 1, new_body: 2 }, ErrorKind::Conflict, "merge body 1"),
        (Edit::Renumber { body: 1, new_body: 0 }, ErrorKind::Invalid, "no body"),
        (Edit::Map { mapping: vec![] }, ErrorKind::Invalid, "empty"),
        (Edit::Map { mapping: vec![(1, 0)] }, ErrorKind::Invalid, "cannot be retired"),
        (Edit::Map { mapping: vec![(0, 1)] }, ErrorKind::Invalid, "no supervoxel"),
        (Edit::Revert { mutation: 5 }, ErrorKind::NotFound, "mutation"),
    ];
    for (wanted, kind, words) in refusals {
        let error = edit(&repo, "main", wanted.clone()).await.unwrap_err();
        assert_eq!(error.kind(), kind, "{wanted:?}: {error}");
        assert!(error.to_string().contains(words), "{wanted:?}: {error}");
    }
    edit(&repo, "main", merge(1, &[2, 3])).await.unwrap();
    let error = edit(&repo, "main", cleave(1, &[2], Some(3))).await.unwrap_err();
    assert!(error.to_string().contains("in use"), "{error}");
    let error = edit(&repo, "main", merge(4, &[2])).await.unwrap_err();
    assert!(error.to_string().contains("belongs to body 1 since mutation"), "{error}");
    let mut expected = naive;
    expected.apply(&expected.moved(0, &[2, 3], 1));
    expected.assert_equals(&tip(&repo, "main").await).await;
}

#[tokio::test]
async fn a_split_leaves_no_supervoxel_without_voxels() {
    // dvid#289: after a split there were supervoxels of size 0; dvid#339: sizes were missing.
    let (repo, _) = small().await;
    edit(&repo, "main", Edit::Merge { target: 1, bodies: vec![2] }).await.unwrap();
    // All of column 1 and a part of column 2.
    let rows = (0..20).flat_map(|z| (0..40).map(move |y| [z, y, 0]));
    let voxels = Runs::new(rows.map(|start| Run { start, length: 20 }).collect());
    let split = Edit::SplitBody { body: 1, voxels, new_body: Some(500), halves: vec![] };
    let mutation = edit(&repo, "main", split).await.unwrap();
    let map = tip(&repo, "main").await;
    assert_sound(&map).await;
    let new = map.supervoxels_of(500).await.unwrap();
    assert_eq!(new[0].supervoxel, 1, "a supervoxel that moves as a whole keeps its id");
    assert_eq!(new.iter().map(|row| row.voxels).collect::<Vec<_>>(), [12_800, 3200]);
    let old = map.supervoxels_of(1).await.unwrap();
    assert_eq!(old.iter().map(|row| row.voxels).collect::<Vec<_>>(), [9600]);
    assert_eq!(map.body(500).await.unwrap().bounds.end, [20, 40, 20]);
    assert_eq!(map.find_supervoxels(&[2]).await.unwrap()[0].unwrap().voxels, 0, "retired");
    edit(&repo, "main", Edit::Revert { mutation: mutation.mutation }).await.unwrap();
    let map = tip(&repo, "main").await;
    assert_sound(&map).await;
    assert_eq!(map.body(1).await.unwrap().voxels, 25_600);
    assert_eq!(map.find_bodies(&[500]).await.unwrap(), [None]);
    assert_eq!(super::support::voxels(&map, 0).await, columns().labels);
}

#[tokio::test]
async fn questions_are_answered_as_voxels_are() {
    let (repo, _) = small().await;
    edit(&repo, "main", Edit::Merge { target: 4, bodies: vec![2] }).await.unwrap();
    let map = tip(&repo, "main").await;
    let points = [[0, 0, 0], [19, 39, 63], [3, 20, 17], [3, 20, 40]];
    assert_eq!(map.labels_at(&points, Ids::Bodies).await.unwrap(), [1, 4, 4, 3]);
    assert_eq!(map.labels_at(&points, Ids::Supervoxels).await.unwrap(), [1, 4, 2, 3]);
    let error = map.labels_at(&[[20, 0, 0]], Ids::Bodies).await.unwrap_err();
    assert!(error.to_string().contains("outside"), "{error}");
    let region = Region::new(vec![1, 2, 15], vec![3, 30, 3]).unwrap();
    assert_eq!(map.labels_in(&region, Ids::Bodies).await.unwrap(), [1, 4]);
    assert_eq!(map.labels_in(&region, Ids::Supervoxels).await.unwrap(), [1, 2]);
    let whole = Region::whole(&[20, 40, 64]);
    assert_eq!(map.labels_in(&whole, Ids::Bodies).await.unwrap(), [1, 3, 4]);
    let volume = map.sparse_volume(4, None).await.unwrap();
    assert_eq!((volume.voxels(), volume.runs().len()), (25_600, 1600));
    assert_eq!(Runs::parse_dvid(&volume.render_dvid().unwrap()).unwrap(), volume);
}

#[tokio::test]
async fn a_diff_speaks_of_bodies() {
    let (repo, _) = small().await;
    let before = repo.state().await.unwrap().tip("main").unwrap().snapshot_id.clone();
    edit(&repo, "main", Edit::Merge { target: 1, bodies: vec![2] }).await.unwrap();
    edit(&repo, "main", Edit::Renumber { body: 3, new_body: 300 }).await.unwrap();
    let split =
        Edit::SplitBody { body: 4, voxels: columns_of_four(), new_body: Some(400), halves: vec![] };
    edit(&repo, "main", split).await.unwrap();
    let found =
        diff(&repo, &Version::Snapshot(before), &Version::branch("main"), PATH).await.unwrap();
    let ids = |changes: &[chunkyard_labels::BodyChange]| {
        changes.iter().map(|change| change.body).collect::<Vec<_>>()
    };
    assert_eq!(ids(&found.appeared), [400]);
    assert_eq!(ids(&found.vanished), [2]);
    assert_eq!(ids(&found.grown), [1]);
    assert_eq!(ids(&found.shrunk), [4]);
    assert_eq!((ids(&found.renamed), found.renamed[0].was), (vec![300], Some(3)));
    assert_eq!(found.mutations.len(), 3);
    let concerned: BTreeSet<u64> = found.blocks.iter().map(|(body, _)| *body).collect();
    assert_eq!(concerned, BTreeSet::from([1, 2, 3, 4, 300, 400]));
    let same = diff(&repo, &Version::branch("main"), &Version::branch("main"), PATH).await.unwrap();
    assert!(same.is_empty());
}

fn columns_of_four() -> Runs {
    Runs::new((0..20).map(|z| Run { start: [z, 7, 48], length: 5 }).collect())
}

#[tokio::test]
async fn blame_names_the_edits_that_decided() {
    let (repo, _) = small().await;
    let first = edit(&repo, "main", Edit::Merge { target: 1, bodies: vec![2] }).await.unwrap();
    let cleave = Edit::Cleave { body: 1, supervoxels: vec![2], new_body: Some(77) };
    let second = edit(&repo, "main", cleave).await.unwrap();
    let map = tip(&repo, "main").await;
    let blamed = map.blame(2).await.unwrap();
    let told: Vec<_> = blamed.iter().map(|(m, before, after)| (m.kind, *before, *after)).collect();
    assert_eq!(told, [(Kind::Merge, 2, 1), (Kind::Cleave, 1, 77)]);
    let commits = repo.state().await.unwrap();
    let line: Vec<String> = commits
        .ancestry(&map.session().snapshot().snapshot_id)
        .map(|snapshot| snapshot.snapshot_id.clone())
        .collect();
    for (mutation, place) in [(&first, 1), (&second, 0)] {
        let commit = map.commit_of(mutation.mutation).await.unwrap().unwrap();
        assert_eq!(commit.snapshot_id, line[place]);
    }
    assert_eq!(map.commit_of(7).await.unwrap(), None);
    assert!(map.blame(3).await.unwrap().is_empty());
    assert_eq!(map.blame(98).await.unwrap_err().kind(), ErrorKind::NotFound);
    let error = edit(&repo, "main", Edit::Revert { mutation: first.mutation }).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict);
    assert!(error.to_string().contains(&second.mutation.to_string()), "{error}");
    edit(&repo, "main", Edit::Revert { mutation: second.mutation }).await.unwrap();
    let map = tip(&repo, "main").await;
    assert_eq!(map.bodies_of(&[2]).await.unwrap(), [1]);
    assert_sound(&map).await;
}

#[tokio::test]
async fn branches_that_cut_one_block_come_together() {
    let (repo, mut naive) = small().await;
    repo.create_branch("other", &Version::branch("main")).await.unwrap();
    let split = |supervoxel, voxels, part, rest| Edit::SplitSupervoxel {
        supervoxel,
        voxels,
        part: Some(part),
        rest: Some(rest),
    };
    edit(&repo, "main", split(1, slab(3), 101, 102)).await.unwrap();
    edit(&repo, "other", split(2, columns_of_two(), 201, 202)).await.unwrap();
    edit(&repo, "other", Edit::Merge { target: 3, bodies: vec![4] }).await.unwrap();
    let author = Author::default();
    let theirs = Version::branch("other");
    let joined =
        merge_branch(&repo, "main", &theirs, PATH, &Resolution::default(), &author).await.unwrap();
    assert_eq!((joined.taken.len(), joined.left_out.len()), (2, 0));
    let places = |runs: Runs| -> BTreeSet<usize> {
        let place = |run: &Run| {
            let [z, y, x] = run.start;
            let from = ((z * 40 + y) * 64 + x) as usize;
            from..from + run.length as usize
        };
        runs.runs().iter().flat_map(place).collect()
    };
    naive.apply(&naive.cut(0, 1, &places(slab(3)), [101, 102]));
    naive.apply(&naive.cut(0, 2, &places(columns_of_two()), [201, 202]));
    naive.apply(&naive.moved(0, &[4], 3));
    naive.assert_equals(&tip(&repo, "main").await).await;
    // Again: nothing is left to do.
    let again =
        merge_branch(&repo, "main", &theirs, PATH, &Resolution::default(), &author).await.unwrap();
    assert_eq!(again.snapshot, None);
}

fn columns_of_two() -> Runs {
    Runs::new((0..20).map(|z| Run { start: [z, 9, 16], length: 8 }).collect())
}

#[tokio::test]
async fn a_body_that_both_branches_edited_is_a_conflict_until_it_is_decided() {
    for (side, body) in [(Side::Ours, 1), (Side::Theirs, 3)] {
        let (repo, mut naive) = small().await;
        repo.create_branch("other", &Version::branch("main")).await.unwrap();
        let merge = |target, body| Edit::Merge { target, bodies: vec![body] };
        let ours = edit(&repo, "main", merge(1, 2)).await.unwrap();
        let theirs = edit(&repo, "other", merge(3, 2)).await.unwrap();
        let author = Author::default();
        let version = Version::branch("other");
        let error = merge_branch(&repo, "main", &version, PATH, &Resolution::default(), &author)
            .await
            .unwrap_err();
        let Error::Conflict { conflicts, message } = &error else { panic!("{error}") };
        assert_eq!(conflicts[0].keys, ["2"]);
        for mutation in [ours.mutation, theirs.mutation] {
            assert!(message.contains(&mutation.to_string()), "{message}");
        }
        let mut resolution = Resolution::default();
        resolution.bodies.insert(2, side);
        let joined =
            merge_branch(&repo, "main", &version, PATH, &resolution, &author).await.unwrap();
        naive.apply(&naive.moved(0, &[2], body));
        naive.assert_equals(&tip(&repo, "main").await).await;
        let (left_out, given_up) = match side {
            Side::Ours => (vec![theirs.mutation], vec![]),
            Side::Theirs => (vec![], vec![ours.mutation]),
        };
        assert_eq!((joined.left_out, joined.given_up), (left_out, given_up));
        // What was decided stays decided.
        let undecided = Resolution::default();
        let again = merge_branch(&repo, "main", &version, PATH, &undecided, &author);
        assert_eq!(again.await.unwrap().snapshot, None);
    }
}

#[test]
fn hostile_sparse_volumes_are_errors() {
    let good = columns_of_two().render_dvid().unwrap();
    assert_eq!(Runs::parse_dvid(&good).unwrap(), columns_of_two());
    for cut in 0..good.len() {
        Runs::parse_dvid(&good[..cut]).unwrap_err();
    }
    let mut promises = good.clone();
    promises[8..12].copy_from_slice(&u32::MAX.to_le_bytes());
    Runs::parse_dvid(&promises).unwrap_err();
    let mut negative = good.clone();
    negative[12..16].copy_from_slice(&(-1i32).to_le_bytes());
    let error = Runs::parse_dvid(&negative).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    let mut flat = good;
    flat[1] = 2;
    Runs::parse_dvid(&flat).unwrap_err();
    let far = Runs::of_mask([u64::MAX; 3], [1, 1, 2], &[true, true]).unwrap();
    assert_eq!(far.voxels(), 2);
    Runs::of_mask([0; 3], [u64::MAX; 3], &[]).unwrap_err();
}

/// Its row in the table of supervoxels says that it has no voxels and no body, and so must the mapping.
#[tokio::test]
async fn a_retired_id_is_not_given_to_a_body() {
    let (repo, _) = small().await;
    let split =
        Edit::SplitSupervoxel { supervoxel: 1, voxels: slab(3), part: Some(101), rest: Some(102) };
    edit(&repo, "main", split).await.unwrap();
    let cleave = Edit::Cleave { body: 1, supervoxels: vec![101], new_body: Some(300) };
    edit(&repo, "main", cleave).await.unwrap();
    for retired in [1, 300] {
        let map = Edit::Map { mapping: vec![(3, 4), (retired, 2)] };
        let error = edit(&repo, "main", map).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
        assert!(error.to_string().contains(&format!("{retired} is retired")), "{error}");
    }
    // What it says already, and ids that no voxel has, may stand in a table that is handed on as a whole.
    let again = Edit::Map { mapping: vec![(1, 0), (3, 4), (900, 2), (901, 0)] };
    edit(&repo, "main", again).await.unwrap();
    let map = tip(&repo, "main").await;
    assert_eq!(map.bodies_of(&[1, 3, 900, 901]).await.unwrap(), [0, 4, 2, 0]);
    assert_sound(&map).await;
}

#[tokio::test]
async fn an_import_refuses_a_mapping_of_label_0() {
    let repo = create(&memory()).await;
    let session = repo.writable_session("main").await.unwrap();
    let (voxels, meter) = (columns(), Meter::default());
    let mapping = Mapping::from_sorted(vec![0, 3], vec![7, 7]).unwrap();
    let layout = Layout::new(voxels.shape).with_block([16; 3]);
    let error =
        Labelmap::import(&session, PATH, layout, &voxels, &mapping, &meter).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert!(error.to_string().contains("supervoxel 0"), "{error}");
    assert!(session.node(PATH).is_err(), "nothing of it is left in the session");
}

/// A mutation and the one that undid it count for nothing together: what came before them can be undone.
#[tokio::test]
async fn edits_that_were_undone_do_not_stand_in_the_way_of_older_ones() {
    let (repo, _) = small().await;
    let merge = edit(&repo, "main", Edit::Merge { target: 1, bodies: vec![2] }).await.unwrap();
    let cleave = Edit::Cleave { body: 1, supervoxels: vec![2], new_body: None };
    let cleave = edit(&repo, "main", cleave).await.unwrap();
    let undo = |mutation| Edit::Revert { mutation };

    let error = edit(&repo, "main", undo(merge.mutation)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
    assert!(error.to_string().contains(&format!("mutation {}; undo that one", cleave.mutation)));

    let undone = edit(&repo, "main", undo(cleave.mutation)).await.unwrap();
    let error = edit(&repo, "main", undo(cleave.mutation)).await.unwrap_err();
    assert!(error.to_string().contains("undone already"), "{error}");
    assert!(error.to_string().contains(&undone.mutation.to_string()), "{error}");

    edit(&repo, "main", undo(merge.mutation)).await.unwrap();
    let map = tip(&repo, "main").await;
    assert_eq!(map.load_mapping().await.unwrap().body(2), 2);
    assert_sound(&map).await;
}

/// The halves come from the last version in which they were apart; a split and its undoing in one commit leave none.
#[tokio::test]
async fn an_undone_split_is_cut_again_along_the_same_voxels() {
    let (repo, mut naive) = small().await;
    edit(&repo, "main", Edit::Merge { target: 1, bodies: vec![2] }).await.unwrap();
    naive.apply(&naive.moved(0, &[2], 1));
    let rows = (0..20).flat_map(|z| (0..40).map(move |y| [z, y, 0]));
    let voxels = Runs::new(rows.map(|start| Run { start, length: 20 }).collect());
    let halves = vec![(2, 21, 22)];
    let split = Edit::SplitBody { body: 1, voxels, new_body: Some(500), halves };
    let split = edit(&repo, "main", split).await.unwrap();
    let cut = tip(&repo, "main").await;
    let expected = super::support::voxels(&cut, 0).await;
    let joined = edit(&repo, "main", Edit::Revert { mutation: split.mutation }).await.unwrap();
    naive.assert_equals(&tip(&repo, "main").await).await;
    // What others do meanwhile is no obstacle.
    edit(&repo, "main", Edit::Renumber { body: 4, new_body: 40 }).await.unwrap();
    let again = edit(&repo, "main", Edit::Revert { mutation: joined.mutation }).await.unwrap();
    let map = tip(&repo, "main").await;
    assert_sound(&map).await;
    assert_eq!(super::support::voxels(&map, 0).await, expected);
    assert_eq!(map.bodies_of(&[1, 2, 21, 22]).await.unwrap(), [500, 0, 500, 1]);
    assert_eq!(map.body(500).await.unwrap().voxels, cut.body(500).await.unwrap().voxels);
    let blamed = map.blame(21).await.unwrap();
    let told: Vec<_> = blamed.iter().map(|(m, before, after)| (m.kind, *before, *after)).collect();
    assert_eq!(told, [(Kind::SplitBody, 0, 500), (Kind::Revert, 500, 0), (Kind::Revert, 0, 500)]);

    // That is an edit like any other: it can be undone, and again.
    let apart = edit(&repo, "main", Edit::Revert { mutation: again.mutation }).await.unwrap();
    naive.apply(&naive.moved(0, &[4], 40));
    naive.assert_equals(&tip(&repo, "main").await).await;
    edit(&repo, "main", Edit::Revert { mutation: apart.mutation }).await.unwrap();
    assert_eq!(super::support::voxels(&tip(&repo, "main").await, 0).await, expected);
    assert_sound(&tip(&repo, "main").await).await;

    let session = repo.writable_session("main").await.unwrap();
    let map = Labelmap::open(&session, PATH).await.unwrap();
    let author = Author::default();
    let split = Edit::SplitSupervoxel {
        supervoxel: 3,
        voxels: Runs::new(vec![Run { start: [0, 0, 32], length: 5 }]),
        part: None,
        rest: None,
    };
    let split = map.apply(&split, &author).await.unwrap();
    let joined = map.apply(&Edit::Revert { mutation: split.mutation }, &author).await.unwrap();
    let error = map.apply(&Edit::Revert { mutation: joined.mutation }, &author).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
    map.commit("cut and joined").await.unwrap();
    let error = edit(&repo, "main", Edit::Revert { mutation: joined.mutation }).await.unwrap_err();
    assert!(error.to_string().contains("in one commit"), "{error}");
}
