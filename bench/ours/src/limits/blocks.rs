//! The codecs of containers alone, on chunks of 4 MiB of the same data, by two threads.

use std::error::Error;

use bench_measure::Answer;
use chunkyard_engine::store::block_codec;

use super::codec::spread;
use super::sample;

/// Bytes of data that are packed and unpacked.
const BYTES: usize = 64 << 20;
const CHUNK: usize = 4 << 20;

/// Both codecs, both ways. Facts say how many bytes that was.
pub fn alone(mut answer: Answer, data: &str) -> Result<Answer, Box<dyn Error>> {
    for name in ["field", "labels"] {
        let Ok(mut elements) = std::fs::read(format!("{data}/{name}")) else { continue };
        elements.truncate(BYTES);
        let chunks: Vec<&[u8]> = elements.chunks_exact(CHUNK).collect();
        for codec_name in ["lz4", "zstd"] {
            let codec = block_codec(codec_name)?;
            let packed: Vec<Vec<u8>> =
                chunks.iter().map(|chunk| codec.pack(chunk)).collect::<Result<_, _>>()?;
            let pack = sample(|| {
                spread(2, &chunks, |chunk, out| {
                    *out = codec.pack(chunk)?;
                    Ok(())
                })
            })?;
            let unpack = sample(|| {
                spread(2, &packed, |packed, out| {
                    out.resize(CHUNK, 0);
                    Ok(codec.unpack(packed, out)?)
                })
            })?;
            for (way, samples) in [("pack", pack), ("unpack", unpack)] {
                let name = format!("{name}-{codec_name}-{way}-2");
                answer = answer.measure(&name, &samples).fact(&name, chunks.len() * CHUNK);
            }
        }
    }
    Ok(answer)
}
