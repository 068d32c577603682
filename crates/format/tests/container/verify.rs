//! A check of a container finds damage that no chunk shows.

use std::sync::Arc;

use chunkyard_format::container::ContainerSource;
use chunkyard_format::container::model::AttributeValue;
use chunkyard_format::{Level, Meter, Report, Source, check};
use chunkyard_store::Store;

use super::support::{create, definition, furnished, memory, open, write};

async fn checked(store: &Store, level: Level) -> Report {
    let source: Arc<dyn Source> = Arc::new(ContainerSource::new(open(store).await).await.unwrap());
    check(&source, level, &Meter::default()).await.unwrap()
}

async fn bend(store: &Store, path: &str, at: usize) {
    let mut bytes = store.get(path).await.unwrap().bytes.to_vec();
    bytes[at] ^= 1;
    store.put(path, vec![bytes.into()]).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_container_as_it_was_written_is_sound() {
    let store = memory();
    furnished(&store).await;
    let report = checked(&store, Level::Bytes).await;
    assert_eq!((report.errors, report.findings.as_slice()), (0, &[][..]));
}

#[tokio::test(flavor = "multi_thread")]
async fn damage_in_an_unused_page_of_a_footer_is_found() {
    let store = memory();
    let container = create(&store).await;
    container.define(definition("a", &[4], &[2])).await.unwrap();
    let long = "x".repeat(5 << 20);
    container.set_attribute("a", "long", AttributeValue::String(long)).await.unwrap();
    container.flush().await.unwrap();
    container.remove_attribute("a", "long").await.unwrap();
    container.flush().await.unwrap();
    bend(&store, "x.1.af", 3 << 20).await;
    assert!(open(&store).await.describe("a").await.is_ok());
    let report = checked(&store, Level::Metadata).await;
    assert_eq!(report.errors, 1);
    assert!(report.findings[0].what.contains("page"), "{:?}", report.findings);
    assert_eq!(report.findings[0].file, "x.1.af");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_block_that_no_chunk_needs_is_checked_with_all_bytes() {
    let store = memory();
    let container = create(&store).await;
    container.define(definition("a", &[4], &[4])).await.unwrap();
    for value in [1, 2] {
        write(&container, "a", &[0], vec![value; 4]).await;
        container.flush().await.unwrap();
    }
    bend(&store, "x.1.af", 2).await;
    assert_eq!(checked(&store, Level::Existence).await.errors, 0);
    let report = checked(&store, Level::Bytes).await;
    assert_eq!(report.errors, 1);
    assert!(report.findings[0].what.starts_with("block 0: "), "{:?}", report.findings);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_statistics_file_that_lags_behind_is_noted() {
    let store = memory();
    let container = create(&store).await;
    container.define(definition("a", &[4], &[4])).await.unwrap();
    write(&container, "a", &[0], vec![1; 4]).await;
    container.flush().await.unwrap();
    let old = store.get("x.stats").await.unwrap().bytes;
    write(&container, "a", &[0], vec![2; 4]).await;
    container.flush().await.unwrap();
    store.put("x.stats", vec![old]).await.unwrap();
    let report = checked(&store, Level::Bytes).await;
    assert_eq!((report.errors, report.findings.len()), (0, 1));
    assert!(report.findings[0].what.contains("out of date for \"a\""), "{:?}", report.findings);
}
