//! Collections beside changes of every kind, at every moment: they end, they delete garbage, and
//! they keep everything that is referred to.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use chunkyard_repo::{
    CommitOptions, ExpireOptions, OpenOptions, RepackOptions, Repository, Session, Version,
};
use chunkyard_store::fault::{Fault, Plan};
use chunkyard_store::{Error, ErrorKind, Store};
use futures::FutureExt;
use futures::future::BoxFuture;

use super::ambush::Ambush;
use super::crash::{self, Work};
use super::support::{
    Place, collect, contents, duplicate, furnished, history, noise, picture, read_at, reopen,
    sound, write_noise,
};

/// Changes of the state, none like the one before.
const KINDS: usize = 7;

async fn change(store: Store, kind: usize) {
    let repo = reopen(&store).await;
    let oldest = history(&repo, "main").await.last().unwrap().snapshot_id.clone();
    let oldest = Version::Snapshot(oldest);
    match kind {
        0 => commit(&repo, CommitOptions::message("racing")).await,
        1 => {
            commit(&repo, CommitOptions { amend: true, ..CommitOptions::message("amended") }).await
        }
        2 => drop(repo.create_branch("racing", &oldest).await.unwrap()),
        3 => drop(repo.reset_branch("main", &oldest, None).await.unwrap()),
        4 => {
            let keep = ExpireOptions { keep_last: Some(1), ..ExpireOptions::default() };
            repo.expire(&keep).await.unwrap();
            commit(&repo, CommitOptions::message("expired")).await;
        }
        5 => drop(repo.repack("main", &RepackOptions { live_share_min: 2.0 }).await.unwrap()),
        _ => drop(repo.create_tag("racing-tag", &Version::Default, false).await.unwrap()),
    }
}

async fn commit(repo: &Repository, options: CommitOptions) {
    let session = repo.writable_session("main").await.unwrap();
    write_noise(&session, "/a", "0:4,0:8", 77).await.unwrap();
    session.commit(options).await.unwrap();
}

/// A repository with garbage: the structure files of its expired snapshots.
async fn with_garbage(place: Place) -> (Option<tempfile::TempDir>, Repository, Vec<String>) {
    let (guard, repo) = furnished(place).await;
    for seed in 2..6 {
        let session = repo.writable_session("main").await.unwrap();
        write_noise(&session, "/a", "0:8,0:8", seed).await.unwrap();
        session.commit(CommitOptions::message(seed.to_string())).await.unwrap();
    }
    let before = repo.state().await.unwrap();
    let keep = ExpireOptions { keep_last: Some(2), ..ExpireOptions::default() };
    let expired = repo.expire(&keep).await.unwrap().snapshots;
    let files = expired.iter().map(|id| {
        let snapshot = before.snapshot(id).unwrap();
        format!("s/{}", snapshot.structure_file)
    });
    let files: Vec<String> = files.collect();
    assert!(files.len() > 2);
    (guard, repo, files)
}

async fn are_gone(store: &Store, files: &[String]) {
    for file in files {
        let found = store.backend().head(file).await;
        assert!(matches!(found, Err(Error::NotFound { .. })), "{file} is still there: {found:?}");
    }
}

/// The state changes before each of the first swaps of a collection. Each change costs the
/// collection only what is new: nothing is listed, read or written twice.
#[tokio::test]
async fn a_collection_that_is_always_overtaken_marks_only_what_is_new() {
    for place in Place::ALL {
        let (_guard, repo, garbage) = with_garbage(place).await;
        let (logged, log) = Fault::wrap(repo.store(), Plan::never().with_reads());
        let swaps = Arc::new(AtomicUsize::new(0));
        let (plain, counter) = (repo.store().clone(), swaps.clone());
        let (slow, _) = Ambush::wrap(&logged, move |moment| {
            if !moment.is_swap() {
                return None;
            }
            let kind = counter.fetch_add(1, Ordering::Relaxed);
            (kind < KINDS).then(|| change(plain.clone(), kind).boxed())
        });
        let slow = Repository::open_in(slow, OpenOptions::default()).await.unwrap();
        collect(&slow).await.unwrap();
        assert_eq!(swaps.load(Ordering::Relaxed), KINDS + 2, "{place:?}: announced, then finished");

        let log = log.log();
        let mut counts: HashMap<&str, usize> = HashMap::new();
        for operation in &log {
            *counts.entry(operation).or_default() += 1;
        }
        for directory in ["s", "a", "i", "c", "gc", ".tmp"] {
            assert_eq!(counts[&*format!("list {directory}")], 1, "{place:?}: {log:#?}");
        }
        let read_twice = counts.iter().find(|(operation, count)| {
            **count > 1 && (operation.starts_with("get s/") || operation.starts_with("get i/"))
        });
        assert_eq!(read_twice, None, "{place:?}: {log:#?}");
        let lists = log.iter().filter(|operation| operation.starts_with("put gc/")).count();
        assert_eq!(lists, 1, "{place:?}: {log:#?}");

        are_gone(repo.store(), &garbage).await;
        let repo = reopen(repo.store()).await;
        sound(&repo).await;
        let state = repo.state().await.unwrap();
        assert!(state.refs.contains_key("racing") && state.snapshots.len() > 1);
        picture(&repo).await;
    }
}

