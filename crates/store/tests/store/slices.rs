//! Chunks in packed blocks: each block fetched, checked and unpacked once, and kept if it is shared.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use chunkyard_store::fault::{Fault, Plan};
use chunkyard_store::{Block, ChunkRef, Error, ErrorKind, Fetcher, Store, block_codec};

use super::fetcher::{fetch, fetcher};
use super::memory;

/// A file of blocks, as a container has it.
struct File {
    bytes: Vec<u8>,
    owner: u64,
}

impl File {
    fn new() -> Self {
        Self { bytes: b"something before".to_vec(), owner: Block::new_owner() }
    }

    fn push(&mut self, plain: &[u8], codec: &str, checked: bool) -> Arc<Block> {
        let packed = block_codec(codec).unwrap().pack(plain).unwrap();
        let start = self.bytes.len() as u64;
        self.bytes.extend_from_slice(&packed);
        Arc::new(Block {
            path: "a.af".into(),
            range: start..self.bytes.len() as u64,
            guard: None,
            crc32c: checked.then(|| crc32c::crc32c(&packed)),
            codec: (codec != "none").then(|| codec.into()),
            len: plain.len() as u64,
            owner: self.owner,
        })
    }

    /// Puts the file into a store, and counts what is read of it.
    async fn put(self, store: &Store) -> (Fetcher, Arc<Fault>) {
        store.put("a.af", vec![self.bytes.into()]).await.unwrap();
        let (counted, fault) = Fault::wrap(store, Plan::never().with_reads());
        (fetcher(&counted, &[]), fault)
    }
}

fn numbers(len: usize) -> Vec<u8> {
    (0..len).map(|i| (i / 7) as u8).collect()
}

fn slice(block: &Arc<Block>, within: Range<u64>) -> ChunkRef {
    ChunkRef::Slice { block: block.clone(), within }
}

#[tokio::test]
async fn chunks_of_every_packing_are_answered_in_order_with_everything_else() {
    let store = memory("slices-order");
    let (plain, mut file) = (numbers(400_000), File::new());
    let mut refs = vec![ChunkRef::Inline("inline".into())];
    let mut expected = vec![Bytes::from("inline")];
    for checked in [true, false] {
        for codec in ["zstd", "none", "lz4"] {
            let block = file.push(&plain, codec, checked);
            for within in [399_990..400_000, 0..5, 7..7, 0..400_000, 100..200_000] {
                refs.push(slice(&block, within.clone()));
                expected.push(Bytes::copy_from_slice(
                    &plain[within.start as usize..within.end as usize],
                ));
            }
        }
    }
    refs.push(ChunkRef::Object { path: "a.af".into(), range: 0..9, guard: None, check: None });
    expected.push("something".into());
    refs.reverse();
    expected.reverse();
    let (fetcher, fault) = file.put(&store).await;
    for _ in 0..2 {
        let fetched: Vec<Bytes> =
            fetch(&fetcher, &refs).await.unwrap().into_iter().map(Option::unwrap).collect();
        assert!(fetched == expected);
    }
    let parts: Vec<_> = refs.iter().filter(|chunk| chunk.len() > Some(3)).collect();
    let parts: Vec<_> = parts.into_iter().map(|chunk| (chunk, 1..3)).collect();
    let whole = expected.iter().filter(|bytes| bytes.len() > 3);
    let within = fetcher.fetch_within(&parts).await.unwrap();
    assert!(within.iter().zip(whole).all(|(part, whole)| part == &whole.slice(1..3)));
    assert!(fault.ops() > 0);
}

#[tokio::test]
async fn a_shared_block_is_fetched_once_and_a_single_chunk_each_time() {
    let store = memory("slices-once");
    let (plain, mut file) = (numbers(100_000), File::new());
    let shared = file.push(&plain, "zstd", true);
    let single = file.push(&plain, "zstd", true);
    let (fetcher, fault) = file.put(&store).await;
    let refs: Vec<ChunkRef> = (0..1000).map(|i| slice(&shared, i * 100..(i + 1) * 100)).collect();
    for chunk in &refs {
        fetch(&fetcher, std::slice::from_ref(chunk)).await.unwrap();
    }
    fetch(&fetcher, &refs).await.unwrap();
    assert_eq!(fault.ops(), 1);
    for _ in 0..3 {
        fetch(&fetcher, &[slice(&single, 0..100_000)]).await.unwrap();
    }
    assert_eq!(fault.ops(), 4);
    let off = fetcher.with_block_cache(0);
    for _ in 0..3 {
        fetch(&off, &refs).await.unwrap();
    }
    assert_eq!(fault.ops(), 7);
}

