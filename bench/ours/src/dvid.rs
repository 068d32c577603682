//! A store that DVID wrote: its values, its lists of labels, and an import of all of it.

use std::fs::File;
use std::io::Read;

use bench_measure::{Answer, Clock, Options, Outcome, Samples, peak};
use bytes::Bytes;
use chunkyard_array::codec::label_block::{Block, value};
use chunkyard_engine::Meter;
use chunkyard_engine::format::badger::{Badger, KeyRange};
use chunkyard_engine::format::dvid::{DvidOptions, DvidStore, DvidUrl};
use chunkyard_engine::labels::dvid::{ImportOptions, WhichVersions, import_history};
use chunkyard_engine::store::{Options as StoreOptions, Store, cpu};
use futures::TryStreamExt;
use rayon::prelude::*;
use serde_json::Value;

use crate::commits::create;
use crate::disk::Disk;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// Bytes of a label block.
pub const BLOCK_BYTES_MAX: usize = 4 << 20;
/// Batches of values that are unpacked while others are read.
const UNPACKED_AT_ONCE: usize = 3;

/// What is in the store, as its maker says.
pub struct Expected {
    /// The number of the labelmap.
    pub instance: u32,
    /// Its blocks.
    pub blocks: u64,
    /// Bytes of their values.
    bytes: u64,
    /// The sum of their lists of labels.
    labels: u64,
}

/// What is in a store.
pub fn expected(source: &str) -> Result<Expected> {
    let told: Value = serde_json::from_slice(&std::fs::read(format!("{source}/expected.json"))?)?;
    let number = |name: &str| told[name].as_u64().ok_or(format!("no {name}"));
    Ok(Expected {
        instance: u32::try_from(number("instance")?)?,
        blocks: number("blocks")?,
        bytes: number("value_bytes")?,
        labels: number("label_sum")?,
    })
}

/// Label blocks of scale 0 of an instance.
fn prefix(instance: u32) -> Vec<u8> {
    [&[1][..], &instance.to_be_bytes(), &[0xba, 1, 0]].concat()
}

/// `source=DIRECTORY [way=files]`: every value with its checksum compared, or the files alone.
pub async fn values(options: &Options) -> Outcome {
    let source = options.text("source");
    let mut returned = Samples::default();
    let clock = Clock::start();
    let equal = if options.text("way") == "files" {
        read_files(&format!("{source}/data/badger"))?
    } else {
        let told = expected(source)?;
        let badger = open(source).await?;
        let entries = badger.scan(KeyRange::prefix(&prefix(told.instance)));
        let entries = entries.try_collect::<Vec<_>>().await?.concat();
        let (mut blocks, mut bytes) = (0, 0);
        let mut values = badger.values(entries);
        while let Some(batch) = values.try_next().await? {
            blocks += batch.len() as u64;
            bytes += batch.iter().map(|(_, value)| value.len() as u64).sum::<u64>();
        }
        (blocks, bytes) == (told.blocks, told.bytes)
    };
    returned.add(clock);
    Ok(Answer::default().measure("returned", &returned).fact("memory", peak()).equal(equal))
}

/// All values of an instance, in memory.
pub async fn all_values(source: &str, instance: u32) -> Result<Vec<Bytes>> {
    let badger = open(source).await?;
    let entries = badger.scan(KeyRange::prefix(&prefix(instance)));
    let entries = entries.try_collect::<Vec<_>>().await?.concat();
    let values = badger.values(entries).try_collect::<Vec<_>>().await?.concat();
    // Each with memory of its own, as if it had been read alone.
    Ok(values.into_iter().map(|(_, value)| Bytes::copy_from_slice(&value)).collect())
}

async fn open(source: &str) -> Result<Badger> {
    let store = Store::open(&format!("{source}/data/badger"), &StoreOptions::default())?;
    Ok(Badger::open(&store).await?)
}

/// Every file from its beginning to its end, one after the other.
fn read_files(directory: &str) -> Result<bool> {
    let mut buffer = vec![0; 4 << 20];
    for entry in std::fs::read_dir(directory)? {
        let mut file = File::open(entry?.path())?;
        while file.read(&mut buffer)? > 0 {}
    }
    Ok(true)
}

/// `source=DIRECTORY repeats=N`: every value checked, unpacked, and parsed to its list of labels.
pub async fn lists(options: &Options) -> Outcome {
    let source = options.text("source");
    let told = expected(source)?;
    let (mut returned, mut equal) = (Samples::default(), true);
    for _ in 0..options.number("repeats", 1)?.max(1) {
        let clock = Clock::start();
        let badger = open(source).await?;
        let entries = badger.scan(KeyRange::prefix(&prefix(told.instance)));
        let entries = entries.try_collect::<Vec<_>>().await?.concat();
        let mut sums = badger
            .values(entries)
            .map_ok(|batch| async move { cpu(move || sum_of_labels(batch)).await? })
            .try_buffered(UNPACKED_AT_ONCE);
        let (mut blocks, mut labels) = (0, 0u64);
        while let Some((count, sum)) = sums.try_next().await? {
            blocks += count;
            labels = labels.wrapping_add(sum);
        }
        returned.add(clock);
        equal &= (blocks, labels) == (told.blocks, told.labels);
    }
    Ok(Answer::default().measure("returned", &returned).fact("memory", peak()).equal(equal))
}

/// How many blocks there are, and the sum of their lists of labels. Blocks are checked in full.
fn sum_of_labels(
    batch: Vec<(usize, Bytes)>,
) -> std::result::Result<(u64, u64), chunkyard_engine::Error> {
    let count = batch.len() as u64;
    let one = |(_, packed): (usize, Bytes)| {
        let plain = value::unwrap(&packed, BLOCK_BYTES_MAX)?;
        Ok(Block::parse(&plain)?.labels().fold(0u64, u64::wrapping_add))
    };
    let sum = batch.into_par_iter().map(one);
    let sum = sum.try_reduce(|| 0, |a, b| Ok::<u64, chunkyard_array::Error>(a.wrapping_add(b)));
    Ok((count, sum?))
}

/// `source=DIRECTORY`: a labelmap with all its tables, in one durable commit.
pub async fn import(options: &Options) -> Outcome {
    let source = options.text("source");
    let told = expected(source)?;
    let mut durable = Samples::default();
    let clock = Clock::start();
    let repo = create(&options.directory).await?;
    let url = DvidUrl::parse(&format!("{source}/data/badger"))?;
    let store = DvidStore::open(&url, &DvidOptions::default()).await?;
    let import = ImportOptions {
        path: "/seg".into(),
        data: None,
        versions: WhichVersions::All,
        skip_corrupt: false,
    };
    let report = import_history(&repo, &store, None, &import, &Meter::default()).await?;
    durable.add(clock);
    let memory = peak();
    let written: u64 = report.versions.iter().map(|version| version.blocks).sum();
    let disk = Disk::of(&options.directory)?;
    Ok(Answer::default()
        .measure("durable", &durable)
        .fact("memory", memory)
        .fact("files", disk.files())
        .fact("stored-bytes", disk.bytes())
        .equal(written == told.blocks))
}
