//! Arrow shards: objects by ranges, and label blocks out of records.

use bytes::Bytes;
use chunkyard_array::codec::label_block::{self, Block};
use chunkyard_array::codec::packed;
use chunkyard_engine::format::Place;
use chunkyard_engine::store::Store;
use chunkyard_engine::{Error, Noun};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::error::to_python;
use crate::memory::Lent;
use crate::options::OpenOptions;
use crate::runtime::wait;

/// Bytes of a label block at most, where the record does not say: 256 cells to an axis with a table of their own are less.
const BLOCK_BYTES_MAX: usize = 256 << 20;
/// Where the table of a label block begins, after its grid and the number of labels.
const TABLE_AT: usize = 16;

/// One object of a store, read by ranges.
#[pyclass(frozen, module = "chunkyard._engine")]
pub(crate) struct StoredObject {
    store: Store,
    path: String,
    #[pyo3(get)]
    size: u64,
}

#[pymethods]
impl StoredObject {
    /// Finds the object at a URL.
    #[staticmethod]
    fn open(py: Python<'_>, url: &str, options: OpenOptions) -> PyResult<Self> {
        let place = Place::new(url, &options.store()).map_err(to_python)?;
        let missing = || Error::NotFound { what: Noun::Object, name: url.to_owned() };
        let (store, path) = place.object().ok_or_else(|| to_python(missing()))?;
        let size = wait(py, store.head(path))?.size;
        Ok(Self { store: store.clone(), path: path.to_owned(), size })
    }

    /// The bytes of a range that lies within the object.
    fn read<'py>(&self, py: Python<'py>, start: u64, end: u64) -> PyResult<Bound<'py, PyBytes>> {
        if start > end || end > self.size {
            let what = format!("bytes {start}..{end} of {}, which has {}", self.path, self.size);
            return Err(to_python(Error::invalid(what)));
        }
        if start == end {
            return Ok(PyBytes::new(py, &[]));
        }
        let bytes = wait(py, self.store.get_range(&self.path, start..end))?;
        Ok(PyBytes::new(py, &bytes))
    }
}

/// The label block of a record, and its extents in z, y and x: unpacked, with its table, and with `labels` in place of the
/// supervoxels where they are given. `codec`: how it is stored; `size`: its bytes, if the record says; `table`: its
/// supervoxels as little-endian words, if the block is stored without them.
#[pyfunction]
#[pyo3(signature = (stored, codec, size, table, labels))]
pub(crate) fn shard_block<'py>(
    py: Python<'py>,
    stored: &Bound<'_, PyAny>,
    codec: &str,
    size: Option<usize>,
    table: Option<&Bound<'_, PyAny>>,
    labels: Option<&Bound<'_, PyAny>>,
) -> PyResult<(Bound<'py, PyBytes>, [u32; 3])> {
    let words = |object: Option<&Bound<'_, PyAny>>| -> PyResult<Option<Bytes>> {
        object.map(|object| Ok(Lent::new(object, false)?.into_bytes())).transpose()
    };
    let (stored, table, labels) =
        (Lent::new(stored, false)?.into_bytes(), words(table)?, words(labels)?);
    let block = unpacked(&stored, codec, size)
        .and_then(|plain| complete(plain, table.as_deref()))
        .and_then(|block| relabelled(block, labels.as_deref()));
    let (block, [x, y, z]) = block.map_err(to_python)?;
    Ok((PyBytes::new(py, &block), [z, y, x]))
}

fn corrupt(what: &str, expected: String, found: String) -> Error {
    Error::Corrupt {
        file: "a record of a shard".to_owned(),
        what: what.to_owned(),
        expected,
        found,
    }
}

/// The block as it was before it was compressed.
fn unpacked(stored: &[u8], codec: &str, size: Option<usize>) -> Result<Vec<u8>, Error> {
    let bytes_max = size.unwrap_or(BLOCK_BYTES_MAX).min(BLOCK_BYTES_MAX);
    let plain = match codec {
        "zstd" => packed::zstd_unpacked(stored, bytes_max)?,
        "none" => stored.to_vec(),
        other => return Err(Error::unsupported(format!("blocks compressed by {other:?}"))),
    };
    match size {
        Some(size) if size != plain.len() => {
            Err(corrupt("size of a block", size.to_string(), plain.len().to_string()))
        }
        _ => Ok(plain),
    }
}

/// The block with its table, which may be beside it.
fn complete(plain: Vec<u8>, table: Option<&[u8]>) -> Result<Vec<u8>, Error> {
    let Some(table) = table else { return Ok(plain) };
    let Some((head, rest)) = plain.split_at_checked(TABLE_AT) else {
        let expected = format!("at least {TABLE_AT} bytes");
        return Err(corrupt("label block", expected, plain.len().to_string()));
    };
    Ok([head, table, rest].concat())
}

/// The block, checked, with the labels that belong to its supervoxels by position.
fn relabelled(mut block: Vec<u8>, labels: Option<&[u8]>) -> Result<(Vec<u8>, [u32; 3]), Error> {
    let (count, size) = {
        let parsed = Block::parse(&block)?;
        (parsed.labels().len(), parsed.size())
    };
    let Some(labels) = labels else { return Ok((block, size)) };
    let (words, rest) = labels.as_chunks::<8>();
    if words.len() != count || !rest.is_empty() {
        let found = format!("{} bytes of labels", labels.len());
        return Err(corrupt("labels of a block", format!("{count} labels of 8 bytes"), found));
    }
    let mut next = words.iter().map(|word| u64::from_le_bytes(*word));
    label_block::relabel(&mut block, |supervoxel| next.next().unwrap_or(supervoxel))?;
    Ok((block, size))
}
