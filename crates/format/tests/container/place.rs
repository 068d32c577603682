//! Layers that are whole but not where they were written.

use chunkyard_format::container::{CompactOptions, Container, ContainerOptions, Reason};
use chunkyard_store::{ErrorKind, Store};

use super::support::{contents, furnished, memory, open, place, write};

async fn bytes_of(store: &Store, path: &str) -> bytes::Bytes {
    store.get(path).await.unwrap().bytes
}

async fn copy(from: (&Store, &str), to: (&Store, &str)) {
    let bytes = bytes_of(from.0, from.1).await;
    to.0.put(to.1, vec![bytes]).await.unwrap();
}

/// A container with data in its base, and layers 3, 4 and 5 over it.
async fn layered(compacted: bool) -> Store {
    let store = memory();
    let container = furnished(&store).await;
    if compacted {
        container.compact(&CompactOptions::default()).await.unwrap();
    }
    for value in [7, 8, 9] {
        write(&container, "c", &[0], vec![value; 4]).await;
        container.flush().await.unwrap();
    }
    store
}

async fn is_corrupt(store: &Store, file: &str, what: &str) {
    let error = Container::open(&place(store), ContainerOptions::default()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt, "{what}: {error}");
    assert!(error.to_string().contains(file), "{what}: {error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_layer_in_the_place_of_another_one_is_corrupt() {
    for compacted in [false, true] {
        let store = layered(compacted).await;
        let before = contents(&open(&store).await).await.unwrap();
        for from in ["x.af", "x.3.af", "x.4.af"] {
            let there = bytes_of(&store, "x.5.af").await;
            copy((&store, from), (&store, "x.5.af")).await;
            is_corrupt(&store, "x.5.af", &format!("{from} as x.5.af, compacted: {compacted}"))
                .await;
            store.put("x.5.af", vec![there]).await.unwrap();
        }
        // A stale copy under a number that is free.
        for to in ["x.6.af", "x.90.af"] {
            copy((&store, "x.4.af"), (&store, to)).await;
            is_corrupt(&store, to, &format!("x.4.af as {to}, compacted: {compacted}")).await;
            store.delete(&[to.to_owned()]).await.unwrap();
        }
        // Two layers that changed places.
        let (four, five) = (bytes_of(&store, "x.4.af").await, bytes_of(&store, "x.5.af").await);
        store.put("x.4.af", vec![five.clone()]).await.unwrap();
        store.put("x.5.af", vec![four.clone()]).await.unwrap();
        is_corrupt(&store, "x.4.af", "swapped").await;
        store.put("x.4.af", vec![four]).await.unwrap();
        store.put("x.5.af", vec![five]).await.unwrap();
        assert_eq!(contents(&open(&store).await).await.unwrap(), before);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_layer_in_the_place_of_the_base_is_corrupt() {
    let store = layered(false).await;
    copy((&store, "x.3.af"), (&store, "x.af")).await;
    for number in 1..4 {
        store.delete(&[format!("x.{number}.af")]).await.unwrap();
    }
    is_corrupt(&store, "x.af", "a layer as the base").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_layer_of_another_container_in_the_place_of_the_newest_is_corrupt() {
    let (store, other) = (layered(false).await, layered(false).await);
    copy((&other, "x.5.af"), (&store, "x.5.af")).await;
    is_corrupt(&store, "x.5.af", "another container's").await;
    // Under a number that the container cannot have used, it does no harm.
    store.delete(&["x.5.af".to_owned()]).await.unwrap();
    copy((&other, "x.5.af"), (&store, "x.9.af")).await;
    let container = open(&store).await;
    assert_eq!(container.ignored()[0].reason, Reason::Foreign);
}

#[tokio::test(flavor = "multi_thread")]
async fn every_older_state_is_read_by_its_number() {
    let store = layered(false).await;
    store.put("x.5.af", vec![bytes_of(&store, "x.3.af").await]).await.unwrap();
    let asked = ContainerOptions { as_of: Some(4), ..ContainerOptions::default() };
    let container = Container::open(&place(&store), asked).await.unwrap();
    assert_eq!(super::support::read(&container, "c").await, [8; 4]);
}
