//! Arrays of every data type, always the same for the same arguments.

use chunkyard_array::{ArraySpec, DType};
use serde_json::{Value, json};

use super::naive::{Naive, fill_of, indices};

/// An array: the metadata of its chunks, and its elements.
#[derive(Debug, Clone)]
pub(crate) struct Sample {
    pub(crate) spec: ArraySpec,
    pub(crate) array: Naive,
}

impl Sample {
    pub(crate) fn new(shape: &[u64], chunks: &[u64], dtype: impl Into<Value>) -> Self {
        Self::of(ArraySpec::builder(shape, chunks, dtype).build().unwrap())
    }

    /// Elements for a given array description.
    pub(crate) fn of(spec: ArraySpec) -> Self {
        let dtype = spec.dtype().unwrap();
        let count = spec.shape().iter().product::<u64>();
        let cells = (0..count).map(|number| element(&dtype, number)).collect();
        Self { array: Naive { shape: spec.shape().to_vec(), cells }, spec }
    }

    /// Sets all elements to the fill value, except in chunks that are `kept`.
    pub(crate) fn sparse(mut self, kept: impl Fn(&[u64]) -> bool) -> Self {
        let (grid, fill) = (self.spec.grid().unwrap(), fill_of(&self.spec));
        for index in indices(&grid.grid_shape()) {
            if !kept(&index) {
                let region = grid.chunk_region(&index);
                self.array.put(region.origin(), &Naive::filled(region.shape(), &fill));
            }
        }
        self
    }
}

/// The data types that our codecs handle.
pub(crate) fn dtypes() -> Vec<Value> {
    let names = [
        "bool",
        "int8",
        "int16",
        "int32",
        "int64",
        "uint8",
        "uint16",
        "uint32",
        "uint64",
        "float16",
        "bfloat16",
        "float32",
        "float64",
        "complex64",
        "complex128",
        "r8",
        "r16",
        "r24",
        "string",
        "bytes",
    ];
    let seconds = json!({"unit": "s", "scale_factor": 1});
    let micros = json!({"unit": "us", "scale_factor": 25});
    let mut all: Vec<Value> = names.map(Value::from).to_vec();
    all.push(json!({"name": "numpy.datetime64", "configuration": seconds}));
    all.push(json!({"name": "numpy.timedelta64", "configuration": micros}));
    all.push(json!({"name": "fixed_length_utf32", "configuration": {"length_bytes": 12}}));
    all
}

/// The element for a number. Neighbours are alike, as in real data, and every bit is used
/// somewhere.
fn element(dtype: &DType, number: u64) -> Vec<u8> {
    let mixed = (number / 3).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    match dtype.name() {
        "bool" => vec![(number % 3 == 1) as u8],
        "string" => {
            ["", "ä", "chunk", "日本"][number as usize % 4].repeat(number as usize % 5).into()
        }
        "bytes" => mixed.to_le_bytes()[..number as usize % 9].to_vec(),
        "fixed_length_utf32" => {
            let letter = |at: u64| char::from_u32(('a' as u32) + ((number + at) % 26) as u32);
            (0..3).flat_map(|at| (letter(at).unwrap() as u32).to_le_bytes()).collect()
        }
        _ => {
            let words = mixed.to_le_bytes().into_iter().cycle();
            words.take(dtype.item_size().unwrap()).collect()
        }
    }
}
