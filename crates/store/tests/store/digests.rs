//! Chunks with a digest right behind them.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use chunkyard_store::{
    Check, ChunkRef, Counted, Counts, Digest, Durability, Error, ErrorKind, Fetcher, Limits,
    Options, Remotes, Store,
};

use super::fetcher::{fetch, fetcher};
use super::{memory, scratch};

const CHUNKS: [&str; 4] = ["first", "the second", "", "last of all"];

/// An object with chunks and their digests back to back, and the references to them.
async fn stored(store: &Store, digest: Digest) -> Vec<ChunkRef> {
    let mut object = b"head".to_vec();
    let mut refs = Vec::new();
    for chunk in CHUNKS {
        let start = object.len() as u64;
        object.extend_from_slice(chunk.as_bytes());
        refs.push(behind(start..object.len() as u64, digest));
        object.extend(digest.of(chunk.as_bytes()));
    }
    store.put("pack", vec![object.into()]).await.unwrap();
    refs
}

fn behind(range: Range<u64>, digest: Digest) -> ChunkRef {
    ChunkRef::Object { path: "pack".into(), range, guard: None, check: Some(Check::Behind(digest)) }
}

/// A fetcher that compares nothing.
fn trusting(store: &Store) -> Fetcher {
    let remotes = Arc::new(Remotes::new(Vec::new(), Options::default()));
    Fetcher::new(store.clone(), remotes, Limits::default(), false)
}

#[tokio::test]
async fn chunks_come_without_their_digests_and_in_one_read() {
    for store in [&scratch(Durability::None).store, &memory("digests")] {
        for digest in Digest::ALL {
            let refs = stored(store, digest).await;
            let (store, counted) = Counted::wrap(store);
            counted.take();
            let mut all = refs.clone();
            all.push(refs[1].clone());
            let fetched = fetch(&fetcher(&store, &[]), &all).await.unwrap();
            let expected = CHUNKS.into_iter().chain([CHUNKS[1]]);
            let expected: Vec<_> = expected.map(|chunk| Some(Bytes::from(chunk))).collect();
            assert_eq!(fetched, expected, "{digest:?}");
            let text = CHUNKS.concat().len();
            let bytes = (text + CHUNKS.len() * digest.bytes()) as u64;
            assert_eq!(counted.take(), Counts { gets: 1, get_bytes: bytes, ..Counts::default() });

            let fetched = fetch(&trusting(&store), &refs[1..2]).await.unwrap();
            assert_eq!(fetched, expected[1..2]);
            let taken = counted.take();
            assert_eq!((taken.gets, taken.get_bytes), (1, CHUNKS[1].len() as u64), "{digest:?}");
        }
    }
}

#[tokio::test]
async fn damage_is_named_by_file_chunk_and_kind() {
    let store = memory("digests-damage");
    for digest in Digest::ALL.into_iter().skip(1) {
        let refs = stored(&store, digest).await;
        let mut object = store.get("pack").await.unwrap().bytes.to_vec();
        let start = 4 + CHUNKS[0].len() + digest.bytes();
        let last = start + CHUNKS[1].len() + digest.bytes() - 1;
        for damaged in [start, last] {
            object[damaged] ^= 1;
            store.put("pack", vec![object.clone().into()]).await.unwrap();
            match fetch(&fetcher(&store, &[]), &refs).await.unwrap_err() {
                Error::Corrupt { file, what, expected, found } => {
                    let end = start + CHUNKS[1].len();
                    assert_eq!(file, "pack");
                    assert_eq!(what, format!("{} of bytes {start}..{end}", digest.name()));
                    assert!(expected != found && expected.len() == digest.bytes() * 2);
                }
                other => panic!("{other:?}"),
            }
            assert!(fetch(&trusting(&store), &refs).await.is_ok());
            object[damaged] ^= 1;
        }
    }
}

#[tokio::test]
async fn parts_of_a_chunk_are_not_checked() {
    let store = memory("digests-parts");
    let refs = stored(&store, Digest::Md5).await;
    let mut object = store.get("pack").await.unwrap().bytes.to_vec();
    object[4] = b'F';
    store.put("pack", vec![object.into()]).await.unwrap();
    let fetcher = fetcher(&store, &[]);
    assert_eq!(fetcher.fetch_within(&[(&refs[0], 0..3)]).await.unwrap(), ["Fir"]);
    let beyond = fetcher.fetch_within(&[(&refs[0], 3..6)]).await.unwrap_err();
    assert_eq!(beyond.kind(), ErrorKind::Corrupt, "the digest is no part of the chunk");
}

#[tokio::test]
async fn an_object_that_ends_within_a_digest_is_corrupt() {
    let store = memory("digests-short");
    let refs = stored(&store, Digest::Sha1).await;
    let object = store.get("pack").await.unwrap().bytes;
    store.put("pack", vec![object.slice(..object.len() - 1)]).await.unwrap();
    let error = fetch(&fetcher(&store, &[]), &refs[3..]).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
    assert!(fetch(&trusting(&store), &refs[3..]).await.is_ok());
    let error = fetch(&fetcher(&store, &[]), &[behind(0..u64::MAX, Digest::Sha1)]).await;
    assert_eq!(error.unwrap_err().kind(), ErrorKind::Corrupt);
    #[expect(clippy::reversed_empty_ranges, reason = "a file may say so")]
    let reversed = fetch(&fetcher(&store, &[]), &[behind(9..7, Digest::Sha1)]).await;
    assert_eq!(reversed.unwrap_err().kind(), ErrorKind::Invalid);
}

#[tokio::test]
async fn chunks_elsewhere_and_large_ones_are_checked_too() {
    let elsewhere = memory("digests-elsewhere");
    let chunk: Bytes = (0..3u32 << 20).map(|i| (i ^ (i >> 8)) as u8).collect();
    let url: Arc<str> = format!("{}/large", elsewhere.url()).into();
    for digest in Digest::ALL {
        let object = vec![chunk.clone(), digest.of(&chunk).into()];
        elsewhere.put("large", object).await.unwrap();
        let check = Some(Check::Behind(digest));
        let there = |range| ChunkRef::Remote { url: url.clone(), range, guard: None, check };
        let fetcher = fetcher(&memory("digests-here"), &[elsewhere.url()]);
        let right = there(0..chunk.len() as u64);
        let wrong = there(1..chunk.len() as u64);
        assert_eq!(right.stored_len(), Some((chunk.len() + digest.bytes()) as u64));
        let fetched = fetch(&fetcher, &[right]).await.unwrap();
        assert!(fetched[0].as_ref() == Some(&chunk), "{digest:?}");
        if digest != Digest::None {
            elsewhere.put("large", vec![chunk.clone(), vec![0; 64].into()]).await.unwrap();
            let error = fetch(&fetcher, &[wrong]).await.unwrap_err().to_string();
            assert!(error.contains(&*url) && error.contains(digest.name()), "{error}");
        }
    }
}
