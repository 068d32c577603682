//! The limits of the machine, measured in the same run: memory, files, and the codecs alone.

mod blocks;
mod codec;
mod file;
mod memory;
mod superchunks;
mod transcode;

use std::error::Error;

use bench_measure::{Answer, Clock, Options, Outcome, Samples};

const REPEATS: usize = 5;

/// Samples of a piece of work, after a warm-up.
fn sample(mut run: impl FnMut() -> Result<(), Box<dyn Error>>) -> Result<Samples, Box<dyn Error>> {
    let mut samples = Samples::default();
    run()?;
    for _ in 0..REPEATS {
        let clock = Clock::start();
        run()?;
        samples.add(clock);
    }
    Ok(samples)
}

/// All limits. The fact of the same name gives the bytes of each measure.
pub fn all(directory: &str, options: &Options) -> Outcome {
    std::fs::create_dir_all(directory)?;
    let answer = memory::copies(Answer::default())?;
    let answer = file::transfers(answer, directory)?;
    let answer = file::commits(answer, directory)?;
    let answer = codec::alone(answer, options.text("data"))?;
    let answer = blocks::alone(answer, options.text("data"))?;
    let answer = superchunks::alone(answer, options.text("data"))?;
    transcode::alone(answer, options.text("data"))
}
