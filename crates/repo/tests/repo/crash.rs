//! A process is killed, or a machine loses power, at any operation of anything a repository does.
//!
//! The same work is run again and again with the end at operation 0, 1, 2, … until it is no longer
//! reached. Afterwards the repository must be exactly as before or exactly as after the work, all
//! versions, all bytes; acknowledged commits must be there; and further work must succeed.

use chunkyard_repo::{
    CommitOptions, CreateOptions, ExpireOptions, OpenOptions, RepackOptions, Repository, Version,
};
use chunkyard_store::fault::{Fault, Mode, Plan, Unsynced, at_every_operation};
use chunkyard_store::{Error, Noun, Result, Store};
use serde_json::{Map, Value};

use super::support::{
    Picture, Place, bytes_spec, collect, create, duplicate, picture, reopen, repetitions, sound,
    tiny, write_noise,
};

/// What is interrupted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Work {
    Commit,
    Amend,
    Tag,
    Reset,
    Expire,
    Collect,
    Optimise,
    Repack,
}

fn large_attributes(seed: &str) -> Map<String, Value> {
    Map::from_iter([("note".to_owned(), Value::String(seed.repeat(40)))])
}

/// A repository with every kind of file, a tag, dead bytes, and files that nothing refers to.
pub(super) async fn furnished(store: &Store) -> Repository {
    let repo = create(store, tiny()).await;
    let session = repo.writable_session("main").await.unwrap();
    session.create_array("/a/b", bytes_spec(&[12, 12], &[4, 4])).await.unwrap();
    session.create_array("/large", bytes_spec(&[20, 20], &[20, 20])).await.unwrap();
    session.create_array("/small", bytes_spec(&[4], &[2])).await.unwrap();
    write_noise(&session, "/a/b", "0:12,0:12", 1).await.unwrap();
    write_noise(&session, "/large", "0:20,0:20", 2).await.unwrap();
    write_noise(&session, "/small", "0:4", 3).await.unwrap();
    session.commit(CommitOptions::message("one")).await.unwrap();

    let session = repo.writable_session("main").await.unwrap();
    write_noise(&session, "/a/b", "0:8,0:12", 4).await.unwrap();
    session.set_attributes("/a", large_attributes("x")).unwrap();
    let second = session.commit(CommitOptions::message("two")).await.unwrap();
    repo.create_tag("v1", &Version::Snapshot(second.snapshot_id.clone()), false).await.unwrap();

    let session = repo.writable_session("main").await.unwrap();
    write_noise(&session, "/a/b", "0:4,0:12", 5).await.unwrap();
    session.erase_chunk("/a/b", &[2, 2]).unwrap();
    session.commit(CommitOptions::message("three")).await.unwrap();

    let dropped = repo.writable_session("main").await.unwrap();
    write_noise(&dropped, "/large", "0:20,0:20", 6).await.unwrap();
    repo
}

impl Work {
    pub(super) const ALL: [Self; 8] = [
        Self::Commit,
        Self::Amend,
        Self::Tag,
        Self::Reset,
        Self::Expire,
        Self::Collect,
        Self::Optimise,
        Self::Repack,
    ];

    /// What must have happened before, so that there is something to do.
    pub(super) async fn prepare(self, repo: &Repository) {
        if self == Self::Collect {
            Self::Expire.run(repo.store()).await.unwrap();
        }
    }

    pub(super) async fn run(self, store: &Store) -> Result<()> {
        let repo = Repository::open_in(store.clone(), OpenOptions::default()).await?;
        match self {
            Self::Commit | Self::Amend => {
                let session = repo.writable_session("main").await?;
                write_noise(&session, "/a/b", "2:10,2:10", 7).await?;
                write_noise(&session, "/large", "0:20,0:20", 8).await?;
                write_noise(&session, "/small", "1:3", 9).await?;
                session.set_attributes("/large", large_attributes("y"))?;
                session.move_node("/small", "/moved/small")?;
                let amend = self == Self::Amend;
                session
                    .commit(CommitOptions { amend, ..CommitOptions::message("four") })
                    .await
                    .map(drop)
            }
            Self::Tag => repo.create_tag("v2", &Version::Default, false).await.map(drop),
            Self::Reset => {
                repo.reset_branch("main", &Version::Tag("v1".into()), None).await.map(drop)
            }
            Self::Expire => {
                let options = ExpireOptions { keep_last: Some(1), ..ExpireOptions::default() };
                repo.expire(&options).await.map(drop)
            }
            Self::Collect => collect(&repo).await.map(drop),
            Self::Optimise => repo.optimise("main").await.map(drop),
            Self::Repack => repo.repack("main", &RepackOptions::default()).await.map(drop),
        }
    }
}

