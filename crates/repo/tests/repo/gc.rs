//! Garbage collection: it deletes what nothing needs, and nothing else, whatever runs meanwhile.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arrow_array::{RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema};
use chunkyard_repo::{
    CommitOptions, ExpireOptions, GcOptions, OpenOptions, Rebase, Repository, Version,
};
use chunkyard_store::fault::{Fault, Mode, Plan, at_every_operation};
use chunkyard_store::{Error, ErrorKind, Noun, Options, Store};
use futures::TryStreamExt;
use parquet::arrow::ArrowWriter;
use serde_json::{Value, json};

use super::support::{
    Place, bytes_spec, collect, contents, create, furnished, history, memory, noise, picture,
    read_at, reopen, sound, tiny, write_noise,
};

async fn overwrite(repo: &Repository, seed: u64) -> String {
    let session = repo.writable_session("main").await.unwrap();
    write_noise(&session, "/a", "0:8,0:8", seed).await.unwrap();
    let commit = CommitOptions::message(format!("{seed}")).with_rebase(Rebase::default());
    session.commit(commit).await.unwrap().snapshot_id.clone()
}

fn keep(count: usize) -> ExpireOptions {
    ExpireOptions { keep_last: Some(count), ..ExpireOptions::default() }
}

#[tokio::test]
async fn a_collection_takes_what_expired_and_nothing_else() {
    for place in Place::ALL {
        let (_guard, repo) = furnished(place).await;
        for seed in 2..6 {
            overwrite(&repo, seed).await;
        }
        assert_eq!(collect(&repo).await.unwrap().files, 0, "everything is listed");
        repo.expire(&keep(2)).await.unwrap();
        let before = picture(&repo).await;
        let dry = GcOptions { min_age_ms: 0, dry_run: true };
        let planned = repo.garbage_collect(&dry).await.unwrap();
        assert!(planned.dry_run && planned.files > 0);
        let done = collect(&repo).await.unwrap();
        assert_eq!((done.files, done.bytes), (planned.files, planned.bytes));
        let repo = reopen(repo.store()).await;
        assert_eq!(sound(&repo).await, 0);
        assert_eq!(picture(&repo).await, before);
        assert_eq!(collect(&repo).await.unwrap().files, 0, "nothing is left");
    }
}

#[tokio::test]
async fn young_files_are_left_alone() {
    let (_guard, repo) = furnished(Place::Local).await;
    let dropped = repo.writable_session("main").await.unwrap();
    write_noise(&dropped, "/a", "0:8,0:8", 2).await.unwrap();
    assert_eq!(repo.garbage_collect(&GcOptions::default()).await.unwrap().files, 0);
    assert!(sound(&repo).await > 0);
}

#[tokio::test]
async fn leftovers_of_dropped_sessions_and_dead_writers_are_removed() {
    let (guard, repo) = furnished(Place::Local).await;
    let dropped = repo.writable_session("main").await.unwrap();
    write_noise(&dropped, "/a", "0:8,0:8", 2).await.unwrap();
    drop(dropped);
    let (faulty, fault) = Fault::wrap(repo.store(), Plan::new(3, Mode::Die));
    let dying = Repository::open_in(faulty, OpenOptions::default()).await.unwrap();
    let session = dying.writable_session("main").await.unwrap();
    let written = write_noise(&session, "/a", "0:8,0:8", 3).await;
    assert!(written.is_err() || session.commit(CommitOptions::message("x")).await.is_err());
    assert!(fault.fired());
    let root = guard.unwrap();
    std::fs::create_dir_all(root.path().join(".tmp")).unwrap();
    std::fs::write(root.path().join(".tmp/01234567890123456789abcdef"), b"half a sta").unwrap();

    assert!(sound(&repo).await > 0);
    collect(&repo).await.unwrap();
    assert_eq!(sound(&repo).await, 0);
    let left = std::fs::read_dir(root.path().join(".tmp")).unwrap().count();
    assert_eq!(left, 0);
    assert_eq!(read_at(&repo, &Version::Default, "/a").await.unwrap(), noise(64, 1));
}

