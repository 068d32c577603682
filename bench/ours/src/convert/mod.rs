//! Conversions: from opening the source to a durable and visible target.

mod check;
mod movement;
mod volume;

use std::error::Error;
use std::path::Path;
use std::sync::Arc;

use bench_measure::{Answer, Clock, Options, Outcome, Samples};
use chunkyard_engine::format::{CreateOptions, OpenOptions, Place, Source};
use chunkyard_engine::open::{format_named, open};
use chunkyard_engine::pipeline::{self, Plan, RunOptions, Wishes};
use chunkyard_engine::store::{self, Durability, Limits};

use movement::Movement;
pub use volume::{convert_volume, volume};

/// Like the rivals, whose finished writes a power failure may lose, and like our default.
pub const WAYS: [Durability; 2] = [Durability::None, Durability::Full];
/// The default of `chunkyard convert`.
const MEMORY_BYTES: usize = 1 << 30;

/// Converts the wanted part of a source into a new directory.
pub async fn run(
    source: &Arc<dyn Source>,
    target: &str,
    format: &str,
    wishes: &Wishes,
    durability: Durability,
) -> Result<Plan, Box<dyn Error>> {
    let format = format_named(format)?;
    let plan = Plan::new(source, wishes, format, "a").await?;
    let store = store::Options { durability, ..store::Options::default() };
    let place = Place::new(target, &store)?;
    let options = CreateOptions { plan: plan.name.clone(), store, ..CreateOptions::default() };
    let sink = format.create(&place, plan.dataset.clone(), options).await?;
    let limits = Limits { bytes_in_flight: MEMORY_BYTES, ..Limits::default() };
    pipeline::run(source, sink, &plan, &RunOptions { limits, ..RunOptions::default() }).await?;
    Ok(plan)
}

/// Deletes a directory, if it exists.
pub fn clear(directory: &str) -> std::io::Result<()> {
    match Path::new(directory).exists() {
        true => std::fs::remove_dir_all(directory),
        false => Ok(()),
    }
}

/// `source=DIRECTORY movement=copy|transcode|regrid`, `repeats` times after a warm-up; then the
/// result is compared with the data.
pub async fn convert(options: &Options, repeats: u64) -> Outcome {
    let (source, target) = (options.text("source"), &options.directory);
    let movement = Movement::parse(options.text("movement"))?;
    let mut samples = [Samples::default(), Samples::default()];
    for repeat in 0..=repeats {
        for (durability, samples) in WAYS.into_iter().zip(&mut samples) {
            clear(target)?;
            let clock = Clock::start();
            let opened = open(source, &OpenOptions::default()).await?;
            let (format, wishes) = (movement.format(), movement.wishes());
            let plan = run(&opened.source, target, format, &wishes, durability).await?;
            if repeat > 0 {
                samples.add(clock);
            }
            movement.check(&plan)?;
        }
    }
    let equal = check::all_equal(target, options, 1).await?;
    let [returned, durable] = samples;
    let answer = Answer::default().measure("returned", &returned).measure("durable", &durable);
    Ok(answer.equal(equal))
}
