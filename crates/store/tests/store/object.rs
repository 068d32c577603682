//! What only an object store has: conditional puts.

use chunkyard_store::{Created, ErrorKind, Kind, Options, Replaced, Store, Version};

use super::{content, memory};

#[tokio::test]
async fn only_the_first_creates() {
    let store = memory("create");
    assert!(matches!(store.create("ref", "1".into()).await.unwrap(), Created::Done(_)));
    assert_eq!(store.create("ref", "2".into()).await.unwrap(), Created::Exists);
    assert_eq!(content(&store, "ref").await.unwrap(), "1");
}

#[tokio::test]
async fn only_the_expected_state_is_replaced() {
    let store = memory("replace");
    let Created::Done(first) = store.create("ref", "1".into()).await.unwrap() else {
        panic!("not created");
    };
    assert_eq!(first, Version::from(&store.head("ref").await.unwrap()));
    let Replaced::Done(second) = store.replace("ref", "2".into(), &first).await.unwrap() else {
        panic!("not replaced");
    };
    assert_eq!(store.replace("ref", "3".into(), &first).await.unwrap(), Replaced::Lost);
    assert_eq!(content(&store, "ref").await.unwrap(), "2");
    store.delete(&["ref".into()]).await.unwrap();
    assert_eq!(store.replace("ref", "3".into(), &second).await.unwrap(), Replaced::Lost);
}

#[tokio::test]
async fn a_store_without_conditional_puts_creates_but_does_not_replace() {
    let mut options = Options::default();
    options.values.insert("conditional_put".into(), "false".into());
    let store = Store::open("memory://create-only", &options).unwrap();
    assert_eq!(store.kind(), Kind::Object { conditional_put: false });
    let Created::Done(first) = store.create("ref", "1".into()).await.unwrap() else {
        panic!("not created");
    };
    let error = store.replace("ref", "2".into(), &first).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
}

#[tokio::test]
async fn renames_and_locks_are_for_file_systems() {
    let store = memory("no-renames");
    assert_eq!(store.rename("a", "b").await.unwrap_err().kind(), ErrorKind::Unsupported);
    assert_eq!(store.exchange("a", "b").await.unwrap_err().kind(), ErrorKind::Unsupported);
    assert_eq!(store.lock("a").await.unwrap_err().kind(), ErrorKind::Unsupported);
    assert_eq!(store.sync_dir("a").await.unwrap_err().kind(), ErrorKind::Unsupported);
}
