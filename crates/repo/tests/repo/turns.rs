//! Every swap takes its turn, so that no writer is overtaken for ever; and a turn that does not end
//! blocks nothing.

use std::ops::Range;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use chunkyard_repo::{OpenOptions, Repository, Version};
use chunkyard_store::{
    Backend, Created, Dir, Guard, Kind, Linked, Links, Lock, Meta, Object, Replaced, Result, Store,
    Upload, Version as ObjectVersion,
};
use futures::stream::BoxStream;
use tokio::sync::Notify;

use super::stress::{commit_cell, prepared};
use super::support::{Place, collect, history, reopen, sound, tick, tiny};

/// Commits of the overtaking writer.
const RIVALS: u64 = 30;

tokio::task_local! {
    /// Set if a swap is to be held up.
    static HELD_UP: ();
}

/// A store whose marked users pause before each swap: until the rival commits or some time passes,
/// or until they are woken.
#[derive(Debug)]
struct Pausing {
    inner: Arc<dyn Backend>,
    began: Notify,
    paused: AtomicU64,
    commits: AtomicU64,
    /// Pauses until it is woken, and never again.
    sleeps: Option<(Notify, AtomicBool)>,
}

impl Pausing {
    fn wrap(store: &Store, sleeps: bool) -> (Store, Arc<Self>) {
        let pausing = Arc::new(Self {
            inner: store.backend().clone(),
            began: Notify::new(),
            paused: AtomicU64::new(0),
            commits: AtomicU64::new(0),
            sleeps: sleeps.then(Default::default),
        });
        (store.with_backend(pausing.clone()), pausing)
    }

    fn wake(&self) {
        let (woken, awake) = self.sleeps.as_ref().unwrap();
        awake.store(true, Ordering::SeqCst);
        woken.notify_one();
    }

