//! Several writers on one branch: each acknowledged edit is there, and a conflict names the body.

use std::collections::BTreeSet;

use chunkyard_format::Meter;
use chunkyard_labels::{Author, Edit, Labelmap, Layout, Mutation, Run, Runs};
use chunkyard_repo::{OpenOptions, Repository};
use chunkyard_store::{Error, ErrorKind};
use chunkyard_test_support::{Place, memory};
use futures::TryStreamExt;
use futures::future::join_all;

use super::support::{PATH, Voxels, assert_sound, create, edit, import, tip};

/// 24 columns of two voxels along x, in blocks that several share.
fn columns() -> Voxels {
    let shape = [16, 16, 48];
    let count = shape.iter().product::<u64>() as usize;
    Voxels { shape, labels: (0..count).map(|place| (place as u64 % 48) / 2 + 1).collect() }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn edits_of_different_bodies_all_stand() {
    for place in Place::ALL {
        let (_guard, store) = place.open();
        import(&create(&store).await, Layout::new([16, 16, 48]).with_block([16; 3]), &columns())
            .await;
        let writers = (0..6u64).map(|writer| {
            let store = store.clone();
            async move {
                let repo = Repository::open_in(store, OpenOptions::default()).await.unwrap();
                let first = writer * 4 + 1;
                let merge = Edit::Merge { target: first, bodies: vec![first + 1] };
                let one = edit(&repo, "main", merge).await.unwrap();
                // All of these cut voxels of the same blocks.
                let x = (first + 2 - 1) * 2;
                let voxels = (0..16).map(|z| Run { start: [z, 3, x], length: 1 }).collect();
                let split = Edit::SplitSupervoxel {
                    supervoxel: first + 2,
                    voxels: Runs::new(voxels),
                    part: None,
                    rest: None,
                };
                [one, edit(&repo, "main", split).await.unwrap()]
            }
        });
        let acknowledged: Vec<u64> =
            join_all(writers).await.concat().iter().map(|mutation| mutation.mutation).collect();
        let repo = Repository::open_in(store, OpenOptions::default()).await.unwrap();
        let map = tip(&repo, "main").await;
        let log: Vec<Vec<Mutation>> = map.mutations(0).unwrap().try_collect().await.unwrap();
        let logged: BTreeSet<u64> = log.concat().iter().map(|mutation| mutation.mutation).collect();
        assert_eq!(logged, acknowledged.into_iter().collect(), "{place:?}");
        assert_sound(&map).await;
        for writer in 0..6 {
            let first = writer * 4 + 1;
            assert_eq!(map.bodies_of(&[first + 1]).await.unwrap(), [first]);
            assert_eq!(map.body(first + 2).await.unwrap().supervoxels, 2);
        }
    }
}

fn split(supervoxel: u64, part: Option<u64>) -> Edit {
    let x = (supervoxel - 1) * 2;
    let voxels = (0..16).map(|z| Run { start: [z, 3, x], length: 1 }).collect();
    Edit::SplitSupervoxel { supervoxel, voxels: Runs::new(voxels), part, rest: None }
}

async fn session(repo: &Repository) -> Labelmap {
    Labelmap::open(&repo.writable_session("main").await.unwrap(), PATH).await.unwrap()
}

/// Bodies 1, 2 and 3 lie in the same blocks, so neither commit can be put on top of the other as it is.
#[tokio::test]
async fn sessions_that_cut_bodies_of_one_block_both_land_with_the_ids_that_they_gave() {
    let repo = create(&memory()).await;
    import(&repo, Layout::new([16, 16, 48]).with_block([16; 3]), &columns()).await;
    let author = Author { user: "ada".into(), note: "slow".into() };
    let (slow, fast) = (session(&repo).await, session(&repo).await);
    let runs = (0..16).map(|z| Run { start: [z, 5, 4], length: 3 }).collect();
    let body =
        Edit::SplitBody { body: 3, voxels: Runs::new(runs), new_body: None, halves: Vec::new() };
    let mut given = Vec::new();
    for edit in [Edit::Merge { target: 3, bodies: vec![4] }, split(1, None), body] {
        given.push(slow.apply(&edit, &author).await.unwrap());
    }
    let cleave = Edit::Cleave { body: 3, supervoxels: vec![4], new_body: None };
    let refused = slow.apply(&cleave, &author).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Invalid, "it was cut: {refused}");
    fast.apply(&split(2, Some(200)), &Author::default()).await.unwrap();
    fast.commit("fast").await.unwrap();
    let snapshot = slow.commit("slow").await.unwrap();

    let map = tip(&repo, "main").await;
    assert_eq!(map.session().snapshot().snapshot_id, snapshot.snapshot_id);
    assert_sound(&map).await;
    assert_eq!(map.bodies_of(&[200]).await.unwrap(), [2]);
    for mutation in &given {
        assert_eq!(map.mutation(mutation.mutation).await.unwrap(), *mutation);
        for id in mutation.supervoxels.iter().filter(|id| **id > 24) {
            assert!(map.find_supervoxels(&[*id]).await.unwrap()[0].is_some(), "{id}");
        }
    }
    assert_eq!(map.body(given[2].other).await.unwrap().voxels, 16 * 3);
    let error = slow.apply(&split(5, None), &author).await.unwrap_err();
    assert!(error.to_string().contains("open a new session"), "{error}");
    let error = slow.commit("again").await.unwrap_err();
    assert!(error.to_string().contains("open a new session"), "{error}");
}