/// Runs a collection during which something happens before its first swap.
async fn overtaken_once(store: &Store, other: BoxFuture<'static, ()>) -> Vec<String> {
    let (logged, log) = Fault::wrap(store, Plan::never().with_reads());
    let other = std::sync::Mutex::new(Some(other));
    let (slow, _) = Ambush::wrap(&logged, move |moment| {
        moment.is_swap().then(|| other.lock().unwrap().take()).flatten()
    });
    let slow = Repository::open_in(slow, OpenOptions::default()).await.unwrap();
    collect(&slow).await.unwrap();
    log.log()
}

/// Files that belonged to no snapshot when they were listed, and to one when they were announced.
#[tokio::test]
async fn files_that_a_racing_commit_uses_are_kept() {
    for place in Place::ALL {
        let (_guard, repo, garbage) = with_garbage(place).await;
        let session: Arc<Session> = repo.writable_session("main").await.unwrap();
        write_noise(&session, "/a", "0:8,0:8", 9).await.unwrap();
        let commit = async move {
            session.commit(CommitOptions::message("in time")).await.unwrap();
        };
        let log = overtaken_once(repo.store(), commit.boxed()).await;
        let lists = log.iter().filter(|operation| operation.starts_with("put gc/")).count();
        assert_eq!(lists, 2, "{place:?}: the first one names files that are in use");
        are_gone(repo.store(), &garbage).await;
        let repo = reopen(repo.store()).await;
        assert_eq!(sound(&repo).await, 0, "{place:?}");
        assert_eq!(read_at(&repo, &Version::Default, "/a").await.unwrap(), noise(64, 9));
    }
}

/// Another collection deletes what was found, and the list of it.
#[tokio::test]
async fn two_collections_at_once_do_the_work_of_one() {
    for place in Place::ALL {
        let (_guard, repo, garbage) = with_garbage(place).await;
        let other = reopen(repo.store()).await;
        let collection = async move {
            assert!(collect(&other).await.unwrap().files > 0);
        };
        overtaken_once(repo.store(), collection.boxed()).await;
        are_gone(repo.store(), &garbage).await;
        let repo = reopen(repo.store()).await;
        assert_eq!(sound(&repo).await, 0, "{place:?}");
        let state = repo.state().await.unwrap();
        assert_eq!(state.gc.as_ref().unwrap().list_file, None);
        // A committer can read every list that the state names.
        for list in &state.gc.as_ref().unwrap().lists {
            repo.store().backend().head(&format!("gc/{}", list.file)).await.unwrap();
        }
    }
}

/// Lets `other` do all of its work before the `n`-th operation of `one`. Returns whether there was
/// such an operation.
async fn interrupted(template: &Store, place: Place, one: Work, other: Work, n: usize) -> bool {
    let (_guard, store) = duplicate(template, place).await;
    let came = Arc::new(AtomicBool::new(false));
    let (plain, flag) = (store.clone(), came.clone());
    let (slow, ambush) = Ambush::wrap(&store, move |moment| {
        (moment.number == n).then(|| {
            let (plain, flag) = (plain.clone(), flag.clone());
            async move {
                flag.store(true, Ordering::Relaxed);
                other.run(&plain).await.unwrap();
            }
            .boxed()
        })
    });
    let outcome = one.run(&slow).await;
    let what = format!("{place:?} {other:?} before operation {n} of {one:?}: {outcome:?}");
    match &outcome {
        Ok(()) => {}
        // A writer may have to start again; a collection never does.
        Err(error) if one != Work::Collect => {
            assert_eq!(error.kind(), ErrorKind::Conflict, "{what}");
        }
        Err(_) => panic!("{what}"),
    }
    let repo = reopen(&store).await;
    let report = repo.verify(chunkyard_repo::Level::Bytes).await.unwrap();
    assert_eq!(report.findings, [], "{what}");
    for (work, done) in [(one, outcome.is_ok()), (other, came.load(Ordering::Relaxed))] {
        let messages = picture(&repo).await.messages;
        let committed = messages.iter().any(|message| message == "four");
        assert!(!matches!(work, Work::Commit | Work::Amend) || committed == done, "{what}");
    }
    collect(&repo).await.unwrap();
    assert_eq!(sound(&repo).await, 0, "{what}");
    contents(&repo.readonly_session(&Version::Default).await.unwrap()).await.unwrap();
    n < ambush.operations()
}

async fn at_every_moment(pairs: &[(Work, Work)]) {
    for place in [Place::Memory, Place::Local] {
        if !place.is_wanted() {
            continue;
        }
        let (_guard, template) = place.open();
        let repo = crash::furnished(&template).await;
        Work::Collect.prepare(&repo).await;
        for &(one, other) in pairs {
            let mut n = 0;
            while interrupted(&template, place, one, other, n).await {
                n += 1;
            }
            assert!(n > 5, "{one:?} did nothing");
        }
    }
}

#[tokio::test]
async fn a_collection_overtaken_at_any_moment_spares_what_is_referred_to() {
    let others = [Work::Commit, Work::Repack, Work::Collect];
    at_every_moment(&others.map(|other| (Work::Collect, other))).await;
}

#[tokio::test]
async fn a_writer_overtaken_by_a_collection_at_any_moment_loses_no_acknowledged_commit() {
    let writers = [Work::Commit, Work::Repack];
    at_every_moment(&writers.map(|writer| (writer, Work::Collect))).await;
}