#[tokio::test]
async fn a_writer_in_flight_is_never_robbed() {
    for place in Place::ALL {
        let (_guard, repo) = furnished(place).await;
        let session = repo.writable_session("main").await.unwrap();
        write_noise(&session, "/a", "0:8,0:8", 2).await.unwrap();
        assert!(collect(&repo).await.unwrap().files > 0, "the session's pack is an orphan so far");
        let error = contents(&session).await.unwrap_err();
        assert!(matches!(error, Error::SessionCollected { .. }), "{error}");
        let error = session.commit(CommitOptions::message("too slow")).await.unwrap_err();
        assert!(matches!(error, Error::SessionCollected { .. }), "{error}");
        assert_eq!(history(&repo, "main").await.len(), 2);
        sound(&repo).await;
        // The same work in a new session goes through.
        overwrite(&repo, 2).await;
        assert_eq!(read_at(&repo, &Version::Default, "/a").await.unwrap(), noise(64, 2));
        sound(&repo).await;
    }
}

#[tokio::test]
async fn a_writer_whose_files_were_kept_commits() {
    let (_guard, repo) = furnished(Place::Memory).await;
    let dropped = repo.writable_session("main").await.unwrap();
    write_noise(&dropped, "/a", "0:8,0:8", 9).await.unwrap();
    let session = repo.writable_session("main").await.unwrap();
    // Only the other session's orphans are old enough: this session has put nothing yet.
    collect(&repo).await.unwrap();
    write_noise(&session, "/a", "0:8,0:8", 2).await.unwrap();
    session.commit(CommitOptions::message("in time")).await.unwrap();
    sound(&repo).await;
}

/// The collection comes between the committer's check and its sync, which then finds a file gone.
#[tokio::test]
async fn a_writer_robbed_at_the_last_moment_is_told_so() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open(directory.path().to_str().unwrap(), &Options::default()).unwrap();
    let repo = create(&store, tiny()).await;
    let mut sync_at = usize::MAX;
    for round in 0..2 {
        let stall = Mode::Stall(std::time::Duration::from_millis(400));
        let (slow, fault) = Fault::wrap(&store, Plan::new(sync_at, stall));
        let slow = Repository::open_in(slow, OpenOptions::default()).await.unwrap();
        let session = slow.writable_session("main").await.unwrap();
        session.create_array(&format!("/a{round}"), bytes_spec(&[64], &[16])).await.unwrap();
        write_noise(&session, &format!("/a{round}"), "0:64", 1).await.unwrap();
        let commit = tokio::spawn(async move { session.commit(CommitOptions::message("x")).await });
        if round == 0 {
            commit.await.unwrap().unwrap();
            sync_at = fault.log().iter().position(|op| op.starts_with("sync ")).unwrap();
            continue;
        }
        while !fault.fired() {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
        // The collection does not wait for the committer's turn to end.
        store.delete(&["state.next".into(), "state.turn".into()]).await.unwrap();
        collect(&repo).await.unwrap();
        let error = commit.await.unwrap().unwrap_err();
        assert!(matches!(error, Error::SessionCollected { .. }), "{error:?}");
        sound(&repo).await;
    }
}

/// Two collections later the list of the first is gone: assume that it named our files.
#[tokio::test]
async fn a_writer_that_slept_through_many_collections_is_refused() {
    let (_guard, repo) = furnished(Place::Local).await;
    let session = repo.writable_session("main").await.unwrap();
    for seed in 2..6 {
        let dropped = repo.writable_session("main").await.unwrap();
        write_noise(&dropped, "/a", "0:8,0:8", seed).await.unwrap();
        collect(&repo).await.unwrap();
    }
    write_noise(&session, "/a", "0:8,0:8", 2).await.unwrap();
    let error = session.commit(CommitOptions::message("x")).await.unwrap_err();
    assert!(matches!(error, Error::SessionCollected { .. }), "{error}");
    sound(&repo).await;
}

