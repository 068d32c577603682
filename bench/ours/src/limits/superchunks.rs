//! The codecs of superchunks alone: our Blosc, on chunks of 1 MiB of the same rows, by two threads.

use std::error::Error;

use bench_measure::Answer;
use chunkyard_array::codec::blosc;

use super::codec::spread;
use super::sample;
use crate::superchunks::{CHUNK, params};

/// Bytes of data that are encoded and decoded.
const BYTES: usize = 64 << 20;

/// Both codecs, both ways. Facts say how many bytes that was.
pub fn alone(mut answer: Answer, data: &str) -> Result<Answer, Box<dyn Error>> {
    for name in ["linspace", "walk", "labels"] {
        let Ok(mut elements) = std::fs::read(format!("{data}/{name}")) else { continue };
        elements.truncate(BYTES);
        let chunks: Vec<&[u8]> = elements.chunks_exact(CHUNK).collect();
        for codec in ["lz4", "zstd"] {
            let params = params(codec)?;
            let mut encoded = vec![Vec::new(); chunks.len()];
            for (chunk, encoded) in chunks.iter().zip(&mut encoded) {
                blosc::encode_onto(&params, chunk, encoded)?;
            }
            let encode = sample(|| {
                spread(2, &chunks, |chunk, out| {
                    out.clear();
                    Ok(blosc::encode_onto(&params, chunk, out)?)
                })
            })?;
            let decode = sample(|| {
                spread(2, &encoded, |encoded, out| {
                    out.resize(CHUNK, 0);
                    Ok(blosc::decode_into(encoded, out)?)
                })
            })?;
            for (way, samples) in [("encode", encode), ("decode", decode)] {
                let name = format!("{name}-blosc-{codec}-{way}-2");
                answer = answer.measure(&name, &samples).fact(&name, chunks.len() * CHUNK);
            }
        }
    }
    Ok(answer)
}
