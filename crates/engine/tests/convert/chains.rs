//! Codecs and packings of all kinds, as found and as made.

use chunkyard_array::{ArraySpec, Sharding, codec};
use chunkyard_engine::pipeline::{Movement, Wishes};
use serde_json::{Value, json};

use super::by_hand::{write_repo, write_zarr3};
use super::formats::exact_sinks;
use super::sample::Sample;
use super::support::{PATH, Yard, convert, opened, read_back};

fn bytes(endian: &str) -> Value {
    json!({"name": "bytes", "configuration": {"endian": endian}})
}

fn named(name: &str, configuration: Value) -> Value {
    json!({"name": name, "configuration": configuration})
}

/// Chains for 32-bit elements of two dimensions.
fn chains() -> Vec<Vec<Value>> {
    let zstd = named("zstd", json!({"level": 1, "checksum": true}));
    let gzip = named("gzip", json!({"level": 1}));
    let blosc = named(
        "blosc",
        json!({"cname": "zstd", "clevel": 1, "shuffle": "bitshuffle", "typesize": 4, "blocksize": 0}),
    );
    let transpose = named("transpose", json!({"order": [1, 0]}));
    vec![
        vec![bytes("little")],
        vec![bytes("big")],
        vec![bytes("little"), zstd.clone(), json!({"name": "crc32c"})],
        vec![bytes("little"), gzip.clone()],
        vec![bytes("big"), blosc],
        vec![transpose.clone(), bytes("little"), zstd],
        vec![transpose, bytes("big"), gzip, json!("crc32c")],
        vec![named("numcodecs.pcodec", json!({"level": 8, "mode_spec": "auto"}))],
        vec![bytes("little"), json!("crc32c")],
    ]
}

/// All ways to pack chunks of 2 by 3 into shards.
fn packings() -> Vec<Option<Sharding>> {
    let plain = Sharding::new(&[4, 6]);
    vec![
        None,
        Some(plain.clone()),
        Some(Sharding { index_at_start: true, ..plain.clone() }),
        Some(Sharding { index_codecs: vec![bytes("big")], ..plain.clone() }),
        Some(Sharding { shard_shape: vec![16, 12], ..plain }),
    ]
}

fn sample(codecs: Vec<Value>) -> Sample {
    let spec = ArraySpec::builder(&[13, 11], &[2, 3], "float32").codecs(codecs).build().unwrap();
    Sample::of(spec).sparse(|index| index != [1, 1] && index[0] != 5)
}

#[tokio::test]
async fn every_chain_in_every_packing_goes_everywhere() {
    for (number, chain) in chains().into_iter().enumerate() {
        let sample = sample(chain);
        for packing in packings() {
            let yard = Yard::memory();
            let spec = match &packing {
                Some(packing) => sample.spec.sharded(packing).unwrap(),
                None => sample.spec.clone(),
            };
            write_zarr3(&yard, "source", &spec, &sample.array).await;
            let source = opened(&yard.at("source")).await;
            for to in exact_sinks() {
                for chunks in [[2, 3], [5, 2]] {
                    let target = format!("{to:?}-{}", chunks[0]);
                    convert(&source, &yard.at(&target), to.format, &to.wishes(&chunks)).await;
                    let found = read_back(&yard, &target).await;
                    assert!(found == sample.array, "chain {number}, {packing:?}, {target}");
                }
            }
            // Unchanged: chain and packing stay to the letter.
            let done = convert(&source, &yard.at("same"), "zarr3", &Wishes::default()).await;
            assert_eq!(done.movement(), Movement::Copy);
            assert!(read_back(&yard, "same").await == sample.array, "chain {number}, {packing:?}");
            let same = opened(&yard.at("same")).await;
            let node = same.dataset().array(PATH).unwrap();
            assert_eq!(node.sharding, packing);
            assert_eq!(node.packed_spec().unwrap().render(), spec.render());
        }
    }
}

#[tokio::test]
async fn every_chain_is_made_of_every_other() {
    let yard = Yard::memory();
    let sample = sample(chains().remove(2));
    write_zarr3(&yard, "source", &sample.spec, &sample.array).await;
    let source = opened(&yard.at("source")).await;
    let texts = ["none", "zstd:1", "gzip:1", "zlib", "bz2:1", "blosc:lz4:5:shuffle", "zstd+crc32c"];
    for (number, text) in texts.into_iter().enumerate() {
        for to in exact_sinks() {
            let target = format!("{number}-{to:?}");
            let wishes = Wishes { codec: Some(text.into()), ..to.wishes(&[2, 3]) };
            let done = convert(&source, &yard.at(&target), to.format, &wishes).await;
            assert_eq!(done.movement(), Movement::Transcode);
            assert!(read_back(&yard, &target).await == sample.array, "{target}");
        }
    }
    let dtype = sample.spec.dtype().unwrap();
    assert!(codec::parse_shorthand("zstd", &dtype).is_ok());
}

/// Only the outermost shards are packs; those inside are codecs of chunks.
#[tokio::test]
async fn nested_shards_are_copied_and_taken_apart() {
    let inner = ArraySpec::builder(&[17, 19], &[2, 2], "int16").build().unwrap();
    let middle = inner.sharded(&Sharding::new(&[4, 4])).unwrap();
    let spec = middle.sharded(&Sharding::new(&[8, 12])).unwrap();
    let sample = Sample::of(inner).sparse(|index| index[0] % 3 != 1);
    for in_repo in [false, true] {
        let yard = Yard::memory();
        match in_repo {
            true => write_repo(&yard, "source", &spec, &sample.array).await,
            false => write_zarr3(&yard, "source", &spec, &sample.array).await,
        }
        let source = opened(&yard.at("source")).await;
        let done = convert(&source, &yard.at("same"), "zarr3", &Wishes::default()).await;
        assert_eq!(done.movement(), Movement::Copy);
        assert!(read_back(&yard, "same").await == sample.array);
        let wishes = Wishes {
            codec: Some("zstd:1".into()),
            chunks: Some(vec![5, 5]),
            shards: Some(None),
            ..Wishes::default()
        };
        convert(&source, &yard.at("flat"), "repo", &wishes).await;
        assert!(read_back(&yard, "flat").await == sample.array);
    }
}
