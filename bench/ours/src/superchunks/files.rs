//! How many files a large dataset has with default options.

use bench_measure::{Answer, Clock, Options, Outcome, Samples};
use chunkyard_array::Region;
use chunkyard_engine::format::superchunk::{Blz, BlzOptions, Creation, dtype};

use super::{place, settings};
use crate::disk::Disk;

/// Grows a dataset to `rows=N` equal rows of float64, with default chunks and files.
pub async fn files(options: &Options) -> Outcome {
    let rows = options.number("rows", 1_250_000_000)?;
    let mut creation = Creation::new(dtype::parse("<f8")?, &[]);
    creation.expected_len = rows;
    creation.wish.default = Some(1.5.into());
    let mut returned = Samples::default();
    let clock = Clock::start();
    let place = place(options, &settings(false))?;
    let blz = Blz::create(&place, &creation, BlzOptions::default()).await?;
    blz.resize(rows).await?;
    blz.flush().await?;
    returned.add(clock);
    let last = blz.reader("/")?.read_region(&Region::new([rows - 1], [1])?).await?;
    let disk = Disk::of(&options.directory)?;
    Ok(Answer::default()
        .measure("returned", &returned)
        .fact("files", disk.files())
        .fact("stored-bytes", disk.bytes())
        .equal(last[..] == 1.5f64.to_le_bytes()))
}
