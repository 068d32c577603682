//! What lies where under the root.

use std::collections::BTreeSet;

use chunkyard_repo::{CommitOptions, Mode, Version};
use futures::TryStreamExt;
use serde_json::{Map, Value};

use super::support::{Place, bytes_spec, collect, create, reopen, sound, tiny, write_noise};

fn is_identifier(name: &str) -> bool {
    let alphabet = "0123456789abcdefghjkmnpqrstvwxyz";
    name.len() == 26
        && name.chars().all(|c| alphabet.contains(c))
        && name.starts_with(['0', '1', '2', '3', '4', '5', '6', '7'])
}

/// Whether a path is one that the format's section 1 allows for a place.
fn is_documented(path: &str, place: Place) -> bool {
    let (directory, name) = path.split_once('/').unwrap_or(("", path));
    match directory {
        "" if place == Place::Local => {
            ["state.json", "state.lock", "state.next", "state.turn"].contains(&name)
        }
        "" => name == "state.json",
        "s" | "i" | "a" | "gc" => is_identifier(name),
        "c" if place == Place::Local => {
            name.split_once('/').is_some_and(|(fan, rest)| is_identifier(rest) && fan == &rest[..2])
        }
        "c" => is_identifier(name),
        "g" => {
            place != Place::Memory
                && name.strip_suffix(".json").is_some_and(|digits| {
                    digits.len() == 20 && digits.bytes().all(|b| b.is_ascii_digit())
                })
        }
        _ => false,
    }
}

#[tokio::test]
async fn the_root_holds_exactly_the_documented_directories() {
    for place in Place::ALL {
        let (_guard, store) = place.open();
        let repo = create(&store, tiny()).await;
        let listed = async || -> BTreeSet<String> {
            let all: Vec<_> = store.list("").await.unwrap().try_collect().await.unwrap();
            all.into_iter().map(|meta| meta.path).collect()
        };
        let top = |paths: &BTreeSet<String>| -> BTreeSet<String> {
            paths.iter().map(|path| path.split('/').next().unwrap().to_owned()).collect()
        };
        let fresh = top(&listed().await);
        let mut expected = BTreeSet::from(["s", "state.json"]);
        match place {
            Place::Local => expected.extend(["g", "state.lock"]),
            Place::CreateOnly => expected.extend(["g"]),
            Place::Memory => {}
        }
        let strings = |set: &BTreeSet<&str>| set.iter().map(|s| (*s).to_owned()).collect();
        assert_eq!(fresh, strings(&expected), "{place:?}");

        let session = repo.writable_session("main").await.unwrap();
        session.create_array("/a", bytes_spec(&[64], &[16])).await.unwrap();
        write_noise(&session, "/a", "0:64", 1).await.unwrap();
        let note = Value::String("x".repeat(300));
        session.set_attributes("/a", Map::from_iter([("note".to_owned(), note)])).unwrap();
        session.commit(CommitOptions::message("x")).await.unwrap();
        let dropped = repo.writable_session("main").await.unwrap();
        write_noise(&dropped, "/a", "0:64", 2).await.unwrap();
        collect(&repo).await.unwrap();
        expected.extend(["a", "c", "gc", "i"]);
        if place == Place::Local {
            expected.extend(["state.next", "state.turn"]);
        }
        let all = listed().await;
        assert_eq!(top(&all), strings(&expected), "{place:?}");
        for path in &all {
            assert!(is_documented(path, place), "{place:?}: {path}");
        }
    }
}

/// Everything but the state is written once: a file that exists at two moments is the same at both.
#[tokio::test]
async fn files_never_change_once_they_are_there() {
    let (_guard, store) = Place::Local.open();
    let repo = create(&store, tiny()).await;
    let session = repo.writable_session("main").await.unwrap();
    session.create_array("/a", bytes_spec(&[64], &[16])).await.unwrap();
    session.commit(CommitOptions::message("x")).await.unwrap();
    let mut seen = std::collections::BTreeMap::new();
    for seed in 0..10 {
        let session = repo.writable_session("main").await.unwrap();
        write_noise(&session, "/a", "0:64", seed).await.unwrap();
        session.commit(CommitOptions::message("x")).await.unwrap();
        let listed: Vec<_> = store.list("").await.unwrap().try_collect().await.unwrap();
        for meta in listed.into_iter().filter(|meta| meta.path != "state.json") {
            let bytes = store.get(&meta.path).await.unwrap().bytes;
            if let Some(before) = seen.insert(meta.path.clone(), bytes.clone()) {
                assert_eq!(before, bytes, "{}", meta.path);
            }
        }
    }
}

/// A program that reads only `state.json` gets the latest state while no writer is active.
#[tokio::test]
async fn the_published_state_is_the_latest() {
    for place in Place::ALL {
        let (_guard, store) = place.open();
        let repo = create(&store, tiny()).await;
        for n in 0..40 {
            repo.create_tag(&format!("v{n}"), &Version::Default, false).await.unwrap();
            let bytes = store.get("state.json").await.unwrap().bytes;
            let published: Value = serde_json::from_slice(&bytes).unwrap();
            assert_eq!(published["generation"], n + 1);
            assert_eq!(published["refs"].as_object().unwrap().len(), n + 2);
            assert!(bytes.ends_with(b"}") && published["crc32c"].is_u64());
        }
        let state = reopen(&store).await.state().await.unwrap();
        assert_eq!(state.recent_write_ids.len(), 41);
        assert_eq!(state.recent_write_ids.last(), Some(&state.write_id));
        assert_eq!(state.status.mode, Mode::Online);
        sound(&repo).await;
    }
}

/// Keys that a later version may add survive a rewrite by this one.
#[tokio::test]
async fn unknown_keys_of_the_state_are_kept() {
    let (_guard, store) = Place::Memory.open();
    create(&store, tiny()).await;
    let bytes = store.get("state.json").await.unwrap().bytes;
    let mut state: Map<String, Value> = serde_json::from_slice(&bytes).unwrap();
    state.shift_remove("crc32c");
    state.insert("later".into(), "kept".into());
    state["config"].as_object_mut().unwrap().insert("later-too".into(), 7.into());
    let snapshots = state["snapshots"].as_array_mut().unwrap();
    snapshots[0].as_object_mut().unwrap().insert("mood".into(), "good".into());
    let mut text = serde_json::to_string(&state).unwrap();
    text.pop();
    let crc = crc32c::crc32c(text.as_bytes());
    store.put("state.json", vec![format!("{text},\"crc32c\":{crc}}}").into()]).await.unwrap();

    let repo = reopen(&store).await;
    repo.create_tag("v1", &Version::Default, false).await.unwrap();
    let bytes = store.get("state.json").await.unwrap().bytes;
    let state: Value = serde_json::from_slice(&bytes).unwrap();
    assert_eq!(state["later"], "kept");
    assert_eq!(state["config"]["later-too"], 7);
    assert_eq!(state["snapshots"][0]["mood"], "good");
    sound(&repo).await;
}
