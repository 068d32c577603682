//! Layers: their names, their order, who may write them.

use chunkyard_format::container::{CompactOptions, Container, ContainerOptions, Reason};
use chunkyard_store::fault::{Fault, Mode, Plan};
use chunkyard_store::{Error, ErrorKind};

use super::text;
use crate::container::support::{
    contents, create, definition, directory, empty_footer, files, furnished, layer_file, memory,
    open, place, read, try_read, write,
};

#[tokio::test]
async fn a_deleted_array_does_not_come_back_when_its_name_is_used_again() {
    let store = memory();
    let container = create(&store).await;
    container.define(definition("a", &[6], &[2])).await.unwrap();
    write(&container, "a", &[0], vec![1; 6]).await;
    container.flush().await.unwrap();
    container.delete("a").await.unwrap();
    container.flush().await.unwrap();
    assert!(open(&store).await.names().await.unwrap().is_empty());
    container.define(definition("a", &[6], &[2])).await.unwrap();
    write(&container, "a", &[2], vec![7]).await;
    assert_eq!(read(&container, "a").await, [0, 0, 7, 0, 0, 0]);
    container.flush().await.unwrap();
    assert_eq!(read(&open(&store).await, "a").await, [0, 0, 7, 0, 0, 0]);
    // Deleted and made anew within one layer, so there is no tombstone.
    container.delete("a").await.unwrap();
    container.define(definition("a", &[6], &[2])).await.unwrap();
    container.flush().await.unwrap();
    let again = open(&store).await;
    assert_eq!(read(&again, "a").await, [0; 6]);
    assert_eq!(again.statistics("a").await.unwrap().unwrap().null_count, 6);
    again.compact(&CompactOptions::default()).await.unwrap();
    assert_eq!(read(&open(&store).await, "a").await, [0; 6]);
}

#[tokio::test]
async fn two_writers_cannot_overwrite_each_others_layer() {
    let (_temp, local) = directory();
    for store in [memory(), local] {
        create(&store).await;
        let (one, two) = (open(&store).await, open(&store).await);
        one.define(definition("one", &[2], &[2])).await.unwrap();
        two.define(definition("two", &[2], &[2])).await.unwrap();
        write(&two, "two", &[0], vec![2, 2]).await;
        assert_eq!(one.flush().await.unwrap().unwrap().layer, 1);
        let lost = two.flush().await.unwrap_err();
        assert_eq!(lost.kind(), ErrorKind::Conflict, "{lost}");
        assert!(two.is_changed());
        two.refresh().await.unwrap();
        assert_eq!(two.flush().await.unwrap().unwrap().layer, 2);
        let both = open(&store).await;
        assert_eq!(both.names().await.unwrap(), ["one", "two"]);
        assert_eq!(read(&both, "two").await, [2, 2]);
    }
}

#[tokio::test]
async fn a_number_of_a_layer_is_never_used_twice() {
    let store = memory();
    let container = create(&store).await;
    container.define(definition("a", &[2], &[2])).await.unwrap();
    container.flush().await.unwrap();
    // Layers of another program: one, then a gap.
    let other = layer_file(&[], &empty_footer(7, "x.af"));
    store.put("x.7.af", vec![other.clone()]).await.unwrap();
    let container = open(&store).await;
    write(&container, "a", &[0], vec![1, 2]).await;
    assert_eq!(container.flush().await.unwrap().unwrap().layer, 8);
    assert_eq!(store.get("x.7.af").await.unwrap().bytes, other);
    container.compact(&CompactOptions::default()).await.unwrap();
    assert_eq!(files(&store).await, ["x.af", "x.stats"]);
    let container = open(&store).await;
    write(&container, "a", &[0], vec![3]).await;
    assert_eq!(container.flush().await.unwrap().unwrap().layer, 9);
    assert_eq!(read(&open(&store).await, "a").await, [3, 2]);
}

