//! How the cost of an export grows: with the number of labels in a block, and with the number of shards.

use bench_measure::{Answer, Clock, Options, Outcome, Samples, peak};
use chunkyard_engine::export::{Codec, Emit};
use chunkyard_engine::store::Durability;

use super::watch::OpenFiles;
use super::{Wish, chunk_bits, is_whole, plain_bytes, spec};
use crate::convert::clear;

/// `source=REPO grid=EDGE blocks=N shard=EDGE`: exports the blocks of a cube as Arrow shards of `shard` blocks along each axis.
pub async fn growth(options: &Options) -> Outcome {
    let (source, target) = (options.text("source"), options.directory.as_str());
    let size = [options.number("grid", 1)? * 64; 3];
    let within = 3 * options.number("shard", 32)?.ilog2();
    let wish = Wish {
        source,
        emit: Emit::Arrow,
        codec: Codec::default(),
        spec: Some(spec(size, within, 0, chunk_bits(size).saturating_sub(within))),
        durability: Durability::None,
    };
    let (mut returned, mut per_byte) = (Samples::default(), Samples::default());
    let (mut memory, mut files, mut bytes, mut equal) = (0, 0, 0, true);
    for _ in 0..options.number("repeats", 1)?.max(1) {
        clear(target)?;
        let open = OpenFiles::watch();
        let clock = Clock::start();
        let (exporter, report) = wish.run(target).await?;
        returned.add(clock);
        bytes = plain_bytes(&report);
        // Of a MB, so that the figure is readable.
        per_byte.add_shared(clock, (bytes / 1_000_000).max(1));
        (memory, files) = (memory.max(peak()), files.max(open.most()));
        equal &= report.total.blocks == options.number("blocks", 1)?;
        equal &= is_whole(&exporter).await?;
    }
    clear(target)?;
    Ok(Answer::default()
        .measure("returned", &returned)
        .measure("per-mb", &per_byte)
        .fact("memory", memory)
        .fact("open-files", files)
        .fact("block-bytes", bytes)
        .equal(equal))
}
