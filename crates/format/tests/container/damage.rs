//! Any byte of any file is damaged, or any file is cut off: the answer is right, or it is an error.
//!
//! Everything that we write is covered by checksums, so there is no third way. Only the statistics
//! file, which is for other programs, may be damaged unnoticed.

use chunkyard_format::container::{CompactOptions, Container, ContainerOptions, Reason};
use chunkyard_store::{ErrorKind, Result, Store, block_codec};

use super::support::{Contents, contents, definition, files, memory, open, place, write};

/// The content of a container, and the statistics of its arrays.
async fn everything(store: &Store) -> Result<(Container, Contents)> {
    let container = Container::open(&place(store), ContainerOptions::default()).await?;
    let mut contents = contents(&container).await?;
    for name in container.names().await? {
        let stats = container.statistics(&name).await?;
        contents.insert(format!("statistics of {name}"), format!("{stats:?}"));
    }
    Ok((container, contents))
}

/// The states after each layer, and the store with all of them.
async fn layered(codec: &str, compacted: bool) -> (Store, Vec<Contents>) {
    let store = memory();
    let options = ContainerOptions {
        codec: block_codec(codec).unwrap(),
        block_bytes: 64,
        ..Default::default()
    };
    let container = Container::create(&place(&store), options).await.unwrap();
    let mut states = vec![Contents::new()];
    for name in ["a", "b"] {
        container.define(definition(name, &[40], &[8])).await.unwrap();
        write(&container, name, &[3], (1..30).collect()).await;
        container.flush().await.unwrap();
        states.push(everything(&store).await.unwrap().1);
    }
    if compacted {
        container.compact(&CompactOptions::default()).await.unwrap();
        states.drain(..2);
    }
    container.delete("b").await.unwrap();
    write(&container, "a", &[7], vec![-5, -6]).await;
    container.flush().await.unwrap();
    states.push(everything(&store).await.unwrap().1);
    (store, states)
}

/// A damaged container gives the same content, or is corrupt. If its newest layer was cut off, it may
/// give the content before that layer, if it says so.
async fn is_honest(store: &Store, states: &[Contents], cut: bool, what: &str) {
    match everything(store).await {
        Ok((container, found)) => {
            let torn = container.ignored().iter().any(|file| file.reason == Reason::Torn);
            assert!(!torn || cut, "{what}: nothing was cut off");
            let expected = states.len() - 1 - usize::from(torn);
            assert_eq!(found, states[expected], "{what}: wrong data");
        }
        Err(error) => assert_eq!(error.kind(), ErrorKind::Corrupt, "{what}: {error:?}"),
    }
}

/// Each file with each of these bytes damaged.
async fn damage(codec: &str, compacted: bool, step: usize) {
    let (store, states) = layered(codec, compacted).await;
    let all: Vec<String> = files(&store).await;
    for file in all.iter().filter(|name| name.ends_with(".af")) {
        let whole = store.get(file).await.unwrap().bytes;
        // The end decides what a file is, so every byte of it is damaged.
        let end = whole.len().saturating_sub(350);
        for at in (0..end).step_by(step).chain(end..whole.len()) {
            for bits in [1 << (at % 8), 0xff] {
                let mut bytes = whole.to_vec();
                bytes[at] ^= bits;
                store.put(file, vec![bytes.into()]).await.unwrap();
                let what = format!("{codec} {file} of {}: {bits:#x} at {at}", whole.len());
                is_honest(&store, &states, false, &what).await;
            }
        }
        // More than a bit: a sector, or the mark and the length at the end.
        for len in [4, 12, 40, 64] {
            for filler in [0, 0xff, 0x41] {
                let mut bytes = whole.to_vec();
                let at = bytes.len() - len;
                bytes[at..].fill(filler);
                store.put(file, vec![bytes.into()]).await.unwrap();
                let what = format!("{codec} {file}: the last {len} bytes are {filler:#x}");
                is_honest(&store, &states, false, &what).await;
            }
        }
        store.put(file, vec![whole.clone()]).await.unwrap();
    }
    assert_eq!(everything(&store).await.unwrap().1, *states.last().unwrap());
}

#[tokio::test]
async fn a_flipped_bit_anywhere_is_noticed() {
    for (codec, compacted) in [("none", false), ("zstd", true), ("lz4", false)] {
        damage(codec, compacted, 7).await;
    }
}

#[tokio::test]
#[ignore = "takes a minute; run by `make stress`"]
async fn stress_of_every_flipped_byte() {
    for (codec, compacted) in [("none", false), ("none", true), ("zstd", true), ("lz4", true)] {
        damage(codec, compacted, 1).await;
    }
}

#[tokio::test]
async fn a_file_cut_off_anywhere_is_noticed() {
    let (store, states) = layered("none", false).await;
    let all: Vec<String> = files(&store).await;
    for file in all.iter().filter(|name| name.ends_with(".af")) {
        let whole = store.get(file).await.unwrap().bytes;
        for keep in (0..whole.len()).step_by(11).chain(whole.len().saturating_sub(13)..whole.len())
        {
            store.put(file, vec![whole.slice(..keep)]).await.unwrap();
            let what = format!("{file}: {keep} of {}", whole.len());
            is_honest(&store, &states, file == "x.3.af", &what).await;
        }
        // Extra bytes at its end are no better.
        store.put(file, vec![whole.clone(), vec![0; 9].into()]).await.unwrap();
        is_honest(&store, &states, file == "x.3.af", file).await;
        store.put(file, vec![whole.clone()]).await.unwrap();
    }
}

/// It is for other programs, which ignore an unreadable one; so do we.
#[tokio::test]
async fn a_damaged_statistics_file_does_no_harm() {
    let (store, states) = layered("none", false).await;
    let whole = store.get("x.stats").await.unwrap().bytes;
    for at in (0..whole.len()).step_by(5) {
        let mut bytes = whole.to_vec();
        bytes[at] ^= 1 << (at % 8);
        store.put("x.stats", vec![bytes.into()]).await.unwrap();
        assert_eq!(everything(&store).await.unwrap().1, *states.last().unwrap());
    }
    store.put("x.stats", vec![whole.slice(..9)]).await.unwrap();
    let container = open(&store).await;
    write(&container, "a", &[0], vec![1]).await;
    container.flush().await.unwrap();
    // The last chunk was never written; without a fill value every written element counts.
    assert_eq!(container.statistics("a").await.unwrap().unwrap().null_count, 8);
}
