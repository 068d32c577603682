//! Where the chunks of an array are, column by column.

use std::collections::HashMap;

use chunkyard_array::ChunkIndex;
use chunkyard_engine::store::{Check, ChunkRef, Guard, Store};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

/// The value for "not known" in columns of numbers.
const MISSING: u64 = u64::MAX;

/// A column of few texts that repeat: the different texts, and a number per row.
#[derive(Default)]
struct Names {
    known: HashMap<String, u64>,
    rows: Vec<u64>,
}

impl Names {
    fn push(&mut self, name: Option<String>) {
        let next = self.known.len() as u64;
        let row = name.map_or(MISSING, |name| *self.known.entry(name).or_insert(next));
        self.rows.push(row);
    }

    fn finish<'py>(self, py: Python<'py>) -> (Vec<String>, Bound<'py, PyBytes>) {
        let mut names: Vec<_> = self.known.into_iter().collect();
        names.sort_by_key(|(_, number)| *number);
        (names.into_iter().map(|(name, _)| name).collect(), numbers(py, &self.rows))
    }
}

/// The columns of a table of references, for NumPy: numbers as little-endian bytes, all ones if a
/// number is not known; text as its different values and a number per row.
pub(crate) fn columns<'py>(
    py: Python<'py>,
    store: &Store,
    chunks: &[(ChunkIndex, ChunkRef)],
) -> PyResult<Bound<'py, PyDict>> {
    let (mut kinds, mut urls, mut etags) = (Names::default(), Names::default(), Names::default());
    let (mut index, mut offsets, mut lengths) = (Vec::new(), Vec::new(), Vec::new());
    let (mut modified, mut checksums) = (Vec::new(), Vec::new());
    for (at, reference) in chunks {
        index.extend_from_slice(at);
        lengths.push(reference.len().unwrap_or(MISSING));
        let (kind, url, offset) = match reference {
            ChunkRef::Inline(_) => ("inline", None, None),
            ChunkRef::Whole { path } => ("object", Some(store.object_url(path)), Some(0)),
            ChunkRef::Object { path, range, .. } => {
                ("object", Some(store.object_url(path)), Some(range.start))
            }
            ChunkRef::Slice { block, within } => {
                let (kind, start) = match block.codec {
                    None => ("object", block.range.start.saturating_add(within.start)),
                    Some(_) => ("packed", block.range.start),
                };
                (kind, Some(store.object_url(&block.path)), Some(start))
            }
            ChunkRef::Remote { url, range, .. } => {
                ("virtual", Some(url.to_string()), Some(range.start))
            }
        };
        let (guard, crc32c) = evidence(reference);
        kinds.push(Some(kind.to_owned()));
        urls.push(url);
        offsets.push(offset.unwrap_or(MISSING));
        etags.push(guard.and_then(|guard| guard.etag.clone()));
        let time = guard.and_then(|guard| guard.not_newer_than_ms);
        modified.push(time.and_then(|ms| u64::try_from(ms).ok()).unwrap_or(MISSING));
        checksums.push(crc32c.map_or(MISSING, u64::from));
    }
    let columns = PyDict::new(py);
    columns.set_item("index", numbers(py, &index))?;
    columns.set_item("kind", kinds.finish(py))?;
    columns.set_item("url", urls.finish(py))?;
    columns.set_item("offset", numbers(py, &offsets))?;
    columns.set_item("length", numbers(py, &lengths))?;
    columns.set_item("etag", etags.finish(py))?;
    columns.set_item("last_modified_ms", numbers(py, &modified))?;
    columns.set_item("crc32c", numbers(py, &checksums))?;
    Ok(columns)
}

/// The guards that show whether a chunk has changed.
fn evidence(reference: &ChunkRef) -> (Option<&Guard>, Option<u32>) {
    match reference {
        ChunkRef::Object { guard, check, .. } | ChunkRef::Remote { guard, check, .. } => {
            (guard.as_ref(), check.and_then(Check::crc32c))
        }
        // The checksum belongs to the packed block.
        ChunkRef::Slice { block, within } => {
            (block.guard.as_ref(), block.crc32c.filter(|_| block.is_all(within)))
        }
        ChunkRef::Inline(_) | ChunkRef::Whole { .. } => (None, None),
    }
}

fn numbers<'py>(py: Python<'py>, values: &[u64]) -> Bound<'py, PyBytes> {
    let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    PyBytes::new(py, &bytes)
}
