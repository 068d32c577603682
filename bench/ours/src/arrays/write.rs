//! Writing a whole array and committing it durably.

use std::path::Path;

use bench_measure::{Answer, Clock, Data, Outcome, Samples};
use bytes::Bytes;
use chunkyard_array::{ArraySpec, Region};
use chunkyard_engine::repo::{CommitOptions, CreateOptions, OpenOptions, Repository};
use serde_json::{Value, json};

use crate::disk::Disk;

/// The chain of codecs: the peers' codecs, or with `codec=own` our own choice.
fn codecs(data: &Data, codec: &str) -> Vec<Value> {
    let bytes = json!({"name": "bytes", "configuration": {"endian": "little"}});
    let zstd = json!({"name": "zstd", "configuration": {"level": 3, "checksum": false}});
    // blosc level 2 is zstd level 3.
    let blosc = json!({"name": "blosc", "configuration": {
        "cname": "zstd", "clevel": 2, "shuffle": "shuffle", "typesize": 4, "blocksize": 0}});
    match (data.is_labels(), codec) {
        (true, _) => vec![bytes, zstd],
        (false, "own") => vec![json!({"name": "sharding_indexed", "configuration": {
            "chunk_shape": [1, 64, 128],
            "codecs": [bytes, blosc, {"name": "crc32c"}],
            "index_codecs": [bytes, {"name": "crc32c"}],
            "index_location": "end"}})],
        (false, _) => vec![bytes, blosc],
    }
}

/// Writes everything into a fresh repository, `repeats` times after a warm-up; the last one stays.
pub async fn write(directory: &str, data: Data, codec: &str, repeats: u64) -> Outcome {
    let spec = ArraySpec::builder(&data.shape, &data.chunk, data.data_type)
        .codecs(codecs(&data, codec))
        .build()?;
    let elements = Bytes::from(data.elements);
    let (mut returned, mut durable) = (Samples::default(), Samples::default());
    for repeat in 0..=repeats {
        if Path::new(directory).exists() {
            std::fs::remove_dir_all(directory)?;
        }
        let (open, create) = (OpenOptions::default(), CreateOptions::default());
        let repo = Repository::create(directory, open, create).await?;
        let session = repo.writable_session("main").await?;
        let array = session.create_array("/a", spec.clone()).await?;
        let clock = Clock::start();
        array.write_region(&Region::whole(spec.shape()), elements.clone()).await?;
        if repeat > 0 {
            returned.add(clock);
        }
        session.commit(CommitOptions::message("all")).await?;
        if repeat > 0 {
            durable.add(clock);
        }
    }
    let stored = Disk::of(directory)?.bytes();
    Ok(Answer::default()
        .measure("returned", &returned)
        .measure("durable", &durable)
        .fact("stored-bytes", stored))
}
