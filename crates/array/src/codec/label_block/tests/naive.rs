//! The same by the plainest means, on voxels.

use std::collections::BTreeMap;

use super::Sample;

/// The canonical encoding, following the description word by word.
pub(super) fn encode(sample: &Sample) -> Vec<u8> {
    let [x_size, y_size, z_size] = sample.size.map(|n| n as usize);
    let (mut table, mut counts, mut indices, mut values) = (vec![], vec![], vec![], vec![]);
    for z in (0..z_size).step_by(8) {
        for y in (0..y_size).step_by(8) {
            for x in (0..x_size).step_by(8) {
                let cell = (0..512).map(|at| {
                    let (x, y, z) = (x + at % 8, y + at / 8 % 8, z + at / 64);
                    sample.voxels[(z * y_size + y) * x_size + x]
                });
                let (mut own, mut numbers) = (vec![], vec![]);
                for label in cell {
                    let number = own.iter().position(|&known| known == label);
                    numbers.push(number.unwrap_or_else(|| {
                        own.push(label);
                        own.len() - 1
                    }));
                }
                counts.extend((own.len() as u16).to_le_bytes());
                for &label in &own {
                    let number = table.iter().position(|&known| known == label);
                    let number = number.unwrap_or_else(|| {
                        table.push(label);
                        table.len() - 1
                    });
                    indices.extend((number as u32).to_le_bytes());
                }
                let mut bits = 0;
                while 1 << bits < own.len() {
                    bits += 1;
                }
                let stream: Vec<bool> = numbers
                    .iter()
                    .flat_map(|number| (0..bits).rev().map(move |bit| number >> bit & 1 == 1))
                    .collect();
                values.extend(
                    stream
                        .chunks(8)
                        .map(|byte| byte.iter().fold(0u8, |byte, &bit| byte << 1 | u8::from(bit))),
                );
            }
        }
    }
    let mut out: Vec<u8> = sample.size.iter().flat_map(|n| (n / 8).to_le_bytes()).collect();
    out.extend((table.len() as u32).to_le_bytes());
    out.extend(table.iter().flat_map(|label| label.to_le_bytes()));
    if table.len() > 1 {
        out.extend([counts, indices, values].concat());
    }
    out
}

pub(super) fn counts(voxels: &[u64]) -> Vec<(u64, u64)> {
    let mut counts = BTreeMap::new();
    voxels.iter().for_each(|&label| *counts.entry(label).or_insert(0) += 1);
    counts.into_iter().collect()
}

/// Eight volumes of one size become one; `None` where an octant is absent and there is no base.
pub(super) fn downsample(
    octants: &[Option<Vec<u64>>],
    base: Option<&Vec<u64>>,
    size: [u32; 3],
) -> Vec<u64> {
    let [x_size, y_size, z_size] = size.map(|n| n as usize);
    let mut out = Vec::new();
    for at in 0..x_size * y_size * z_size {
        let (x, y, z) = (at % x_size * 2, at / x_size % y_size * 2, at / x_size / y_size * 2);
        let octant =
            usize::from(z >= z_size) * 4 + usize::from(y >= y_size) * 2 + usize::from(x >= x_size);
        let Some(voxels) = &octants[octant] else {
            out.push(base.map_or(0, |base| base[at]));
            continue;
        };
        let mut votes = BTreeMap::new();
        for child in 0..8 {
            let (x, y, z) = (x + child % 2, y + child / 2 % 2, z + child / 4);
            let at = ((z % z_size) * y_size + y % y_size) * x_size + x % x_size;
            *votes.entry(voxels[at]).or_insert(0) += 1;
        }
        votes.remove(&0);
        let most = votes.values().max().copied();
        // Ascending by label, so the first with the most votes is the smallest.
        out.push(
            votes.iter().find(|(_, votes)| Some(**votes) == most).map_or(0, |(label, _)| *label),
        );
    }
    out
}

/// `compressed_segmentation`, one channel, blocks of 8 × 8 × 8, of the first `extent` voxels.
pub(super) fn segmentation(sample: &Sample, extent: [u32; 3]) -> Vec<u8> {
    let [x_size, y_size, _] = sample.size.map(|n| n as usize);
    let extent = extent.map(|n| n as usize);
    let grid = extent.map(|n| n.div_ceil(8));
    let (mut heads, mut data) = (vec![], vec![]);
    let mut tables: BTreeMap<Vec<u64>, usize> = BTreeMap::new();
    let first = 2 * grid.iter().product::<usize>();
    for cell in 0..first / 2 {
        let (cx, cy, cz) = (cell % grid[0], cell / grid[0] % grid[1], cell / grid[0] / grid[1]);
        let voxel = |at: usize| {
            let (x, y, z) = (cx * 8 + at % 8, cy * 8 + at / 8 % 8, cz * 8 + at / 64);
            let inside = x < extent[0] && y < extent[1] && z < extent[2];
            inside.then(|| sample.voxels[(z * y_size + y) * x_size + x])
        };
        let mut table: Vec<u64> = (0..512).filter_map(voxel).collect();
        table.sort_unstable();
        table.dedup();
        let bits = match table.len() {
            1 => 0,
            n => [1, 2, 4, 8, 16].into_iter().find(|&bits| 1usize << bits >= n).unwrap(),
        };
        let values_at = first + data.len();
        let mut words = vec![0u32; bits * 512 / 32];
        for at in 0..512 {
            let number = voxel(at).map_or(0, |label| table.binary_search(&label).unwrap());
            if bits > 0 {
                words[at * bits / 32] |= (number as u32) << (at * bits % 32);
            }
        }
        data.extend(words);
        let next = first + data.len();
        let table_at = *tables.entry(table.clone()).or_insert_with(|| {
            data.extend(table.iter().flat_map(|&label| [label as u32, (label >> 32) as u32]));
            next
        });
        heads.extend([table_at as u32 | (bits as u32) << 24, values_at as u32]);
    }
    [vec![1], heads, data].concat().into_iter().flat_map(u32::to_le_bytes).collect()
}
