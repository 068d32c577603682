//! Eight blocks that make a cube: `data=DIRECTORY name=tens|hundreds|thousands`.

use bench_measure::{Clock, Options, Samples};
use chunkyard_array::codec::label_block::{Block, encode};

use super::Result;

/// Voxels of a block along x, y and z.
pub const SIZE: [u32; 3] = [64; 3];
/// Voxels of a block.
pub const VOXELS: usize = 64 * 64 * 64;
/// Samples, and how often the blocks are worked on for each.
const SAMPLES: usize = 9;
const PASSES: u64 = 4;

/// The blocks, as voxels and encoded.
pub struct Blocks {
    pub voxels: Vec<Vec<u64>>,
    pub encoded: Vec<Vec<u8>>,
}

impl Blocks {
    pub fn load(options: &Options) -> Result<Self> {
        let name = options.text("name");
        let bytes = std::fs::read(format!("{}/blocks-{name}", options.text("data")))?;
        let words = bytes.as_chunks::<8>().0.iter().map(|&word| u64::from_le_bytes(word));
        let words: Vec<u64> = words.collect();
        let voxels: Vec<Vec<u64>> = words.chunks_exact(VOXELS).map(<[u64]>::to_vec).collect();
        let encoded = voxels.iter().map(|block| encoded(block)).collect::<Result<_>>()?;
        Ok(Self { voxels, encoded })
    }

    /// The checked views of the encoded blocks.
    pub fn parsed(&self) -> Result<[Block<'_>; 8]> {
        let parsed: Vec<Block<'_>> = self
            .encoded
            .iter()
            .map(|block| Block::parse(block))
            .collect::<std::result::Result<_, _>>()?;
        parsed.try_into().map_err(|_| "eight blocks are needed".into())
    }
}

pub fn encoded(voxels: &[u64]) -> Result<Vec<u8>> {
    let mut out = Vec::new();
    encode(voxels, SIZE, &mut out)?;
    Ok(out)
}

/// Samples of work on all blocks once, after a warm-up.
pub fn sample(mut work: impl FnMut() -> Result<()>) -> Result<Samples> {
    let mut samples = Samples::default();
    work()?;
    for _ in 0..SAMPLES {
        let clock = Clock::start();
        for _ in 0..PASSES {
            work()?;
        }
        samples.add_shared(clock, PASSES);
    }
    Ok(samples)
}
