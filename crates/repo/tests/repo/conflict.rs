//! Two writers, one branch: which changes go together, which do not, and what the loser is told.

use std::sync::Arc;

use chunkyard_repo::{
    CommitOptions, Conflict, ConflictKind, Rebase, Repository, Resolve, Session, Version,
};
use chunkyard_store::{Error, Result};
use serde_json::{Map, Value, json};

use super::support::{Place, bytes_spec, create, history, memory, read_at, sound, tiny, write};

/// What one of the two does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Act {
    SetChunk(u64),
    EraseChunk(u64),
    Grow,
    GrowMore,
    Shrink,
    Rename,
    Retitle(u8),
    MoveArray,
    MoveArrayElsewhere,
    MoveGroup,
    RemoveArray,
    RemoveGroup,
    AddInGroup,
    AddOther,
    AddPath,
    AddGroup,
    AddGroupWithAttributes,
    AddBelowPath,
}
use Act::*;

fn object(value: Value) -> Map<String, Value> {
    value.as_object().unwrap().clone()
}

async fn act(session: &Arc<Session>, act: Act) -> Result<()> {
    match act {
        SetChunk(at) => write(session, "/g/a", &format!("{}:{}", 4 * at, 4 * at + 4), 9).await,
        EraseChunk(at) => session.erase_chunk("/g/a", &[at]),
        Grow => session.resize("/g/a", &[24]).await,
        GrowMore => session.resize("/g/a", &[28]).await,
        Shrink => session.resize("/g/a", &[8]).await,
        Rename => {
            let spec = session.array("/g/a").await?.spec().clone();
            let mut document: Value = serde_json::from_slice(&spec.render()).unwrap();
            document["dimension_names"] = json!(["t"]);
            let spec = chunkyard_array::ArraySpec::parse(document.to_string().as_bytes())?;
            session.set_spec("/g/a", spec).await
        }
        Retitle(n) => session.set_attributes("/g/a", object(json!({ "title": n, "unit": "m" }))),
        MoveArray => session.move_node("/g/a", "/moved"),
        MoveArrayElsewhere => session.move_node("/g/a", "/elsewhere"),
        MoveGroup => session.move_node("/g", "/h"),
        RemoveArray => session.delete("/g/a"),
        RemoveGroup => session.delete("/g"),
        AddInGroup => session.create_array("/g/new", bytes_spec(&[4], &[4])).await.map(drop),
        AddOther => session.create_array("/other", bytes_spec(&[4], &[4])).await.map(drop),
        AddPath => session.create_array("/moved", bytes_spec(&[4], &[4])).await.map(drop),
        AddGroup => session.create_group("/moved", Map::new()).map(drop),
        AddGroupWithAttributes => {
            session.create_group("/moved", object(json!({ "x": 1 }))).map(drop)
        }
        AddBelowPath => session.create_array("/moved/x", bytes_spec(&[4], &[4])).await.map(drop),
    }
}

async fn prepared() -> Repository {
    let repo = create(&memory(), tiny()).await;
    let session = repo.writable_session("main").await.unwrap();
    session.create_array("/g/a", bytes_spec(&[20], &[4])).await.unwrap();
    write(&session, "/g/a", "0:20", 1).await.unwrap();
    session.set_attributes("/g/a", object(json!({ "title": 0, "unit": "m" }))).unwrap();
    session.commit(CommitOptions::message("base")).await.unwrap();
    repo
}

/// Both act on the same base; theirs is committed first, ours is rebased.
async fn meet(ours: Act, theirs: Act, policy: Rebase) -> (Repository, Result<()>) {
    let repo = prepared().await;
    let our = repo.writable_session("main").await.unwrap();
    let their = repo.writable_session("main").await.unwrap();
    act(&our, ours).await.unwrap();
    act(&their, theirs).await.unwrap();
    their.commit(CommitOptions::message("theirs")).await.unwrap();
    // If both did the same, nothing of ours is left.
    let options = CommitOptions { allow_empty: true, ..CommitOptions::message("ours") };
    let outcome = our.commit(options.with_rebase(policy)).await;
    sound(&repo).await;
    let newest = history(&repo, "main").await[0].message.clone();
    assert_eq!(newest, if outcome.is_ok() { "ours" } else { "theirs" });
    (repo, outcome.map(drop))
}

fn kinds(result: Result<()>) -> Vec<ConflictKind> {
    match result {
        Ok(()) => Vec::new(),
        Err(Error::Conflict { conflicts, .. }) => {
            assert!(!conflicts.is_empty(), "a conflict that names nothing");
            conflicts.into_iter().map(|conflict| conflict.kind).collect()
        }
        Err(error) => panic!("{error:?}"),
    }
}

