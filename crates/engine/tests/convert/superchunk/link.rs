//! Chunks of superchunks under version control, without a copy.

use chunkyard_engine::Meter;
use chunkyard_engine::format::superchunk::{Blz, BlzOptions};
use chunkyard_engine::format::{CreateOptions, OpenOptions, Place};
use chunkyard_engine::open::open;
use chunkyard_engine::pipeline::{Wishes, link};

use super::support::{creation, local, rows};
use crate::convert::support::{opened, read};

#[tokio::test]
async fn a_repository_reads_chunks_in_superchunks_and_keeps_the_tail() {
    let (temp, place) = local();
    let blz = Blz::create(&place, &creation("<i8", 10, 4), BlzOptions::default()).await.unwrap();
    blz.append(vec![rows(0..95)]).await.unwrap();
    blz.flush().await.unwrap();
    let source = opened(place.url()).await;
    let url = temp.path().join("repo").to_str().unwrap().to_owned();
    let repo = Place::new(&url, &Default::default()).unwrap();
    let options = CreateOptions { message: Some("link".into()), ..CreateOptions::default() };
    let meter = Meter::default();
    let linked =
        link(&source, &place, &repo, &Wishes::default(), "x", options, &meter).await.unwrap();
    assert_eq!((linked.arrays, linked.chunks, linked.copied.0), (1, 9, 1));
    let allowed = vec![format!("file://{}", temp.path().display())];
    let options = OpenOptions { allowed, ..OpenOptions::default() };
    let found = open(&url, &options).await.unwrap().source;
    assert!(read(&found, "/x").await == read(&source, "/").await);
}
