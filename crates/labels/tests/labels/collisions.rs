//! Two branches, or two clocks, that give one id twice.

use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, ListArray, RecordBatch, StringArray, UInt64Array};
use chunkyard_labels::{Author, Edit, Labelmap, Layout, Resolution, Run, Runs, Side, merge_branch};
use chunkyard_repo::{Repository, Version};
use chunkyard_store::{Error, ErrorKind};
use chunkyard_test_support::memory;

use super::support::{PATH, Voxels, assert_sound, create, edit, import, tip};

/// Four columns of 16 voxels along x, bodies 10 to 40.
async fn small() -> Repository {
    let repo = create(&memory()).await;
    let shape = [16, 16, 64];
    let labels = (0..16 * 16 * 64u64).map(|place| (place % 64 / 16 + 1) * 10).collect();
    import(&repo, Layout::new(shape).with_block([16; 3]), &Voxels { shape, labels }).await;
    repo.create_branch("b", &Version::branch("main")).await.unwrap();
    repo
}

/// Cuts the first voxels of rows that begin at `x`.
fn split(supervoxel: u64, x: u64, part: u64, rest: u64) -> Edit {
    let voxels = (0..16).map(|z| Run { start: [z, 3, x], length: 2 }).collect();
    let (part, rest) = (Some(part), Some(rest));
    Edit::SplitSupervoxel { supervoxel, voxels: Runs::new(voxels), part, rest }
}

fn cleave(body: u64, supervoxel: u64, new_body: u64) -> Edit {
    Edit::Cleave { body, supervoxels: vec![supervoxel], new_body: Some(new_body) }
}

async fn join(repo: &Repository, resolution: &Resolution) -> Result<(), Error> {
    let theirs = Version::branch("b");
    merge_branch(repo, "main", &theirs, PATH, resolution, &Author::default()).await.map(|_| ())
}

/// Supervoxel 100 is a part of 10 on one branch and of 20 on the other. Taking both would leave voxels of an id that
/// one of them retired.
#[tokio::test]
async fn a_supervoxel_that_both_branches_made_is_a_conflict() {
    for side in [Side::Ours, Side::Theirs] {
        let repo = small().await;
        let ours = edit(&repo, "main", split(10, 0, 100, 101)).await.unwrap();
        let theirs = edit(&repo, "b", split(20, 16, 100, 102)).await.unwrap();
        // This one has nothing to do with it, and comes over in any case.
        edit(&repo, "b", Edit::Merge { target: 30, bodies: vec![40] }).await.unwrap();

        let error = join(&repo, &Resolution::default()).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
        let Error::Conflict { message, conflicts } = &error else { panic!("{error}") };
        assert!(message.contains("the id 100"), "{message}");
        assert!(message.contains("body 10, 20"), "{message}");
        for mutation in [ours.mutation, theirs.mutation] {
            assert!(message.contains(&mutation.to_string()), "{message}");
        }
        assert_eq!(conflicts[0].keys, ["10", "20"]);

        let expected = tip(&repo, if side == Side::Ours { "main" } else { "b" }).await;
        let mut resolution = Resolution::default();
        resolution.bodies.insert(20, side);
        join(&repo, &resolution).await.unwrap();
        let map = tip(&repo, "main").await;
        assert_sound(&map).await;
        assert_eq!(
            super::support::voxels(&map, 0).await,
            super::support::voxels(&expected, 0).await
        );
        assert_eq!(map.bodies_of(&[40]).await.unwrap(), [30]);
    }
}

/// On one branch the id is a supervoxel, on the other a body.
#[tokio::test]
async fn an_id_that_is_a_body_on_one_branch_and_a_supervoxel_on_the_other_is_a_conflict() {
    let repo = small().await;
    edit(&repo, "main", Edit::Merge { target: 30, bodies: vec![40] }).await.unwrap();
    repo.create_branch("c", &Version::branch("main")).await.unwrap();
    edit(&repo, "main", split(10, 0, 100, 101)).await.unwrap();
    edit(&repo, "c", cleave(30, 40, 100)).await.unwrap();
    let theirs = Version::branch("c");
    let error =
        merge_branch(&repo, "main", &theirs, PATH, &Resolution::default(), &Author::default())
            .await
            .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
    assert!(error.to_string().contains("the id 100"), "{error}");
    let resolution = Resolution { others: Some(Side::Theirs), ..Resolution::default() };
    merge_branch(&repo, "main", &theirs, PATH, &resolution, &Author::default()).await.unwrap();
    assert_sound(&tip(&repo, "main").await).await;
}

/// A row of the log that no edit of this program wrote.
async fn log(repo: &Repository, branch: &str, mutation: u64, body: u64) {
    let session = repo.writable_session(branch).await.unwrap();
    let map = Labelmap::open(&session, PATH).await.unwrap();
    let table = session.table(&format!("{PATH}/mutations")).await.unwrap();
    let ids = |id: u64| Arc::new(UInt64Array::from(vec![id])) as ArrayRef;
    let text = |text: &str| Arc::new(StringArray::from(vec![text])) as ArrayRef;
    let list = |id: u64| -> ArrayRef {
        let lists = [Some(vec![Some(id)])];
        Arc::new(ListArray::from_iter_primitive::<arrow_array::types::UInt64Type, _, _>(lists))
    };
    let columns = vec![
        ids(mutation),
        text("map"),
        ids(body),
        ids(0),
        list(body),
        list(body),
        Arc::new(Int64Array::from(vec![0])),
        text("ada"),
        text(""),
    ];
    table.upsert(RecordBatch::try_new(table.schema().clone(), columns).unwrap()).await.unwrap();
    map.commit("log").await.unwrap();
}

/// Two processes took the same id: their mutations are not the same for that.
#[tokio::test]
async fn mutations_of_one_id_are_told_apart_by_what_they_did() {
    let repo = small().await;
    log(&repo, "main", 5, 10).await;
    log(&repo, "b", 5, 20).await;
    let error = join(&repo, &Resolution::default()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
    assert!(error.to_string().contains("different mutations with the id 5"), "{error}");
    assert!(error.to_string().contains("of body 10") && error.to_string().contains("of body 20"));
}

/// The last mutation came from a clock that is ahead by years: what is done now is still later.
#[tokio::test]
async fn a_mutation_is_greater_than_those_that_are_there_whatever_the_clocks_say() {
    let repo = small().await;
    let ahead = 1 << 52;
    log(&repo, "main", ahead, 40).await;
    let merge = edit(&repo, "main", Edit::Merge { target: 10, bodies: vec![20] }).await.unwrap();
    assert!(merge.mutation > ahead, "{}", merge.mutation);
    let cleft = edit(&repo, "main", cleave(10, 20, 500)).await.unwrap();
    assert!(cleft.mutation > merge.mutation);
    // The order decides what can be undone, and in which order it is told.
    let error = edit(&repo, "main", Edit::Revert { mutation: merge.mutation }).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
    edit(&repo, "main", Edit::Revert { mutation: cleft.mutation }).await.unwrap();
    edit(&repo, "main", Edit::Revert { mutation: merge.mutation }).await.unwrap();
    let map = tip(&repo, "main").await;
    assert_eq!(map.blame(20).await.unwrap().len(), 4);
    assert_sound(&map).await;

    log(&repo, "main", u64::MAX, 40).await;
    let error =
        edit(&repo, "main", Edit::Merge { target: 10, bodies: vec![20] }).await.unwrap_err();
    assert!(error.to_string().contains("2^53"), "{error}");
}
