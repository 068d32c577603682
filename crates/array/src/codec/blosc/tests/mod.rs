//! Against c-blosc, both ways, and against bytes that lie.

mod against_c_blosc;
mod chain;
mod hostile;
mod ranges;
mod round_trip;

use super::{Compressor, Params, Shuffle, encode_onto};

const SHUFFLES: [Shuffle; 3] = [Shuffle::None, Shuffle::Byte, Shuffle::Bit];

fn params(compressor: Compressor, level: u8, shuffle: Shuffle, item: u8) -> Params {
    Params { compressor, level, shuffle, item, block_bytes: 0 }
}

/// Every compressor with every filter.
fn all(level: u8, item: u8) -> impl Iterator<Item = Params> {
    Compressor::ALL.into_iter().flat_map(move |compressor| {
        SHUFFLES.into_iter().map(move |shuffle| params(compressor, level, shuffle, item))
    })
}

fn encoded(params: &Params, plain: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    encode_onto(params, plain, &mut out).unwrap();
    out
}

/// A field with some noise: compressible, but not trivially.
fn field(len: usize) -> Vec<u8> {
    let value = |i: usize| (i as f32 / 50.0).sin() + ((i * 7919) % 13) as f32 * 1e-4;
    (0..len.div_ceil(4)).flat_map(|i| value(i).to_le_bytes()).take(len).collect()
}

/// Data that every compressor makes smaller, with and without a filter.
fn steps(len: usize) -> Vec<u8> {
    (0..len.div_ceil(4)).flat_map(|i| (i as u32 / 40 * 77).to_le_bytes()).take(len).collect()
}

pub(super) fn noise(len: usize) -> Vec<u8> {
    let mut state = 1u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 32) as u8
    };
    (0..len).map(|_| next()).collect()
}
