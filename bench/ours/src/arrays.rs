//! Regions of arrays: W1, R1, R2, R3 and S1 of `bench/README.md`.

use std::error::Error;
use std::sync::Arc;

use bytes::Bytes;
use chunkyard_array::{ArraySpec, Buffer, Region};
use chunkyard_engine::repo::{
    CommitOptions, CreateOptions, OpenOptions, Repository, Session, Version,
};
use serde_json::{Value, json};

use crate::measure::{Samples, start};

type Outcome = Result<Value, Box<dyn Error>>;

/// A workload's array: specification and elements, from the file every side reads.
fn setup(data: &str, workload: &str) -> Result<(ArraySpec, Vec<u8>), Box<dyn Error>> {
    let name = if workload.ends_with("labels") { "labels" } else { "field" };
    let elements = std::fs::read(format!("{data}/{name}"))?;
    let bytes = json!({"name": "bytes", "configuration": {"endian": "little"}});
    let spec = if name == "labels" {
        let shape = [elements.len() as u64 / (512 * 512 * 8), 512, 512];
        let codec = json!({"name": "zstd", "configuration": {"level": 3, "checksum": false}});
        ArraySpec::builder(&shape, &[64, 64, 64], "uint64").codecs(vec![bytes, codec]).build()?
    } else {
        let shape = [elements.len() as u64 / (512 * 512 * 4), 512, 512];
        // blosc level 2 is zstd level 3.
        let codec = json!({"name": "blosc", "configuration": {
            "cname": "zstd", "clevel": 2, "shuffle": "shuffle", "typesize": 4, "blocksize": 0}});
        ArraySpec::builder(&shape, &[1, 512, 512], "float32").codecs(vec![bytes, codec]).build()?
    };
    Ok((spec, elements))
}

/// W1 and S1: write everything, then commit durably.
pub async fn write(directory: &str, data: &str, workload: &str, repeats: u64) -> Outcome {
    let (spec, data) = setup(data, workload)?;
    let data = Bytes::from(data);
    let (mut returned, mut durable) = (Samples::default(), Samples::default());
    for repeat in 0..=repeats {
        let place = format!("{directory}/{workload}-{repeat}");
        let repo =
            Repository::create(&place, OpenOptions::default(), CreateOptions::default()).await?;
        let session = repo.writable_session("main").await?;
        let array = session.create_array("/a", spec.clone()).await?;
        let clock = start();
        array.write_region(&Region::whole(spec.shape()), data.clone()).await?;
        if repeat > 0 {
            returned.add(clock);
        }
        session.commit(CommitOptions::message("all")).await?;
        if repeat > 0 {
            durable.add(clock);
        }
        if repeat < repeats {
            std::fs::remove_dir_all(&place)?;
        }
    }
    let kept = format!("{directory}/{workload}-{repeats}");
    Ok(json!({
        "bytes": data.len(),
        "returned": returned.report(json!({})),
        "durable": durable.report(json!({})),
        "kept": kept,
    }))
}

async fn open(directory: &str) -> Result<Arc<Session>, Box<dyn Error>> {
    let repo = Repository::open(directory, OpenOptions::default()).await?;
    Ok(repo.readonly_session(&Version::branch("main")).await?)
}

/// R1 and S1: read everything into fresh memory; the first read checks the data.
pub async fn read(directory: &str, data: &str, workload: &str, repeats: u64) -> Outcome {
    let (spec, data) = setup(data, workload)?;
    let session = open(directory).await?;
    let array = session.array("/a").await?;
    let region = Region::whole(spec.shape());
    let equal = array.read_region(&region).await?[..] == data[..];
    let size = data.len();
    drop(data);
    let (mut fresh, mut reused) = (Samples::default(), Samples::default());
    let mut memory = Buffer::zeroed(size)?;
    for _ in 0..repeats {
        let clock = start();
        std::hint::black_box(array.read_region(&region).await?);
        fresh.add(clock);
        let clock = start();
        memory = array.read_region_into(&region, memory).await?;
        reused.add(clock);
    }
    Ok(json!({
        "bytes": size,
        "equal": equal,
        "fresh": fresh.report(json!({})),
        "reused": reused.report(json!({})),
    }))
}

/// R2: random chunks into reused buffers, by one or more clients.
pub async fn read_chunk(directory: &str, clients: u64) -> Outcome {
    let session = open(directory).await?;
    let array = session.array("/a").await?;
    let planes = array.spec().shape()[0];
    let reads = 400u64;
    let clock = std::time::Instant::now();
    let mut tasks = Vec::new();
    for client in 0..clients {
        let array = array.clone();
        tasks.push(tokio::spawn(async move {
            let mut memory = vec![0u8; 1 << 20];
            let mut samples = Samples::default();
            for at in 0..reads {
                let chunk = (at * 617 + client * 331) % planes;
                let region = Region::new(vec![chunk, 0, 0], vec![1, 512, 512]);
                let clock = start();
                let region = region.map_err(|error| error.to_string())?;
                let read = array.read_region_into(&region, memory).await;
                memory = read.map_err(|error| error.to_string())?;
                if at >= 20 {
                    samples.add(clock);
                }
            }
            Ok::<_, String>(samples)
        }));
    }
    let mut report = json!({});
    for task in tasks {
        report = task.await??.report(json!({}));
    }
    let rate = (reads * clients) as f64 / clock.elapsed().as_secs_f64();
    Ok(json!({"latency": report, "reads-per-second": rate}))
}

/// R3: one point through all chunks.
pub async fn read_series(directory: &str, repeats: u64) -> Outcome {
    let session = open(directory).await?;
    let array = session.array("/a").await?;
    let region = Region::new(vec![0, 100, 200], vec![array.spec().shape()[0], 1, 1])?;
    let mut samples = Samples::default();
    for repeat in 0..=repeats {
        let clock = start();
        std::hint::black_box(array.read_region(&region).await?);
        if repeat > 0 {
            samples.add(clock);
        }
    }
    Ok(samples.report(json!({})))
}
