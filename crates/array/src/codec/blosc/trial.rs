//! Which compressor and filter suit some data, found out by trying them on a sample of it.
//!
//! | 1 MiB, blocks as c-blosc makes them | lz4 at 5: ratio, encode, decode | zstd at 2 | zstd at 5 |
//! |---|---|---|---|
//! | `linspace`, float64, none | 1.0, 5.2, 26 | 1.1, 0.60, 0.9 | 1.2, 0.11, 0.9 |
//! | byte shuffle | 9.3, 1.8, 4.2 | 14, 1.1, 2.2 | 41, 0.45, 3.8 |
//! | bit shuffle | 31, 1.7, 2.9 | **53**, 1.1, 2.1 | 142, 0.53, 2.5 |
//! | random walk, int64, none | 2.2, 0.49, 1.7 | 4.5, 0.28, 0.9 | 5.2, 0.04, 0.8 |
//! | byte shuffle | **5.6**, 2.2, 3.3 | 6.4, 1.0, 2.5 | 6.6, 0.20, 3.8 |
//! | bit shuffle | 5.9, 1.7, 3.0 | 6.3, 1.0, 1.4 | 6.3, 0.41, 2.1 |
//! | runs of labels, uint64, none | 48, 9.2, 12 | **109**, 4.5, 4.0 | 121, 0.58, 4.1 |
//! | byte shuffle | 31, 2.8, 3.2 | 86, 2.0, 2.4 | 94, 0.32, 3.6 |
//! | bit shuffle | 14, 1.1, 1.9 | 26, 0.80, 1.4 | 32, 0.14, 1.6 |
//!
//! (GB/s on one core. Bold is what the rule below picks.) Zstandard above level 2 costs two to seven
//! times the encoding for a few per cent, save where the data is a formula.

use super::encode_onto;
use super::header::HEADER_BYTES;
use super::params::{Compressor, Params, Shuffle};
use crate::Result;

/// Bytes of each of the two pieces that are tried: one from the start, one from the middle.
const PIECE_BYTES: usize = 128 << 10;

/// What is tried, the fastest first.
const CANDIDATES: [(Compressor, u8, Shuffle); 6] = [
    (Compressor::Lz4, 5, Shuffle::None),
    (Compressor::Lz4, 5, Shuffle::Byte),
    (Compressor::Lz4, 5, Shuffle::Bit),
    (Compressor::Zstd, 2, Shuffle::None),
    (Compressor::Zstd, 2, Shuffle::Byte),
    (Compressor::Zstd, 2, Shuffle::Bit),
];

/// How much smaller, in per cent, another filter must make the sample.
const FILTER_GAIN_MIN: usize = 15;

/// How much smaller the slower compressor must make it.
const COMPRESSOR_GAIN_MIN: usize = 25;

/// Parameters for data of which `plain` is a first chunk, in elements of `item` bytes.
///
/// The rule: the fastest candidate, unless another filter makes the sample smaller by more than
/// 15 %, or Zstandard instead of LZ4 by more than 25 %. No clock is asked: the same bytes always give
/// the same answer.
pub fn choose(plain: &[u8], item: u8) -> Result<Params> {
    let item = item.max(1);
    let mut best: Option<(Params, usize)> = None;
    let mut encoded = Vec::new();
    for (compressor, level, shuffle) in CANDIDATES {
        // The byte shuffle of single bytes is none.
        if item == 1 && shuffle == Shuffle::Byte {
            continue;
        }
        let block_bytes = compressor.block_bytes();
        let params = Params { compressor, level, shuffle, item, block_bytes };
        let mut size = 0;
        for piece in sample(plain, item.into()) {
            encoded.clear();
            encode_onto(&params, piece, &mut encoded)?;
            size += encoded.len() - HEADER_BYTES;
        }
        let wins = best.is_none_or(|(other, least)| {
            let gain =
                if other.compressor == compressor { FILTER_GAIN_MIN } else { COMPRESSOR_GAIN_MIN };
            size * 100 < least * (100 - gain)
        });
        if wins {
            best = Some((params, size));
        }
    }
    let (compressor, level, shuffle) = CANDIDATES[0];
    let block_bytes = compressor.block_bytes();
    let fallback = Params { compressor, level, shuffle, item, block_bytes };
    Ok(best.map_or(fallback, |(params, _)| params))
}

