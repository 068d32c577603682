//! Steps whose requests fail, lose their replies, or land late.

use std::sync::atomic::{AtomicU32, Ordering};

use super::*;
use crate::Options;
use crate::fault::{Fault, Mode, Plan, Refusal};

const PATH: &str = "refs/main";
const ASIDE: &str = "refs/aside";

fn memory() -> Store {
    Store::unnamed(&Options::default()).unwrap()
}

fn directory() -> (tempfile::TempDir, Store) {
    let temp = tempfile::tempdir().unwrap();
    let store = Store::open(temp.path().to_str().unwrap(), &Options::default()).unwrap();
    (temp, store)
}

fn parts(bytes: &Bytes) -> Content {
    Content::Parts(vec![bytes.slice(..1), bytes.slice(1..)])
}

async fn create(store: &Store, bytes: &'static str) -> Result<Outcome<Version>> {
    let bytes = Bytes::from(bytes);
    let witness = SameBytes { store, path: PATH, expected: None, bytes: &bytes };
    Step::new(store, PATH, witness).create(parts(&bytes), ASIDE).await
}

async fn replace(store: &Store, bytes: &'static str, old: &Version) -> Result<Outcome<Version>> {
    let bytes = Bytes::from(bytes);
    let witness = SameBytes { store, path: PATH, expected: Some(old), bytes: &bytes };
    Step::new(store, PATH, witness).replace(parts(&bytes), old, ASIDE).await
}

async fn publish(store: &Store, bytes: &'static str) -> Result<Outcome<Version>> {
    let bytes = Bytes::from(bytes);
    store.put(ASIDE, vec![bytes.clone()]).await?;
    let witness = SameBytes { store, path: PATH, expected: None, bytes: &bytes };
    Step::new(store, PATH, witness).publish(ASIDE).await
}

async fn content(store: &Store) -> Option<Bytes> {
    store.get(PATH).await.ok().map(|object| object.bytes)
}

async fn version(store: &Store) -> Version {
    Version::from(&store.head(PATH).await.unwrap())
}

/// The word for an outcome.
fn word<T>(outcome: &Result<Outcome<T>>) -> &'static str {
    match outcome {
        Ok(Outcome::Done(_)) => "done",
        Ok(Outcome::Lost) => "lost",
        Ok(Outcome::Unknown(_)) => "unknown",
        Err(_) => "failed",
    }
}

#[tokio::test]
async fn the_first_writer_is_done_and_the_second_is_lost() {
    let (_temp, local) = directory();
    for store in [memory(), local] {
        assert_eq!(word(&create(&store, "one").await), "done");
        assert_eq!(word(&create(&store, "two").await), "lost");
        assert_eq!(word(&publish(&store, "three").await), "lost");
        assert_eq!(content(&store).await.unwrap(), "one");
        assert!(store.head(ASIDE).await.is_ok(), "publishing leaves the original");
    }
}

#[tokio::test]
async fn a_file_on_the_way_goes_with_the_step() {
    let (_temp, store) = directory();
    for _ in 0..2 {
        create(&store, "one").await.unwrap();
        assert!(store.head(ASIDE).await.is_err());
    }
    let old = version(&store).await;
    assert_eq!(word(&replace(&store, "two", &old).await), "done");
    assert!(store.head(ASIDE).await.is_err());
    assert_eq!(content(&store).await.unwrap(), "two");
}

#[tokio::test]
async fn only_the_expected_state_is_replaced() {
    let store = memory();
    create(&store, "one").await.unwrap();
    let old = version(&store).await;
    let Outcome::Done(new) = replace(&store, "two", &old).await.unwrap() else { panic!() };
    assert_eq!(word(&replace(&store, "three", &old).await), "lost");
    assert_eq!(word(&replace(&store, "three", &new).await), "done");
    assert_eq!(content(&store).await.unwrap(), "three");
}

#[tokio::test]
async fn one_request_that_goes_wrong_is_found_out() {
    for mode in [Mode::LoseReply, Mode::FailOnce, Mode::Late(0), Mode::Late(1)] {
        let store = memory();
        let (faulty, fault) = Fault::wrap(&store, Plan::new(0, mode));
        assert_eq!(word(&create(&faulty, "one").await), "done", "{mode:?}");
        assert_eq!(content(&store).await.unwrap(), "one", "{mode:?}");
        assert!(fault.fired());

        let old = version(&store).await;
        let (faulty, _) = Fault::wrap(&store, Plan::new(0, mode));
        assert_eq!(word(&replace(&faulty, "two", &old).await), "done", "{mode:?}");
        assert_eq!(content(&store).await.unwrap(), "two", "{mode:?}");

        let store = memory();
        let (faulty, _) = Fault::wrap(&store, Plan::new(1, mode));
        assert_eq!(word(&publish(&faulty, "one").await), "done", "{mode:?}");
        assert_eq!(content(&store).await.unwrap(), "one", "{mode:?}");
    }
}

