//! Writing plain Zarr: memory of the caller through the pipeline.

use std::sync::Arc;

use bench_measure::{Answer, Clock, Data, Outcome, Samples};
use bytes::Bytes;
use chunkyard_array::ArraySpec;
use chunkyard_engine::format::{MemorySource, Source};
use chunkyard_engine::pipeline::Wishes;

use crate::convert::{WAYS, clear, run};
use crate::disk::Disk;

/// The options that make the same format as all sides.
pub fn wishes(data: &Data, sharded: bool) -> Wishes {
    // blosc level 2 is zstd level 3.
    let codec = if data.is_labels() { "zstd:3" } else { "blosc:zstd:2:shuffle" };
    Wishes {
        chunks: Some(data.chunk.to_vec()),
        shards: sharded.then(|| Some(data.shard.to_vec())),
        codec: Some(codec.into()),
        ..Wishes::default()
    }
}

/// Writes everything into a fresh directory, `repeats` times after a warm-up; the last one stays.
/// Without durability the call only returns, as with the rivals.
pub async fn write(directory: &str, data: Data, sharded: bool, repeats: u64) -> Outcome {
    let spec = ArraySpec::builder(&data.shape, &data.chunk, data.data_type).build()?;
    let wishes = wishes(&data, sharded);
    let elements = Bytes::from(data.elements);
    let mut samples = [Samples::default(), Samples::default()];
    for repeat in 0..=repeats {
        for (durability, samples) in WAYS.into_iter().zip(&mut samples) {
            clear(directory)?;
            let clock = Clock::start();
            let source = MemorySource::new("/a", &spec, elements.clone())?;
            let source: Arc<dyn Source> = Arc::new(source);
            run(&source, directory, "zarr3", &wishes, durability).await?;
            if repeat > 0 {
                samples.add(clock);
            }
        }
    }
    let stored = Disk::of(directory)?.bytes();
    let [returned, durable] = samples;
    Ok(Answer::default()
        .measure("returned", &returned)
        .measure("durable", &durable)
        .fact("stored-bytes", stored))
}