#[tokio::test]
async fn the_first_committer_wins() {
    for place in Place::ALL {
        let (_guard, store) = place.open();
        let repo = create(&store, tiny()).await;
        let session = repo.writable_session("main").await.unwrap();
        session.create_array("/a", bytes_spec(&[8], &[4])).await.unwrap();
        session.commit(CommitOptions::message("base")).await.unwrap();
        let first = repo.writable_session("main").await.unwrap();
        let second = repo.writable_session("main").await.unwrap();
        write(&second, "/a", "4:8", 2).await.unwrap();
        write(&first, "/a", "0:4", 1).await.unwrap();
        first.commit(CommitOptions::message("first")).await.unwrap();
        let error = second.commit(CommitOptions::message("second")).await.unwrap_err();
        assert!(matches!(error, Error::Conflict { .. }), "{error}");
        assert_eq!(history(&repo, "main").await.len(), 3);
        // The loser kept its changes, and may rebase them.
        second.rebase(Rebase::default()).await.unwrap();
        second.commit(CommitOptions::message("second")).await.unwrap();
        let values = read_at(&repo, &Version::Default, "/a").await.unwrap();
        assert_eq!(values, [1, 1, 1, 1, 2, 2, 2, 2]);
        sound(&repo).await;
    }
}

/// The table of the format's section 7.5, cell by cell: ours, theirs, and the conflict if any.
#[tokio::test]
async fn every_cell_of_the_conflict_table_is_as_documented() {
    use ConflictKind as K;
    let table: &[(Act, Act, Option<K>)] = &[
        // chunk set or removed
        (SetChunk(0), RemoveArray, Some(K::NodeRemoved)),
        (SetChunk(0), RemoveGroup, Some(K::NodeRemoved)),
        (SetChunk(0), MoveArray, Some(K::NodeMoved)),
        (SetChunk(0), MoveGroup, Some(K::NodeMoved)),
        (SetChunk(0), Grow, Some(K::Metadata)),
        (SetChunk(0), Rename, None),
        (SetChunk(0), Retitle(1), None),
        (SetChunk(0), SetChunk(0), Some(K::Chunk)),
        (SetChunk(0), EraseChunk(0), Some(K::Chunk)),
        (EraseChunk(0), SetChunk(0), Some(K::Chunk)),
        (SetChunk(0), SetChunk(1), None),
        (EraseChunk(0), EraseChunk(1), None),
        (SetChunk(0), AddOther, None),
        (SetChunk(0), AddInGroup, None),
        // metadata changed
        (Grow, RemoveArray, Some(K::NodeRemoved)),
        (Grow, MoveArray, Some(K::NodeMoved)),
        (Grow, GrowMore, Some(K::Metadata)),
        (Grow, Grow, None),
        (Grow, Rename, Some(K::Metadata)),
        (Grow, Retitle(1), None),
        (Grow, SetChunk(0), None),
        (Rename, SetChunk(0), None),
        (Shrink, SetChunk(0), None),
        (Shrink, SetChunk(4), Some(K::Metadata)),
        (Grow, AddOther, None),
        // attributes changed
        (Retitle(1), RemoveArray, Some(K::NodeRemoved)),
        (Retitle(1), MoveArray, Some(K::NodeMoved)),
        (Retitle(1), Grow, None),
        (Retitle(1), Retitle(2), Some(K::Attributes)),
        (Retitle(1), Retitle(1), None),
        (Retitle(1), SetChunk(0), None),
        (Retitle(1), AddInGroup, None),
        // node moved
        (MoveArray, RemoveArray, Some(K::NodeRemoved)),
        (MoveArray, MoveArrayElsewhere, Some(K::NodeMoved)),
        (MoveArray, MoveArray, None),
        (MoveArray, Grow, None),
        (MoveArray, Retitle(1), None),
        (MoveArray, SetChunk(0), None),
        (MoveArray, AddPath, Some(K::PathTaken)),
        (MoveArray, AddGroup, Some(K::PathTaken)),
        (MoveArray, AddOther, None),
        (MoveGroup, AddInGroup, Some(K::AddedInside)),
        (MoveGroup, SetChunk(0), None),
        // node removed
        (RemoveArray, RemoveArray, None),
        (RemoveArray, MoveArray, Some(K::NodeMoved)),
        (RemoveArray, Grow, Some(K::RemovedNodeChanged)),
        (RemoveArray, Rename, Some(K::RemovedNodeChanged)),
        (RemoveArray, Retitle(1), Some(K::RemovedNodeChanged)),
        (RemoveArray, SetChunk(0), Some(K::RemovedNodeChanged)),
        (RemoveGroup, SetChunk(0), Some(K::RemovedNodeChanged)),
        (RemoveGroup, AddInGroup, Some(K::AddedInside)),
        (RemoveArray, AddInGroup, None),
        // node added
        (AddInGroup, RemoveGroup, Some(K::NodeRemoved)),
        (AddInGroup, MoveGroup, Some(K::NodeRemoved)),
        (AddInGroup, RemoveArray, None),
        (AddInGroup, Grow, None),
        (AddInGroup, Retitle(1), None),
        (AddInGroup, SetChunk(0), None),
        (AddInGroup, AddOther, None),
        (AddPath, AddPath, Some(K::PathTaken)),
        (AddPath, AddGroup, Some(K::PathTaken)),
        (AddGroup, AddPath, Some(K::PathTaken)),
        (AddGroup, AddGroup, None),
        (AddGroup, AddGroupWithAttributes, Some(K::PathTaken)),
        (AddBelowPath, AddPath, Some(K::PathTaken)),
        (AddPath, AddBelowPath, Some(K::PathTaken)),
        (AddBelowPath, AddGroup, None),
        (AddGroup, AddBelowPath, None),
        (AddPath, MoveArray, Some(K::PathTaken)),
    ];
    for &(ours, theirs, expected) in table {
        let (_, outcome) = meet(ours, theirs, Rebase::default()).await;
        let found = kinds(outcome);
        match expected {
            None => assert!(found.is_empty(), "{ours:?} over {theirs:?}: {found:?}"),
            Some(kind) => assert!(found.contains(&kind), "{ours:?} over {theirs:?}: {found:?}"),
        }
    }
}

