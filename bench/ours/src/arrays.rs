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

/// 1 GiB of float32: a smooth field with noise, the same in every language (see `peers/data.py`).
const FIELD: [u64; 3] = [1024, 512, 512];
const FIELD_CHUNK: [u64; 3] = [1, 512, 512];
const LABELS: [u64; 3] = [512, 512, 512];
const LABELS_CHUNK: [u64; 3] = [64, 64, 64];

fn field() -> Vec<u8> {
    let plane = FIELD[1] * FIELD[2];
    let mut noise = 0x9e37_79b9u32;
    let mut bytes = Vec::with_capacity((FIELD[0] * plane * 4) as usize);
    for t in 0..FIELD[0] {
        for y in 0..FIELD[1] {
            for x in 0..FIELD[2] {
                noise = noise.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                let smooth = ((t * 3 + y * 5 + x * 7) % 4096) as f32;
                let value = 250.0 + smooth / 64.0 + (noise >> 24) as f32 / 512.0;
                bytes.extend_from_slice(&value.to_le_bytes());
            }
        }
    }
    bytes
}

fn labels() -> Vec<u8> {
    let mut bytes = Vec::with_capacity((LABELS[0] * LABELS[1] * LABELS[2] * 8) as usize);
    for z in 0..LABELS[0] {
        for y in 0..LABELS[1] {
            for x in 0..LABELS[2] {
                let cell = (z / 37) * 1_000_003 + ((y + z / 5) / 41) * 10_007 + (x + y / 3) / 29;
                bytes.extend_from_slice(&(cell + 1).to_le_bytes());
            }
        }
    }
    bytes
}

fn setup(workload: &str) -> Result<(ArraySpec, Vec<u8>), Box<dyn Error>> {
    let (shape, chunk, dtype, codec, data) = if workload.ends_with("labels") {
        let codec = json!({"name": "zstd", "configuration": {"level": 3, "checksum": false}});
        (LABELS, LABELS_CHUNK, "uint64", codec, labels())
    } else {
        // blosc level 2 is zstd level 3.
        let codec = json!({"name": "blosc", "configuration": {
            "cname": "zstd", "clevel": 2, "shuffle": "shuffle", "typesize": 4, "blocksize": 0}});
        (FIELD, FIELD_CHUNK, "float32", codec, field())
    };
    let bytes = json!({"name": "bytes", "configuration": {"endian": "little"}});
    let spec = ArraySpec::builder(&shape, &chunk, dtype).codecs(vec![bytes, codec]).build()?;
    Ok((spec, data))
}

/// W1 and S1: write everything, then commit durably.
pub async fn write(directory: &str, workload: &str, repeats: u64) -> Outcome {
    let (spec, data) = setup(workload)?;
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
pub async fn read(directory: &str, workload: &str, repeats: u64) -> Outcome {
    let (spec, data) = setup(workload)?;
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
    let reads = 400u64;
    let clock = std::time::Instant::now();
    let mut tasks = Vec::new();
    for client in 0..clients {
        let array = array.clone();
        tasks.push(tokio::spawn(async move {
            let mut memory = vec![0u8; 1 << 20];
            let mut samples = Samples::default();
            for at in 0..reads {
                let chunk = (at * 617 + client * 331) % FIELD[0];
                let region = Region::new(vec![chunk, 0, 0], vec![1, FIELD[1], FIELD[2]]);
                let clock = start();
                memory = match region {
                    Ok(region) => array.read_region_into(&region, memory).await,
                    Err(error) => Err(error.into()),
                }
                .map_err(|error| error.to_string())?;
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
    let region = Region::new(vec![0, 100, 200], vec![FIELD[0], 1, 1])?;
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
