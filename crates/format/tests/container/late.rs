//! A request of a flush times out and takes effect later, or its reply is lost. The flush is repeated, with
//! more changes if the container takes any: it must not take its own layer for that of another writer.

use chunkyard_array::{ElementsBuf, Region};
use chunkyard_format::container::{CompactOptions, Container, ContainerOptions};
use chunkyard_store::fault::{Fault, Mode, Plan};
use chunkyard_store::{Error, Result, Store};

use super::support::{create, definition, open, place, read};
use chunkyard_test_support::{Place, duplicate};

async fn put(container: &Container, at: u64, value: i32) -> Result<()> {
    let region = Region::new([at], [1])?;
    let elements = ElementsBuf::Fixed(value.to_le_bytes().to_vec());
    container.array("c").await?.writer()?.write_elements(&region, elements).await
}

async fn template(place: Place) -> Store {
    let (_, store) = place.open();
    let container = create(&store).await;
    container.define(definition("c", &[4], &[2])).await.unwrap();
    container.flush().await.unwrap();
    store
}

/// A container with a change that waits, in a store where operation `n` of its flush goes wrong.
async fn changed(store: &Store, n: usize, mode: Mode) -> (Container, std::sync::Arc<Fault>) {
    let (faulty, fault) = Fault::wrap(store, Plan::new(n, mode));
    let container = open(&faulty).await;
    put(&container, 0, 8).await.unwrap();
    (container, fault)
}

async fn flush_around(at: Place, mode: Mode) {
    let template = template(at).await;
    for n in 0.. {
        let (_guard, store) = duplicate(&template, at).await;
        let (container, fault) = changed(&store, n, mode).await;
        let first = container.flush().await;
        fault.relent();
        let what = format!("{at:?} {mode:?} {n}: {first:?} {:#?}", fault.log());
        if matches!(first, Err(Error::OutcomeUnknown { .. })) {
            // Until it is known, nothing can be added to it.
            assert!(put(&container, 3, 7).await.is_err(), "{what}");
        } else {
            put(&container, 3, 7).await.unwrap();
        }
        let again = container.flush().await;
        assert!(again.is_ok(), "{what} {again:?}");
        put(&container, 3, 7).await.unwrap();
        container.flush().await.unwrap_or_else(|error| panic!("{what} {error:?}"));
        assert!(!container.is_changed(), "{what}");
        assert_eq!(read(&container, "c").await, [8, 0, 0, 7], "{what}");
        assert_eq!(read(&open(&store).await, "c").await, [8, 0, 0, 7], "{what}");
        if !fault.fired() {
            assert!(first.is_ok() && n > 0, "{what}");
            break;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_layer_that_lands_late_is_known_as_our_own() {
    for place in [Place::Memory, Place::CreateOnly] {
        for mode in [Mode::LoseReply, Mode::Late(0), Mode::Late(1), Mode::Late(usize::MAX)] {
            flush_around(place, mode).await;
        }
    }
}

/// If only one request goes wrong, a flush finds out.
#[tokio::test]
async fn one_time_out_is_no_error_of_a_flush() {
    let template = template(Place::Memory).await;
    for mode in [Mode::LoseReply, Mode::Late(0)] {
        let (_guard, store) = duplicate(&template, Place::Memory).await;
        let (container, fault) = changed(&store, 0, mode).await;
        let flushed = container.flush().await;
        assert!(fault.fired() && fault.log()[0].starts_with("create "), "{:?}", fault.log());
        assert_eq!(flushed.unwrap().unwrap().layer, 2, "{mode:?}");
        assert_eq!(read(&open(&store).await, "c").await, [8, 0, 0, 0], "{mode:?}");
    }
}

/// Another writer takes the number while ours is unknown: then it can never land.
#[tokio::test]
async fn an_unknown_layer_loses_to_another_writer() {
    let store = template(Place::Memory).await;
    let (container, fault) = changed(&store, 0, Mode::Late(usize::MAX)).await;
    let unknown = container.flush().await.unwrap_err();
    assert!(matches!(unknown, Error::OutcomeUnknown { .. }), "{unknown:?}");
    let unknown = container.refresh().await.unwrap_err();
    assert!(unknown.to_string().contains("flush again"), "{unknown}");
    let other = open(&store).await;
    put(&other, 1, 5).await.unwrap();
    other.flush().await.unwrap();
    fault.relent();
    let lost = container.flush().await.unwrap_err();
    assert!(matches!(lost, Error::Conflict { .. }), "{lost:?}");
    assert!(container.is_changed());
    container.discard().await;
    container.refresh().await.unwrap();
    assert_eq!(read(&container, "c").await, [0, 5, 0, 0]);
}

/// A new base that lands late holds the same as the layers, and a compaction can be repeated.
#[tokio::test]
async fn a_base_that_lands_late_is_known_as_our_own() {
    let template = template(Place::Memory).await;
    for mode in [Mode::LoseReply, Mode::Late(0)] {
        for n in 0.. {
            let (_guard, store) = duplicate(&template, Place::Memory).await;
            let (faulty, fault) = Fault::wrap(&store, Plan::new(n, mode));
            let container =
                Container::open(&place(&faulty), ContainerOptions::default()).await.unwrap();
            let compacted = container.compact(&CompactOptions::default()).await;
            let what = format!("{mode:?} {n}: {compacted:?} {:#?}", fault.log());
            if fault.log().get(n).is_some_and(|op| op.starts_with("replace ")) {
                assert!(compacted.is_ok(), "{what}");
            }
            container.compact(&CompactOptions::default()).await.unwrap();
            assert_eq!(read(&open(&store).await, "c").await, [0; 4], "{what}");
            if !fault.fired() {
                assert!(n > 0, "{what}");
                break;
            }
        }
    }
}
