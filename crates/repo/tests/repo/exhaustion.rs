//! The machine says no: the disk is full, has become read-only, belongs to another user, or no more
//! files can be opened. At every operation of anything a repository does.
//!
//! Unlike a crash this is an answer, and the program lives on. So the error must say what was
//! refused and where; the repository must be exactly as before or as after the work; nothing may be
//! left that a collection does not delete; and once the condition ends, the same process can do the
//! same work. The command's tests repeat some of this on real file systems, where they can be made
//! to refuse.

use std::io;

use chunkyard_repo::{CreateOptions, OpenOptions, Repository};
use chunkyard_store::fault::{Mode, Plan, Refusal, at_every_operation};
use chunkyard_store::{Error, ErrorKind, Store};

use super::crash::{Work, again, each_work, furnished, survives};
use super::support::{Picture, Place, duplicate, picture, reopen, sound};

const REFUSALS: [Refusal; 4] =
    [Refusal::NoSpace, Refusal::ReadOnly, Refusal::Denied, Refusal::TooManyFiles];

/// A plan that refuses from operation `n` on. Reads open files too, and can be refused for that.
fn plan(n: usize, refusal: Refusal) -> Plan {
    let plan = Plan::new(n, Mode::Refuse(refusal));
    if refusal == Refusal::TooManyFiles { plan.with_reads() } else { plan }
}

/// The error is a store error, says where, and has the system's error as its last cause.
fn is_clear(error: &Error, refusal: Refusal, what: &str) {
    assert_eq!(error.kind(), ErrorKind::Store, "{what}");
    assert_eq!(error.kind(), chunkyard_store::ErrorKind::Store);
    if let Error::Store { path, .. } = error {
        assert!(!path.is_empty(), "{what}");
    }
    let mut cause: &dyn std::error::Error = error;
    while let Some(below) = cause.source() {
        cause = below;
    }
    let kind = cause.downcast_ref::<io::Error>().map(io::Error::kind);
    let expected = match refusal {
        Refusal::NoSpace => io::ErrorKind::StorageFull,
        Refusal::ReadOnly => io::ErrorKind::ReadOnlyFilesystem,
        Refusal::Denied => io::ErrorKind::PermissionDenied,
        // The library has no stable name for it.
        Refusal::TooManyFiles => io::Error::from_raw_os_error(24).kind(),
    };
    assert_eq!(kind, Some(expected), "{what}");
}

async fn refuse_everywhere(template: &Store, place: Place, work: Work, refusals: &[Refusal]) {
    let before = picture(&reopen(template).await).await;
    let (_guard, store) = duplicate(template, place).await;
    work.run(&store).await.unwrap();
    let after = picture(&reopen(&store).await).await;
    for &refusal in refusals {
        for attempt in at_every_operation(plan(0, refusal)) {
            let n = attempt.at();
            let (_guard, store) = duplicate(template, place).await;
            let (faulty, fault) = attempt.wrap(&store);
            let outcome = work.run(&faulty).await;
            let what =
                format!("{place:?} {work:?} {refusal:?} at {n}: {outcome:?} {:#?}", fault.log());
            if let Err(error) = &outcome {
                assert!(fault.fired(), "{what}");
                is_clear(error, refusal, &what);
            }
            fault.relent();
            finishes(&faulty, work, &before, &after, outcome.is_ok(), &what).await;
            survives(&store, &after, &after, true, &what).await;
        }
    }
}

/// Whatever was refused, the same process finds the repository as before or as after the work, and
/// in the former case can now do the work.
async fn finishes(
    store: &Store,
    work: Work,
    before: &Picture,
    after: &Picture,
    acknowledged: bool,
    what: &str,
) {
    let found = picture(&reopen(store).await).await;
    assert!(found == *after || (found == *before && !acknowledged), "{what}\n{found:?}");
    if found != *after || before == after {
        work.run(store).await.unwrap_or_else(|error| panic!("{what}: again: {error}"));
        assert_eq!(picture(&reopen(store).await).await, *after, "{what}");
    }
}

async fn refuse_all(place: Place, refusals: &'static [Refusal]) {
    each_work(place, move |template, work| async move {
        refuse_everywhere(&template, place, work, refusals).await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_operation_can_be_refused() {
    // A read-only file system refuses the same operations, so only the object stores try this one.
    const LOCAL: [Refusal; 3] = [Refusal::NoSpace, Refusal::ReadOnly, Refusal::TooManyFiles];
    refuse_all(Place::Local, &LOCAL).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_operation_can_be_refused_by_an_object_store() {
    refuse_all(Place::Memory, &[Refusal::Denied]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_operation_can_be_refused_where_objects_can_only_be_created() {
    refuse_all(Place::CreateOnly, &[Refusal::Denied]).await;
}

#[tokio::test]
async fn every_operation_of_creating_a_repository_can_be_refused() {
    for place in Place::ALL {
        for refusal in REFUSALS {
            for attempt in at_every_operation(plan(0, refusal)) {
                let n = attempt.at();
                let (_guard, store) = place.open();
                let (faulty, fault) = attempt.wrap(&store);
                let options = OpenOptions::default();
                let outcome =
                    Repository::create_in(faulty, options, CreateOptions::default()).await;
                let what = format!("{place:?} {refusal:?} at {n}: {outcome:?} {:#?}", fault.log());
                if let Err(error) = &outcome {
                    assert!(fault.fired(), "{what}");
                    is_clear(error, refusal, &what);
                }
                match Repository::open_in(store.clone(), OpenOptions::default()).await {
                    Ok(repo) => assert_eq!(sound(&repo).await, 0, "{what}"),
                    Err(Error::NotFound { .. }) => {
                        assert!(outcome.is_err(), "{what}");
                        again(&store).await;
                    }
                    Err(error) => panic!("{what}: {error}"),
                }
            }
        }
    }
}

/// Opening and reading only fail, and change nothing.
#[tokio::test]
async fn every_read_can_be_refused() {
    let (_guard, store) = Place::Local.open();
    let expected = picture(&furnished(&store).await).await;
    for attempt in at_every_operation(plan(0, Refusal::TooManyFiles)) {
        let n = attempt.at();
        let (faulty, fault) = attempt.wrap(&store);
        let read = async {
            let repo = Repository::open_in(faulty, OpenOptions::default()).await?;
            let session = repo.readonly_session(&chunkyard_repo::Version::Default).await?;
            super::support::contents(&session).await
        };
        let outcome = read.await;
        let what = format!("at {n}: {outcome:?} {:#?}", fault.log());
        match outcome {
            Ok(contents) => {
                assert!(!fault.fired(), "{what}");
                assert_eq!(contents, expected.references["Branch main"][0].1);
                break;
            }
            Err(error) => is_clear(&error, Refusal::TooManyFiles, &what),
        }
    }
}
