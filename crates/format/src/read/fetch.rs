//! Encoded chunks of one array, located and fetched.

use bytes::Bytes;
use chunkyard_array::ChunkIndex;
use chunkyard_store::{ChunkRef, Error, Result};

use crate::Locate;

/// Names the chunk and its array in an error of the array model.
pub fn in_chunk(path: &str, index: &[u64], error: chunkyard_array::Error) -> Error {
    match error {
        chunkyard_array::Error::Corrupt { what, expected, found, .. } => {
            Error::Corrupt { file: name(path, index), what, expected, found }
        }
        other => other.into(),
    }
}

/// Locates and fetches the encoded bytes of chunks, in the order asked; `None` for those that hold
/// the fill value only.
pub async fn fetch_chunks<L: Locate + ?Sized>(
    source: &L,
    path: &str,
    indices: &[ChunkIndex],
) -> Result<Vec<Option<Bytes>>> {
    let located = source.locate(path, indices).await?;
    let found: Vec<(&ChunkIndex, &ChunkRef)> = indices
        .iter()
        .zip(&located)
        .filter_map(|(index, place)| Some((index, place.as_ref()?)))
        .collect();
    let mut fetched = fetch(source, path, &found).await?.into_iter();
    Ok(located.iter().map(|place| place.as_ref().and_then(|_| fetched.next()?)).collect())
}

pub(super) async fn fetch<L: Locate + ?Sized>(
    source: &L,
    path: &str,
    chunks: &[(&ChunkIndex, &ChunkRef)],
) -> Result<Vec<Option<Bytes>>> {
    let references: Vec<&ChunkRef> = chunks.iter().map(|(_, reference)| *reference).collect();
    let name = |at: usize| match chunks.get(at) {
        Some((index, _)) => name(path, index),
        None => path.to_owned(),
    };
    match source.fetcher().fetch_named(&references, name).await {
        Ok(fetched) => Ok(fetched),
        Err(error) => Err(source.explain(error).await),
    }
}

/// How messages call a chunk.
fn name(path: &str, index: &[u64]) -> String {
    format!("chunk {index:?} of {path}")
}
