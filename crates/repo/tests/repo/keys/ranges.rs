//! Ranges of values, and many at once.

use bytes::Bytes;
use chunkyard_array::ArraySpec;
use chunkyard_repo::ByteRange;
use serde_json::json;

use super::{array, commit, fresh, get, group, reading, set, writing};
use crate::repo::support::noise;

fn ranges() -> Vec<Option<ByteRange>> {
    #[expect(clippy::reversed_empty_ranges, reason = "it is nothing, not an error")]
    let reversed = ByteRange::Within(7..3);
    vec![
        None,
        Some(ByteRange::Within(3..7)),
        Some(ByteRange::Within(0..u64::MAX)),
        Some(reversed),
        Some(ByteRange::From(5)),
        Some(ByteRange::From(1 << 40)),
        Some(ByteRange::Last(4)),
        Some(ByteRange::Last(1 << 40)),
        Some(ByteRange::Last(0)),
    ]
}

fn cut(bytes: &Bytes, range: Option<&ByteRange>) -> Bytes {
    let range = range.map_or(0..bytes.len() as u64, |range| range.of(bytes.len() as u64));
    bytes.slice(range.start as usize..range.end as usize)
}

/// An array whose chunks are shards, of which zarr-python reads parts.
fn shards() -> Bytes {
    let codecs = vec![json!({"name": "sharding_indexed", "configuration": {
        "chunk_shape": [1], "codecs": [{"name": "bytes"}],
        "index_codecs": [{"name": "bytes", "configuration": {"endian": "little"}}],
    }})];
    ArraySpec::builder(&[4], &[2], "uint8").codecs(codecs).build().unwrap().render().into()
}

#[tokio::test]
async fn every_range_of_every_kind_of_value_is_a_slice_of_it() {
    let (repo, keys) = fresh().await;
    set(&keys, "zarr.json", group(&json!({"n": 1}))).await;
    set(&keys, "a/zarr.json", array(&[4])).await;
    set(&keys, "s/zarr.json", shards()).await;
    // Inline and in a pack.
    for (array, seed) in [("a", 1), ("s", 2)] {
        set(&keys, &format!("{array}/c/0"), noise(9, seed)).await;
        set(&keys, &format!("{array}/c/1"), noise(900, seed)).await;
    }
    let names = ["zarr.json", "a/c/0", "a/c/1", "s/c/0", "s/c/1", "a/c/2", "nothing/zarr.json"];
    for committed in [false, true] {
        let keys = match committed {
            false => None,
            true => {
                commit(&keys).await.unwrap();
                Some(reading(&repo).await)
            }
        }
        .unwrap_or(chunkyard_repo::Keys::new(keys.session().clone()));
        let mut wanted = Vec::new();
        let mut expected = Vec::new();
        for name in names {
            let whole = get(&keys, name).await;
            for range in ranges() {
                expected.push(whole.as_ref().map(|bytes| cut(bytes, range.as_ref())));
                assert_eq!(keys.get(name, range.clone()).await.unwrap(), *expected.last().unwrap());
                wanted.push((name, range));
            }
        }
        assert_eq!(keys.get_many(&wanted).await.unwrap(), expected);
    }
    let keys = writing(&repo).await;
    set(&keys, "waits", noise(9, 3)).await;
    for range in ranges() {
        let expected = cut(&noise(9, 3).into(), range.as_ref());
        assert_eq!(keys.get("waits", range).await.unwrap(), Some(expected));
    }
}

#[tokio::test]
async fn a_part_of_a_chunk_that_has_one_checksum_is_checked_with_the_whole() {
    let (repo, keys) = fresh().await;
    set(&keys, "a/zarr.json", array(&[4])).await;
    set(&keys, "s/zarr.json", shards()).await;
    set(&keys, "a/c/0", noise(900, 1)).await;
    set(&keys, "s/c/0", noise(900, 2)).await;
    commit(&keys).await.unwrap();
    // The last byte of each chunk is damaged; the first is read.
    let store = repo.store();
    for (path, index) in [("/a", 0), ("/s", 0)] {
        let session = repo.readonly_session(&chunkyard_repo::Version::Default).await.unwrap();
        let located = session.locate(path, &[vec![index]]).await.unwrap();
        let Some(Some(chunkyard_repo::Payload::Native(native))) = located.first() else {
            panic!("in a pack")
        };
        let file = format!("c/{}", native.file);
        let mut bytes = store.get(&file).await.unwrap().bytes.to_vec();
        bytes[(native.offset + native.length - 1) as usize] ^= 1;
        store.put(&file, vec![bytes.into()]).await.unwrap();
    }
    let keys = reading(&repo).await;
    let first = Some(ByteRange::Within(0..1));
    assert!(keys.get("a/c/0", first.clone()).await.is_err(), "checked as a whole");
    assert_eq!(keys.get("s/c/0", first).await.unwrap().unwrap(), noise(1, 2), "the part alone");
    assert!(keys.get("s/c/0", None).await.is_err());
}
