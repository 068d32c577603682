//! Compares the result with the original data, a piece at a time.

use std::error::Error;

use bench_measure::{Data, Options};
use chunkyard_array::Region;
use chunkyard_engine::format::{OpenOptions, Reader};
use chunkyard_engine::open::open;

/// Planes that are read at a time.
const PLANES: u64 = 64;

/// Whether the array in a directory equals the data, repeated `times` times.
pub async fn all_equal(
    directory: &str,
    options: &Options,
    times: u64,
) -> Result<bool, Box<dyn Error>> {
    let opened = open(directory, &OpenOptions::default()).await?;
    let reader = Reader::new(&opened.source, "/a")?;
    let data = Data::load(options)?;
    let shape = reader.codecs().grid().array_shape().to_vec();
    let [planes, rows, columns] = data.shape;
    let plane_bytes = data.elements.len() / planes as usize;
    let mut equal = shape == [planes * times, rows, columns];
    let mut from = 0;
    while equal && from < planes * times {
        // Up to where the data begins again.
        let count = PLANES.min(planes - from % planes);
        let region = Region::new(vec![from, 0, 0], vec![count, rows, columns])?;
        let found = reader.read_region(&region).await?;
        let at = (from % planes) as usize * plane_bytes;
        equal = data.elements.get(at..at + count as usize * plane_bytes) == Some(&found[..]);
        from += count;
    }
    Ok(equal)
}
