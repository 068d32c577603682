//! Decoding and encoding alone: our codecs on all compute threads, memory reused, no files.

use std::cell::RefCell;
use std::error::Error;

use bench_measure::Answer;
use chunkyard_array::{ArraySpec, Codecs, Elements, codec};
use rayon::prelude::*;

use super::sample;

const BYTES: usize = 64 << 20;

/// The field from zstd to lz4, both after a byte shuffle.
pub fn alone(answer: Answer, data: &str) -> Result<Answer, Box<dyn Error>> {
    let Ok(mut elements) = std::fs::read(format!("{data}/field")) else { return Ok(answer) };
    elements.truncate(BYTES);
    let shape = [elements.len() as u64 >> 20, 512, 512];
    let spec = ArraySpec::builder(&shape, &[1, 512, 512], "float32").build()?;
    let with = |text: &str| -> Result<Codecs, Box<dyn Error>> {
        let codecs = codec::parse_shorthand(text, &spec.dtype()?)?;
        Ok(Codecs::new(&spec.with_codecs(codecs)?)?)
    };
    let (source, target) = (with("blosc:zstd:2:shuffle")?, with("blosc:lz4:5:shuffle")?);
    let encoded: Vec<Vec<u8>> = elements
        .par_chunks_exact(1 << 20)
        .map(|chunk| source.encode(Elements::Fixed(chunk)))
        .collect::<Result<_, _>>()?;
    let samples =
        sample(|| Ok(encoded.par_iter().try_for_each(|chunk| one(&source, &target, chunk))?))?;
    Ok(answer.measure("field-transcode", &samples).fact("field-transcode", elements.len()))
}

fn one(source: &Codecs, target: &Codecs, chunk: &[u8]) -> chunkyard_array::Result<()> {
    thread_local! {
        static MEMORY: RefCell<(Vec<u8>, Vec<u8>)> = const { RefCell::new((Vec::new(), Vec::new())) };
    }
    MEMORY.with_borrow_mut(|(decoded, encoded)| {
        decoded.resize(source.chunk_bytes().unwrap_or(0), 0);
        source.decode_into(chunk, decoded)?;
        encoded.clear();
        target.encode_into(decoded, encoded)
    })
}