#[tokio::test]
async fn a_collection_that_died_is_carried_on_by_the_next() {
    let (_guard, repo) = furnished(Place::Local).await;
    overwrite(&repo, 2).await;
    repo.expire(&keep(1)).await.unwrap();
    let before = picture(&repo).await;
    for attempt in at_every_operation(Plan::new(0, Mode::Tear)) {
        let (faulty, fault) = attempt.wrap(repo.store());
        let dying = Repository::open_in(faulty, OpenOptions::default()).await.unwrap();
        let outcome = collect(&dying).await;
        if !fault.fired() {
            outcome.unwrap();
            break;
        }
        sound(&reopen(repo.store()).await).await;
    }
    collect(&repo).await.unwrap();
    let state = repo.state().await.unwrap();
    assert_eq!(state.gc.as_ref().unwrap().list_file, None);
    assert_eq!(sound(&repo).await, 0);
    assert_eq!(picture(&repo).await, before);
}

#[tokio::test]
async fn only_the_lists_that_committers_may_need_are_kept() {
    let (_guard, repo) = furnished(Place::Memory).await;
    for seed in 2..7 {
        let dropped = repo.writable_session("main").await.unwrap();
        write_noise(&dropped, "/a", "0:8,0:8", seed).await.unwrap();
        collect(&repo).await.unwrap();
    }
    let lists: Vec<_> = repo.store().list("gc").await.unwrap().try_collect().await.unwrap();
    assert_eq!(lists.len(), 2);
    assert_eq!(repo.state().await.unwrap().gc_epoch, 5);
}

/// Readers run while snapshots expire and files are deleted under them. They get the data of their
/// version or are told that it has expired; nothing else.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn readers_during_expire_and_gc_get_data_or_snapshot_expired() {
    for place in [Place::Memory, Place::Local] {
        let (_guard, repo) = furnished(place).await;
        let stop = Arc::new(AtomicBool::new(false));
        let mut readers = tokio::task::JoinSet::new();
        for _ in 0..3 {
            let (store, stop) = (repo.store().clone(), stop.clone());
            readers.spawn(async move {
                let (mut read, mut expired) = (0, 0);
                while !stop.load(Ordering::Relaxed) {
                    let repo = reopen(&store).await;
                    match read_some_version(&repo).await {
                        Ok(()) => read += 1,
                        Err(Error::SnapshotExpired { .. }) => expired += 1,
                        Err(error) => panic!("{error:?}"),
                    }
                }
                (read, expired)
            });
        }
        for seed in 2..40 {
            overwrite(&repo, seed).await;
            if seed % 2 == 0 {
                repo.expire(&keep(1)).await.unwrap();
                collect(&repo).await.unwrap();
            }
        }
        stop.store(true, Ordering::Relaxed);
        let mut total = 0;
        while let Some(done) = readers.join_next().await {
            total += done.unwrap().0;
        }
        assert!(total > 0, "{place:?}: no read succeeded");
        sound(&repo).await;
    }
}

async fn read_some_version(repo: &Repository) -> Result<(), Error> {
    let state = repo.state().await?;
    let oldest = state.ancestry(&state.tip("main")?.snapshot_id).last().unwrap().clone();
    let version = Version::Snapshot(oldest.snapshot_id.clone());
    let session = match repo.readonly_session(&version).await {
        // It left the list between the two reads of the state.
        Err(Error::NotFound { what: Noun::Snapshot, .. }) => {
            return Err(Error::SnapshotExpired { id: oldest.snapshot_id.clone() });
        }
        other => other?,
    };
    tokio::task::yield_now().await;
    let found = contents(&session).await?;
    if let Ok(seed) = oldest.message.parse::<u64>() {
        assert_eq!(found["/a"].1.as_deref(), Some(&*format!("Fixed({:?})", noise(64, seed))));
    }
    Ok(())
}

