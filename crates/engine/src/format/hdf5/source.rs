//! An open file: its arrays, and where each chunk of them is.

use std::sync::Arc;

use bytes::Bytes;
use chunkyard_array::{ArraySpec, Codecs, GroupSpec};
use tokio::sync::OnceCell;

use super::bridge::{self, Place};
use super::contents::{self, Array, LeftOut};
use super::layout::{Chunks, Stored};
use super::text;
use crate::error::{Error, Result};
use crate::store::{ChunkRef, Store};

/// An HDF5 or NetCDF-4 file whose structure has been read, and none of its data.
#[derive(Debug)]
pub struct Source {
    place: Place,
    groups: Vec<(String, GroupSpec)>,
    arrays: Vec<(Array, OnceCell<Table>)>,
    left_out: Vec<LeftOut>,
}

/// Where the chunks of one array are, once somebody has asked.
#[derive(Debug)]
enum Table {
    /// As the header says.
    Known,
    /// In the order of the grid.
    Stored(Vec<Stored>),
    /// The only chunk.
    Text(Bytes),
}

impl Source {
    /// Reads the structure of the file at `path` in `store`.
    pub async fn open(store: &Store, path: &str) -> Result<Self> {
        let place = Place::find(store, path).await?;
        let named = place.clone();
        let contents = bridge::inspect(&place, move |file| {
            contents::read(file).map_err(|why| named.corrupt("structure", why))
        });
        let contents = contents.await?;
        let arrays = contents.arrays.into_iter().map(|array| (array, OnceCell::new())).collect();
        Ok(Self { place, groups: contents.groups, arrays, left_out: contents.left_out })
    }

    /// The groups by path, `/` first.
    pub fn groups(&self) -> impl Iterator<Item = (&str, &GroupSpec)> {
        self.groups.iter().map(|(path, spec)| (path.as_str(), spec))
    }

    /// The arrays by path.
    pub fn arrays(&self) -> impl Iterator<Item = (&str, &ArraySpec)> {
        self.arrays.iter().map(|(array, _)| (array.path.as_str(), &array.spec))
    }

    /// What of the file is in neither, and why.
    pub fn left_out(&self) -> &[LeftOut] {
        &self.left_out
    }

    /// The numbers of the stored chunks of an array in its grid, last axis fastest, ascending.
    pub async fn stored(&self, path: &str) -> Result<Vec<u64>> {
        let (array, table) = self.table(path).await?;
        let all = || array.spec.grid().map(|grid| (0..grid.num_chunks()).collect());
        Ok(match (table, &array.chunks) {
            (Table::Stored(table), _) => table.iter().map(|stored| stored.chunk).collect(),
            (Table::Known, Chunks::Fill) => Vec::new(),
            _ => all()?,
        })
    }

    /// Where the chunk with this number is; `None` where it is all fill value.
    pub async fn locate(&self, path: &str, chunk: u64) -> Result<Option<ChunkRef>> {
        let (array, table) = self.table(path).await?;
        let object = |start: u64, bytes: u64| {
            let range = start..start.saturating_add(bytes);
            ChunkRef::Object { path: Arc::clone(&self.place.path), range }
        };
        Ok(match (table, &array.chunks) {
            (Table::Stored(table), _) => {
                let at = table.binary_search_by_key(&chunk, |stored| stored.chunk).ok();
                at.and_then(|at| table.get(at)).map(|stored| object(stored.start, stored.bytes))
            }
            (Table::Text(bytes), _) | (Table::Known, Chunks::Inline(bytes)) => {
                Some(ChunkRef::Inline(bytes.clone()))
            }
            (Table::Known, Chunks::Slabs { start, bytes }) => {
                Some(object(start.saturating_add(chunk.saturating_mul(*bytes)), *bytes))
            }
            (Table::Known, _) => None,
        })
    }

    async fn table(&self, path: &str) -> Result<(&Array, &Table)> {
        let found = self.arrays.binary_search_by(|(array, _)| array.path.as_str().cmp(path)).ok();
        let Some((array, table)) = found.and_then(|at| self.arrays.get(at)) else {
            return Err(Error::NotFound { what: "array", name: path.to_owned() });
        };
        Ok((array, table.get_or_try_init(|| self.read_table(array)).await?))
    }

    async fn read_table(&self, array: &Array) -> Result<Table> {
        let refused = {
            let (file, path) = (self.place.name(), array.path.clone());
            move |why: String| Error::unsupported(format!("{path} of {file}: {why}"))
        };
        match &array.chunks {
            Chunks::Fill | Chunks::Inline(_) | Chunks::Slabs { .. } => Ok(Table::Known),
            Chunks::Index(index) => {
                let index = index.clone();
                let read = move |file: &_| index.read(file).map_err(refused);
                bridge::inspect(&self.place, read).await.map(Table::Stored)
            }
            Chunks::Text => {
                let (path, codecs) = (array.hard_path.clone(), Codecs::new(&array.spec)?);
                let read = move |file: &_| text::chunk(file, &path, &codecs).map_err(refused);
                bridge::inspect(&self.place, read).await.map(Table::Text)
            }
        }
    }
}