/// The reply to ours is lost while another writer, who was faster, has the place.
#[tokio::test]
async fn a_lost_race_is_no_unknown_outcome() {
    for mode in [Mode::LoseReply, Mode::FailOnce, Mode::Late(0)] {
        let store = memory();
        create(&store, "theirs").await.unwrap();
        let (faulty, _) = Fault::wrap(&store, Plan::new(0, mode));
        assert_eq!(word(&create(&faulty, "ours").await), "lost", "{mode:?}");
        assert_eq!(content(&store).await.unwrap(), "theirs", "{mode:?}");
    }
}

/// What cannot be told is not called a failure, because it may still happen; the same step again
/// tells.
#[tokio::test]
async fn silence_is_an_unknown_outcome_and_the_same_step_again_tells() {
    let store = memory();
    let (faulty, fault) = Fault::wrap(&store, Plan::new(0, Mode::Late(usize::MAX)));
    let outcome = create(&faulty, "one").await;
    assert_eq!(word(&outcome), "unknown");
    let error = outcome.unwrap().known(|| "creating it".into()).unwrap_err();
    assert!(matches!(error, Error::OutcomeUnknown { .. }), "{error:?}");
    assert_eq!(content(&store).await, None);
    fault.relent();
    assert_eq!(word(&create(&faulty, "one").await), "done");
    assert_eq!(content(&store).await.unwrap(), "one");
    assert_eq!(word(&create(&faulty, "two").await), "lost");
}

#[tokio::test]
async fn an_outcome_that_cannot_be_read_back_is_unknown() {
    let store = memory();
    let (faulty, _) = Fault::wrap(&store, Plan::new(0, Mode::DieAfter));
    assert_eq!(word(&create(&faulty, "one").await), "unknown");
    assert_eq!(content(&store).await.unwrap(), "one");
}

/// A kernel does not do later what it refused before.
#[tokio::test]
async fn a_directory_that_refuses_is_a_failure_without_a_trace() {
    for n in 0..3 {
        let (_temp, store) = directory();
        let mode = Mode::Refuse(Refusal::NoSpace);
        let (faulty, fault) = Fault::wrap(&store, Plan::new(n, mode));
        assert_eq!(word(&create(&faulty, "one").await), "failed", "{n} {:?}", fault.log());
        assert_eq!(content(&store).await, None);
    }
}

#[tokio::test]
async fn a_name_that_may_not_survive_is_an_unknown_outcome() {
    let (_temp, store) = directory();
    let (faulty, fault) = Fault::wrap(&store, Plan::new(3, Mode::FailOnce));
    assert_eq!(word(&create(&faulty, "one").await), "unknown");
    assert_eq!(fault.log()[3], "sync_dir refs");
    let old = version(&store).await;
    let (faulty, _) = Fault::wrap(&store, Plan::new(3, Mode::FailOnce));
    assert_eq!(word(&replace(&faulty, "two", &old).await), "unknown");
}

/// An error of the arguments says that nothing was sent; but a request before it may be on its way.
#[tokio::test]
async fn a_refusal_is_final_only_if_nothing_is_under_way() {
    struct Nothing;
    #[async_trait]
    impl Witness for Nothing {
        type Proof = ();
        async fn look(&self) -> Result<Sight<()>> {
            Ok(Sight::Before)
        }
        fn acknowledged(&self, _: Version) {}
    }
    let store = memory();
    for (timed_out, expected) in [(0, "failed"), (1, "unknown")] {
        let sent = AtomicU32::new(0);
        let step = Step::new(&store, PATH, Nothing);
        let outcome = step.send(|| async {
            match sent.fetch_add(1, Ordering::Relaxed) {
                at if at < timed_out => Err(Error::store("create", PATH, "timed out")),
                _ => Err(Error::unsupported("that")),
            }
        });
        assert_eq!(word(&outcome.await), expected);
    }
}