/// Whatever else is in a session would be lost with it, so its edits are not made anew in another.
#[tokio::test]
async fn a_session_with_more_than_edits_is_not_made_anew() {
    let repo = create(&memory()).await;
    import(&repo, Layout::new([16, 16, 48]).with_block([16; 3]), &columns()).await;
    for other in 0..3 {
        let slow = session(&repo).await;
        let supervoxel = 6 * other + 1;
        slow.apply(&split(supervoxel, None), &Author::default()).await.unwrap();
        match other {
            0 => {
                slow.session().create_group("/elsewhere", Default::default()).unwrap();
            }
            1 => {
                // Another labelmap of the same session, whose edits this one does not know.
                let second = Labelmap::open(slow.session(), PATH).await.unwrap();
                second.apply(&split(supervoxel + 3, None), &Author::default()).await.unwrap();
            }
            _ => slow.downsample(&Meter::default()).await.unwrap(),
        }
        edit(&repo, "main", split(supervoxel + 1, None)).await.unwrap();
        let error = slow.commit("slow").await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Conflict, "{other}: {error}");
        assert_sound(&tip(&repo, "main").await).await;
    }
}

/// Edits in far corners share a block at the coarsest scale, and must not collide in it unless they change it.
#[tokio::test]
async fn a_coarse_block_that_stays_as_it_is_is_not_written() {
    let repo = create(&memory()).await;
    let shape = [16, 16, 48];
    // Two voxels of supervoxel 2, each of which loses the vote.
    let label = |place: u64| if place == 5 || place == 40 { 2 } else { 1 };
    let labels = (0..shape.iter().product()).map(label).collect();
    import(&repo, Layout::new(shape).with_block([16; 3]), &Voxels { shape, labels }).await;
    let map = session(&repo).await;
    assert_eq!(map.layout().scales, 3);
    let voxels = Runs::new(vec![Run { start: [0, 0, 5], length: 1 }]);
    let split = Edit::SplitBody { body: 2, voxels, new_body: None, halves: Vec::new() };
    map.apply(&split, &Author::default()).await.unwrap();
    let written: Vec<_> = map.session().status().await.unwrap().chunks;
    let written: Vec<_> =
        written.iter().map(|chunks| (chunks.path.as_str(), chunks.replaced.len())).collect();
    assert_eq!(written, [("/seg/s0", 2)]);
    assert_sound(&map).await;
}

#[tokio::test]
async fn an_edit_of_the_same_body_is_a_conflict_that_names_it() {
    let repo = create(&memory()).await;
    import(&repo, Layout::new([16, 16, 48]).with_block([16; 3]), &columns()).await;
    let session = repo.writable_session("main").await.unwrap();
    let slow = Labelmap::open(&session, PATH).await.unwrap();
    let merge = |target, body| Edit::Merge { target, bodies: vec![body] };
    slow.apply(&merge(7, 8), &Author::default()).await.unwrap();
    edit(&repo, "main", merge(9, 8)).await.unwrap();
    let error = slow.commit("too late").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict);
    let Error::Conflict { message, .. } = &error else { panic!("{error}") };
    assert!(message.starts_with("body 8 was edited meanwhile"), "{message}");
    let map = tip(&repo, "main").await;
    assert_eq!(map.bodies_of(&[8]).await.unwrap(), [9]);
    assert_sound(&map).await;
}
