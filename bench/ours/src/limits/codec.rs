//! The codecs alone, on chunks of the same data, with buffers reused: by one thread and by two.

use std::error::Error;
use std::os::raw::{c_char, c_int, c_void};

use bench_measure::Answer;

use super::sample;

/// Bytes of data that are encoded and decoded.
const BYTES: usize = 64 << 20;
/// A chunk of the field, and of the segmentation.
const FIELD_CHUNK: usize = 1 << 20;
const LABELS_CHUNK: usize = 2 << 20;

#[derive(Clone, Copy)]
enum Codec {
    /// zstd level 3 (blosc level 2) after a byte shuffle.
    Blosc,
    /// zstd level 3.
    Zstd,
}

impl Codec {
    fn encode(self, chunk: &[u8], out: &mut Vec<u8>) -> Result<(), Box<dyn Error + Send + Sync>> {
        match self {
            Self::Zstd => {
                out.resize(zstd::zstd_safe::compress_bound(chunk.len()), 0);
                let size = zstd::bulk::compress_to_buffer(chunk, &mut out[..], 3)?;
                out.truncate(size);
            }
            Self::Blosc => {
                out.resize(chunk.len() + 16, 0);
                // SAFETY: both pointers are of the lengths given with them.
                let size = unsafe {
                    blosc_src::blosc_compress_ctx(
                        2,
                        1,
                        4,
                        chunk.len(),
                        chunk.as_ptr().cast::<c_void>(),
                        out.as_mut_ptr().cast::<c_void>(),
                        out.len(),
                        c"zstd".as_ptr().cast::<c_char>(),
                        0,
                        1 as c_int,
                    )
                };
                out.truncate(usize::try_from(size)?);
            }
        }
        Ok(())
    }

    fn decode(self, encoded: &[u8], out: &mut [u8]) -> Result<(), Box<dyn Error + Send + Sync>> {
        let size = match self {
            Self::Zstd => zstd::bulk::decompress_to_buffer(encoded, out)?,
            Self::Blosc => {
                // SAFETY: the bytes are those that `encode` made, and the output is as long as it
                // is said to be.
                let size = unsafe {
                    blosc_src::blosc_decompress_ctx(
                        encoded.as_ptr().cast::<c_void>(),
                        out.as_mut_ptr().cast::<c_void>(),
                        out.len(),
                        1,
                    )
                };
                usize::try_from(size)?
            }
        };
        if size == out.len() { Ok(()) } else { Err("decoded another length".into()) }
    }
}

/// Both codecs, both ways, by one thread and by two. Facts say how many bytes that was.
pub fn alone(mut answer: Answer, data: &str) -> Result<Answer, Box<dyn Error>> {
    for (name, codec, chunk) in
        [("field", Codec::Blosc, FIELD_CHUNK), ("labels", Codec::Zstd, LABELS_CHUNK)]
    {
        let Ok(mut elements) = std::fs::read(format!("{data}/{name}")) else { continue };
        elements.truncate(BYTES);
        let chunks: Vec<&[u8]> = elements.chunks_exact(chunk).collect();
        let bytes = chunks.len() * chunk;
        let mut encoded = vec![Vec::new(); chunks.len()];
        for (chunk, encoded) in chunks.iter().zip(&mut encoded) {
            codec.encode(chunk, encoded).map_err(|error| error.to_string())?;
        }
        let stored: usize = encoded.iter().map(Vec::len).sum();
        answer = answer.fact(&format!("{name}-ratio"), bytes as f64 / stored as f64);
        for threads in [1, 2] {
            let encode =
                sample(|| spread(threads, &chunks, |chunk, out| codec.encode(chunk, out)))?;
            let decode = sample(|| {
                spread(threads, &encoded, |encoded, out| {
                    out.resize(chunk, 0);
                    codec.decode(encoded, out)
                })
            })?;
            for (way, samples) in [("encode", encode), ("decode", decode)] {
                let name = format!("{name}-{way}-{threads}");
                answer = answer.measure(&name, &samples).fact(&name, bytes);
            }
        }
    }
    Ok(answer)
}

/// Works on all items with a number of threads, each with its own output buffer.
pub(super) fn spread<T: Sync>(
    threads: usize,
    items: &[T],
    work: impl Fn(&T, &mut Vec<u8>) -> Result<(), Box<dyn Error + Send + Sync>> + Sync,
) -> Result<(), Box<dyn Error>> {
    std::thread::scope(|scope| {
        let share = items.len().div_ceil(threads).max(1);
        let workers: Vec<_> = items
            .chunks(share)
            .map(|items| {
                let work = &work;
                scope.spawn(move || {
                    let mut out = Vec::new();
                    items.iter().try_for_each(|item| work(item, &mut out))
                })
            })
            .collect();
        workers.into_iter().try_for_each(|worker| {
            worker.join().map_err(|_| "a thread died")?.map_err(|error| error.to_string())
        })
    })
    .map_err(|error: String| error.into())
}
