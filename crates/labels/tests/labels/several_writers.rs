//! Several writers on one branch: each acknowledged edit is there, and a conflict names the body.

use std::collections::BTreeSet;

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
