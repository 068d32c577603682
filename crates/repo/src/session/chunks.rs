//! Chunks of a session: placing, locating and fetching their encoded bytes.

use std::sync::Arc;

use bytes::Bytes;
use chunkyard_array::Grid;
use chunkyard_store::{Error, Result};

use super::edit::{record, require_node};
use super::{Session, lock};
use crate::coord::Coord;
use crate::manifest::{Native, Payload};
use crate::node::Node;
use crate::pack::ChunkFile;

impl Session {
    /// Stores the encoded bytes of a chunk. A full pack is put before this returns, which bounds
    /// the memory of a writer.
    pub async fn set_chunk(&self, path: &str, index: &[u64], bytes: Bytes) -> Result<()> {
        let node = self.node(path)?;
        check_index(&node, index)?;
        self.set_chunk_of(&node, Coord::encode(index), bytes).await
    }

    pub(crate) async fn set_chunk_of(&self, node: &Node, coord: Coord, bytes: Bytes) -> Result<()> {
        if bytes.is_empty() {
            return Err(Error::Invalid {
                what: format!("{}: a chunk of zero bytes; to remove a chunk, erase it", node.path),
            });
        }
        let length = bytes.len() as u64;
        let complete = {
            let mut work = self.require_writable()?;
            require_node(&work, node)?;
            let inline_bytes = work.chunks.get(&node.uid).map_or(0, |changes| changes.inline_bytes);
            if length <= self.config.inline_chunk_max
                && inline_bytes + length <= self.config.inline_total_max
            {
                record(&mut work, node.uid, coord, Payload::Inline { bytes });
                None
            } else {
                let (native, complete) = lock(&self.packer).add(node.uid, &coord, bytes)?;
                // Kept until its put is confirmed: if this future is dropped or the put fails, the
                // commit puts it again.
                let name = complete.map(|file| {
                    let name = file.name.clone();
                    lock(&self.unconfirmed).insert(name.clone(), file);
                    name
                });
                record(&mut work, node.uid, coord, Payload::Native(native));
                name
            }
        };
        match complete {
            Some(name) => self.confirm(&name).await,
            None => Ok(()),
        }
    }

    /// Removes a chunk: readers see the fill value.
    pub fn erase_chunk(&self, path: &str, index: &[u64]) -> Result<()> {
        let node = self.node(path)?;
        check_index(&node, index)?;
        self.erase_chunk_of(&node, Coord::encode(index))
    }

    pub(crate) fn erase_chunk_of(&self, node: &Node, coord: Coord) -> Result<()> {
        let mut work = self.require_writable()?;
        require_node(&work, node)?;
        record(&mut work, node.uid, coord, Payload::Removed);
        Ok(())
    }

    /// Puts a complete chunk file and forgets its bytes.
    pub(super) async fn confirm(&self, name: &Arc<str>) -> Result<()> {
        let parts = lock(&self.unconfirmed).get(name).map(|file| file.parts.clone());
        let Some(parts) = parts else { return Ok(()) };
        let length: u64 = parts.iter().map(|part| part.len() as u64).sum();
        let path = format!("c/{name}");
        self.repo.store().backend().put(&path, parts).await?;
        lock(&self.unconfirmed).remove(name);
        let mut work = self.work();
        work.files.insert(path);
        work.bytes_written += length;
        Ok(())
    }

    /// Puts everything that is still in memory: the open pack, and files whose put failed.
    pub(super) async fn flush_chunks(&self) -> Result<()> {
        if let Some(file) = lock(&self.packer).seal() {
            lock(&self.unconfirmed).insert(file.name.clone(), file);
        }
        let names: Vec<_> = lock(&self.unconfirmed).keys().cloned().collect();
        for name in names {
            self.confirm(&name).await?;
        }
        Ok(())
    }

    /// Where chunks are, as this session sees them; `None` means fill value.
    pub async fn locate(&self, path: &str, indices: &[Vec<u64>]) -> Result<Vec<Option<Payload>>> {
        let node = self.node(path)?;
        for index in indices {
            check_index(&node, index)?;
        }
        let coords: Vec<_> = indices.iter().map(|index| Coord::encode(index)).collect();
        self.locate_coords(&node, &coords).await
    }