    async fn pause(&self) {
        if HELD_UP.try_with(|()| ()).is_err() {
            return;
        }
        let before = self.commits.load(Ordering::SeqCst);
        self.paused.fetch_add(1, Ordering::SeqCst);
        self.began.notify_one();
        if let Some((woken, awake)) = &self.sleeps {
            if !awake.load(Ordering::SeqCst) {
                woken.notified().await;
            }
            return;
        }
        for _ in 0..100 {
            if self.commits.load(Ordering::SeqCst) != before || before == RIVALS {
                return;
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
}

#[async_trait]
impl Backend for Pausing {
    fn kind(&self) -> Kind {
        self.inner.kind()
    }

    async fn get(&self, path: &str) -> Result<Object> {
        self.inner.get(path).await
    }

    async fn get_ranges(
        &self,
        path: &str,
        ranges: &[Range<u64>],
        guard: Option<&Guard>,
    ) -> Result<Vec<Bytes>> {
        self.inner.get_ranges(path, ranges, guard).await
    }

    async fn head(&self, path: &str) -> Result<Meta> {
        self.inner.head(path).await
    }

    async fn put(&self, path: &str, bytes: Vec<Bytes>) -> Result<()> {
        self.inner.put(path, bytes).await
    }

    async fn begin(&self, path: &str) -> Result<Box<dyn Upload>> {
        self.inner.begin(path).await
    }

    async fn sync(&self, paths: &[String]) -> Result<()> {
        self.inner.sync(paths).await
    }

    async fn create(&self, path: &str, bytes: Bytes) -> Result<Created> {
        self.pause().await;
        self.inner.create(path, bytes).await
    }

    async fn replace(
        &self,
        path: &str,
        bytes: Bytes,
        expected: &ObjectVersion,
    ) -> Result<Replaced> {
        self.pause().await;
        self.inner.replace(path, bytes, expected).await
    }

    async fn list_links(
        &self,
        prefix: &str,
        links: Links,
    ) -> Result<BoxStream<'static, Result<Meta>>> {
        self.inner.list_links(prefix, links).await
    }

    async fn list_dir(&self, prefix: &str) -> Result<Dir> {
        self.inner.list_dir(prefix).await
    }

    async fn delete(&self, paths: &[String]) -> Result<()> {
        self.inner.delete(paths).await
    }

    async fn delete_dir(&self, prefix: &str) -> Result<()> {
        self.inner.delete_dir(prefix).await
    }

    async fn link(&self, from: &str, to: &str) -> Result<Linked> {
        self.pause().await;
        self.inner.link(from, to).await
    }

    async fn rename(&self, from: &str, to: &str) -> Result<()> {
        self.inner.rename(from, to).await
    }

    async fn lock(&self, path: &str) -> Result<Lock> {
        self.inner.lock(path).await
    }

    async fn turn(&self, door: &str, room: &str, hold: Duration) -> Result<Lock> {
        self.inner.turn(door, room, hold).await
    }

    async fn sync_dir(&self, path: &str) -> Result<()> {
        self.inner.sync_dir(path).await
    }
}

/// What a held-up writer does: one of each kind of swap.
async fn swap(repo: &Repository, work: &str) -> Result<()> {
    match work {
        "commit" => commit_cell(repo, 0, 0).await.map(drop),
        "tag" => repo.create_tag("held-up", &Version::Default, false).await.map(drop),
        "optimise" => repo.optimise("main").await.map(drop),
        _ => collect(repo).await.map(drop),
    }
}

/// Another writer commits before each swap of the first, as long as it can. In a directory it acts
/// as another process; in an object store it shares the handle.
async fn overtaken(place: Place, work: &'static str) {
    let (_guard, plain) = place.open();
    let repo = prepared(&plain, tiny(), 2, RIVALS).await;
    // Something to merge, and something to collect.
    commit_cell(&repo, 1, 0).await.unwrap();
    commit_cell(&repo, 1, 1).await.unwrap();
    plain.put("i/garbage", vec!["x".into()]).await.unwrap();
    tick(&plain).await;
    let (store, pausing) = Pausing::wrap(&plain, false);
    let repo = Repository::open_in(store, OpenOptions::default()).await.unwrap();
    let rival = match place {
        Place::Local => reopen(&plain).await,
        Place::Memory | Place::CreateOnly => repo.clone(),
    };
    let rivals = tokio::spawn({
        let pausing = pausing.clone();
        async move {
            pausing.began.notified().await;
            for number in 0..RIVALS {
                commit_cell(&rival, 1, number).await.unwrap();
                pausing.commits.fetch_add(1, Ordering::SeqCst);
            }
        }
    });
    HELD_UP.scope((), swap(&repo, work)).await.unwrap();
    let attempts = pausing.paused.load(Ordering::SeqCst);
    rivals.await.unwrap();
    // One or two are enough, unless this machine is so slow that a turn seems to be asleep.
    assert!((1..=6).contains(&attempts), "{place:?}: {work} after {attempts} attempts");
    sound(&repo).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn a_writer_is_not_overtaken_for_ever() {
    for place in Place::ALL {
        for work in ["commit", "tag", "optimise", "collect"] {
            overtaken(place, work).await;
        }
    }
}

fn room(store: &Store) -> u64 {
    std::fs::metadata(Path::new(store.url()).join("state.turn")).unwrap().ino()
}

/// A writer falls asleep between its turn and its claim. Other writers go on, in its process and
/// elsewhere, and it finds out when it wakes.
#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn a_writer_that_sleeps_during_its_turn_holds_nothing_up() {
    if !Place::Local.is_wanted() {
        return;
    }
    let (_guard, plain) = Place::Local.open();
    prepared(&plain, tiny(), 3, 10).await;
    let (store, pausing) = Pausing::wrap(&plain, true);
    let repo = Repository::open_in(store, OpenOptions::default()).await.unwrap();
    let asleep = tokio::spawn({
        let repo = repo.clone();
        HELD_UP.scope((), async move { commit_cell(&repo, 0, 0).await.unwrap() })
    });
    pausing.began.notified().await;
    let before = room(&plain);
    let elsewhere = reopen(&plain).await;
    for number in 0..10 {
        let both = futures::future::join(
            commit_cell(&elsewhere, 1, number),
            commit_cell(&repo, 2, number),
        );
        let (there, here) = both.await;
        there.unwrap();
        here.unwrap();
    }
    assert_ne!(room(&plain), before, "others use another file");
    pausing.wake();
    let late = asleep.await.unwrap();
    let history = history(&repo, "main").await;
    assert_eq!(history.len(), 2 + 21);
    assert_eq!(history.iter().filter(|snapshot| snapshot.snapshot_id == late).count(), 1);
    collect(&repo).await.unwrap();
    assert_eq!(sound(&repo).await, 0);
}

/// Ctrl-C, or a caller that does not want to wait any longer.
#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn a_commit_that_is_given_up_ends_its_turn() {
    if !Place::Local.is_wanted() {
        return;
    }
    let (_guard, plain) = Place::Local.open();
    prepared(&plain, tiny(), 2, 4).await;
    let (store, pausing) = Pausing::wrap(&plain, true);
    let repo = Repository::open_in(store, OpenOptions::default()).await.unwrap();
    let given_up = tokio::spawn({
        let repo = repo.clone();
        HELD_UP.scope((), async move { commit_cell(&repo, 0, 0).await.map(drop) })
    });
    pausing.began.notified().await;
    let before = room(&plain);
    given_up.abort();
    assert!(given_up.await.unwrap_err().is_cancelled());
    commit_cell(&repo, 1, 0).await.unwrap();
    commit_cell(&reopen(&plain).await, 1, 1).await.unwrap();
    assert_eq!(room(&plain), before, "nothing had to be broken");
    assert_eq!(history(&repo, "main").await.len(), 2 + 2);
}