#[tokio::test]
async fn a_chunk_that_nothing_packs_or_checks_is_read_without_its_neighbours() {
    let store = memory("slices-plain");
    let mut file = File::new();
    let block = file.push(&numbers(1000), "none", false);
    // Missing neighbours cannot be read along.
    file.bytes.truncate(500);
    let (fetcher, _) = file.put(&store).await;
    let fetched = fetch(&fetcher, &[slice(&block, 10..20)]).await.unwrap();
    assert_eq!(fetched, [Some(Bytes::copy_from_slice(&numbers(1000)[10..20]))]);
}

#[tokio::test]
async fn blocks_of_two_files_in_one_place_are_kept_apart() {
    let store = memory("slices-apart");
    let (mut a, mut b) = (File::new(), File::new());
    let first = a.push(&[1; 1000], "lz4", true);
    let second = b.push(&[2; 1000], "lz4", true);
    let (fetcher, _) = a.put(&store).await;
    let one = fetch(&fetcher, &[slice(&first, 0..3)]).await.unwrap();
    store.put("a.af", vec![b.bytes.into()]).await.unwrap();
    let two = fetch(&fetcher, &[slice(&second, 0..3)]).await.unwrap();
    assert_eq!(
        (one, two),
        (vec![Some("\u{1}\u{1}\u{1}".into())], vec![Some("\u{2}\u{2}\u{2}".into())])
    );
}

#[tokio::test]
async fn damage_is_named_by_file_and_block() {
    let store = memory("slices-damage");
    let mut file = File::new();
    let plain = numbers(1000);
    let good = file.push(&plain, "zstd", true);
    let unchecked = file.push(&plain, "lz4", false);
    let (fetcher, _) = file.put(&store).await;
    let with = |change: fn(&mut Block), from: &Arc<Block>| {
        let mut block = Block::clone(from);
        change(&mut block);
        Arc::new(block)
    };
    let wrong = [
        (slice(&good, 990..1001), "within 1000 bytes"),
        (slice(&with(|block| block.crc32c = Some(1), &good), 0..5), "checksum"),
        (slice(&with(|block| block.len = 999, &good), 0..5), "unpacking by zstd"),
        (slice(&with(|block| block.len = 1001, &good), 0..5), "unpacking by zstd"),
        (slice(&with(|block| block.len = 999, &unchecked), 0..5), "unpacking by lz4"),
        (slice(&with(|block| block.len = 1 << 40, &unchecked), 0..5), "unpacking by lz4"),
        (slice(&with(|block| block.len = 1 << 50, &good), 0..5), "unpacking by zstd"),
        (slice(&with(|block| block.codec = None, &good), 0..5), "its length"),
        (slice(&with(|block| block.codec = Some("zstd".into()), &unchecked), 0..5), "by zstd"),
        (slice(&with(|block| block.range.end += 1 << 30, &unchecked), 0..5), "size"),
    ];
    for (reference, what) in wrong {
        let error = fetch(&fetcher, &[reference]).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
        let text = error.to_string();
        assert!(text.contains("a.af") && text.contains(what), "{what}: {text}");
    }
    let foreign = with(|block| block.codec = Some("brotli".into()), &good);
    match fetch(&fetcher, &[slice(&foreign, 0..5)]).await.unwrap_err() {
        Error::Unsupported { what } => assert!(what.contains("brotli"), "{what}"),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn many_blocks_are_unpacked_in_bounded_memory() {
    let store = memory("slices-waves");
    let (plain, mut file) = (vec![3; 16 << 20], File::new());
    let blocks: Vec<_> = (0..12).map(|_| file.push(&plain, "zstd", true)).collect();
    let (fetcher, fault) = file.put(&store).await;
    let refs: Vec<_> = blocks.iter().map(|block| slice(block, 5..10)).collect();
    let fetched = fetch(&fetcher, &refs).await.unwrap();
    assert!(fetched.iter().all(|chunk| chunk.as_deref() == Some(&[3; 5])));
    assert_eq!(fault.ops(), 3, "192 MiB, 64 MiB at a time");
}