#[tokio::test]
async fn a_policy_decides_whose_chunk_stays() {
    for (chunks, value) in [(Resolve::Ours, 9), (Resolve::Theirs, 0)] {
        let policy = Rebase { chunks, ..Rebase::default() };
        let (repo, outcome) = meet(SetChunk(1), EraseChunk(1), policy).await;
        outcome.unwrap();
        let values = read_at(&repo, &Version::Default, "/g/a").await.unwrap();
        assert_eq!(values[4..8], [value; 4]);
    }
}

#[tokio::test]
async fn a_policy_decides_whose_metadata_stays() {
    for (metadata, shape) in [(Resolve::Ours, 24), (Resolve::Theirs, 28)] {
        let policy = Rebase { metadata, ..Rebase::default() };
        let (repo, outcome) = meet(Grow, GrowMore, policy).await;
        outcome.unwrap();
        let session = repo.readonly_session(&Version::Default).await.unwrap();
        assert_eq!(session.node("/g/a").unwrap().array().unwrap().shape(), [shape]);
    }
}

/// Our shape wins over theirs, but it has no room for a chunk that they wrote.
#[tokio::test]
async fn our_shape_never_cuts_off_their_chunks() {
    let repo = prepared().await;
    let our = repo.writable_session("main").await.unwrap();
    let their = repo.writable_session("main").await.unwrap();
    our.resize("/g/a", &[24]).await.unwrap();
    their.resize("/g/a", &[40]).await.unwrap();
    write(&their, "/g/a", "32:40", 5).await.unwrap();
    their.commit(CommitOptions::message("theirs")).await.unwrap();
    let policy = Rebase { metadata: Resolve::Ours, chunks: Resolve::Ours, ..Rebase::default() };
    let outcome = our.commit(CommitOptions::message("ours").with_rebase(policy)).await;
    assert!(kinds(outcome.map(drop)).contains(&ConflictKind::Metadata));
    sound(&repo).await;
}

#[tokio::test]
async fn attributes_are_merged_key_by_key_when_asked() {
    for large in [false, true] {
        let repo = prepared().await;
        let note = if large { "x".repeat(500) } else { "x".to_owned() };
        let our = repo.writable_session("main").await.unwrap();
        let their = repo.writable_session("main").await.unwrap();
        our.set_attributes("/g/a", object(json!({ "title": 7, "unit": "m", "our": note })))
            .unwrap();
        their.set_attributes("/g/a", object(json!({ "title": 0, "their": note }))).unwrap();
        their.commit(CommitOptions::message("theirs")).await.unwrap();
        let plain = our.rebase(Rebase::default()).await.unwrap_err();
        assert_eq!(kinds(Err(plain)), [ConflictKind::Attributes]);
        let policy = Rebase { merge_attribute_keys: true, ..Rebase::default() };
        our.commit(CommitOptions::message("ours").with_rebase(policy)).await.unwrap();
        let session = repo.readonly_session(&Version::Default).await.unwrap();
        let merged = session.attributes("/g/a").await.unwrap();
        let expected = object(json!({ "title": 7, "their": note, "our": note }));
        assert_eq!(*merged, expected);
        sound(&repo).await;
    }
}

