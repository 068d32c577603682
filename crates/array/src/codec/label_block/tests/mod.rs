//! Vectors of the specification, blocks of a real DVID, random voxels, tampered bytes.

mod golden;
mod hostile;
mod naive;
mod operations;
mod round_trip;
mod segmentation;
mod value;
mod vectors;
mod zarr;

use proptest::prelude::*;

use super::{Block, encode};

/// Voxels of a block.
#[derive(Clone, Debug)]
struct Sample {
    size: [u32; 3],
    voxels: Vec<u64>,
}

impl Sample {
    fn encoded(&self) -> Vec<u8> {
        let mut out = Vec::new();
        encode(&self.voxels, self.size, &mut out).unwrap();
        out
    }
}

fn decoded(block: &Block<'_>) -> Vec<u64> {
    // Not zeros: what is there before must not matter.
    let mut out = vec![0xdead; block.voxel_count()];
    block.decode_into(&mut out).unwrap();
    out
}

/// A sequence of numbers that looks random.
struct Noise(u64);

impl Noise {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

/// Voxels of some labels: boxes of one label on another, and noise in some places.
fn sample_of(grid: [u32; 3], labels: u64, noisy: u64, seed: u64) -> Sample {
    let size = grid.map(|cells| cells * 8);
    let [x_size, y_size, z_size] = size.map(u64::from);
    let mut noise = Noise(seed);
    // Labels of all magnitudes, 0 among them.
    let palette: Vec<u64> = (0..labels)
        .map(|at| match at % 4 {
            0 => at / 4,
            1 => at * 1000,
            2 => (at << 33) + 5,
            _ => u64::MAX - at,
        })
        .collect();
    let pick = |noise: &mut Noise| palette[noise.below(labels) as usize];
    let mut voxels = vec![pick(&mut noise); (x_size * y_size * z_size) as usize];
    let mut paint = |from: [u64; 3], to: [u64; 3], mut label: Box<dyn FnMut() -> u64>| {
        for z in from[2]..to[2].min(z_size) {
            for y in from[1]..to[1].min(y_size) {
                for x in from[0]..to[0].min(x_size) {
                    voxels[((z * y_size + y) * x_size + x) as usize] = label();
                }
            }
        }
    };
    for _ in 0..labels.min(12) {
        let from = [noise.below(x_size), noise.below(y_size), noise.below(z_size)];
        let to = from.map(|at| at + 1 + noise.below(12));
        let label = pick(&mut noise);
        paint(from, to, Box::new(move || label));
    }
    for _ in 0..noisy {
        let from = [noise.below(x_size), noise.below(y_size), noise.below(z_size)];
        let to = from.map(|at| at + 1 + noise.below(10));
        let some = 1 + noise.below(labels);
        let (palette, mut own) = (palette.clone(), Noise(noise.below(1 << 30)));
        paint(from, to, Box::new(move || palette[own.below(some) as usize]));
    }
    Sample { size, voxels }
}

fn samples() -> impl Strategy<Value = Sample> {
    let labels = prop_oneof![1u64..4, 2u64..20, 20u64..700];
    ([1u32..4, 1u32..3, 1u32..3], labels, 0u64..4, any::<u64>())
        .prop_map(|(grid, labels, noisy, seed)| sample_of(grid, labels, noisy, seed))
}
