//! Files changed in place: bytes at a position, a cut at the end, and uploads whose front is filled
//! last.

use bytes::Bytes;
use chunkyard_store::fault::{Fault, Mode, Plan, Refusal, Unsynced};
use chunkyard_store::{Counted, Counts, Durability, ErrorKind, Store};

use super::{buffers, content, memory, names, scratch};

#[tokio::test]
async fn every_view_of_a_directory_changes_files_alike() {
    let directory = scratch(Durability::Full);
    changes(&directory.below("plain").unwrap()).await;
    let (counted, counts) = Counted::wrap(&directory);
    changes(&counted.below("counted").unwrap()).await;
    assert!(counts.take().puts > 0);
    let plan = Plan::never().with_power_cut(Unsynced::Reverted);
    let (fault, log) = Fault::wrap(&directory, plan);
    changes(&fault.below("fault").unwrap()).await;
    assert!(log.log().contains(&"truncate fault/a".to_owned()));
}

async fn changes(store: &Store) {
    store.put("a", buffers(["0123456789"])).await.unwrap();
    let first = store.head("a").await.unwrap();
    store.write_at("a", 2, buffers(["ab", "", "c"])).await.unwrap();
    assert_eq!(content(store, "a").await.unwrap(), "01abc56789");
    store.write_at("a", 8, buffers(["wxyz"])).await.unwrap();
    store.write_at("a", 12, buffers(["!"])).await.unwrap();
    store.write_at("a", 13, vec![]).await.unwrap();
    assert_eq!(content(store, "a").await.unwrap(), "01abc567wxyz!");
    assert_ne!(store.head("a").await.unwrap().etag, first.etag);
    store.truncate("a", 13).await.unwrap();
    store.truncate("a", 4).await.unwrap();
    assert_eq!(content(store, "a").await.unwrap(), "01ab");
    store.sync(&["a".into()]).await.unwrap();

    for refused in [
        store.write_at("a", 5, buffers(["x"])).await,
        store.write_at("a", u64::MAX, buffers(["x"])).await,
        store.write_at("../a", 0, buffers(["x"])).await,
        store.truncate("a", 5).await,
        store.truncate("/a", 0).await,
    ] {
        assert_eq!(refused.unwrap_err().kind(), ErrorKind::Invalid);
    }
    store.put("d/file", buffers(["x"])).await.unwrap();
    for missing in ["b", "d", "d/none", "none/none", "a/below"] {
        for outcome in
            [store.write_at(missing, 0, buffers(["x"])).await, store.truncate(missing, 0).await]
        {
            assert_eq!(outcome.unwrap_err().kind(), ErrorKind::NotFound, "{missing}");
        }
    }
    assert_eq!(content(store, "a").await.unwrap(), "01ab");
    assert_eq!(names(store, "").await, ["a", "d/file"]);
    store.truncate("a", 0).await.unwrap();
    assert_eq!(content(store, "a").await.unwrap(), "");
}

#[tokio::test]
async fn an_object_store_changes_nothing_where_it_is() {
    let store = memory("change");
    store.put("a", buffers(["0123"])).await.unwrap();
    let error = store.write_at("a", 1, buffers(["ab", "c"])).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(error.to_string().contains("3 bytes at 1 of a"), "{error}");
    assert_eq!(store.truncate("a", 1).await.unwrap_err().kind(), ErrorKind::Unsupported);
    let mut upload = store.begin("b").await.unwrap();
    upload.write(buffers(["0123"])).await.unwrap();
    let error = upload.patch(0, "x".into()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(upload.finish().await.is_err(), "a failed patch must not leave half an object");
    assert_eq!(content(&store, "a").await.unwrap(), "0123");
}

#[tokio::test]
async fn more_buffers_than_the_system_takes_at_once_are_all_written() {
    let store = scratch(Durability::None);
    store.put("a", buffers(["0"])).await.unwrap();
    let each: Vec<Bytes> = (0..5000u32).map(|i| Bytes::from(i.to_le_bytes().to_vec())).collect();
    store.write_at("a", 1, each.clone()).await.unwrap();
    assert_eq!(content(&store, "a").await.unwrap()[1..], each.concat());
}

#[tokio::test]
async fn a_change_is_seen_under_every_name_of_the_file() {
    let store = scratch(Durability::None);
    store.put("a", buffers(["0123"])).await.unwrap();
    store.link("a", "b").await.unwrap();
    store.write_at("a", 0, buffers(["x"])).await.unwrap();
    assert_eq!(content(&store, "b").await.unwrap(), "x123");
}

#[tokio::test]
async fn the_front_of_an_upload_can_be_filled_last() {
    let directory = scratch(Durability::None);
    let (counted, counts) = Counted::wrap(&directory);
    let (fault, log) = Fault::wrap(&counted, Plan::never());
    let store = fault.below("d").unwrap();
    let mut upload = store.begin("a").await.unwrap();
    upload.write(buffers(["....", "first "])).await.unwrap();
    upload.patch(0, "head".into()).await.unwrap();
    upload.write(buffers(["second"])).await.unwrap();
    upload.patch(2, "AD".into()).await.unwrap();
    upload.patch(16, Bytes::new()).await.unwrap();
    assert!(content(&store, "a").await.is_none());
    upload.finish().await.unwrap();
    assert_eq!(content(&store, "a").await.unwrap(), "heADfirst second");
    let written = Counts { puts: 1, put_bytes: 22, ..Counts::default() };
    assert_eq!(Counts { gets: 0, get_bytes: 0, ..counts.take() }, written);
    assert_eq!(log.log().iter().filter(|op| *op == "patch d/a").count(), 3);
}

#[tokio::test]
async fn an_upload_is_patched_within_what_was_written() {
    let store = scratch(Durability::None);
    for (position, bytes) in [(3, "xx"), (5, ""), (u64::MAX, "x")] {
        let mut upload = store.begin("a").await.unwrap();
        upload.write(buffers(["0123"])).await.unwrap();
        let error = upload.patch(position, bytes.into()).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
        assert!(upload.finish().await.is_err());
    }
    assert!(names(&store, "").await.is_empty());
}

#[tokio::test]
async fn space_can_be_freed_on_a_full_disk() {
    let directory = scratch(Durability::None);
    directory.put("a", buffers(["0123"])).await.unwrap();
    let plan = Plan::new(0, Mode::Refuse(Refusal::NoSpace));
    let (store, _) = Fault::wrap(&directory, plan);
    assert!(store.write_at("a", 4, buffers(["4"])).await.is_err());
    store.truncate("a", 2).await.unwrap();
    assert_eq!(content(&directory, "a").await.unwrap(), "01");
    let (store, _) = Fault::wrap(&directory, Plan::new(0, Mode::Refuse(Refusal::ReadOnly)));
    assert!(store.truncate("a", 1).await.is_err());
}
