//! memcpy, into memory that is already mapped, and into fresh memory.

use std::error::Error;

use bench_measure::Answer;
use memmap2::{Advice, MmapMut};

use super::sample;

const BYTES: usize = 256 << 20;

/// Copies into reused memory, fresh huge pages and fresh small pages.
pub fn copies(answer: Answer) -> Result<Answer, Box<dyn Error>> {
    let source = vec![7u8; BYTES];
    let mut target = vec![1u8; BYTES];
    let reused = sample(|| {
        target.copy_from_slice(std::hint::black_box(&source));
        std::hint::black_box(&mut target);
        Ok(())
    })?;
    let into_fresh = |advice: Advice| {
        sample(|| {
            let mut target = MmapMut::map_anon(BYTES)?;
            target.advise(advice)?;
            target.copy_from_slice(std::hint::black_box(&source));
            std::hint::black_box(&mut target);
            Ok(())
        })
    };
    let huge = into_fresh(Advice::HugePage)?;
    let small = into_fresh(Advice::NoHugePage)?;
    Ok(answer
        .measure("memcpy-reused", &reused)
        .fact("memcpy-reused", BYTES)
        .measure("memcpy-huge-pages", &huge)
        .fact("memcpy-huge-pages", BYTES)
        .measure("memcpy-small-pages", &small)
        .fact("memcpy-small-pages", BYTES))
}