/// Writers, a collector without any courtesy, and expiry, all at once: a commit that is acknowledged
/// is whole.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn writers_and_a_greedy_collector_get_along() {
    for place in Place::ALL {
        let (_guard, repo) = furnished(place).await;
        let stop = Arc::new(AtomicBool::new(false));
        let mut writers = tokio::task::JoinSet::new();
        for writer in 0..3u64 {
            let (store, stop) = (repo.store().clone(), stop.clone());
            writers.spawn(async move {
                let repo = reopen(&store).await;
                let (mut done, mut tried) = (Vec::new(), 0u64);
                while done.len() < 6 && !stop.load(Ordering::Relaxed) && tried < 400 {
                    tried += 1;
                    match write_and_commit(&repo, writer * 1000 + tried).await {
                        Ok(id) => done.push(id),
                        Err(error) if error.kind() == ErrorKind::Conflict => {}
                        Err(Error::SnapshotExpired { .. }) => {}
                        Err(error) => panic!("{place:?}: {error:?}"),
                    }
                }
                done
            });
        }
        let collector = {
            let (store, stop) = (repo.store().clone(), stop.clone());
            tokio::spawn(async move {
                let repo = reopen(&store).await;
                while !stop.load(Ordering::Relaxed) {
                    repo.expire(&keep(3)).await.unwrap();
                    match collect(&repo).await {
                        Ok(_) | Err(Error::SnapshotExpired { .. }) => {}
                        Err(error) => panic!("{place:?}: {error:?}"),
                    }
                    tokio::time::sleep(std::time::Duration::from_millis(30)).await;
                }
            })
        };
        let mut commits = 0;
        while let Some(done) = writers.join_next().await {
            commits += done.unwrap().len();
        }
        stop.store(true, Ordering::Relaxed);
        collector.await.unwrap();
        assert!(commits > 0, "{place:?}: no commit succeeded");
        sound(&repo).await;
        picture(&repo).await;
    }
}

async fn write_and_commit(repo: &Repository, seed: u64) -> Result<String, Error> {
    let session = repo.writable_session("main").await?;
    write_noise(&session, "/a", "0:8,0:8", seed).await?;
    let policy = Rebase { chunks: chunkyard_repo::Resolve::Ours, ..Rebase::default() };
    let commit = CommitOptions::message(format!("{seed}")).with_rebase(policy);
    Ok(session.commit(commit).await?.snapshot_id.clone())
}

/// Maintenance of all kinds at the same time, in several processes: each does its work or finds
/// that another process did it, and nothing is lost.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn maintenance_of_all_kinds_gets_along() {
    for place in Place::ALL {
        let (_guard, repo) = furnished(place).await;
        let stop = Arc::new(AtomicBool::new(false));
        let mut workers = tokio::task::JoinSet::new();
        for worker in 0..4 {
            let (store, stop) = (repo.store().clone(), stop.clone());
            workers.spawn(async move {
                let repo = reopen(&store).await;
                while !stop.load(Ordering::Relaxed) {
                    let done = match worker {
                        0 => repo.optimise("main").await.map(drop),
                        1 => repo.repack("main", &Default::default()).await.map(drop),
                        _ => match repo.expire(&keep(2)).await {
                            Ok(_) => collect(&repo).await.map(drop),
                            Err(error) => Err(error),
                        },
                    };
                    if let Err(error) = done {
                        panic!("{place:?}, worker {worker}: {error:?}");
                    }
                    tokio::time::sleep(std::time::Duration::from_millis(5)).await;
                }
            });
        }
        for seed in 2..12 {
            for _ in 0..50 {
                match write_and_commit(&repo, seed).await {
                    Ok(_) => break,
                    Err(error) => assert_eq!(error.kind(), ErrorKind::Conflict, "{error}"),
                }
            }
        }
        stop.store(true, Ordering::Relaxed);
        while let Some(done) = workers.join_next().await {
            done.unwrap();
        }
        sound(&repo).await;
        assert_eq!(read_at(&repo, &Version::Default, "/a").await.unwrap().len(), 64);
    }
}

/// An array with its own chunk files is deleted, while another one needs the manifest that names
/// them.
#[tokio::test]
async fn chunks_of_a_deleted_array_go_though_their_manifest_stays() {
    let repo = create(&memory(), tiny()).await;
    let session = repo.writable_session("main").await.unwrap();
    for path in ["/kept", "/doomed"] {
        session.create_array(path, bytes_spec(&[512], &[256])).await.unwrap();
        write_noise(&session, path, "0:512", 1).await.unwrap();
    }
    session.commit(CommitOptions::message("both")).await.unwrap();
    let session = repo.writable_session("main").await.unwrap();
    session.delete("/doomed").unwrap();
    session.commit(CommitOptions::message("one")).await.unwrap();
    assert_eq!(sound(&repo).await, 0);
    repo.expire(&keep(1)).await.unwrap();
    assert_eq!(sound(&repo).await, 4, "two structure files, two chunk files");
    assert_eq!(collect(&repo).await.unwrap().files, 4);
    let repo = reopen(repo.store()).await;
    assert_eq!(sound(&repo).await, 0);
    assert_eq!(read_at(&repo, &Version::Default, "/kept").await.unwrap(), noise(512, 1));
}

