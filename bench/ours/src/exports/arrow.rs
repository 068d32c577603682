//! Arrow shards of a store that DVID wrote, and the least that this can take: inflate and compress.

use bench_measure::{Answer, Clock, Options, Outcome, Samples, peak};
use bytes::Bytes;
use chunkyard_array::codec::label_block::value;
use chunkyard_array::codec::packed::zstd_pack_checked;
use chunkyard_engine::export::{Codec, Emit};
use chunkyard_engine::store::cpu;
use rayon::prelude::*;

use super::watch::OpenFiles;
use super::{Wish, is_whole};
use crate::convert::{WAYS, clear};
use crate::dvid::{self, BLOCK_BYTES_MAX};

/// The level that DVID writes.
const LEVEL: i32 = 3;

/// `source=STORE codec=zstd:3|zstd:1|keep` exports all blocks; `way=codec` only inflates and compresses values that are in memory.
pub async fn arrow(options: &Options) -> Outcome {
    let repeats = options.number("repeats", 1)?.max(1);
    if options.text("way") == "codec" {
        return codec(options.text("source"), repeats).await;
    }
    let store = options.text("source");
    let told = dvid::expected(store)?;
    let source = format!("dvid+badger://{store}/data/badger");
    let target = options.directory.as_str();
    let codec: Codec = options.text("codec").parse()?;
    let mut samples = [Samples::default(), Samples::default()];
    let (mut memory, mut files, mut bytes, mut equal) = (0, 0, 0, true);
    for _ in 0..repeats {
        for (durability, samples) in WAYS.into_iter().zip(&mut samples) {
            clear(target)?;
            let wish = Wish { source: &source, emit: Emit::Arrow, codec, spec: None, durability };
            let open = OpenFiles::watch();
            let clock = Clock::start();
            let (exporter, report) = wish.run(target).await?;
            samples.add(clock);
            (memory, files) = (memory.max(peak()), files.max(open.most()));
            bytes = report.total.bytes;
            equal &= report.total.blocks == told.blocks && is_whole(&exporter).await?;
        }
    }
    clear(target)?;
    let [returned, durable] = samples;
    Ok(Answer::default()
        .measure("returned", &returned)
        .measure("durable", &durable)
        .fact("memory", memory)
        .fact("open-files", files)
        .fact("stored-bytes", bytes)
        .equal(equal))
}

/// The values are read before, and what comes out is forgotten.
async fn codec(store: &str, repeats: u64) -> Outcome {
    let told = dvid::expected(store)?;
    let values = dvid::all_values(store, told.instance).await?;
    let mut returned = Samples::default();
    let mut equal = true;
    for _ in 0..repeats {
        let given = values.clone();
        let clock = Clock::start();
        let blocks = cpu(move || pack(&given)).await?.map_err(|error| error.to_string())?;
        returned.add(clock);
        equal &= blocks == told.blocks;
    }
    // With the same work there is nothing else to do for a durable result.
    Ok(Answer::default().measure("returned", &returned).measure("durable", &returned).equal(equal))
}

fn pack(values: &[Bytes]) -> std::result::Result<u64, chunkyard_array::Error> {
    let one = |out: &mut Vec<u8>, packed: &Bytes| {
        let plain = value::unwrap(packed, BLOCK_BYTES_MAX)?;
        out.clear();
        zstd_pack_checked(&plain, LEVEL, out)?;
        Ok(u64::from(!out.is_empty()))
    };
    values
        .par_iter()
        .map_init(Vec::new, one)
        .try_reduce(|| 0, |a: u64, b| Ok::<_, chunkyard_array::Error>(a + b))
}
