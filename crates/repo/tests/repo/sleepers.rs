//! A writer falls asleep at any of its operations, before or after it takes effect. Meanwhile its
//! change is reverted, many generations pass, old snapshots expire and files are collected. Then it
//! wakes up: it must know whether its change is in history, and never make it a second time.

use std::sync::Arc;

use chunkyard_repo::{
    CommitOptions, ExpireOptions, OpenOptions, Rebase, Repository, Snapshot, Version,
};
use chunkyard_store::fault::{Fault, Mode, Plan, at_every_operation};
use chunkyard_store::{Error, Result, Store};

use super::support::{
    Place, bytes_spec, collect, create, duplicate, read_at, reopen, repetitions, write,
};

/// More generations than a state remembers by itself.
const MANY: usize = 70;

async fn commit_value(repo: &Repository, message: &str, value: u8) -> Result<Arc<Snapshot>> {
    let session = repo.writable_session("main").await?;
    write(&session, "/a", "0:2", value).await?;
    session.commit(CommitOptions::message(message).with_rebase(Rebase::default())).await
}

/// The sleeper's work: one commit that rebases if it must.
async fn ours(store: &Store) -> Result<Arc<Snapshot>> {
    let repo = Repository::open_in(store.clone(), OpenOptions::default()).await?;
    commit_value(&repo, "ours", 7).await
}

/// What other writers do while it sleeps.
#[derive(Debug, Clone, Copy)]
enum Meanwhile {
    /// Put the old value back, and continue.
    Revert,
    /// Move the branch back to where it was, and continue.
    Reset,
}

/// Whether the sleeper's value was ever visible to other writers.
async fn others(repo: &Repository, base: &str, meanwhile: Meanwhile, tagged: bool) -> bool {
    let main = Version::branch("main");
    let seen = read_at(repo, &main, "/a").await.unwrap()[0] == 7;
    if tagged {
        repo.create_tag("base", &Version::Snapshot(base.into()), false).await.unwrap();
    }
    match meanwhile {
        Meanwhile::Revert => drop(commit_value(repo, "revert", 1).await.unwrap()),
        Meanwhile::Reset => {
            let base = Version::Snapshot(base.to_owned());
            repo.reset_branch("main", &base, None).await.unwrap();
        }
    }
    for value in 1..4 {
        let session = repo.writable_session("main").await.unwrap();
        write(&session, "/b", "0:2", value).await.unwrap();
        session.commit(CommitOptions::message("theirs")).await.unwrap();
    }
    // A change of the configuration is a generation without any other file.
    for _ in 0..MANY {
        repo.update_config(|_| {}).await.unwrap();
    }
    let options = ExpireOptions { keep_last: Some(1), ..ExpireOptions::default() };
    repo.expire(&options).await.unwrap();
    collect(repo).await.unwrap();
    seen
}

/// Whether the sleeper keeps other writers from publishing.
fn holds_lock(fault: &Fault, mode: Mode) -> bool {
    let log = fault.log();
    let locked = log.iter().position(|op| op == "lock state.lock");
    locked.is_some_and(|at| mode != Mode::Sleep || at + 1 < log.len())
}

async fn every_operation(place: Place, meanwhile: Meanwhile, tagged: bool) {
    let (_guard, template) = place.open();
    let repo = create(&template, Default::default()).await;
    let session = repo.writable_session("main").await.unwrap();
    for path in ["/a", "/b"] {
        session.create_array(path, bytes_spec(&[4], &[2])).await.unwrap();
    }
    write(&session, "/a", "0:2", 1).await.unwrap();
    let base = session.commit(CommitOptions::message("base")).await.unwrap().snapshot_id.clone();

    for mode in [Mode::Sleep, Mode::SleepAfter, Mode::SleepAndLose] {
        for attempt in at_every_operation(Plan::new(0, mode)) {
            let n = attempt.at();
            let (_guard, store) = duplicate(&template, place).await;
            let (slow, fault) = attempt.wrap(&store);
            let mut sleeper = tokio::spawn(async move { ours(&slow).await });
            let done = tokio::select! {
                () = fault.falls_asleep() => None,
                done = &mut sleeper => Some(done.unwrap()),
            };
            let locked = holds_lock(&fault, mode);
            if locked {
                fault.wake(); // nothing can be published until it is done
            }
            if locked || !fault.fired() {
                let outcome = match done {
                    Some(outcome) => outcome,
                    None => sleeper.await.unwrap(),
                };
                let lost = mode == Mode::SleepAndLose && fault.fired();
                assert!(outcome.is_ok() || lost, "{outcome:?}");
                continue;
            }
            let repo = reopen(&store).await;
            let seen = others(&repo, &base, meanwhile, tagged).await;
            fault.wake();
            let outcome = sleeper.await.unwrap();
            let what = format!("{place:?} {meanwhile:?} {tagged} {mode:?} {n}: {:?}", fault.log());

            let value = read_at(&reopen(&store).await, &Version::branch("main"), "/a").await;
            let value = value.unwrap()[0];
            match (seen, outcome) {
                // It was in history: the caller is told so, and it does not come back.
                (true, outcome) => {
                    let told = match &outcome {
                        Ok(_) => true,
                        // A disk that fails right after the claim leaves it to the caller to look.
                        Err(Error::OutcomeUnknown { .. }) => mode == Mode::SleepAndLose,
                        Err(_) => false,
                    };
                    assert!(told, "{what} {outcome:?}");
                    assert_eq!(value, 1, "{what}: made twice");
                }
                // It was not: it is now, or the caller must start again.
                (false, Ok(_)) => assert_eq!(value, 7, "{what}: acknowledged and not there"),
                (false, Err(error)) => {
                    let begins_again = matches!(
                        error,
                        Error::Conflict { .. }
                            | Error::BaseExpired { .. }
                            | Error::SnapshotExpired { .. }
                            | Error::SessionCollected { .. }
                    ) || mode == Mode::SleepAndLose;
                    assert!(begins_again, "{what} {error:?}");
                    assert_eq!(value, 1, "{what}");
                }
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sleeper_does_not_repeat_what_was_reverted() {
    for place in Place::ALL {
        for tagged in repetitions(vec![false, true], vec![true]) {
            every_operation(place, Meanwhile::Revert, tagged).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sleeper_does_not_repeat_what_was_reset() {
    for place in Place::ALL {
        every_operation(place, Meanwhile::Reset, true).await;
    }
}
