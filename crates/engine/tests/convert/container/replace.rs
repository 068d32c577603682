//! Conversions that replace a container.

use chunkyard_engine::ErrorKind;
use chunkyard_engine::store::fault::{self, Mode, at_every_operation};

use super::TARGET;
use super::support::{definition, directory, empty_footer, files, furnished, layer_file, open};
use crate::convert::crash::Work;
use crate::convert::formats::named;
use crate::convert::support::{PATH, Yard};

/// A conversion that replaces an existing container.
async fn replacing() -> Work {
    let mut work = Work::new(&Yard::memory(), named("container")).await;
    (work.name, work.overwrite) = ("x", true);
    work
}

/// Readers see the old container, layers and all, until they see the new one.
#[tokio::test]
async fn every_operation_of_replacing_a_container_can_be_the_last() {
    let work = replacing().await;
    for foreign in [false, true] {
        for mode in [Mode::Die, Mode::DieAfter] {
            for attempt in at_every_operation(fault::Plan::new(0, mode)) {
                let n = attempt.at();
                let (_temp, store) = directory();
                furnished(&store).await;
                if foreign {
                    // A layer of another program, which does not say which container it belongs to.
                    let layer = layer_file(&[], &empty_footer(9, TARGET));
                    store.put("x.9.af", vec![layer]).await.unwrap();
                }
                let (faulty, fault) = attempt.wrap(&store);
                let outcome = work.run(&faulty).await;
                let what = format!("{mode:?} {n} {foreign}: {outcome:?} {:#?}", fault.log());
                let container = open(&store).await;
                let names = container.names().await.unwrap();
                match names.len() {
                    1 => assert_eq!(names, [PATH.trim_start_matches('/')], "{what}"),
                    _ => assert_eq!(names, ["a/b", "c", "text"], "{what}"),
                }
                let layers = container.layers().await.unwrap().len();
                let expected = if names.len() == 1 { 1 } else { 3 + usize::from(foreign) };
                assert_eq!(layers, expected, "{what}");
                work.run(&store).await.unwrap_or_else(|error| panic!("{what}: {error:?}"));
                assert!(work.is_there(&store, &what).await, "{what}");
                let mut left = files(&store).await;
                left.retain(|name| name.starts_with('x'));
                assert_eq!(left, [TARGET, "x.stats"], "{what}");
            }
        }
    }
}

/// A writer that still has the old container open cannot write into the new one, and gets an error.
#[tokio::test]
async fn a_writer_of_a_container_that_was_replaced_gets_a_conflict() {
    let (_temp, store) = directory();
    let old = furnished(&store).await;
    old.define(definition("late", &[1], &[1])).await.unwrap();
    let work = replacing().await;
    work.run(&store).await.unwrap();
    for _ in 0..2 {
        let error = old.flush().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
        let error = old.refresh().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
    }
    assert!(work.is_there(&store, "after").await);
    assert_eq!(files(&store).await, [TARGET, "x.stats"]);
}
