//! A mapping of many supervoxels: loaded from its table, and asked.

use bench_measure::{Answer, Clock, Options, Outcome, Samples};
use chunkyard_engine::Meter;
use chunkyard_engine::repo::{OpenOptions, Repository, Version};
use chunkyard_labels::{Labelmap, Layout, Mapping};

use super::volumes::Rule;
use super::{PATH, Result};
use crate::commits::create;

/// Questions that are asked at once.
const QUESTIONS: usize = 1 << 20;

/// The rows of a mapping: every third id from a large one on, ten to a body.
pub fn rows(count: u64) -> Result<Mapping> {
    let keys: Vec<u64> = (0..count).map(|row| (1 << 32) + row * 3).collect();
    let bodies = (0..count).map(|row| (1 << 32) + row / 10 * 30).collect();
    Ok(Mapping::from_sorted(keys, bodies)?)
}

/// Rows that are not spread evenly: small ids as a segmentation has them, and one that has the time for an id.
fn skewed_rows(count: u64) -> Result<Mapping> {
    let keys: Vec<u64> = (1..count).map(|row| row * 3).chain([217 << 40]).collect();
    let bodies = keys.iter().map(|key| key / 30 * 30 + 3).collect();
    Ok(Mapping::from_sorted(keys, bodies)?)
}

/// `rows=…`, `skewed=1`: loads the mapping of a committed labelmap, and asks for sorted and for scattered ids.
pub async fn mapping(options: &Options) -> Outcome {
    let count = options.number("rows", 100_000)?;
    let is_skewed = options.number("skewed", 0)? == 1;
    let (given, least) = match is_skewed {
        true => (skewed_rows(count)?, 0),
        false => (rows(count)?, 1 << 32),
    };
    let directory = options.directory.as_str();
    if !std::path::Path::new(directory).exists() {
        let session = create(directory).await?.writable_session("main").await?;
        let volume = Rule { shape: [16; 3], label: |_| 1 };
        let layout = Layout::new(volume.shape).with_block([16; 3]);
        let (map, _) =
            Labelmap::import(&session, PATH, layout, &volume, &given, &Meter::default()).await?;
        map.commit("import").await?;
    }
    let repo = Repository::open(directory, OpenOptions::default()).await?;
    let session = repo.readonly_session(&Version::branch("main")).await?;
    let map = Labelmap::open(&session, PATH).await?;
    let (mut load, mut loaded) = (Samples::default(), Mapping::default());
    let mut best = f64::INFINITY;
    for repeat in 0..=options.number("repeats", 3)? {
        drop(std::mem::take(&mut loaded));
        let clock = Clock::start();
        loaded = map.load_mapping().await?;
        if repeat > 0 {
            best = best.min(clock.wall().as_secs_f64());
            load.add(clock);
        }
    }
    let equal = loaded == given;
    // Some of them have no row.
    let span = count * 3;
    let step = (span / QUESTIONS as u64).max(1);
    let sorted: Vec<u64> = (0..QUESTIONS as u64).map(|at| least + at * step % span).collect();
    let scattered: Vec<u64> = (0..QUESTIONS as u64)
        .map(|at| least + at.wrapping_mul(0x9e37_79b9_7f4a_7c15) % span)
        .collect();
    let (sorted_time, sorted_ns) = ask(&loaded, &sorted);
    let (scattered_time, scattered_ns) = ask(&loaded, &scattered);
    Ok(Answer::default()
        .measure("load", &load)
        .measure("sorted", &sorted_time)
        .measure("scattered", &scattered_time)
        .fact("load-ms", best * 1e3)
        .fact("bytes-per-row", loaded.bytes() as f64 / count as f64)
        .fact("sorted-ns", sorted_ns)
        .fact("scattered-ns", scattered_ns)
        .equal(equal))
}

/// Samples of the time for one question, and the least CPU time in nanoseconds.
fn ask(mapping: &Mapping, questions: &[u64]) -> (Samples, f64) {
    let (mut samples, mut best) = (Samples::default(), f64::INFINITY);
    for repeat in 0..10 {
        let mut labels = questions.to_vec();
        let clock = Clock::start();
        mapping.relabel(&mut labels);
        let cpu = clock.cpu() / questions.len() as f64;
        std::hint::black_box(&mut labels);
        if repeat > 0 {
            samples.add_shared(clock, questions.len() as u64);
            best = best.min(cpu * 1e9);
        }
    }
    (samples, best)
}
