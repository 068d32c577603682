//! Which chunks an array has in a session: the committed ones, with its own changes on top.

use std::ops::Bound;
use std::sync::Arc;

use chunkyard_array::{ChunkIndex, Grid};
use chunkyard_format::ChunkStream;
use chunkyard_store::{Error, Result};
use futures::stream::BoxStream;
use futures::{StreamExt, TryStreamExt, stream};

use super::{ArrayChanges, Session};
use crate::coord::Coord;
use crate::manifest::{Payload, Scan};
use crate::node::Node;

/// A walk over the chunks of one array, in the order of their indices. It does not see later
/// writes.
#[derive(Debug)]
pub(crate) struct ChunkScan {
    committed: Option<Scan>,
    /// The next committed reference, if it has been read ahead.
    ahead: Option<(Coord, Payload)>,
    changes: Option<Arc<ArrayChanges>>,
    /// The session's changes up to here are done.
    done: Bound<Coord>,
    /// What the indices begin with, encoded.
    leading: Coord,
}

impl Session {
    /// The chunks of an array whose indices begin with `leading`.
    pub(crate) fn scan(&self, node: &Node, leading: &[u64]) -> ChunkScan {
        let work = self.work();
        let rank = node.array().map_or(0, |spec| spec.shape().len());
        let mut within: Vec<(u64, u64)> =
            leading.iter().map(|&index| (index, index.saturating_add(1))).collect();
        within.resize(rank.max(leading.len()), (0, u64::MAX));
        let within = (!leading.is_empty()).then_some(&within[..]);
        let base = work.base_tree.by_uid(&node.uid);
        let leading = Coord::encode(leading);
        ChunkScan {
            committed: base.map(|base| Scan::new(self.repo.manifests(), base, within)),
            ahead: None,
            changes: work.chunks.get(&node.uid).cloned(),
            done: Bound::Included(leading.clone()),
            leading,
        }
    }
}

impl Session {
    /// All stored chunks of an array as this session sees them, in the order of their indices, each
    /// with where it is.
    pub fn chunk_refs<'a>(&'a self, path: &'a str) -> ChunkStream<'a> {
        let found = async move {
            let node = self.node(path)?;
            let grid = node.array()?.grid()?;
            let scan = self.scan(&node, &[]);
            Ok::<_, Error>(stream::try_unfold((scan, grid), move |(mut scan, grid)| async move {
                while let Some((coord, payload)) = scan.next().await? {
                    let index = coord.decode(grid.rank()).map_err(|error| {
                        Error::invalid(format!("{path}: coordinate of a chunk: {error}"))
                    })?;
                    if grid.contains(&index) {
                        let reference = self.reference(&payload)?;
                        return Ok(Some(((index, reference), (scan, grid))));
                    }
                }
                Ok::<_, Error>(None)
            }))
        };
        stream::once(found).try_flatten().boxed()
    }

    /// The indices of all stored chunks of an array as this session sees them.
    pub(crate) fn chunk_indices(
        &self,
        node: &Node,
        grid: &Grid,
    ) -> BoxStream<'static, Result<ChunkIndex>> {
        let state = (self.scan(node, &[]), grid.clone(), node.path.clone());
        stream::try_unfold(state, |(mut scan, grid, path)| async move {
            while let Some((coord, _)) = scan.next().await? {
                let index = coord.decode(grid.rank()).map_err(|error| {
                    Error::invalid(format!("{path}: coordinate of a chunk: {error}"))
                })?;
                if grid.contains(&index) {
                    return Ok(Some((index, (scan, grid, path))));
                }
            }
            Ok(None)
        })
        .boxed()
    }
}

impl ChunkScan {
    /// The next chunk, or `None` at the end.
    pub(crate) async fn next(&mut self) -> Result<Option<(Coord, Payload)>> {
        loop {
            if self.ahead.is_none() {
                self.ahead = self.next_committed().await?;
            }
            let changed = self.next_changed();
            let ahead = self.ahead.as_ref().map(|(coord, _)| coord);
            let takes_change = match (&changed, ahead) {
                (None, None) => return Ok(None),
                (Some((coord, _)), Some(ahead)) => coord <= ahead,
                (changed, _) => changed.is_some(),
            };
            let found = match changed.filter(|_| takes_change) {
                Some((coord, payload)) => {
                    self.done = Bound::Excluded(coord.clone());
                    // The session's own change of a chunk wins.
                    self.ahead.take_if(|(ahead, _)| *ahead == coord);
                    Some((coord, payload))
                }
                None => self.ahead.take(),
            };
            if let Some((coord, payload)) = found.filter(|(_, payload)| !payload.is_removed()) {
                return Ok(Some((coord, payload)));
            }
        }
    }

    async fn next_committed(&mut self) -> Result<Option<(Coord, Payload)>> {
        let Some(scan) = &mut self.committed else { return Ok(None) };
        while let Some((coord, payload)) = scan.next().await? {
            // The box selects whole entries of manifests, which hold more than was asked for.
            if coord.starts_with(self.leading.as_bytes()) {
                return Ok(Some((Coord::from_bytes(&coord), payload)));
            }
        }
        self.committed = None;
        Ok(None)
    }

    fn next_changed(&self) -> Option<(Coord, Payload)> {
        let refs = &self.changes.as_ref()?.refs;
        let (coord, change) = refs.range((self.done.clone(), Bound::Unbounded)).next()?;
        let within = coord.as_bytes().starts_with(self.leading.as_bytes());
        within.then(|| (coord.clone(), change.payload.clone()))
    }
}
