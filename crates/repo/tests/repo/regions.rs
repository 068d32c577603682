//! Regions: any box of any array, written and read back.

use std::sync::Arc;

use bytes::Bytes;
use chunkyard_array::{ArraySpec, ElementsBuf, Region};
use chunkyard_repo::{CommitOptions, Config, Session, Version};
use chunkyard_store::ErrorKind;
use futures::TryStreamExt;
use proptest::prelude::*;
use serde_json::json;

use super::support::{
    bytes_spec, create, directory, memory, noise, read_all, read_at, reopen, repetitions, sound,
    tiny, write, write_noise,
};
use chunkyard_test_support::cases;

/// Copies a box of bytes between whole arrays, the slow and obvious way.
fn naive_write(whole: &mut [u8], shape: &[u64], region: &Region, values: &[u8]) {
    for (at, value) in values.iter().enumerate() {
        whole[position(shape, region, at)] = *value;
    }
}

fn naive_read(whole: &[u8], shape: &[u64], region: &Region) -> Vec<u8> {
    (0..region.num_elements() as usize).map(|at| whole[position(shape, region, at)]).collect()
}

fn position(shape: &[u64], region: &Region, at: usize) -> usize {
    let mut rest = at as u64;
    let mut index = vec![0; shape.len()];
    for axis in (0..shape.len()).rev() {
        index[axis] = region.origin()[axis] + rest % region.shape()[axis];
        rest /= region.shape()[axis];
    }
    index.iter().zip(shape).fold(0, |offset, (at, length)| offset * length + at) as usize
}

/// A shape, a chunk shape and regions inside.
fn work() -> impl Strategy<Value = (Vec<u64>, Vec<u64>, Vec<(Region, u64)>)> {
    let axes = prop::collection::vec((1u64..9, 1u64..6), 1..4);
    axes.prop_flat_map(|axes| {
        let (shape, chunks): (Vec<u64>, Vec<u64>) = axes.into_iter().unzip();
        let spans: Vec<_> = shape
            .iter()
            .map(|&length| {
                (0..length).prop_flat_map(move |start| (Just(start), 1..=length - start))
            })
            .collect();
        let region = spans.prop_map(|spans| {
            let (origin, shape): (Vec<u64>, Vec<u64>) = spans.into_iter().unzip();
            Region::new(origin, shape).unwrap()
        });
        let writes = prop::collection::vec((region, 0u64..4), 1..12);
        (Just(shape), Just(chunks), writes)
    })
}

proptest! {
    #![proptest_config(cases(repetitions(60, 15)))]

    #[test]
    fn random_regions_do_what_a_plain_array_does((shape, chunks, writes) in work()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let store = memory();
            let repo = create(&store, tiny()).await;
            let mut session = repo.writable_session("main").await.unwrap();
            session.create_array("/a", bytes_spec(&shape, &chunks)).await.unwrap();
            let mut whole = vec![0; shape.iter().product::<u64>() as usize];
            for (n, (region, seed)) in writes.iter().enumerate() {
                let count = region.num_elements() as usize;
                // Some writes are all fill value: chunks may vanish again.
                let values = if *seed == 0 { vec![0; count] } else { noise(count, n as u64) };
                let array = session.array("/a").await.unwrap();
                array.write_region(region, values.clone().into()).await.unwrap();
                naive_write(&mut whole, &shape, region, &values);
                let found = array.read_region(region).await.unwrap();
                assert_eq!(&found[..], &values[..]);
                if *seed == 3 {
                    let options = CommitOptions { allow_empty: true, ..CommitOptions::default() };
                    session.commit(options).await.unwrap();
                    session = reopen(&store).await.writable_session("main").await.unwrap();
                }
            }
            let array = session.array("/a").await.unwrap();
            for (region, _) in &writes {
                let found = array.read_region(region).await.unwrap();
                assert_eq!(&found[..], &naive_read(&whole, &shape, region)[..]);
            }
            assert_eq!(read_all(&session, "/a").await.unwrap(), whole);
            let options = CommitOptions { allow_empty: true, ..CommitOptions::default() };
            session.commit(options).await.unwrap();
            let repo = reopen(&store).await;
            assert_eq!(read_at(&repo, &Version::Default, "/a").await.unwrap(), whole);
            sound(&repo).await;
        });
    }
}

