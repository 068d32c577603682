//! An open file: its arrays, and where each chunk of them is.

use std::sync::Arc;

use bytes::Bytes;
use chunkyard_array::{ArraySpec, Codecs, GroupSpec};
use tokio::sync::OnceCell;

use super::bridge::{self, Place};
use super::contents::{self, Array, LeftOut};
use super::index::Stored;
use super::metadata::Chunks;
use super::text;
use crate::error::{Error, Result};
use crate::pipeline;
use crate::store::{ChunkRef, Store};

/// An HDF5 or NetCDF-4 file whose structure has been read, and none of its data.
#[derive(Debug)]
pub struct Source {
    place: Place,
    groups: Vec<(String, GroupSpec)>,
    arrays: Vec<Open>,
    left_out: Vec<LeftOut>,
}

/// An array, and its text once somebody has asked for it.
#[derive(Debug)]
struct Open {
    array: Array,
    text: OnceCell<Bytes>,
}

impl Source {
    /// Reads the structure of the file at `path` in `store`, and all of its chunk indexes.
    pub async fn open(store: &Store, path: &str) -> Result<Self> {
        let place = Place::find(store, path).await?;
        let named = place.clone();
        let contents = bridge::inspect(&place, move |file| {
            contents::read(file).map_err(|why| named.corrupt("structure", why))
        });
        let contents = contents.await?;
        let open = |array| Open { array, text: OnceCell::new() };
        let arrays = contents.arrays.into_iter().map(open).collect();
        Ok(Self { place, groups: contents.groups, arrays, left_out: contents.left_out })
    }

    /// The groups by path, `/` first.
    pub fn groups(&self) -> impl Iterator<Item = (&str, &GroupSpec)> {
        self.groups.iter().map(|(path, spec)| (path.as_str(), spec))
    }

    /// The arrays by path.
    pub fn arrays(&self) -> impl Iterator<Item = (&str, &ArraySpec)> {
        self.arrays.iter().map(|open| (open.array.path.as_str(), &open.array.spec))
    }

    /// What of the file is in neither, and why.
    pub fn left_out(&self) -> &[LeftOut] {
        &self.left_out
    }

    /// The numbers of the stored chunks of an array in its grid, last axis fastest, ascending.
    pub fn stored(&self, path: &str) -> Result<Vec<u64>> {
        let array = &self.open_array(path)?.array;
        Ok(match &array.chunks {
            Chunks::Fill => Vec::new(),
            Chunks::Stored { table, .. } => {
                let odd = table.odd.iter().map(|(stored, _)| stored.chunk);
                let mut all: Vec<u64> =
                    table.regular.iter().map(|stored| stored.chunk).chain(odd).collect();
                all.sort_unstable();
                all
            }
            _ => (0..array.spec.grid()?.num_chunks()).collect(),
        })
    }

    /// Where the chunk with this number is; `None` where it is all fill value.
    pub async fn locate(&self, path: &str, chunk: u64) -> Result<Option<ChunkRef>> {
        let Open { array, text } = self.open_array(path)?;
        Ok(match &array.chunks {
            Chunks::Fill => None,
            Chunks::Inline(bytes) => Some(ChunkRef::Inline(bytes.clone())),
            Chunks::Slabs { start, bytes } => {
                let start = start.saturating_add(chunk.saturating_mul(*bytes));
                Some(self.reference(Stored { chunk, start, bytes: *bytes }))
            }
            Chunks::Stored { table, odd } => match table.find(chunk) {
                None => None,
                Some((stored, skipped)) if skipped == table.skipped => Some(self.reference(stored)),
                Some((stored, skipped)) => {
                    let spec = odd.iter().find(|(known, _)| *known == skipped);
                    let spec = spec.map_or(&array.spec, |(_, spec)| spec);
                    Some(ChunkRef::Inline(self.recode(stored, spec, &array.spec).await?))
                }
            },
            Chunks::Text => {
                let text = text.get_or_try_init(|| self.text(array)).await?;
                Some(ChunkRef::Inline(text.clone()))
            }
        })
    }

    fn open_array(&self, path: &str) -> Result<&Open> {
        let found = self.arrays.binary_search_by(|open| open.array.path.as_str().cmp(path)).ok();
        let found = found.and_then(|at| self.arrays.get(at));
        found.ok_or_else(|| Error::NotFound { what: "array", name: path.to_owned() })
    }

    fn reference(&self, stored: Stored) -> ChunkRef {
        let range = stored.start..stored.start.saturating_add(stored.bytes);
        ChunkRef::Object { path: Arc::clone(&self.place.path), range, crc32c: None }
    }

    /// A chunk with other filters than most, encoded like those.
    async fn recode(&self, stored: Stored, from: &ArraySpec, to: &ArraySpec) -> Result<Bytes> {
        let (from, to) = (Codecs::new(from)?, Codecs::new(to)?);
        let range = stored.start..stored.start.saturating_add(stored.bytes);
        let Place { store, path, guard, .. } = &self.place;
        let encoded = store.get_ranges(path, &[range], Some(guard)).await?;
        let encoded = encoded.into_iter().next().unwrap_or_default();
        let recoded = pipeline::cpu(move || {
            let elements = from.decode(&encoded)?;
            to.encode(elements.as_ref())
        });
        Ok(recoded.await?.map(Bytes::from)?)
    }

    async fn text(&self, array: &Array) -> Result<Bytes> {
        let (path, codecs) = (array.hard_path.clone(), Codecs::new(&array.spec)?);
        let file_name = self.place.name();
        let read = move |file: &_| {
            let refused = |why| Error::unsupported(format!("{path} of {file_name}: {why}"));
            text::chunk(file, &path, &codecs).map_err(refused)
        };
        bridge::inspect(&self.place, read).await
    }
}