/// A file whose name this format does not use is not ours to delete, and not counted.
#[tokio::test]
async fn files_that_no_repository_writes_are_left_alone() {
    let (guard, repo) = furnished(Place::Local).await;
    let Some(root) = guard else { return };
    let strange = ["s/with space", "c/a/b/c", "i/\u{fc}"];
    for name in strange {
        let path = root.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, b"mine").unwrap();
    }
    std::fs::write(root.path().join("s/stray"), b"not mine").unwrap();
    assert_eq!(sound(&repo).await, 1);
    assert_eq!(collect(&repo).await.unwrap().files, 1);
    assert_eq!(sound(&repo).await, 0);
    for name in strange {
        assert!(root.path().join(name).exists(), "{name}");
    }
}

/// A list of an announced, unfinished collection, as a stranger might make it.
async fn announce_forged(repo: &Repository, names: &[&str], list_file: &str) {
    let schema = Schema::new(vec![Field::new("file", DataType::Utf8, false)]);
    let names: StringArray = names.iter().copied().map(Some).collect();
    let batch = RecordBatch::try_new(schema.into(), vec![Arc::new(names)]).unwrap();
    let mut list = Vec::new();
    let mut writer = ArrowWriter::try_new(&mut list, batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    let mut state: Value =
        serde_json::from_slice(&repo.state().await.unwrap().render().unwrap()).unwrap();
    state["gc-epoch"] = json!(1);
    state["gc"] = json!({
        "epoch": 1, "list-file": list_file, "time-ms": 0,
        "lists": [{ "epoch": 1, "file": list_file, "crc32c": crc32c::crc32c(&list) }],
    });
    repo.store().put("gc/forged", vec![list.into()]).await.unwrap();
    let mut state = state.to_string();
    state.pop();
    let sealed = format!("{state},\"crc32c\":{}}}", crc32c::crc32c(state.as_bytes()));
    repo.store().put("state.json", vec![sealed.into()]).await.unwrap();
}

#[tokio::test]
async fn a_list_that_names_anything_but_files_of_the_format_is_refused() {
    let bad = [
        "state.json",
        "state.lock",
        "g/00000000000000000001.json",
        "",
        "/",
        "s",
        "s/",
        "s/..",
        "../s/x",
        "s/../state.json",
        "s/../../x",
        "/s/x",
        "c/a/b/c",
        "x/y",
        "S/x",
        "s/a b",
        ".",
        "c/./x",
        "c//x",
    ];
    for name in bad {
        let (_guard, repo) = furnished(Place::Memory).await;
        let structure = format!("s/{}", repo.state().await.unwrap().snapshots[0].structure_file);
        announce_forged(&repo, &[&structure, name], "forged").await;
        let repo = reopen(repo.store()).await;
        let error = collect(&repo).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{name:?}: {error}");
        // Not even what it might have named.
        repo.store().head(&structure).await.unwrap();
        sound(&repo).await;
    }
    for name in ["s/x", "i/y.parquet", "a/z", "c/00/00ab", "gc/old", ".tmp/empty-1"] {
        let (_guard, repo) = furnished(Place::Memory).await;
        announce_forged(&repo, &[name], "forged").await;
        collect(&reopen(repo.store()).await).await.unwrap();
    }
}

#[tokio::test]
async fn a_state_whose_list_is_elsewhere_is_refused() {
    for name in ["../state.json", "", "a/b", ".."] {
        let (_guard, repo) = furnished(Place::Memory).await;
        announce_forged(&repo, &[], name).await;
        let opened = Repository::open_in(repo.store().clone(), OpenOptions::default()).await;
        assert_eq!(opened.unwrap_err().kind(), ErrorKind::Corrupt, "{name:?}");
    }
}
