//! Two processes write to or compact a container on an object store. Each falls asleep at any of its
//! operations, and the first wakes up while the second sleeps: all acknowledged data is there.

use chunkyard_array::Region;
use chunkyard_format::container::{CompactOptions, Container, ContainerOptions};
use chunkyard_store::fault::{Fault, Mode, Plan, overlap, pairs};
use chunkyard_store::{ErrorKind, Result, Store};

use super::support::{create, definition, memory, open, place, read, write};

#[derive(Clone, Copy, Debug, PartialEq)]
enum Work {
    /// Two flushes of an array of its own.
    Write(&'static str),
    Compact,
}

/// A container of three layers, in a store of its own.
async fn container() -> Store {
    let store = memory();
    let container = create(&store).await;
    for name in ["one", "other", "still"] {
        container.define(definition(name, &[4], &[2])).await.unwrap();
        write(&container, name, &[0], vec![1, 1, 1, 1]).await;
        container.flush().await.unwrap();
    }
    store
}

/// How many flushes, or compactions, were acknowledged.
async fn work(store: &Store, work: Work) -> i32 {
    let done = match Container::open(&place(store), ContainerOptions::default()).await {
        Ok(container) => match work {
            Work::Write(name) => write_twice(&container, name).await,
            Work::Compact => container.compact(&CompactOptions::default()).await.map(|_| 1),
        },
        Err(error) => Err(error),
    };
    done.unwrap_or_else(|error| {
        assert_eq!(error.kind(), ErrorKind::Conflict, "{work:?} {error:?}");
        0
    })
}

async fn write_twice(container: &Container, name: &str) -> Result<i32> {
    for done in 0..2 {
        let flushed = match change(container, name, done + 2).await {
            Ok(()) => container.flush().await,
            Err(error) => Err(error),
        };
        match flushed {
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::Conflict => return Ok(done),
            Err(error) => return Err(error),
        }
    }
    Ok(2)
}

/// Changes a part of each chunk, which has to be read for it.
async fn change(container: &Container, name: &str, value: i32) -> Result<()> {
    let bytes = [value, value].map(i32::to_le_bytes).concat();
    let writer = container.array(name).await?.writer()?;
    writer.write_region(&Region::new([1], [2])?, bytes.into()).await
}

/// The first falls asleep before operation `first`; then the second begins, and falls asleep before its
/// write `second`.
async fn two(works: [Work; 2], first: usize, second: usize) {
    let what = format!("{works:?} {first} {second}");
    let store = container().await;
    let (early, asleep) = Fault::wrap(&store, Plan::new(first, Mode::Sleep).with_reads());
    let (late, asleep_too) = Fault::wrap(&store, Plan::new(second, Mode::Sleep));
    let (one, other) =
        overlap((&asleep, work(&early, works[0])), (&asleep_too, work(&late, works[1]))).await;
    for compacted in [false, true] {
        if compacted {
            open(&store).await.compact(&CompactOptions::default()).await.unwrap();
        }
        let container = open(&store).await;
        for (done, work) in [one, other].into_iter().zip(works) {
            let Work::Write(name) = work else { continue };
            let value = done + 1;
            assert_eq!(read(&container, name).await, [1, value, value, 1], "{what} {compacted}");
        }
        assert_eq!(read(&container, "still").await, [1; 4], "{what} {compacted}");
    }
}

async fn every_pair(works: [Work; 2]) {
    let (counted, operations) = Fault::wrap(&container().await, Plan::never().with_reads());
    assert!(work(&counted, works[0]).await > 0);
    let (counted, writes) = Fault::wrap(&container().await, Plan::never());
    assert!(work(&counted, works[1]).await > 0);
    // The second sleeps at writes only: the timing of its reads does not matter.
    for (first, second) in pairs(operations.ops(), writes.ops(), usize::MAX) {
        two(works, first, second).await;
    }
}

#[tokio::test]
async fn two_writers_that_fall_asleep_undo_nothing() {
    every_pair([Work::Write("one"), Work::Write("other")]).await;
}

#[tokio::test]
async fn a_writer_that_falls_asleep_while_another_compacts_loses_nothing() {
    every_pair([Work::Write("one"), Work::Compact]).await;
}

#[tokio::test]
async fn a_compactor_that_falls_asleep_undoes_nothing() {
    every_pair([Work::Compact, Work::Write("other")]).await;
    every_pair([Work::Compact, Work::Compact]).await;
}