/// The number is free again once its layer was merged, so creating the file proves nothing.
#[tokio::test]
async fn a_writer_that_slept_through_a_compaction_cannot_use_a_merged_number() {
    let (_temp, local) = directory();
    for store in [memory(), local] {
        for compactions in 1..=3 {
            let store = store.below(&format!("{compactions}")).unwrap();
            furnished(&store).await;
            let (asleep, other) = (open(&store).await, open(&store).await);
            write(&asleep, "c", &[0], vec![100]).await;
            other.define(definition("d", &[1], &[1])).await.unwrap();
            let awake = open(&store).await;
            for value in 0..compactions {
                write(&awake, "c", &[0], vec![10 + value]).await;
                awake.flush().await.unwrap();
                awake.compact(&CompactOptions::default()).await.unwrap();
            }
            let expected = contents(&awake).await.unwrap();
            for writer in [&asleep, &other] {
                let refused = writer.flush().await.unwrap_err();
                assert_eq!(refused.kind(), ErrorKind::Conflict, "{refused}");
                assert!(writer.is_changed());
            }
            assert_eq!(files(&store).await, ["x.af", "x.stats"]);
            assert_eq!(contents(&open(&store).await).await.unwrap(), expected);
            // It changed the same array as others, so it gets the conflict again.
            assert_eq!(asleep.refresh().await.unwrap_err().kind(), ErrorKind::Conflict);
            asleep.discard().await;
            asleep.refresh().await.unwrap();
            write(&asleep, "c", &[0], vec![100]).await;
            asleep.flush().await.unwrap();
            assert_eq!(read(&open(&store).await, "c").await, [100, 2, 3, 4]);
        }
    }
}

/// The writer dies before it can delete its useless layer.
#[tokio::test]
async fn a_layer_that_was_written_in_vain_does_not_count() {
    let store = memory();
    furnished(&store).await;
    let (faulty, fault) = Fault::wrap(&store, Plan::new(1, Mode::Die));
    let asleep = open(&faulty).await;
    asleep.define(definition("d", &[1], &[1])).await.unwrap();
    let awake = open(&store).await;
    for value in [8, 9] {
        write(&awake, "c", &[0], vec![value]).await;
        awake.flush().await.unwrap();
        awake.compact(&CompactOptions::default()).await.unwrap();
    }
    asleep.flush().await.unwrap_err();
    assert!(fault.dead(), "{:?}", fault.log());
    assert!(files(&store).await.contains(&"x.3.af".to_owned()));
    let container = open(&store).await;
    assert_eq!(read(&container, "c").await, [9, 2, 3, 4]);
    assert_eq!(container.ignored()[0].reason, Reason::Foreign);
    write(&container, "c", &[0], vec![5]).await;
    assert_eq!(container.flush().await.unwrap().unwrap().layer, 5);
    assert_eq!(read(&open(&store).await, "c").await, [5, 2, 3, 4]);
}

#[tokio::test]
async fn a_layer_made_on_a_base_that_was_packed_anew_since_counts() {
    let store = memory();
    furnished(&store).await.compact(&CompactOptions::default()).await.unwrap();
    let writer = open(&store).await;
    write(&writer, "c", &[0], vec![100]).await;
    for _ in 0..3 {
        let repack = CompactOptions { repack: true, ..CompactOptions::default() };
        open(&store).await.compact(&repack).await.unwrap();
    }
    // The chunks that it read are gone; the chunks that it wrote are not.
    if let Err(error) = writer.flush().await {
        assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
        writer.refresh().await.unwrap();
        writer.flush().await.unwrap();
    }
    assert_eq!(read(&open(&store).await, "c").await, [100, 2, 3, 4]);
}