    pub(crate) async fn locate_coords(
        &self,
        node: &Node,
        coords: &[Coord],
    ) -> Result<Vec<Option<Payload>>> {
        let mut found: Vec<Option<Payload>> = vec![None; coords.len()];
        let mut unknown: Vec<usize> = Vec::new();
        let committed = {
            let mut work = self.work();
            if let Some(reads) = &mut work.reads {
                let boxes = reads.entry(node.uid).or_default();
                boxes.extend(bounding_box(coords, node));
            }
            let changes = work.chunks.get(&node.uid);
            for (at, coord) in coords.iter().enumerate() {
                match changes.and_then(|changes| changes.refs.get(coord)) {
                    Some(change) => found[at] = Some(change.payload.clone()),
                    None => unknown.push(at),
                }
            }
            work.base_tree.by_uid(&node.uid).cloned()
        };
        // A node that is new in this session has no committed references.
        if let Some(committed) = committed.filter(|_| !unknown.is_empty()) {
            let asked: Vec<_> = unknown.iter().map(|&at| coords[at].clone()).collect();
            let answers = match self.repo.inner.manifests.lookup(&committed, &asked).await {
                Ok(answers) => answers,
                Err(error) => return Err(self.explain(error).await),
            };
            for (at, answer) in unknown.into_iter().zip(answers) {
                found[at] = answer;
            }
        }
        for answer in &mut found {
            if answer.as_ref().is_some_and(Payload::is_removed) {
                *answer = None;
            }
        }
        Ok(found)
    }

    /// The encoded bytes of a chunk; `None` means fill value.
    pub async fn get_chunk(&self, path: &str, index: &[u64]) -> Result<Option<Bytes>> {
        let node = self.node(path)?;
        check_index(&node, index)?;
        let located = self.locate_references(&node, &[Coord::encode(index)]).await?;
        let Some(reference) = located.into_iter().flatten().next() else { return Ok(None) };
        let what = |_| format!("chunk {index:?} of {path}");
        match self.repo.fetcher().fetch_named(&[&reference], what).await {
            Ok(fetched) => Ok(fetched.into_iter().flatten().next()),
            Err(error) => Err(self.explain(error).await),
        }
    }

    /// The bytes of a chunk of this session that may not be in the store yet.
    pub(super) fn in_memory(&self, native: &Native) -> Option<Bytes> {
        if let Some(bytes) = lock(&self.packer).get(native) {
            return Some(bytes);
        }
        lock(&self.unconfirmed).get(&native.file).and_then(|file| part_at(file, native))
    }
}

fn part_at(file: &ChunkFile, native: &Native) -> Option<Bytes> {
    let mut offset = 0;
    for part in &file.parts {
        if offset == native.offset {
            return Some(part.clone());
        }
        offset += part.len() as u64;
    }
    None
}

/// Refuses indices outside the array's grid.
fn check_index(node: &Node, index: &[u64]) -> Result<()> {
    check_index_in(&node.array()?.grid()?, node, index)
}

/// Like [`check_index`], for callers that ask often.
pub(super) fn check_index_in(grid: &Grid, node: &Node, index: &[u64]) -> Result<()> {
    if grid.contains(index) {
        return Ok(());
    }
    Err(Error::Invalid {
        what: format!(
            "{}: chunk {index:?} is outside the chunk grid of {:?}",
            node.path,
            grid.grid_shape()
        ),
    })
}

fn bounding_box(coords: &[Coord], node: &Node) -> Option<Vec<(u64, u64)>> {
    let rank = node.array().ok()?.shape().len();
    let mut bounds = vec![(u64::MAX, 0); rank];
    for coord in coords {
        for (bound, component) in bounds.iter_mut().zip(coord.decode(rank).ok()?) {
            *bound = (bound.0.min(component), bound.1.max(component.saturating_add(1)));
        }
    }
    (!coords.is_empty()).then_some(bounds)
}