#[tokio::test]
async fn attributes_changed_in_the_same_key_stay_a_conflict_or_follow_the_policy() {
    let policy = Rebase { merge_attribute_keys: true, ..Rebase::default() };
    let (_, outcome) = meet(Retitle(1), Retitle(2), policy).await;
    assert_eq!(kinds(outcome), [ConflictKind::Attributes]);
    for (attributes, title) in [(Resolve::Ours, 1), (Resolve::Theirs, 2)] {
        let (repo, _) = meet(Retitle(1), Retitle(2), Rebase { attributes, ..policy }).await;
        let session = repo.readonly_session(&Version::Default).await.unwrap();
        assert_eq!(session.attributes("/g/a").await.unwrap()["title"], title);
    }
}

#[tokio::test]
async fn a_conflict_names_array_chunks_and_commits_and_leaves_the_session_as_it_was() {
    let repo = prepared().await;
    let our = repo.writable_session("main").await.unwrap();
    write(&our, "/g/a", "0:12", 8).await.unwrap();
    let mut theirs = Vec::new();
    for chunk in [1, 2, 4] {
        let their = repo.writable_session("main").await.unwrap();
        act(&their, SetChunk(chunk)).await.unwrap();
        theirs.push(their.commit(CommitOptions::message("theirs")).await.unwrap());
    }
    let error = our.rebase(Rebase::default()).await.unwrap_err();
    let Error::Conflict { conflicts, .. } = &error else { panic!("{error:?}") };
    let expected = Conflict {
        path: "/g/a".into(),
        kind: ConflictKind::Chunk,
        chunks: vec![vec![1], vec![2]],
        chunk_count: 2,
        keys: Vec::new(),
        theirs: vec![theirs[0].snapshot_id.clone(), theirs[1].snapshot_id.clone()],
    };
    assert_eq!(*conflicts, [expected]);
    let text = error.to_string();
    assert!(text.contains("/g/a") && text.contains("[1], [2]"), "{text}");

    assert_eq!(super::support::read_all(&our, "/g/a").await.unwrap()[..12], [8; 12]);
    let policy = Rebase { chunks: Resolve::Ours, ..Rebase::default() };
    our.commit(CommitOptions::message("ours").with_rebase(policy)).await.unwrap();
    let values = read_at(&repo, &Version::Default, "/g/a").await.unwrap();
    assert_eq!((&values[..12], &values[16..]), (&[8; 12][..], &[9; 4][..]));
}

#[tokio::test]
async fn reads_conflict_only_when_they_are_tracked() {
    for track in [false, true] {
        let repo = prepared().await;
        let our = repo.writable_session("main").await.unwrap();
        if track {
            our.track_reads();
        }
        let array = our.array("/g/a").await.unwrap();
        let region = chunkyard_array::Region::new(vec![0], vec![4]).unwrap();
        let read = array.read_region(&region).await.unwrap();
        write(&our, "/g/a", "16:20", read[0] + 1).await.unwrap();
        let their = repo.writable_session("main").await.unwrap();
        act(&their, SetChunk(0)).await.unwrap();
        their.commit(CommitOptions::message("theirs")).await.unwrap();
        let outcome = our.commit(CommitOptions::message("x").with_rebase(Rebase::default())).await;
        if track {
            assert_eq!(kinds(outcome.map(drop)), [ConflictKind::ReadChunk]);
        } else {
            outcome.unwrap();
        }
    }
}

#[tokio::test]
async fn a_tracked_read_of_other_chunks_is_no_conflict() {
    let repo = prepared().await;
    let our = repo.writable_session("main").await.unwrap();
    our.track_reads();
    let array = our.array("/g/a").await.unwrap();
    let region = chunkyard_array::Region::new(vec![4], vec![4]).unwrap();
    array.read_region(&region).await.unwrap();
    write(&our, "/g/a", "16:20", 3).await.unwrap();
    let their = repo.writable_session("main").await.unwrap();
    act(&their, SetChunk(0)).await.unwrap();
    their.commit(CommitOptions::message("theirs")).await.unwrap();
    our.commit(CommitOptions::message("x").with_rebase(Rebase::default())).await.unwrap();
}

