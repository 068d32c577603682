//! Chunks of all kinds in one call.

use std::sync::Arc;

use bytes::Bytes;
use chunkyard_store::fault::{Fault, Plan};
use chunkyard_store::{
    Check, ChunkRef, Durability, Error, ErrorKind, Fetcher, Guard, Limits, Options, Remotes, Store,
};

use super::{buffers, memory, scratch};

fn whole(path: &str) -> ChunkRef {
    ChunkRef::Whole { path: path.into() }
}

fn object(path: &str, range: std::ops::Range<u64>, crc32c: Option<u32>) -> ChunkRef {
    ChunkRef::Object { path: path.into(), range, guard: None, check: crc32c.map(Check::Crc32c) }
}

fn remote(url: &str, range: std::ops::Range<u64>) -> ChunkRef {
    ChunkRef::Remote { url: url.into(), range, guard: None, check: None }
}

pub(crate) fn fetcher(store: &Store, allowed: &[&str]) -> Fetcher {
    let allowed = allowed.iter().map(|prefix| (*prefix).to_owned()).collect();
    let remotes = Arc::new(Remotes::new(allowed, Options::default()));
    Fetcher::new(store.clone(), remotes, Limits::default(), true)
}

pub(crate) async fn fetch(
    fetcher: &Fetcher,
    refs: &[ChunkRef],
) -> Result<Vec<Option<Bytes>>, Error> {
    let (fetcher, refs) = (fetcher.clone(), refs.to_vec());
    // As a task of its own: callers want to spawn it.
    let task = async move { fetcher.fetch(&refs.iter().collect::<Vec<_>>()).await };
    tokio::spawn(task).await.unwrap()
}

#[tokio::test]
async fn references_of_every_kind_are_answered_in_order() {
    let elsewhere = memory("fetcher-elsewhere");
    elsewhere.put("d/file", buffers(["remote bytes"])).await.unwrap();
    let url = format!("{}/d/file", elsewhere.url());
    for store in [&scratch(Durability::None).store, &memory("fetcher-kinds")] {
        store.put("c/0", buffers(["zero"])).await.unwrap();
        store.put("c/empty", vec![]).await.unwrap();
        store.put("pack", buffers(["0123456789"])).await.unwrap();
        let refs = [
            remote(&url, 7..12),
            whole("c/0"),
            whole("c/1"),
            object("pack", 3..5, Some(crc32c::crc32c(b"34"))),
            ChunkRef::Inline("inline".into()),
            object("pack", 5..5, None),
            whole("c/0/below"),
            whole("c/empty"),
            remote(&url, 0..6),
        ];
        let fetched = fetch(&fetcher(store, &[elsewhere.url()]), &refs).await.unwrap();
        let expected =
            [Some("bytes"), Some("zero"), None, Some("34"), Some("inline"), Some(""), None];
        let expected = expected.into_iter().chain([Some(""), Some("remote")]);
        assert_eq!(fetched, expected.map(|text| text.map(Bytes::from)).collect::<Vec<_>>());
    }
}

#[tokio::test]
async fn many_files_are_each_in_their_place() {
    for store in [&scratch(Durability::None).store, &memory("fetcher-many")] {
        for i in (0..200).step_by(2) {
            store.put(&format!("c/{i}"), vec![i.to_string().into()]).await.unwrap();
        }
        let refs: Vec<ChunkRef> = (0..200).map(|i| whole(&format!("c/{i}"))).collect();
        let fetched = fetch(&fetcher(store, &[]), &refs).await.unwrap();
        for (i, bytes) in fetched.into_iter().enumerate() {
            assert_eq!(bytes, (i % 2 == 0).then(|| Bytes::from(i.to_string())), "{i}");
        }
    }
}

#[tokio::test]
async fn chunks_of_one_file_elsewhere_are_read_together() {
    let directory = scratch(Durability::None);
    directory.put("file", vec![Bytes::from(vec![7; 100_000])]).await.unwrap();
    let url = format!("file://{}/file", directory.url());
    let fetcher = fetcher(&memory("fetcher-together"), &[directory.url()]);
    let refs: Vec<ChunkRef> = (0..100_000).map(|i| remote(&url, i..i + 1)).collect();
    let fetched = fetch(&fetcher, &refs).await.unwrap();
    assert!(fetched.iter().all(|bytes| bytes.as_deref() == Some(&[7])));
    let first = fetched[0].as_ref().unwrap().as_ptr() as usize;
    let last = fetched[99_999].as_ref().unwrap().as_ptr() as usize;
    assert_eq!(last - first, 99_999, "slices of one piece");
}

