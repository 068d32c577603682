//! Everything is written at once.

use bench_measure::{Answer, Clock, Idle, Options, Outcome, Samples};

use super::{Rows, clear, settings};
use crate::disk::Disk;

/// Creates, appends all rows and flushes, `repeats` times after a warm-up; once without syncs, and
/// once with all syncs.
pub async fn write(options: &Options) -> Outcome {
    let rows = Rows::load(options)?;
    let (mut returned, mut durable, mut memory) = (Samples::default(), Samples::default(), 0);
    for repeat in 0..=options.number("repeats", 3)? {
        for (synced, samples) in [(false, &mut returned), (true, &mut durable)] {
            clear(options)?;
            let (idle, clock) = (Idle::now(), Clock::start());
            let blz = rows.create(options, &settings(synced)).await?;
            blz.append(vec![rows.elements.clone()]).await?;
            blz.flush().await?;
            if repeat > 0 {
                samples.add(clock);
            }
            memory = memory.max(idle.above());
        }
    }
    let disk = Disk::of(&options.directory)?;
    Ok(Answer::default()
        .measure("returned", &returned)
        .measure("durable", &durable)
        .fact("memory", memory)
        .fact("files", disk.files())
        .fact("stored-bytes", disk.bytes()))
}
