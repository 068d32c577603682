//! Reading values.

use std::collections::HashMap;

use bytes::Bytes;
use chunkyard_format::keys::{StoredValue, fetch_values};
use chunkyard_store::{Result, Uid};

use super::target::{ArrayKeys, KeyTarget};
use super::{ByteRange, Keys};
use crate::coord::Coord;

/// Chunks of one array that are requested together.
struct ArrayRequest {
    array: ArrayKeys,
    coords: Vec<Coord>,
    /// Their places in the answer.
    places: Vec<usize>,
}

impl Keys {
    /// The value of a key, or a range of it; `None` if there is no such key.
    pub async fn get(&self, key: &str, range: Option<ByteRange>) -> Result<Option<Bytes>> {
        let answer = self.get_many(&[(key, range)]).await?;
        Ok(answer.into_iter().next().flatten())
    }

    /// The values of many keys, in their order. All chunks are located and fetched together.
    pub async fn get_many<K: AsRef<str>>(
        &self,
        wanted: &[(K, Option<ByteRange>)],
    ) -> Result<Vec<Option<Bytes>>> {
        let mut answer: Vec<Option<Bytes>> = vec![None; wanted.len()];
        let mut arrays: HashMap<Uid, ArrayRequest> = HashMap::new();
        let tree = self.session.tree();
        let none_aside = self.session.has_none_aside();
        for (at, ((key, _), answer)) in wanted.iter().zip(&mut answer).enumerate() {
            let key = key.as_ref();
            if !none_aside && let Some(bytes) = self.session.aside(key) {
                *answer = Some(bytes);
                continue;
            }
            match self.target(&tree, key)? {
                KeyTarget::Nowhere(_) => {}
                KeyTarget::Document(path) => *answer = self.document(&path).await?,
                KeyTarget::Chunk(array, coord) => {
                    let wanted = arrays.entry(array.node.uid).or_insert_with(|| ArrayRequest {
                        array,
                        coords: Vec::new(),
                        places: Vec::new(),
                    });
                    wanted.coords.push(coord);
                    wanted.places.push(at);
                }
            }
        }
        // Values in memory are cut here; chunks may be cut in the store.
        for ((_, range), answer) in wanted.iter().zip(&mut answer) {
            *answer = answer.take().map(|bytes| ByteRange::cut(range.as_ref(), bytes));
        }
        let (mut places, mut values) = (Vec::new(), Vec::new());
        for array in arrays.into_values() {
            let located = self.session.locate_references(&array.array.node, &array.coords).await?;
            let in_part = self.reads_part(&array.array);
            for (&at, reference) in array.places.iter().zip(located) {
                let range = wanted.get(at).and_then(|(_, range)| range.clone());
                if let Some(reference) = reference {
                    places.push(at);
                    values.push(StoredValue { reference, range, in_part });
                }
            }
        }
        let name = |at: usize| {
            let key = places.get(at).and_then(|at| wanted.get(*at));
            key.map_or("", |(key, _)| key.as_ref()).to_owned()
        };
        let fetched = match fetch_values(self.session.repository().fetcher(), &values, name).await {
            Ok(fetched) => fetched,
            Err(error) => return Err(self.session.explain(error).await),
        };
        for (at, bytes) in places.iter().zip(fetched) {
            if let Some(answer) = answer.get_mut(*at) {
                *answer = bytes;
            }
        }
        Ok(answer)
    }

    /// Whether a range of a chunk may be read without the rest. A checksum covers the whole chunk,
    /// so a part cannot be checked; the parts of a shard carry their own checksums.
    fn reads_part(&self, array: &ArrayKeys) -> bool {
        array.naming().has_parts || !self.session.repository().inner.options.check_chunks
    }

    /// Whether there is such a key.
    pub async fn exists(&self, key: &str) -> Result<bool> {
        if self.session.aside(key).is_some() {
            return Ok(true);
        }
        match self.target(&self.session.tree(), key)? {
            KeyTarget::Nowhere(_) => Ok(false),
            KeyTarget::Document(path) => Ok(self.session.is_described(&path)),
            KeyTarget::Chunk(array, coord) => {
                Ok(self.session.locate_coords(&array.node, &[coord]).await? != [None])
            }
        }
    }

    /// How many bytes the value of a key has. Fetches no chunk.
    pub async fn size(&self, key: &str) -> Result<Option<u64>> {
        if let Some(bytes) = self.session.aside(key) {
            return Ok(Some(bytes.len() as u64));
        }
        match self.target(&self.session.tree(), key)? {
            KeyTarget::Nowhere(_) => Ok(None),
            KeyTarget::Document(path) => {
                Ok(self.document(&path).await?.map(|bytes| bytes.len() as u64))
            }
            KeyTarget::Chunk(array, coord) => {
                let located = self.session.locate_coords(&array.node, &[coord]).await?;
                Ok(located.into_iter().flatten().next().map(|payload| payload.length()))
            }
        }
    }
}