fn strings(values: &[&str]) -> ElementsBuf {
    let mut offsets = vec![0];
    let mut bytes = Vec::new();
    for value in values {
        bytes.extend_from_slice(value.as_bytes());
        offsets.push(bytes.len() as u64);
    }
    ElementsBuf::Variable { bytes, offsets }
}

#[tokio::test]
async fn strings_of_any_length_round_trip() {
    let codecs = vec![
        json!({ "name": "vlen-utf8" }),
        json!({ "name": "zstd", "configuration": { "level": 1, "checksum": false } }),
    ];
    let spec = ArraySpec::builder(&[5, 2], &[2, 2], "string")
        .fill_value("none")
        .codecs(codecs)
        .build()
        .unwrap();
    let repo = create(&memory(), tiny()).await;
    let session = repo.writable_session("main").await.unwrap();
    let array = session.create_array("/s", spec).await.unwrap();
    let long = "long ".repeat(300);
    let region = Region::new(vec![1, 0], vec![3, 2]).unwrap();
    let values = ["", "ä", &long, "b", "c", "d"];
    array.write_elements(&region, strings(&values)).await.unwrap();
    session.commit(CommitOptions::message("x")).await.unwrap();
    let repo = reopen(repo.store()).await;
    let session = repo.readonly_session(&Version::Default).await.unwrap();
    let array = session.array("/s").await.unwrap();
    assert_eq!(array.read_elements(&region).await.unwrap(), strings(&values));
    let all = array.read_elements(&Region::whole(&[5, 2])).await.unwrap();
    let expected = ["none", "none", "", "ä", &long, "b", "c", "d", "none", "none"];
    assert_eq!(all, strings(&expected));
    assert_eq!(array.read_region(&region).await.unwrap_err().kind(), ErrorKind::Unsupported);
    sound(&repo).await;
}

#[tokio::test]
async fn a_chunk_that_is_all_fill_value_is_not_stored() {
    let repo = create(&memory(), tiny()).await;
    let spec = ArraySpec::builder(&[12], &[4], "uint8").fill_value(7).build().unwrap();
    let session = repo.writable_session("main").await.unwrap();
    session.create_array("/a", spec).await.unwrap();
    write(&session, "/a", "0:12", 7).await.unwrap();
    let indices = [vec![0], vec![1], vec![2]];
    assert_eq!(session.locate("/a", &indices).await.unwrap(), [None, None, None]);
    write(&session, "/a", "2:6", 1).await.unwrap();
    session.commit(CommitOptions::message("x")).await.unwrap();
    let session = repo.writable_session("main").await.unwrap();
    assert_eq!(session.node("/a").unwrap().refs_count, 2);
    write(&session, "/a", "2:4", 7).await.unwrap();
    session.commit(CommitOptions::message("y")).await.unwrap();
    let session = reopen(repo.store()).await.readonly_session(&Version::Default).await.unwrap();
    let placed = session.locate("/a", &indices).await.unwrap();
    assert_eq!([placed[0].is_some(), placed[1].is_some()], [false, true]);
    assert_eq!(session.node("/a").unwrap().refs_count, 1);
    let values = read_all(&session, "/a").await.unwrap();
    assert_eq!(values, [7, 7, 7, 7, 1, 1, 7, 7, 7, 7, 7, 7]);
}

/// Each task writes one column of the same chunks: every write reads, changes and writes.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn partial_writes_from_many_tasks_of_one_session_lose_nothing() {
    let (_guard, store) = directory();
    let repo = create(&store, tiny()).await;
    let session = repo.writable_session("main").await.unwrap();
    session.create_array("/a", bytes_spec(&[16, 24], &[8, 24])).await.unwrap();
    let mut tasks = tokio::task::JoinSet::new();
    for column in 0..24u64 {
        let session: Arc<Session> = session.clone();
        tasks.spawn(async move {
            let array = session.array("/a").await.unwrap();
            let region = Region::new(vec![0, column], vec![16, 1]).unwrap();
            let bytes = Bytes::from(vec![column as u8 + 1; 16]);
            array.write_region(&region, bytes).await.unwrap();
        });
    }
    while let Some(done) = tasks.join_next().await {
        done.unwrap();
    }
    session.commit(CommitOptions::message("x")).await.unwrap();
    let values = read_at(&reopen(&store).await, &Version::Default, "/a").await.unwrap();
    for row in values.chunks(24) {
        let expected: Vec<u8> = (1..=24).collect();
        assert_eq!(row, expected);
    }
}