/// The deaths worth trying: only file systems tear files and lose unsynced data.
fn deaths(place: Place) -> Vec<(Mode, Unsynced)> {
    if place != Place::Local {
        let both = [(Mode::DieAfter, Unsynced::Kept), (Mode::Die, Unsynced::Kept)];
        return both[..repetitions(2, 1)].to_vec();
    }
    vec![
        (Mode::Die, Unsynced::Kept),
        (Mode::Die, Unsynced::Reverted),
        (Mode::Die, Unsynced::Emptied),
        (Mode::DieAfter, Unsynced::Kept),
        (Mode::DieAfter, Unsynced::Reverted),
        (Mode::Tear, Unsynced::Kept),
        (Mode::Tear, Unsynced::Emptied),
    ]
}

/// Whether an operation of a log can be half done.
fn tears(operation: &str) -> bool {
    ["put ", "sync ", "delete "].iter().any(|op| operation.starts_with(op))
}

/// Interrupts `work` at every operation, in all the given ways.
async fn interrupt_everywhere(
    template: &Store,
    place: Place,
    work: Work,
    deaths: &[(Mode, Unsynced)],
) {
    let before = picture(&reopen(template).await).await;
    let (_guard, store) = duplicate(template, place).await;
    let (counted, fault) = Fault::wrap(&store, Plan::never());
    work.run(&counted).await.unwrap();
    let after = picture(&reopen(&store).await).await;
    let operations = fault.log();
    assert!(operations.len() > 1, "{work:?} did nothing: {operations:?}");

    for &(mode, unsynced) in deaths {
        for attempt in at_every_operation(Plan::new(0, mode).with_power_cut(unsynced)) {
            let n = attempt.at();
            if mode == Mode::Tear && operations.get(n).is_some_and(|op| !tears(op)) {
                attempt.skip(); // as if killed before
                continue;
            }
            let (_guard, store) = duplicate(template, place).await;
            let plan = attempt.plan();
            let (faulty, fault) = attempt.wrap(&store);
            let outcome = work.run(&faulty).await;
            fault.die().await.unwrap();
            let what = format!("{place:?} {work:?} {plan:?}: {outcome:?} {:#?}", fault.log());
            if !fault.fired() {
                assert!(outcome.is_ok(), "{what}");
            }
            survives(&store, &before, &after, outcome.is_ok(), &what).await;
        }
    }
}

/// The repository is in the state before or after, is sound, and accepts further work.
pub(super) async fn survives(
    store: &Store,
    before: &Picture,
    after: &Picture,
    acknowledged: bool,
    what: &str,
) {
    let repo = Repository::open_in(store.clone(), OpenOptions::default())
        .await
        .unwrap_or_else(|error| panic!("{what}: {error}"));
    let report = repo.verify(chunkyard_repo::Level::Bytes).await.unwrap();
    assert_eq!(report.findings, [], "{what}");
    let found = picture(&repo).await;
    assert!(found == *after || (found == *before && !acknowledged), "{what}\n{found:?}");

    let session = repo.writable_session("main").await.unwrap();
    write_noise(&session, "/a/b", "4:8,4:8", 10).await.unwrap();
    session.commit(CommitOptions::message("next")).await.unwrap();
    collect(&repo).await.unwrap_or_else(|error| panic!("{what}: {error}"));
    let repo = reopen(store).await;
    assert_eq!(sound(&repo).await, 0, "{what}");
    let found = picture(&repo).await;
    assert_eq!(found.references["Branch main"][0].0, "next");
}

/// All kinds of work in one place, each in a task of its own, on a repository prepared for it.
pub(super) async fn each_work<F, R>(place: Place, run: F)
where
    F: Fn(Store, Work) -> R + Clone + Send + 'static,
    R: Future<Output = ()> + Send,
{
    if !place.is_wanted() {
        return;
    }
    let mut tasks = tokio::task::JoinSet::new();
    for work in Work::ALL {
        let run = run.clone();
        tasks.spawn(async move {
            let (_guard, template) = place.open();
            let repo = furnished(&template).await;
            work.prepare(&repo).await;
            run(template, work).await;
        });
    }
    while let Some(done) = tasks.join_next().await {
        done.unwrap();
    }
}

