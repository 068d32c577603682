//! States with a long history.

use std::sync::Arc;

use chunkyard_store::{Error, Options, Result, Store};

use super::archive::SNAPSHOTS_MAX;
use crate::state::{RECENT, Snapshot, State};
use crate::swap::{Loaded, StateFile, Swap};
use crate::{CreateOptions, ExpireOptions, OpenOptions, Repository, id};

async fn created(name: &str) -> (Repository, StateFile) {
    let store = Store::open(&format!("memory://history-{name}"), &Options::default()).unwrap();
    let repo = Repository::create_in(store, OpenOptions::default(), CreateOptions::default());
    let repo = repo.await.unwrap();
    let file = StateFile::new(repo.store().clone());
    (repo, file)
}

/// A successor with one more snapshot on the default branch.
fn committed(state: &State) -> State {
    let mut next = state.successor(1).unwrap();
    let tip = state.tip("main").unwrap();
    let snapshot_id = id::fresh().unwrap();
    next.snapshots.push(Arc::new(Snapshot {
        snapshot_id: snapshot_id.clone(),
        parent_snapshot_id: Some(tip.snapshot_id.clone()),
        timestamp_ms: tip.timestamp_ms + 1,
        ..(**tip).clone()
    }));
    next.refs.get_mut("main").unwrap().snapshot_id = snapshot_id;
    next
}

async fn commit(file: &StateFile) -> (State, Loaded) {
    let current = file.read().await.unwrap();
    let next = committed(&current.state);
    match file.swap(&current, next.clone(), &[]).await.unwrap() {
        Swap::Won(loaded) => (next, loaded),
        Swap::Lost => panic!("there is no other writer"),
    }
}

async fn complete(file: &StateFile) -> Result<Arc<State>> {
    Ok(file.complete(file.read().await?).await?.state)
}

#[tokio::test]
async fn a_state_stays_small_and_its_history_whole() {
    let (_repo, file) = created("small").await;
    let mut ids = vec![file.read().await.unwrap().state.tip("main").unwrap().snapshot_id.clone()];
    for n in 0..700 {
        let (next, written) = commit(&file).await;
        ids.push(next.tip("main").unwrap().snapshot_id.clone());
        assert!(written.bytes.len() < 10_000, "{} bytes after {n} commits", written.bytes.len());
        if n % 97 == 0 {
            // With nothing in memory, and with what this handle has kept.
            for file in [&StateFile::new(file.store().clone()), &file] {
                let state = complete(file).await.unwrap();
                let found: Vec<_> = state.snapshots.iter().map(|s| s.snapshot_id.clone()).collect();
                assert_eq!(found, ids);
                assert_eq!(state.ancestry(ids.last().unwrap()).count(), ids.len());
            }
        }
    }
    let state = file.read().await.unwrap().state;
    assert!(state.snapshots.len() <= SNAPSHOTS_MAX);
    assert!(state.required_features.iter().any(|name| name == "snapshot-archive"));
    let files = file.history_files(&state).await.unwrap().len();
    assert!(files < 30, "{files} files for 700 commits");
}

#[tokio::test]
async fn every_generation_is_told_from_every_other_attempt_at_it() {
    let (repo, file) = created("writes").await;
    let mut made = vec![(*file.read().await.unwrap().state).clone()];
    for _ in 0..400 {
        made.push(commit(&file).await.0);
    }
    for expired in [false, true] {
        let latest = file.read().await.unwrap().state;
        for ours in &made {
            assert_eq!(file.landed(&latest, ours).await.unwrap(), Some(true));
            let other = State { write_id: "another".into(), ..ours.clone() };
            assert_eq!(file.landed(&latest, &other).await.unwrap(), Some(false));
        }
        if !expired {
            let options = ExpireOptions { keep_last: Some(1), ..ExpireOptions::default() };
            assert_eq!(repo.expire(&options).await.unwrap().snapshots.len(), 400);
            assert_eq!(complete(&file).await.unwrap().snapshots.len(), 1);
        }
    }
}

/// A program that keeps no history forgets the oldest write ids.
#[tokio::test]
async fn a_generation_that_no_state_remembers_is_unknown() {
    let (_repo, file) = created("gap").await;
    let first = (*file.read().await.unwrap().state).clone();
    for _ in 0..RECENT {
        commit(&file).await;
    }
    for _ in 0..20 {
        let current = file.read().await.unwrap();
        let mut next = committed(&current.state);
        next.recent_write_ids.drain(..next.recent_write_ids.len() - RECENT);
        assert!(matches!(file.swap(&current, next, &[]).await.unwrap(), Swap::Won(_)));
    }
    let mut made = Vec::new();
    for _ in 0..200 {
        made.push(commit(&file).await.0);
    }
    let latest = file.read().await.unwrap().state;
    assert_eq!(file.landed(&latest, &first).await.unwrap(), None);
    for ours in &made {
        assert_eq!(file.landed(&latest, ours).await.unwrap(), Some(true));
    }
}

#[tokio::test]
async fn damaged_files_of_the_history_are_corrupt() {
    let (repo, file) = created("damage").await;
    for _ in 0..120 {
        commit(&file).await;
    }
    let state = file.read().await.unwrap().state;
    let backend = repo.store().backend();
    for path in file.history_files(&state).await.unwrap() {
        let sound = backend.get(&path).await.unwrap().bytes;
        let mut damages: Vec<Option<Vec<u8>>> = vec![None, Some(Vec::new())];
        damages.push(Some(sound[..sound.len() - 1].to_vec()));
        for at in (0..sound.len()).step_by(sound.len() / 7 + 1) {
            let mut flipped = sound.to_vec();
            flipped[at] ^= 1;
            damages.push(Some(flipped));
        }
        for damage in damages {
            match damage {
                Some(bytes) => backend.put(&path, vec![bytes.into()]).await.unwrap(),
                None => backend.delete(std::slice::from_ref(&path)).await.unwrap(),
            }
            let fresh = StateFile::new(repo.store().clone());
            // Write ids are read only where a writer asks for its own.
            let mut outcome = complete(&fresh).await.map(drop);
            if path.ends_with(".writes.json") {
                let old = State { generation: 1, ..(*state).clone() };
                let old = State { write_id: "another".into(), ..old };
                outcome = fresh.landed(&state, &old).await.map(drop);
            }
            let is_gone = matches!(outcome, Err(Error::NotFound { .. }));
            let refused = matches!(outcome, Err(Error::Corrupt { .. }));
            assert!(refused || (is_gone && path.ends_with(".writes.json")), "{path} {outcome:?}");
        }
        backend.put(&path, vec![sound]).await.unwrap();
    }
    assert_eq!(complete(&StateFile::new(repo.store().clone())).await.unwrap().snapshots.len(), 121);
}
