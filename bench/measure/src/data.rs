//! The data that every side writes and reads: two files of plain elements, row-major.

use std::io;

use crate::Options;

/// A field of float32 or a segmentation of uint64.
pub struct Data {
    /// The elements, little-endian.
    pub elements: Vec<u8>,
    /// Of the array.
    pub shape: [u64; 3],
    /// Of a chunk.
    pub chunk: [u64; 3],
    /// Of a shard of 64 chunks.
    pub shard: [u64; 3],
    /// The name in Zarr v3.
    pub data_type: &'static str,
    /// Bytes of an element.
    pub item_size: usize,
}

impl Data {
    /// The array that a workload is about: `data=DIRECTORY name=field|labels`.
    pub fn load(options: &Options) -> io::Result<Self> {
        let elements = std::fs::read(format!("{}/{}", options.text("data"), options.text("name")))?;
        let (data_type, item_size, chunk, shard) = match options.text("name") {
            "labels" => ("uint64", 8, [64, 64, 64], [256, 256, 256]),
            _ => ("float32", 4, [1, 512, 512], [64, 512, 512]),
        };
        let shape = [elements.len() as u64 / (512 * 512 * item_size as u64), 512, 512];
        Ok(Self { elements, shape, chunk, shard, data_type, item_size })
    }

    /// Whether this is the segmentation.
    pub fn is_labels(&self) -> bool {
        self.data_type == "uint64"
    }

    /// The elements of one plane.
    pub fn plane(&self, at: u64) -> Option<&[u8]> {
        let size = 512 * 512 * self.item_size;
        self.elements.chunks_exact(size).nth(at as usize)
    }

    /// One point through all planes.
    pub fn series(&self, [y, x]: [u64; 2]) -> Vec<u8> {
        let (item, at) = (self.item_size, (y * 512 + x) as usize * self.item_size);
        self.elements
            .chunks_exact(512 * 512 * item)
            .flat_map(|plane| plane.iter().skip(at).take(item).copied())
            .collect()
    }
}

/// The point of the `repeat`-th series: never twice in the same block of a chunk.
pub fn series_point(repeat: u64) -> [u64; 2] {
    [(100 + repeat * 131) % 512, (200 + repeat * 71) % 512]
}