/// The pieces that are tried; each starts with a whole element.
fn sample(plain: &[u8], item: usize) -> impl Iterator<Item = &[u8]> {
    let (first, rest) = plain.split_at(plain.len().min(PIECE_BYTES / item * item));
    let middle = rest.len().saturating_sub(PIECE_BYTES) / 2 / item * item;
    let second = &rest[middle..];
    [first, &second[..second.len().min(PIECE_BYTES / item * item)]].into_iter()
}

#[cfg(test)]
mod tests {
    use super::super::tests::noise;
    use super::{PIECE_BYTES, choose, sample};
    use crate::codec::blosc::{Compressor, Params, Shuffle};

    fn chosen(plain: &[u8], item: u8) -> (Compressor, Shuffle) {
        let params = choose(plain, item).unwrap();
        let block_bytes = params.compressor.block_bytes();
        assert_eq!(Params { item, block_bytes, ..params }, params);
        assert_eq!(choose(plain, item).unwrap(), params, "it depends on nothing else");
        (params.compressor, params.shuffle)
    }

    fn doubles(value: impl Fn(usize) -> f64) -> Vec<u8> {
        (0..1 << 17).flat_map(|at| value(at).to_le_bytes()).collect()
    }

    #[test]
    fn a_ramp_takes_zstd_and_the_bit_shuffle() {
        let ramp = doubles(|at| at as f64 / 131_071.0 * 100.0);
        assert_eq!(chosen(&ramp, 8), (Compressor::Zstd, Shuffle::Bit));
    }

    #[test]
    fn a_random_walk_takes_lz4_and_the_byte_shuffle() {
        let mut at = 0_i64;
        let walk: Vec<u8> = noise(1 << 17)
            .into_iter()
            .flat_map(|step| {
                at += i64::from(step % 201) - 100;
                at.to_le_bytes()
            })
            .collect();
        assert_eq!(chosen(&walk, 8), (Compressor::Lz4, Shuffle::Byte));
    }

    #[test]
    fn runs_of_labels_take_zstd_as_they_are() {
        let labels: Vec<u8> = noise(4000)
            .chunks(2)
            .flat_map(|pair| {
                let label = u64::from(pair[0]) * 7919 + 7_000_000_000;
                label.to_le_bytes().repeat(usize::from(pair[1] / 2) + 1)
            })
            .collect();
        assert_eq!(chosen(&labels, 8), (Compressor::Zstd, Shuffle::None));
    }

    #[test]
    fn noise_takes_what_is_fastest() {
        for item in [1, 4, 255] {
            assert_eq!(chosen(&noise(1 << 19), item), (Compressor::Lz4, Shuffle::None));
        }
    }

    #[test]
    fn little_or_nothing_is_enough_to_choose_by() {
        for len in [0, 1, 127, 200] {
            assert_eq!(chosen(&vec![0; len], 8).1, Shuffle::None);
        }
    }

    #[test]
    fn the_sample_is_the_start_and_the_middle_in_whole_elements() {
        let plain: Vec<u8> = (0..1_000_000_u32).map(|at| (at % 12) as u8).collect();
        let pieces: Vec<&[u8]> = sample(&plain, 12).collect();
        assert!(pieces.iter().all(|piece| piece[0] == 0 && piece.len() <= PIECE_BYTES));
        assert!(pieces.iter().all(|piece| piece.len().is_multiple_of(12)));
        let short: Vec<&[u8]> = sample(&plain[..1000], 12).collect();
        assert_eq!(short, [&plain[..1000], &[]]);
    }
}