/// Both give the same handles to new arrays; the rebased session gets new, distinct ones, and its
/// chunks follow.
#[tokio::test]
async fn new_arrays_of_two_writers_keep_their_own_chunks() {
    for (our_count, their_count) in [(1, 1), (1, 4), (4, 1), (5, 2), (6, 3), (3, 3)] {
        let repo = prepared().await;
        let our = repo.writable_session("main").await.unwrap();
        let their = repo.writable_session("main").await.unwrap();
        for (session, name, count) in [(&our, "our", our_count), (&their, "their", their_count)] {
            for n in 0..count {
                // Created in an order that is not the order of the paths.
                let path = format!("/{name}{}", (n * 5 + 3) % 7);
                session.create_array(&path, bytes_spec(&[8], &[4])).await.unwrap();
                write(session, &path, "0:8", path.as_bytes()[path.len() - 1] + name.len() as u8)
                    .await
                    .unwrap();
            }
        }
        their.commit(CommitOptions::message("theirs")).await.unwrap();
        our.commit(CommitOptions::message("ours").with_rebase(Rebase::default())).await.unwrap();
        sound(&repo).await;
        for (name, count) in [("our", our_count), ("their", their_count)] {
            for n in 0..count {
                let path = format!("/{name}{}", (n * 5 + 3) % 7);
                let value = path.as_bytes()[path.len() - 1] + name.len() as u8;
                let found = read_at(&repo, &Version::Default, &path).await.unwrap();
                assert_eq!(found, vec![value; 8], "{path} of {our_count} and {their_count}");
            }
        }
    }
}

#[tokio::test]
async fn both_made_the_same_group() {
    let repo = prepared().await;
    let our = repo.writable_session("main").await.unwrap();
    let their = repo.writable_session("main").await.unwrap();
    our.create_array("/new/x", bytes_spec(&[4], &[4])).await.unwrap();
    write(&our, "/new/x", "0:4", 1).await.unwrap();
    their.create_array("/new/y", bytes_spec(&[4], &[4])).await.unwrap();
    write(&their, "/new/y", "0:4", 2).await.unwrap();
    their.commit(CommitOptions::message("theirs")).await.unwrap();
    our.commit(CommitOptions::message("ours").with_rebase(Rebase::default())).await.unwrap();
    assert_eq!(read_at(&repo, &Version::Default, "/new/x").await.unwrap(), [1; 4]);
    assert_eq!(read_at(&repo, &Version::Default, "/new/y").await.unwrap(), [2; 4]);
    sound(&repo).await;
}

#[tokio::test]
async fn a_rebase_onto_a_reset_branch_is_refused() {
    let repo = prepared().await;
    let first = history(&repo, "main").await[1].snapshot_id.clone();
    let our = repo.writable_session("main").await.unwrap();
    act(&our, SetChunk(0)).await.unwrap();
    repo.reset_branch("main", &Version::Snapshot(first), None).await.unwrap();
    let error =
        our.commit(CommitOptions::message("x").with_rebase(Rebase::default())).await.unwrap_err();
    assert!(matches!(error, Error::Conflict { .. }), "{error}");
}

/// After expiry the change files no longer describe the steps; conflicts are still found.
#[tokio::test]
async fn conflicts_are_found_although_the_steps_between_have_expired() {
    for (theirs, expected) in [(0, Some(ConflictKind::Chunk)), (3, None)] {
        let repo = prepared().await;
        repo.create_tag("base", &Version::Default, false).await.unwrap();
        let our = repo.writable_session("main").await.unwrap();
        act(&our, SetChunk(0)).await.unwrap();
        for act_of_theirs in [SetChunk(theirs), SetChunk(4)] {
            let their = repo.writable_session("main").await.unwrap();
            act(&their, act_of_theirs).await.unwrap();
            their.commit(CommitOptions::message("theirs")).await.unwrap();
        }
        let options = chunkyard_repo::ExpireOptions { keep_last: Some(1), ..Default::default() };
        assert!(!repo.expire(&options).await.unwrap().snapshots.is_empty());
        let outcome = our.commit(CommitOptions::message("x").with_rebase(Rebase::default())).await;
        let found = kinds(outcome.map(drop));
        assert_eq!(found, expected.into_iter().collect::<Vec<_>>());
        sound(&repo).await;
    }
}