#[tokio::test]
async fn a_file_named_like_a_layer_is_not_adopted() {
    let store = memory();
    let container = create(&store).await;
    container.define(definition("a", &[2], &[2])).await.unwrap();
    container.flush().await.unwrap();
    // A container of its own, ours or not, and a layer of yet another container.
    store.put("x.5.af", vec![layer_file(&[], &empty_footer(0, ""))]).await.unwrap();
    let other = memory();
    create(&other).await.define(definition("b", &[1], &[1])).await.unwrap();
    store.put("x.6.af", vec![other.get("x.af").await.unwrap().bytes]).await.unwrap();
    let theirs = open(&other).await;
    theirs.define(definition("b", &[1], &[1])).await.unwrap();
    theirs.flush().await.unwrap();
    store.put("x.7.af", vec![other.get("x.1.af").await.unwrap().bytes]).await.unwrap();
    let container = open(&store).await;
    assert_eq!(container.names().await.unwrap(), ["a"]);
    let ignored: Vec<_> =
        container.ignored().iter().map(|file| (file.number, file.reason)).collect();
    assert_eq!(ignored, [5, 6, 7].map(|number| (number, Reason::Foreign)));
    write(&container, "a", &[0], vec![1, 2]).await;
    assert_eq!(container.flush().await.unwrap().unwrap().layer, 8);
    container.compact(&CompactOptions::default()).await.unwrap();
    let left = files(&store).await;
    assert_eq!(left, ["x.5.af", "x.6.af", "x.7.af", "x.af", "x.stats"]);
    assert_eq!(read(&open(&store).await, "a").await, [1, 2]);
    // A file that says it is a layer, but of another base: the user must decide.
    store.put("x.9.af", vec![layer_file(&[], &empty_footer(9, "d/y.af"))]).await.unwrap();
    let error = Container::open(&place(&store), ContainerOptions::default()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
    let renamed = ContainerOptions { renamed: true, ..Default::default() };
    Container::open(&place(&store), renamed).await.unwrap();
}

#[tokio::test]
async fn creating_over_a_container_is_refused() {
    let (_temp, local) = directory();
    for store in [memory(), local] {
        let before = contents(&furnished(&store).await).await.unwrap();
        let create = || async {
            let created = Container::create(&place(&store), ContainerOptions::default()).await;
            created.map(drop)
        };
        let error = create().await.unwrap_err();
        assert!(matches!(error, Error::AlreadyExists { .. }), "{error:?}");
        assert_eq!(contents(&open(&store).await).await.unwrap(), before);
        // Only the base is gone: its sidecars would become sidecars of the new one.
        store.delete(&["x.af".to_owned()]).await.unwrap();
        let error = create().await.unwrap_err();
        assert!(matches!(error, Error::AlreadyExists { .. }), "{error:?}");
        store.delete(&["x.1.af".to_owned(), "x.2.af".to_owned()]).await.unwrap();
        create().await.unwrap();
        assert!(open(&store).await.names().await.unwrap().is_empty());
    }
}

#[tokio::test]
async fn a_failed_flush_keeps_what_was_written() {
    let (_temp, local) = directory();
    // An object store is asked again, so the flush works; a directory has said no.
    for (store, fails) in [(memory(), false), (local, true)] {
        let container = create(&store).await;
        container.define(definition("c", &[4], &[2])).await.unwrap();
        container.flush().await.unwrap();
        let (faulty, _fault) = Fault::wrap(&store, Plan::new(0, Mode::FailOnce));
        let container = open(&faulty).await;
        write(&container, "c", &[0], vec![8, 9]).await;
        container.set_attribute("c", "units", text("m")).await.unwrap();
        assert_eq!(container.flush().await.is_err(), fails);
        assert_eq!(container.is_changed(), fails);
        assert_eq!(read(&container, "c").await, [8, 9, 0, 0]);
        // More can be written; then all of it is flushed.
        write(&container, "c", &[3], vec![7]).await;
        container.flush().await.unwrap();
        assert!(!container.is_changed());
        let again = open(&store).await;
        assert_eq!(read(&again, "c").await, [8, 9, 0, 7]);
        assert_eq!(again.attribute("c", "units").await.unwrap(), Some(text("m")));
    }
}

#[tokio::test]
async fn a_rewritten_path_is_never_served_from_a_cache() {
    let (_temp, local) = directory();
    for store in [memory(), local] {
        let container = create(&store).await;
        container.define(definition("a", &[2], &[2])).await.unwrap();
        for value in 1..4 {
            write(&container, "a", &[0], vec![value, value]).await;
            container.flush().await.unwrap();
            assert_eq!(read(&container, "a").await, [value, value]);
            container.compact(&CompactOptions::default()).await.unwrap();
            assert_eq!(read(&container, "a").await, [value, value]);
            assert_eq!(read(&open(&store).await, "a").await, [value, value]);
        }
        // Another handle rewrites data that this one has read: this one fails, or is right.
        let other = open(&store).await;
        write(&other, "a", &[0], vec![9, 9]).await;
        other.compact(&CompactOptions::default()).await.unwrap();
        match try_read(&container, "a").await {
            Ok(found) => assert_eq!(found, [3, 3]),
            Err(error) => assert_eq!(error.kind(), ErrorKind::Conflict, "{error}"),
        }
        container.refresh().await.unwrap();
        assert_eq!(read(&container, "a").await, [9, 9]);
    }
}

#[tokio::test]
async fn compacting_with_changes_pending_keeps_them() {
    let store = memory();
    let container = furnished(&store).await;
    write(&container, "c", &[1], vec![20]).await;
    container.define(definition("d", &[1], &[1])).await.unwrap();
    container.compact(&CompactOptions::default()).await.unwrap();
    assert!(!container.is_changed());
    write(&container, "c", &[2], vec![30]).await;
    let flushed = container.flush().await.unwrap().unwrap();
    assert_eq!(flushed.layer, 4);
    let again = open(&store).await;
    assert_eq!(read(&again, "c").await, [1, 20, 30, 4]);
    assert_eq!(again.names().await.unwrap(), ["a/b", "c", "d", "text"]);
    assert_eq!(contents(&again).await.unwrap(), contents(&container).await.unwrap());
}
