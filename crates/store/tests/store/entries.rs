//! Chunks that are the end of an entry of a log, whose checksum covers the bytes before them too.

use bytes::Bytes;
use chunkyard_store::{Check, ChunkRef, Counted, Counts, Durability, Error, Options, Store};

use super::fetcher::{fetch, fetcher};
use super::{memory, scratch};

const ENTRIES: [(&str, &str); 4] =
    [("first", "a value"), ("second", ""), ("third", "another"), ("4", "the last value")];

/// An object with entries back to back, each a byte of its own, a key, a value and a checksum; and the
/// references to the values.
async fn stored(store: &Store) -> Vec<ChunkRef> {
    let mut object = b"head".to_vec();
    let mut refs = Vec::new();
    for (at, (key, value)) in ENTRIES.into_iter().enumerate() {
        let entry = [&[at as u8], key.as_bytes(), value.as_bytes()].concat();
        let known = key.len() as u32;
        let head = crc32c::crc32c(key.as_bytes());
        let check = Some(Check::Entry { before: known + 1, known, head });
        let start = (object.len() + 1 + key.len()) as u64;
        let range = start..start + value.len() as u64;
        refs.push(ChunkRef::Object { path: "log".into(), range, guard: None, check });
        object.extend_from_slice(&entry);
        object.extend(crc32c::crc32c(&entry).to_be_bytes());
    }
    store.put("log", vec![object.into()]).await.unwrap();
    refs
}

#[tokio::test]
async fn values_come_alone_and_in_one_read() {
    for store in [&scratch(Durability::None).store, &memory("entries")] {
        let refs = stored(store).await;
        let (store, counted) = Counted::wrap(store);
        counted.take();
        let fetched = fetch(&fetcher(&store, &[]), &refs).await.unwrap();
        assert_eq!(fetched, ENTRIES.map(|(_, value)| Some(Bytes::from(value))));
        let bytes: usize = ENTRIES.iter().map(|(key, value)| key.len() + value.len() + 5).sum();
        let one = Counts { gets: 1, get_bytes: bytes as u64, ..Counts::default() };
        assert_eq!(counted.take(), one);
        let all: u64 = refs.iter().map(|entry| entry.stored_len().unwrap()).sum();
        assert_eq!(all, bytes as u64);
    }
}

#[tokio::test]
async fn a_bit_anywhere_in_the_entry_is_noticed() {
    let store = Store::unnamed(&Options::default()).unwrap();
    let refs = stored(&store).await;
    let whole = store.get("log").await.unwrap().bytes.to_vec();
    // The third entry: behind the head and two entries.
    let start = 4 + 17 + 11;
    for at in start..start + 1 + 5 + 7 + 4 {
        let mut bent = whole.clone();
        bent[at] ^= 4;
        store.put("log", vec![bent.into()]).await.unwrap();
        match fetch(&fetcher(&store, &[]), &refs).await.unwrap_err() {
            Error::Corrupt { file, what, expected, found } => {
                assert_eq!((&*file, &*what), ("log", "checksum of bytes 38..45"), "{at}");
                assert_ne!(expected, found);
            }
            other => panic!("{other:?}"),
        }
        // Its neighbours are as they were.
        let others = [refs[1].clone(), refs[3].clone()];
        fetch(&fetcher(&store, &[]), &others).await.unwrap();
    }
}

#[tokio::test]
async fn a_whole_entry_with_another_head_is_noticed() {
    let store = Store::unnamed(&Options::default()).unwrap();
    let refs = stored(&store).await;
    let ChunkRef::Object { path, range, guard, .. } = refs[2].clone() else { panic!("a range") };
    let head = crc32c::crc32c(b"thirt");
    for (head, known, is_right) in [(head, 5, false), (crc32c::crc32c(b"ird"), 3, true)] {
        let check = Some(Check::Entry { before: 6, known, head });
        let (path, range, guard) = (path.clone(), range.clone(), guard.clone());
        let entry = ChunkRef::Object { path, range, guard, check };
        match fetch(&fetcher(&store, &[]), &[entry]).await {
            Ok(_) => assert!(is_right),
            Err(Error::Corrupt { file, what, .. }) => {
                assert!(!is_right);
                assert_eq!((&*file, &*what), ("log", "key and lengths of bytes 38..45"));
            }
            Err(other) => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn an_entry_that_would_begin_before_its_object_is_damage() {
    let store = Store::unnamed(&Options::default()).unwrap();
    stored(&store).await;
    let check = Some(Check::Entry { before: 100, known: 5, head: 0 });
    let entry = ChunkRef::Object { path: "log".into(), range: 10..17, guard: None, check };
    let error = fetch(&fetcher(&store, &[]), &[entry]).await.unwrap_err();
    assert!(matches!(error, Error::Corrupt { .. }), "{error:?}");
}
