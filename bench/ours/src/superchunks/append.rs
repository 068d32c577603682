//! Rows arrive in small batches.

use bench_measure::{Answer, Clock, Options, Outcome, Samples};
use chunkyard_array::Region;

use super::{Rows, clear, open, settings};
use crate::disk::Disk;

/// Appends `batches=N` batches of `rows=N` rows each: durable once at the end, or with `each=yes` after
/// every batch. Measures the whole, and a batch of the first and of the last tenth.
pub async fn append(options: &Options) -> Outcome {
    let rows = Rows::load(options)?;
    let (batches, count) = (options.number("batches", 1000)?, options.number("rows", 1000)?);
    let (each, tenth) = (options.is("each"), (batches / 10).max(1));
    let (mut all, mut early, mut late) =
        (Samples::default(), Samples::default(), Samples::default());
    clear(options)?;
    let clock = Clock::start();
    let blz = rows.create(options, &settings(true)).await?;
    let mut part = Clock::start();
    for batch in 0..batches {
        blz.append(vec![rows.part(batch * count, count)]).await?;
        if each {
            blz.flush().await?;
        }
        if batch + 1 == tenth {
            early.add_shared(part, tenth);
        }
        if batch + 1 == batches - tenth {
            part = Clock::start();
        }
    }
    late.add_shared(part, tenth);
    blz.flush().await?;
    all.add(clock);
    drop(blz);
    let appended = batches * count;
    let reader = open(options).await?.reader("/")?;
    let found = reader.read_region(&Region::new([0], [appended])?).await?;
    let disk = Disk::of(&options.directory)?;
    Ok(Answer::default()
        .measure("all", &all)
        .measure("early", &early)
        .measure("late", &late)
        .fact("files", disk.files())
        .fact("stored-bytes", disk.bytes())
        .equal(found[..] == rows.part(0, appended)[..]))
}
