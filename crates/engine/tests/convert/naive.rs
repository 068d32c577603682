//! The expected results, computed the slow way: an array as a list of elements, each in bytes of its
//! own. Shares only the codecs with the code it checks.

use chunkyard_array::{ArraySpec, ChunkKeys, Codecs, ElementsBuf, Grid, Region, fill_element};
use chunkyard_engine::Error;
use chunkyard_engine::store::Store;

/// An array in memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Naive {
    pub(crate) shape: Vec<u64>,
    /// Elements in row-major order.
    pub(crate) cells: Vec<Vec<u8>>,
}

/// All indices below a shape, in row-major order.
pub(crate) fn indices(shape: &[u64]) -> Vec<Vec<u64>> {
    shape.iter().fold(vec![Vec::new()], |all, &extent| {
        let longer = |index: &Vec<u64>| {
            (0..extent).map(|at| [index.as_slice(), &[at]].concat()).collect::<Vec<_>>()
        };
        all.iter().flat_map(longer).collect()
    })
}

impl Naive {
    /// An array of one value.
    pub(crate) fn filled(shape: &[u64], element: &[u8]) -> Self {
        let count = shape.iter().product::<u64>() as usize;
        Self { shape: shape.to_vec(), cells: vec![element.to_vec(); count] }
    }

    pub(crate) fn from_elements(
        shape: &[u64],
        elements: &ElementsBuf,
        size: Option<usize>,
    ) -> Self {
        let cells: Vec<Vec<u8>> = match elements {
            ElementsBuf::Fixed(bytes) => bytes.chunks(size.unwrap()).map(<[u8]>::to_vec).collect(),
            ElementsBuf::Variable { bytes, offsets } => {
                let ends = offsets.iter().zip(&offsets[1..]);
                ends.map(|(&from, &to)| bytes[from as usize..to as usize].to_vec()).collect()
            }
        };
        assert_eq!(cells.len() as u64, shape.iter().product::<u64>());
        Self { shape: shape.to_vec(), cells }
    }

    pub(crate) fn to_elements(&self, size: Option<usize>) -> ElementsBuf {
        let bytes = self.cells.concat();
        if size.is_some() {
            return ElementsBuf::Fixed(bytes);
        }
        let mut offsets = vec![0];
        for cell in &self.cells {
            offsets.push(offsets.last().unwrap() + cell.len() as u64);
        }
        ElementsBuf::Variable { bytes, offsets }
    }

    fn position(&self, index: &[u64]) -> Option<usize> {
        let mut position = 0;
        for (&at, &extent) in index.iter().zip(&self.shape) {
            if at >= extent {
                return None;
            }
            position = position * extent + at;
        }
        Some(position as usize)
    }

    /// A box of it; elements outside the array are `outside`.
    pub(crate) fn region(&self, region: &Region, outside: &[u8]) -> Self {
        let cells = indices(region.shape()).into_iter().map(|index| {
            let index: Vec<u64> = index.iter().zip(region.origin()).map(|(a, b)| a + b).collect();
            self.position(&index).map_or(outside.to_vec(), |position| self.cells[position].clone())
        });
        Self { shape: region.shape().to_vec(), cells: cells.collect() }
    }

    /// Puts a box into it, leaving out elements outside the array.
    pub(crate) fn put(&mut self, origin: &[u64], part: &Self) {
        for (index, cell) in indices(&part.shape).into_iter().zip(&part.cells) {
            let index: Vec<u64> = index.iter().zip(origin).map(|(a, b)| a + b).collect();
            if let Some(position) = self.position(&index) {
                self.cells[position] = cell.clone();
            }
        }
    }
}

/// The fill value of an array, as bytes.
pub(crate) fn fill_of(spec: &ArraySpec) -> Vec<u8> {
    fill_element(&spec.dtype().unwrap(), &spec.metadata().fill_value).unwrap()
}

/// Writes the chunks of an array as plain Zarr lays them out, whole shards by the codec; chunks that
/// hold the fill value only are left out.
pub(crate) async fn write_chunks(store: &Store, prefix: &str, spec: &ArraySpec, array: &Naive) {
    let (codecs, keys) = (Codecs::new(spec).unwrap(), ChunkKeys::new(spec).unwrap());
    let (grid, fill) = (spec.grid().unwrap(), fill_of(spec));
    for index in indices(&grid.grid_shape()) {
        let chunk = array.region(&grid.chunk_region(&index), &fill);
        if chunk.cells.iter().all(|cell| *cell == fill) {
            continue;
        }
        let elements = chunk.to_elements(codecs.item_size());
        let bytes = codecs.encode(elements.as_ref()).unwrap();
        store.put(&format!("{prefix}{}", keys.key(&index)), vec![bytes.into()]).await.unwrap();
    }
}

/// Reads an array of plain Zarr, object by object.
pub(crate) async fn read_chunks(store: &Store, prefix: &str) -> (ArraySpec, Naive) {
    let document = store.get(&format!("{prefix}zarr.json")).await.unwrap().bytes;
    let spec = ArraySpec::parse(&document).unwrap();
    let (codecs, keys) = (Codecs::new(&spec).unwrap(), ChunkKeys::new(&spec).unwrap());
    let grid: Grid = spec.grid().unwrap();
    let mut array = Naive::filled(spec.shape(), &fill_of(&spec));
    for index in indices(&grid.grid_shape()) {
        let bytes = match store.get(&format!("{prefix}{}", keys.key(&index))).await {
            Ok(object) => object.bytes,
            Err(Error::NotFound { .. }) => continue,
            Err(error) => panic!("{error}"),
        };
        let elements = codecs.decode(&bytes).unwrap();
        let part = Naive::from_elements(grid.chunk_shape(), &elements, codecs.item_size());
        array.put(grid.chunk_region(&index).origin(), &part);
    }
    (spec, array)
}
