//! Label blocks, the two forms they become, and the values they are stored in.

use chunkyard_array::codec::label_block::value::{Compression, unwrap, wrap_onto};
use chunkyard_array::codec::label_block::{
    Block, downsample, encode, from_segmentation, relabel, table_of,
};

use crate::choices::Choices;
use crate::error::{is_about_buffer, is_about_chunk};

/// Larger blocks are not decoded: callers know how large a block should be.
const VOXELS_MAX: usize = 1 << 16;

/// What a stored value may hold here.
const VALUE_BYTES_MAX: usize = 1 << 16;

fn voxels(block: &Block<'_>) -> Vec<u64> {
    let mut out = vec![1; block.voxel_count()];
    block.decode_into(&mut out).expect("any label fits in 64 bits");
    out
}

/// A block, in all ways in which blocks are read.
pub(crate) fn block(data: &[u8]) {
    let table = table_of(data);
    let mut relabelled = data.to_vec();
    let changed = relabel(&mut relabelled, |label| label.wrapping_add(1));
    assert_eq!(table.is_ok(), changed.is_ok());
    let block = match Block::parse(data) {
        Ok(block) => block,
        Err(error) => return is_about_chunk(&error),
    };
    assert!(block.labels().eq(table.expect("the table of a sound block")));
    let other = Block::parse(&relabelled).expect("only labels have changed");
    if block.voxel_count() > VOXELS_MAX {
        return;
    }
    let voxels = voxels(&block);
    let one_more: Vec<u64> = voxels.iter().map(|label| label.wrapping_add(1)).collect();
    // A cell that lists no label stays label 0 when the table changes.
    let unlisted = voxels.iter().zip(self::voxels(&other)).any(|(old, new)| *old == new);
    assert!(unlisted || self::voxels(&other) == one_more);
    let total: u64 = block.counts().iter().map(|(_, count)| count).sum();
    assert_eq!(total, voxels.len() as u64);
    let last = block.size().map(|n| n - 1);
    assert_eq!(block.label_at(last), voxels.last().copied());
    assert_eq!(block.labels_at(&[last, [0; 3]]), [voxels.last().copied(), Some(voxels[0])]);
    let solid = voxels.iter().all(|&label| label == voxels[0]).then_some(voxels[0]);
    assert_eq!(block.solid_label(), solid);
    let (mut canonical, mut encoded) = (Vec::new(), Vec::new());
    block.relabel_onto(|label| label, &mut canonical).expect("memory for a small block");
    encode(&voxels, block.size(), &mut encoded).expect("the size of a block");
    assert_eq!(canonical, encoded);
}

/// A byte for each axis, then a segmentation or a block.
pub(crate) fn segmentation(data: &[u8]) {
    let mut choices = Choices::new(data);
    let extent = std::array::from_fn(|_| 1 + choices.below(24) as u32);
    let bytes = data.get(3..).unwrap_or_default();
    if let Ok(block) = Block::parse(bytes)
        && block.voxel_count() <= VOXELS_MAX
    {
        let clipped = std::array::from_fn(|axis| extent[axis].min(block.size()[axis]));
        for extent in [block.size(), clipped] {
            let (mut there, mut back) = (Vec::new(), Vec::new());
            block.segmentation_onto(extent, &mut there).expect("a part of the block");
            from_segmentation(&there, extent, &mut back).expect("our own segmentation");
            let back = Block::parse(&back).expect("our own block");
            assert!(extent != block.size() || voxels(&back) == voxels(&block));
        }
    }
    let mut found = Vec::new();
    match from_segmentation(bytes, extent, &mut found) {
        Ok(()) => {
            let block = Block::parse(&found).expect("our own block");
            let (mut there, mut back) = (Vec::new(), Vec::new());
            block.segmentation_onto(extent, &mut there).expect("a part of the block");
            from_segmentation(&there, extent, &mut back).expect("our own segmentation");
            assert_eq!(back, found);
        }
        Err(error) => is_about_chunk(&error),
    }
}

/// A byte that says which octants are there and whether there is a base, then a block.
pub(crate) fn downsampled(data: &[u8]) {
    let Some((&present, bytes)) = data.split_first() else { return };
    let block = match Block::parse(bytes) {
        Ok(block) if block.voxel_count() <= VOXELS_MAX => block,
        Ok(_) => return,
        Err(error) => return is_about_chunk(&error),
    };
    let octants: [Option<Block<'_>>; 8] =
        std::array::from_fn(|at| (present >> at & 1 == 1).then_some(block));
    for base in [None, Some(block)] {
        let mut out = Vec::new();
        downsample(octants, base, block.size(), &mut out).expect("blocks of one size");
        let half = Block::parse(&out).expect("our own block");
        assert_eq!(half.size(), block.size());
        let known: Vec<u64> = voxels(&block);
        assert!(half.labels().all(|label| label == 0 || known.contains(&label)));
    }
}

/// A stored value.
pub(crate) fn stored(data: &[u8]) {
    let plain = match unwrap(data, VALUE_BYTES_MAX) {
        Ok(plain) => plain,
        Err(error) => return is_about_buffer(&error),
    };
    assert!(plain.len() <= VALUE_BYTES_MAX);
    for compression in
        [Compression::None, Compression::Snappy, Compression::Gzip(1), Compression::Lz4]
    {
        let mut value = Vec::new();
        wrap_onto(&plain, compression, true, &mut value).expect("small bytes can be wrapped");
        assert_eq!(unwrap(&value, plain.len()).expect("our own value"), plain);
    }
}
