//! Half the resolution by way of voxels: eight blocks are decoded, every 2 × 2 × 2 voxels vote, and
//! the result is encoded.

use bench_measure::{Answer, Options, Outcome};
use chunkyard_array::codec::label_block::{Block, encode};

use super::Result;
use super::blocks::{Blocks, SIZE, VOXELS, sample};

const EDGE: usize = 64;
const HALF: usize = EDGE / 2;

/// The same as `codec` does on encoded blocks.
pub fn half_by_voxels(options: &Options) -> Outcome {
    let blocks = Blocks::load(options)?;
    let expected = halved(&blocks)?;
    let (mut whole, mut voxels, mut out) = (vec![0; VOXELS], vec![0; VOXELS], Vec::new());
    let samples = sample(|| {
        halve(&blocks, &mut whole, &mut voxels, &mut out)?;
        std::hint::black_box(&mut out);
        Ok(())
    })?;
    Ok(Answer::default().measure("half", &samples).equal(out == expected))
}

/// The eight blocks as one of half the resolution.
pub fn halved(blocks: &Blocks) -> Result<Vec<u8>> {
    let mut out = Vec::new();
    halve(blocks, &mut vec![0; VOXELS], &mut vec![0; VOXELS], &mut out)?;
    Ok(out)
}

fn halve(blocks: &Blocks, whole: &mut [u64], voxels: &mut [u64], out: &mut Vec<u8>) -> Result<()> {
    for (octant, block) in blocks.encoded.iter().enumerate() {
        Block::parse(block)?.decode_into(whole)?;
        let [x, y, z] = [octant & 1, octant >> 1 & 1, octant >> 2].map(|odd| odd * HALF);
        for at_z in 0..HALF {
            for at_y in 0..HALF {
                let from = (at_z * EDGE + at_y) * 2 * EDGE;
                let rows: [&[u64]; 4] = [0, EDGE, EDGE * EDGE, EDGE * EDGE + EDGE]
                    .map(|row| &whole[from + row..from + row + EDGE]);
                let to = ((z + at_z) * EDGE + y + at_y) * EDGE + x;
                for (at_x, voxel) in voxels[to..to + HALF].iter_mut().enumerate() {
                    *voxel = winner(std::array::from_fn(|child| {
                        rows[child >> 1][2 * at_x + (child & 1)]
                    }));
                }
            }
        }
    }
    out.clear();
    Ok(encode(voxels, SIZE, out)?)
}

/// The label that most have; 0 does not vote, and of equals the smaller wins.
fn winner(eight: [u64; 8]) -> u64 {
    if eight.iter().fold(0, |others, label| others | (label ^ eight[0])) == 0 {
        return eight[0];
    }
    let (mut most, mut winner) = (0, 0);
    for &label in eight.iter().filter(|&&label| label != 0) {
        let votes = eight.iter().filter(|&&other| other == label).count();
        if votes > most || (votes == most && label < winner) {
            (most, winner) = (votes, label);
        }
    }
    winner
}
