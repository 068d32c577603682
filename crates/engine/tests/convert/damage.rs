//! A source that is damaged, or changes while it is read, and a target that is taken.

use chunkyard_array::{ArraySpec, Sharding, codec};
use chunkyard_engine::pipeline::Wishes;
use chunkyard_engine::{Error, ErrorKind};

use super::by_hand::write_zarr3;
use super::formats::{exact_sinks, named, sinks};
use super::sample::Sample;
use super::support::{PATH, Yard, convert, opened, read, read_back, try_convert};

/// A sample whose chunks do not compress, so that a flipped bit hits an element.
fn sample(codecs: &str) -> Sample {
    let spec = ArraySpec::builder(&[64, 64], &[32, 32], "uint64");
    let plain = spec.clone().build().unwrap();
    let codecs = codec::parse_shorthand(codecs, &plain.dtype().unwrap()).unwrap();
    Sample::of(spec.codecs(codecs).build().unwrap())
}

async fn damage(yard: &Yard, path: &str, change: impl Fn(Vec<u8>) -> Vec<u8>) {
    let store = yard.store("source");
    let bytes = store.get(path).await.unwrap().bytes.to_vec();
    store.put(path, vec![change(bytes).into()]).await.unwrap();
}

fn flip_at(mut bytes: Vec<u8>, at: usize) -> Vec<u8> {
    bytes[at] ^= 0x40;
    bytes
}

fn flip(bytes: Vec<u8>) -> Vec<u8> {
    let middle = bytes.len() / 2;
    flip_at(bytes, middle)
}

fn cut(bytes: Vec<u8>) -> Vec<u8> {
    bytes[..bytes.len() - 5].to_vec()
}

/// The error of every movement into every format; nothing may look complete afterwards.
async fn fails(yard: &Yard, kind: ErrorKind, says: &str) {
    let source = opened(&yard.at("source")).await;
    for to in exact_sinks() {
        for (codec, chunks) in [(None, [32, 32]), (Some("gzip:1"), [32, 32]), (None, [20, 30])] {
            let target = format!("{to:?}-{}-{}", codec.is_some(), chunks[0]);
            let wishes = Wishes { codec: codec.map(Into::into), ..to.wishes(&chunks) };
            let done = try_convert(&source, &yard.at(&target), to.format, &wishes).await;
            let error = done.expect_err(&target);
            assert_eq!(error.kind(), kind, "{target}: {error:?}");
            assert!(error.to_string().contains(says), "{target}: {error}");
            if !to.facts().begins_empty {
                let metadata = yard.store(&target).head("zarr.json").await;
                assert!(matches!(metadata, Err(Error::NotFound { .. })), "{target}");
            } else {
                let repo = opened(&yard.at(&target)).await;
                assert!(repo.dataset().array(PATH).is_err(), "{target}");
            }
        }
    }
}

#[tokio::test]
async fn a_damaged_chunk_is_named_and_nothing_looks_complete() {
    for codecs in ["zstd:1+crc32c", "blosc:lz4:5:shuffle+crc32c", "crc32c"] {
        for change in [flip as fn(Vec<u8>) -> Vec<u8>, cut] {
            let yard = Yard::directory();
            let sample = sample(codecs);
            write_zarr3(&yard, "source", &sample.spec, &sample.array).await;
            damage(&yard, "group/t/c/1/0", change).await;
            fails(&yard, ErrorKind::Corrupt, "chunk [1, 0] of /group/t").await;
        }
    }
}

#[tokio::test]
async fn compressed_bytes_that_end_too_early_are_corrupt() {
    for codecs in ["zstd:1", "gzip:1", "blosc:lz4:5:shuffle", "none"] {
        let yard = Yard::memory();
        let sample = sample(codecs);
        write_zarr3(&yard, "source", &sample.spec, &sample.array).await;
        damage(&yard, "group/t/c/0/1", cut).await;
        fails(&yard, ErrorKind::Corrupt, "chunk [0, 1] of /group/t").await;
    }
}

#[tokio::test]
async fn a_damaged_index_of_a_shard_is_corrupt() {
    let yard = Yard::memory();
    let sample = sample("zstd:1");
    let spec = sample.spec.sharded(&Sharding::new(&[64, 32])).unwrap();
    write_zarr3(&yard, "source", &spec, &sample.array).await;
    // The index is at the end, before its checksum.
    damage(&yard, "group/t/c/0/1", |bytes| {
        let at = bytes.len() - 10;
        flip_at(bytes, at)
    })
    .await;
    fails(&yard, ErrorKind::Corrupt, "group/t/c/0/1").await;
}

#[tokio::test]
async fn a_shard_that_is_rewritten_meanwhile_is_an_error_and_never_mixed() {
    for yard in Yard::both() {
        let sample = sample("none");
        let spec = sample.spec.sharded(&Sharding::new(&[64, 64])).unwrap();
        write_zarr3(&yard, "source", &spec, &sample.array).await;
        let source = opened(&yard.at("source")).await;
        // Its index is known from here on.
        read(&source, PATH).await;
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        damage(&yard, "group/t/c/0/0", |bytes| bytes.into_iter().rev().collect()).await;
        let done = try_convert(&source, &yard.at("target"), "zarr3", &Wishes::default()).await;
        let error = done.expect_err("a changed source");
        assert!(matches!(error, Error::VirtualSourceChanged { .. }), "{error:?}");
        assert!(yard.store("target").head("zarr.json").await.is_err());
    }
}

#[tokio::test]
async fn an_existing_target_is_refused_and_left_alone() {
    for to in sinks() {
        for yard in Yard::both() {
            let target = to.called("target");
            let sample = Sample::new(&[5, 7], &[2, 3], "int16");
            let source = named("zarr3").write(&yard, "source", &sample).await;
            let wishes = to.packs(&[5, 7], &[2, 3]);
            convert(&source, &yard.at(&target), to.format, &wishes).await;
            let other = Sample::new(&[6], &[2], "int8");
            let other = named("zarr3").write(&yard, "other", &other).await;
            let wishes = to.packs(&[6], &[2]);
            let done = try_convert(&other, &yard.at(&target), to.format, &wishes).await;
            assert_eq!(done.expect_err("occupied").kind(), ErrorKind::Conflict);
            assert!(read_back(&yard, &target).await == sample.array);
            let mut expected = vec!["other".to_owned(), "source".to_owned()];
            expected.extend(to.files("target"));
            yard.holds_only(&expected);
        }
    }
}

#[tokio::test]
async fn of_two_conversions_at_the_same_time_one_wins() {
    for to in sinks() {
        let yard = Yard::directory();
        let sample = Sample::new(&[31, 37], &[4, 4], "int16");
        let source = named("zarr3").write(&yard, "source", &sample).await;
        let name = to.called("target");
        let target = yard.at(&name);
        let wishes = to.packs(&[31, 37], &[3, 5]);
        let attempts = (0..4).map(|_| try_convert(&source, &target, to.format, &wishes));
        let outcomes = futures::future::join_all(attempts).await;
        assert_eq!(outcomes.iter().filter(|outcome| outcome.is_ok()).count(), 1, "{to:?}");
        for error in outcomes.into_iter().filter_map(Result::err) {
            assert_eq!(error.kind(), ErrorKind::Conflict, "{to:?}: {error:?}");
        }
        assert!(read_back(&yard, &name).await == sample.array, "{to:?}");
        let mut expected = vec!["source".to_owned()];
        expected.extend(to.files("target"));
        yard.holds_only(&expected);
    }
}
