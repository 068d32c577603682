//! One request fails, or its reply is lost, and the client lives on: it must say whether its change
//! is in history, and never make it twice.

use std::sync::Arc;

use chunkyard_repo::{
    CommitOptions, ExpireOptions, OpenOptions, Rebase, Repository, Snapshot, Version,
};
use chunkyard_store::fault::{Fault, Mode, Plan, at_every_operation};
use chunkyard_store::{Error, Result, Store};

use super::support::{
    Place, duplicate, furnished, history, picture, read_at, reopen, sound, write_noise,
};

/// A kernel does not do later what it said it could not do; an object store may.
fn modes(place: Place) -> Vec<Mode> {
    let late = (place != Place::Local).then_some(Mode::Late(0));
    [Mode::LoseReply, Mode::FailOnce].into_iter().chain(late).collect()
}

async fn commit(store: &Store) -> Result<Arc<Snapshot>> {
    let repo = Repository::open_in(store.clone(), OpenOptions::default()).await?;
    let session = repo.writable_session("main").await?;
    write_noise(&session, "/a", "0:4,0:8", 2).await?;
    session.commit(CommitOptions::message("ours").with_rebase(Rebase::default())).await
}

#[tokio::test]
async fn a_commit_is_acknowledged_exactly_if_it_is_in_history() {
    for place in Place::ALL {
        let (_guard, repo) = furnished(place).await;
        let template = repo.store().clone();
        for mode in modes(place) {
            for attempt in at_every_operation(Plan::new(0, mode).with_reads()) {
                let n = attempt.at();
                let (_guard, store) = duplicate(&template, place).await;
                let (faulty, fault) = attempt.wrap(&store);
                let outcome = commit(&faulty).await;
                let what = format!("{place:?} {mode:?} {n}: {outcome:?} {:#?}", fault.log());

                let repo = reopen(&store).await;
                let ours = history(&repo, "main").await;
                let ours: Vec<_> = ours.iter().filter(|s| s.message == "ours").collect();
                match &outcome {
                    Ok(snapshot) => {
                        assert_eq!(ours.len(), 1, "{what}");
                        assert_eq!(ours[0].snapshot_id, snapshot.snapshot_id, "{what}");
                    }
                    // The caller is told to look, and finds it at most once.
                    Err(Error::OutcomeUnknown { .. }) => assert!(ours.len() <= 1, "{what}"),
                    Err(_) => assert_eq!(ours.len(), 0, "{what}"),
                }
                sound(&repo).await;
                assert!(fault.fired() || outcome.is_ok(), "{what}");
            }
        }
    }
}

/// If only this one reply is lost, an object store's client can always find out.
#[tokio::test]
async fn a_lost_reply_to_the_swap_itself_is_found_out() {
    for place in [Place::Memory, Place::CreateOnly] {
        let (_guard, repo) = furnished(place).await;
        let template = repo.store().clone();
        for mode in modes(place) {
            for attempt in at_every_operation(Plan::new(0, mode)) {
                let n = attempt.at();
                let (_guard, store) = duplicate(&template, place).await;
                let (faulty, fault) = attempt.wrap(&store);
                let outcome = commit(&faulty).await;
                let swaps = |op: &String| op.starts_with("replace ") || op.starts_with("create ");
                if fault.log().get(n).is_some_and(swaps) {
                    let snapshot = outcome.unwrap();
                    let tip = &history(&reopen(&store).await, "main").await[0];
                    assert_eq!(tip.snapshot_id, snapshot.snapshot_id);
                }
            }
        }
    }
}

