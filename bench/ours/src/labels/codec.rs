//! Label blocks by one thread: to voxels, from voxels, to Neuroglancer's form, to half the resolution.

use bench_measure::{Answer, Options, Outcome};
use chunkyard_array::codec::label_block::{Block, downsample, encode, from_segmentation};

use super::blocks::{Blocks, SIZE, VOXELS, sample};
use super::vote::halved;

/// The first three, each on all blocks, with buffers reused. Bytes are checked when a block is parsed,
/// which counts.
pub fn codec(options: &Options) -> Outcome {
    let blocks = Blocks::load(options)?;
    let (mut voxels, mut out) = (vec![0u64; VOXELS], Vec::new());
    let mut equal = true;
    for (block, source) in blocks.encoded.iter().zip(&blocks.voxels) {
        let block = Block::parse(block)?;
        block.decode_into(&mut voxels)?;
        equal &= voxels == *source;
        let (mut segmentation, mut back) = (Vec::new(), Vec::new());
        block.segmentation_onto(SIZE, &mut segmentation)?;
        from_segmentation(&segmentation, SIZE, &mut back)?;
        equal &= back == block.bytes();
    }
    let decode = sample(|| {
        for block in &blocks.encoded {
            Block::parse(block)?.decode_into(&mut voxels)?;
            std::hint::black_box(&mut voxels);
        }
        Ok(())
    })?;
    let encoding = sample(|| {
        for block in &blocks.voxels {
            out.clear();
            encode(block, SIZE, &mut out)?;
            std::hint::black_box(&mut out);
        }
        Ok(())
    })?;
    let transcode = sample(|| {
        for block in &blocks.encoded {
            out.clear();
            Block::parse(block)?.segmentation_onto(SIZE, &mut out)?;
            std::hint::black_box(&mut out);
        }
        Ok(())
    })?;
    let labels: usize = blocks.parsed()?.iter().map(|block| block.labels().len()).sum();
    let stored: usize = blocks.encoded.iter().map(Vec::len).sum();
    Ok(Answer::default()
        .measure("decode", &decode)
        .measure("encode", &encoding)
        .measure("transcode", &transcode)
        .fact("labels-per-block", labels / blocks.encoded.len())
        .fact("stored-bytes", stored)
        .equal(equal))
}

/// Eight blocks become one of half the resolution.
pub fn half(options: &Options) -> Outcome {
    let (blocks, mut out) = (Blocks::load(options)?, Vec::new());
    let samples = sample(|| {
        out.clear();
        downsample(blocks.parsed()?.map(Some), None, SIZE, &mut out)?;
        std::hint::black_box(&mut out);
        Ok(())
    })?;
    Ok(Answer::default().measure("half", &samples).equal(out == halved(&blocks)?))
}