#[tokio::test]
async fn sharded_arrays_round_trip() {
    let inner = json!([{ "name": "bytes" }, { "name": "crc32c" }]);
    let sharding = json!({
        "name": "sharding_indexed",
        "configuration": {
            "chunk_shape": [4, 4],
            "codecs": inner,
            "index_codecs": [{ "name": "bytes", "configuration": { "endian": "little" } }, { "name": "crc32c" }],
            "index_location": "end",
        },
    });
    let spec = ArraySpec::builder(&[20, 20], &[8, 8], "uint8").codecs(vec![sharding]).build();
    let repo = create(&memory(), tiny()).await;
    let session = repo.writable_session("main").await.unwrap();
    session.create_array("/a", spec.unwrap()).await.unwrap();
    let mut whole = vec![0; 400];
    for (n, text) in ["0:20,0:20", "3:9,5:17", "8:16,8:16", "19:20,0:1"].iter().enumerate() {
        write_noise(&session, "/a", text, n as u64).await.unwrap();
        let region = Region::parse(text, &[20, 20]).unwrap();
        let values = noise(region.num_elements() as usize, n as u64);
        naive_write(&mut whole, &[20, 20], &region, &values);
    }
    session.commit(CommitOptions::message("x")).await.unwrap();
    let repo = reopen(repo.store()).await;
    assert_eq!(read_at(&repo, &Version::Default, "/a").await.unwrap(), whole);
    sound(&repo).await;
}

/// Chunks that a smaller shape leaves out are gone for good, in one session or over several.
#[tokio::test]
async fn a_smaller_shape_and_a_larger_one_again_bring_no_chunk_back() {
    for commits in [false, true] {
        let repo = create(&memory(), tiny()).await;
        let mut session = repo.writable_session("main").await.unwrap();
        session.create_array("/a", bytes_spec(&[12, 12], &[4, 4])).await.unwrap();
        write(&session, "/a", "0:12,0:12", 1).await.unwrap();
        for shape in [[4, 8], [12, 12]] {
            if commits {
                session.commit(CommitOptions::message("x")).await.unwrap();
                sound(&repo).await;
                session = repo.writable_session("main").await.unwrap();
            }
            session.resize("/a", &shape).await.unwrap();
        }
        session.commit(CommitOptions::message("y")).await.unwrap();
        let repo = reopen(repo.store()).await;
        let values = read_at(&repo, &Version::Default, "/a").await.unwrap();
        for (at, value) in values.iter().enumerate() {
            let inside = at / 12 < 4 && at % 12 < 8;
            assert_eq!(*value, u8::from(inside), "{},{}", at / 12, at % 12);
        }
        let session = repo.readonly_session(&Version::Default).await.unwrap();
        assert_eq!(session.node("/a").unwrap().refs_count, 2);
        sound(&repo).await;
    }
}

#[tokio::test]
async fn how_chunks_are_read_changes_only_while_there_are_none() {
    let repo = create(&memory(), Config::default()).await;
    let session = repo.writable_session("main").await.unwrap();
    session.create_array("/a", bytes_spec(&[8], &[4])).await.unwrap();
    session.set_spec("/a", bytes_spec(&[8], &[2])).await.unwrap();
    write(&session, "/a", "0:8", 1).await.unwrap();
    let error = session.set_spec("/a", bytes_spec(&[8], &[4])).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    session.set_spec("/a", bytes_spec(&[6], &[2])).await.unwrap();
    session.commit(CommitOptions::message("x")).await.unwrap();
    assert_eq!(read_at(&repo, &Version::Default, "/a").await.unwrap(), [1; 6]);
}

#[tokio::test]
async fn a_region_outside_or_of_another_size_is_refused() {
    let repo = create(&memory(), Config::default()).await;
    let session = repo.writable_session("main").await.unwrap();
    let array = session.create_array("/a", bytes_spec(&[8], &[4])).await.unwrap();
    let outside = Region::new(vec![4], vec![5]).unwrap();
    assert_eq!(array.read_region(&outside).await.unwrap_err().kind(), ErrorKind::Invalid);
    let written = array.write_region(&outside, vec![0; 5].into()).await;
    assert_eq!(written.unwrap_err().kind(), ErrorKind::Invalid);
    let region = Region::new(vec![4], vec![4]).unwrap();
    let written = array.write_region(&region, vec![0; 5].into()).await;
    assert_eq!(written.unwrap_err().kind(), ErrorKind::Invalid);
}