/// An error that is not "outcome unknown" leaves the session usable: the same commit again works.
#[tokio::test]
async fn a_failed_commit_can_be_repeated() {
    for place in Place::ALL {
        let (_guard, repo) = furnished(place).await;
        let template = repo.store().clone();
        for mode in modes(place) {
            for attempt in at_every_operation(Plan::new(0, mode)) {
                let n = attempt.at();
                let (_guard, store) = duplicate(&template, place).await;
                let (faulty, fault) = attempt.wrap(&store);
                let repo =
                    Repository::open_in(faulty.clone(), OpenOptions::default()).await.unwrap();
                let session = repo.writable_session("main").await.unwrap();
                let written = write_noise(&session, "/a", "0:4,0:8", 2).await;
                let first = session.commit(CommitOptions::message("ours")).await;
                let what = format!("{place:?} {mode:?} {n}: {first:?} {:#?}", fault.log());
                match first {
                    Ok(_) | Err(Error::OutcomeUnknown { .. }) => {}
                    Err(_) => {
                        let again = session.commit(CommitOptions::message("ours")).await;
                        assert!(again.is_ok(), "{what}\n{again:?}");
                    }
                }
                let repo = reopen(&store).await;
                let ours = history(&repo, "main").await;
                assert_eq!(ours.iter().filter(|s| s.message == "ours").count(), 1, "{what}");
                sound(&repo).await;
                if written.is_ok() {
                    let expected = super::support::noise(32, 2);
                    let found = read_at(&repo, &Version::branch("main"), "/a").await.unwrap();
                    assert_eq!(found[..32], expected, "{what}");
                }
            }
        }
    }
}

#[tokio::test]
async fn a_reference_change_is_acknowledged_exactly_if_it_happened() {
    for place in Place::ALL {
        let (_guard, repo) = furnished(place).await;
        let template = repo.store().clone();
        for mode in modes(place) {
            for work in 0..3 {
                for attempt in at_every_operation(Plan::new(0, mode).with_reads()) {
                    let n = attempt.at();
                    let (_guard, store) = duplicate(&template, place).await;
                    let before = picture(&reopen(&store).await).await;
                    let generation = reopen(&store).await.state().await.unwrap().generation;
                    let (faulty, fault) = attempt.wrap(&store);
                    let outcome = change(&faulty, work).await;
                    let what = format!("{place:?} {mode:?} {n}: {outcome:?} {:#?}", fault.log());
                    let repo = reopen(&store).await;
                    let generations = repo.state().await.unwrap().generation - generation;
                    let after = picture(&repo).await;
                    match outcome {
                        Ok(()) => assert_eq!((generations, after != before), (1, true), "{what}"),
                        Err(Error::OutcomeUnknown { .. }) => assert!(generations <= 1, "{what}"),
                        Err(_) => assert_eq!((generations, after), (0, before), "{what}"),
                    }
                    sound(&repo).await;
                }
            }
        }
    }
}

async fn change(store: &Store, work: u32) -> Result<()> {
    let repo = Repository::open_in(store.clone(), OpenOptions::default()).await?;
    match work {
        0 => repo.create_tag("v1", &Version::Default, false).await.map(drop),
        1 => repo.create_branch("side", &Version::Default).await.map(drop),
        _ => {
            let options = ExpireOptions { keep_last: Some(1), ..ExpireOptions::default() };
            repo.expire(&options).await.map(drop)
        }
    }
}

/// All requests time out for a while, and the first of them lands after all. What the caller is told
/// stays true, and the change is in history once.
#[tokio::test]
async fn a_commit_that_lands_late_is_in_history_once() {
    for place in [Place::Memory, Place::CreateOnly] {
        let (_guard, repo) = furnished(place).await;
        let template = repo.store().clone();
        for n in 0.. {
            let (_guard, store) = duplicate(&template, place).await;
            let (faulty, fault) = Fault::wrap(&store, Plan::new(n, Mode::Late(usize::MAX)));
            let repo = Repository::open_in(faulty.clone(), OpenOptions::default()).await.unwrap();
            let session = repo.writable_session("main").await.unwrap();
            write_noise(&session, "/a", "0:4,0:8", 2).await.ok();
            let first = session.commit(CommitOptions::message("ours")).await;
            fault.relent();
            let what = format!("{place:?} {n}: {first:?} {:#?}", fault.log());
            // Any later write comes just after the late one.
            faulty.put("tmp/x", vec!["x".into()]).await.unwrap();
            let landed = history(&reopen(&store).await, "main").await;
            let landed = landed.iter().filter(|s| s.message == "ours").count();
            match &first {
                Ok(_) => assert_eq!(landed, 1, "{what}"),
                Err(Error::OutcomeUnknown { .. }) => assert!(landed <= 1, "{what}"),
                Err(_) => assert_eq!(landed, 0, "{what}"),
            }
            if !fault.fired() {
                assert!(first.is_ok() && n > 1, "{what}");
                break;
            }
        }
    }
}