#[tokio::test]
async fn bytes_that_fail_their_checksum_are_named() {
    let store = memory("fetcher-corrupt");
    store.put("pack", buffers(["0123456789"])).await.unwrap();
    let refs = [object("pack", 0..2, None), object("pack", 3..5, Some(1))];
    match fetch(&fetcher(&store, &[]), &refs).await.unwrap_err() {
        Error::Corrupt { file, what, .. } => {
            assert_eq!((&*file, &*what), ("pack", "checksum of bytes 3..5"));
        }
        other => panic!("{other:?}"),
    }
    let remotes = Arc::new(Remotes::new(Vec::new(), Options::default()));
    let trusting = Fetcher::new(store, remotes, Limits::default(), false);
    assert!(fetch(&trusting, &refs).await.is_ok());
}

#[tokio::test]
async fn what_goes_wrong_elsewhere_is_named_by_its_url() {
    let elsewhere = memory("fetcher-wrong");
    elsewhere.put("there", buffers(["abc"])).await.unwrap();
    let fetcher = fetcher(&memory("fetcher-here"), &[elsewhere.url()]);
    let url = format!("{}/there", elsewhere.url());
    let guard = Some(Guard { etag: Some("another".into()), not_newer_than_ms: None });
    let changed = ChunkRef::Remote { url: url.as_str().into(), range: 0..1, guard, check: None };
    let missing = format!("{}/missing", elsewhere.url());
    let wrong = [
        (remote(&missing, 0..1), ErrorKind::NotFound),
        (remote(&url, 2..5), ErrorKind::Corrupt),
        (changed, ErrorKind::Corrupt),
        (remote("memory://not-allowed/x", 0..1), ErrorKind::Invalid),
    ];
    for (reference, kind) in wrong {
        let error = fetch(&fetcher, std::slice::from_ref(&reference)).await.unwrap_err();
        let ChunkRef::Remote { url, .. } = &reference else { panic!("not remote") };
        assert_eq!(error.kind(), kind, "{error}");
        assert!(error.to_string().contains(&**url), "{error}");
    }
}

#[tokio::test]
async fn parts_of_chunks_are_relative_to_the_chunk() {
    let elsewhere = memory("fetcher-parts-elsewhere");
    elsewhere.put("file", buffers(["abcdefghij"])).await.unwrap();
    let url = format!("{}/file", elsewhere.url());
    let store = memory("fetcher-parts");
    store.put("pack", buffers(["0123456789"])).await.unwrap();
    let fetcher = fetcher(&store, &[elsewhere.url()]);
    let refs = [
        object("pack", 4..8, Some(0)),
        whole("pack"),
        ChunkRef::Inline("inline".into()),
        remote(&url, 5..10),
    ];
    let wanted: Vec<_> = refs.iter().map(|reference| (reference, 1..3)).collect();
    assert_eq!(fetcher.fetch_within(&wanted).await.unwrap(), ["56", "12", "nl", "gh"]);
    let empty: Vec<_> = refs.iter().map(|reference| (reference, 2..2)).collect();
    assert_eq!(fetcher.fetch_within(&empty).await.unwrap(), [""; 4]);
    for reference in &refs {
        for beyond in [5..11, 0..u64::MAX] {
            let error = fetcher.fetch_within(&[(reference, beyond)]).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Corrupt, "{reference:?}: {error}");
        }
    }
    let missing = whole("missing");
    let error = fetcher.fetch_within(&[(&missing, 0..1)]).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
}

#[tokio::test]
async fn whole_files_are_read_several_to_a_call() {
    let directory = scratch(Durability::None);
    let (store, fault) = Fault::wrap(&directory, Plan::never().with_reads());
    let refs: Vec<ChunkRef> = (0..1000).map(|i| whole(&format!("c/{i}"))).collect();
    let fetched = fetch(&fetcher(&store, &[]), &refs).await.unwrap();
    assert!(fetched.iter().all(Option::is_none));
    assert!(fault.ops() < 500, "{}", fault.ops());
}