async fn interrupt_all(place: Place) {
    each_work(place, move |template, work| async move {
        interrupt_everywhere(&template, place, work, &deaths(place)).await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_operation_can_be_the_last() {
    interrupt_all(Place::Local).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_operation_can_be_the_last_on_an_object_store() {
    interrupt_all(Place::Memory).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_operation_can_be_the_last_where_objects_can_only_be_created() {
    interrupt_all(Place::CreateOnly).await;
}

/// Every 16th generation cleans up the claims far behind it, after the commit point.
#[tokio::test]
async fn every_operation_of_the_clean_up_can_be_the_last() {
    if !Place::Local.is_wanted() {
        return;
    }
    let (_guard, template) = Place::Local.open();
    let repo = furnished(&template).await;
    while repo.state().await.unwrap().generation < 79 {
        repo.update_config(|_| {}).await.unwrap();
    }
    let deaths = [
        (Mode::Die, Unsynced::Reverted),
        (Mode::DieAfter, Unsynced::Kept),
        (Mode::DieAfter, Unsynced::Emptied),
    ];
    interrupt_everywhere(&template, Place::Local, Work::Tag, &deaths).await;
}

/// A state that holds as many snapshots as it may moves the oldest into files, with the next commit.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_operation_of_moving_snapshots_into_files_can_be_the_last() {
    for place in Place::ALL {
        let (_guard, template) = place.open();
        let repo = furnished(&template).await;
        while repo.state().await.unwrap().snapshots.len() < 12 {
            let session = repo.writable_session("main").await.unwrap();
            session
                .commit(CommitOptions { allow_empty: true, ..Default::default() })
                .await
                .unwrap();
        }
        assert_eq!(repo.state().await.unwrap().history, None);
        for work in [Work::Commit, Work::Expire] {
            if work == Work::Expire {
                Work::Commit.run(&template).await.unwrap();
                assert!(repo.state().await.unwrap().history.is_some(), "{place:?}");
            }
            interrupt_everywhere(&template, place, work, &deaths(place)).await;
        }
    }
}

#[tokio::test]
async fn every_operation_can_be_the_last_of_creating_a_repository() {
    for place in Place::ALL {
        for (mode, unsynced) in deaths(place) {
            for attempt in at_every_operation(Plan::new(0, mode).with_power_cut(unsynced)) {
                let (_guard, store) = place.open();
                let plan = attempt.plan();
                let (faulty, fault) = attempt.wrap(&store);
                let outcome =
                    Repository::create_in(faulty, OpenOptions::default(), CreateOptions::default())
                        .await;
                fault.die().await.unwrap();
                let what = format!("{place:?} {plan:?}: {outcome:?} {:#?}", fault.log());
                match Repository::open_in(store.clone(), OpenOptions::default()).await {
                    Ok(repo) => {
                        sound(&repo).await;
                    }
                    Err(Error::NotFound { .. }) => {
                        assert!(outcome.is_err(), "acknowledged and lost: {what}");
                        again(&store).await;
                    }
                    Err(error) => panic!("{what}: {error}"),
                }
                let session = reopen(&store).await.writable_session("main").await.unwrap();
                session.create_group("/g", Map::new()).unwrap();
                session.commit(CommitOptions::message("next")).await.unwrap();
                collect(&reopen(&store).await).await.unwrap();
                assert_eq!(sound(&reopen(&store).await).await, 0, "{what}");
                assert!(fault.fired() || outcome.is_ok(), "{what}");
            }
        }
    }
}

/// Creates a repository where the first attempt died: leftovers need the caller's consent.
pub(super) async fn again(store: &Store) {
    let options = OpenOptions::default();
    let created =
        Repository::create_in(store.clone(), options.clone(), CreateOptions::default()).await;
    match created {
        Ok(_) => {}
        Err(Error::AlreadyExists { what: Noun::Leftover, .. }) => {
            let force = CreateOptions { force: true, ..CreateOptions::default() };
            Repository::create_in(store.clone(), options, force).await.unwrap();
        }
        Err(error) => panic!("{error}"),
    }
}