/// An array of rank 0 has one chunk, whose coordinate is the empty string.
#[tokio::test]
async fn an_array_without_dimensions_is_one_element() {
    let repo = create(&memory(), Config { inline_chunk_max: 0, ..Config::default() }).await;
    let session = repo.writable_session("main").await.unwrap();
    let array = session.create_array("/a", bytes_spec(&[], &[])).await.unwrap();
    let region = Region::new(vec![], vec![]).unwrap();
    array.write_region(&region, vec![5].into()).await.unwrap();
    session.commit(CommitOptions::message("x")).await.unwrap();
    let repo = reopen(repo.store()).await;
    assert_eq!(read_at(&repo, &Version::Default, "/a").await.unwrap(), [5]);
    sound(&repo).await;
}

/// An array of one shard, whose inner chunks of 64 by 64 bytes carry checksums.
async fn sharded(store: &chunkyard_store::Store) -> Vec<u8> {
    let bytes = json!({"name": "bytes"});
    let codec = json!({"name": "sharding_indexed", "configuration": {
        "chunk_shape": [64, 64],
        "codecs": [bytes, {"name": "zstd", "configuration": {"level": 1, "checksum": false}}, {"name": "crc32c"}],
        "index_codecs": [{"name": "bytes", "configuration": {"endian": "little"}}, {"name": "crc32c"}],
        "index_location": "end"}});
    let shape = [256, 256];
    let spec = ArraySpec::builder(&shape, &shape, "uint8").codecs(vec![codec]).build().unwrap();
    let session = create(store, Config::default()).await.writable_session("main").await.unwrap();
    let array = session.create_array("/a", spec).await.unwrap();
    let mut whole = noise(256 * 256, 5);
    // One inner chunk is all fill value, and not stored.
    naive_write(&mut whole, &shape, &Region::parse("64:128,0:64", &shape).unwrap(), &[0; 4096]);
    array.write_region(&Region::whole(&shape), whole.clone().into()).await.unwrap();
    session.commit(CommitOptions::message("a shard")).await.unwrap();
    whole
}

#[tokio::test]
async fn regions_of_a_shard_are_those_of_the_array() {
    let store = memory();
    let whole = sharded(&store).await;
    let session = reopen(&store).await.readonly_session(&Version::branch("main")).await.unwrap();
    let array = session.array("/a").await.unwrap();
    for text in
        ["0:1,0:1", "255:256,255:256", "60:70,0:3", "64:128,0:64", "100:101,0:256", "0:256,0:256"]
    {
        let region = Region::parse(text, &[256, 256]).unwrap();
        let found = array.read_region(&region).await.unwrap();
        assert_eq!(&found[..], &naive_read(&whole, &[256, 256], &region)[..], "{text}");
    }
}

#[tokio::test]
async fn a_read_fetches_only_the_inner_chunks_it_wants_and_checks_them() {
    let store = memory();
    let whole = sharded(&store).await;
    let listed: Vec<_> = store.list("c").await.unwrap().try_collect().await.unwrap();
    let [file] = &listed[..] else { panic!("{listed:?}") };
    // The shard begins with its first inner chunk.
    let mut bytes = store.get(&file.path).await.unwrap().bytes.to_vec();
    bytes[100] ^= 1;
    store.put(&file.path, vec![bytes.into()]).await.unwrap();

    let session = reopen(&store).await.readonly_session(&Version::branch("main")).await.unwrap();
    let array = session.array("/a").await.unwrap();
    let elsewhere = Region::parse("200:210,70:80", &[256, 256]).unwrap();
    let found = array.read_region(&elsewhere).await.unwrap();
    assert_eq!(&found[..], &naive_read(&whole, &[256, 256], &elsewhere)[..]);
    for text in ["0:1,0:1", "0:256,0:256"] {
        let region = Region::parse(text, &[256, 256]).unwrap();
        let error = array.read_region(&region).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{text}: {error}");
    }
}
