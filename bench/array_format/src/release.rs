//! The operations that the workloads need from a release of the crate.

use std::error::Error;

use ndarray::{ArcArray, ArrayViewD, IxDyn};

use crate::store::Place;

/// The error of every function here.
pub type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// An element that both releases know.
pub trait Element:
    array_format_layered::ArrayElement + array_format_newest::ArrayElement + Copy + PartialEq
{
    /// From the bytes of a file of elements.
    fn all(bytes: &[u8]) -> Vec<Self>;
}

impl Element for f32 {
    fn all(bytes: &[u8]) -> Vec<Self> {
        bytes.as_chunks().0.iter().map(|element| Self::from_le_bytes(*element)).collect()
    }
}

impl Element for u64 {
    fn all(bytes: &[u8]) -> Vec<Self> {
        bytes.as_chunks().0.iter().map(|element| Self::from_le_bytes(*element)).collect()
    }
}

/// An array to be written.
pub struct Array<'a, T> {
    /// Unique in the container.
    pub name: String,
    /// Of a chunk.
    pub chunk: Vec<usize>,
    /// All elements.
    pub values: ArrayViewD<'a, T>,
}

/// A release of the crate, with the same few methods.
pub trait Release {
    /// A container that is open for reading.
    type File;

    /// Writes a container of one array at once.
    async fn write<T: Element>(place: &Place, codec: &str, array: &Array<'_, T>) -> Result<()>;

    /// Makes a container of one array with this many chunks of 16 elements, in the fastest way.
    async fn make_chunks(place: &Place, chunks: usize) -> Result<()>;

    /// Makes a container of this many arrays of 16 elements with one attribute, likewise.
    async fn make_arrays(place: &Place, arrays: usize) -> Result<()>;

    /// Opens a container.
    async fn open(place: &Place) -> Result<Self::File>;

    /// How many arrays there are.
    fn arrays(file: &Self::File) -> usize;

    /// Reads a region; all, if `start` and `shape` are empty.
    async fn read<T: Element>(
        file: &Self::File,
        name: &str,
        start: &[usize],
        shape: &[usize],
    ) -> Result<ArcArray<T, IxDyn>>;

    /// Changes a region of an array in the container and makes that visible.
    async fn change(
        place: &Place,
        name: &str,
        start: &[usize],
        values: ArrayViewD<'_, f32>,
    ) -> Result<Change>;
}

/// The objects that a change used; dropped outside the timed part.
pub type Change = Box<dyn std::any::Any>;

/// The name of the `at`-th of many arrays.
pub fn name_of(at: usize) -> String {
    format!("station/{at:06}")
}

/// Elements of a tiny chunk.
pub const TINY: usize = 16;

/// The `at`-th element of the array of many chunks: exact in float32.
pub fn tiny_value(at: usize) -> f32 {
    (at % (1 << 24)) as f32
}
