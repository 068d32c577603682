//! Rebuilding lost manifests from the trailers of packs.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use chunkyard_store::{Error, Result, Uid};
use futures::TryStreamExt;
use serde::Serialize;

use crate::coord::Coord;
use crate::id;
use crate::maintain::Rewrite;
use crate::manifest::{Native, Payload, References, RunBuilder, Scan};
use crate::node::{Inventory, Node};
use crate::run::levels::level_of;
use crate::{Repository, pack};

/// What was found again.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Recovered {
    /// The commit; none when no manifest was lost.
    pub snapshot: Option<String>,
    /// Manifests that are missing or broken.
    pub manifests: Vec<String>,
    /// Chunks found in packs. Inline chunks, virtual chunks and chunks in files of their own are
    /// not among them.
    pub chunks: u64,
}

/// Where the newest copy of each chunk is, by array.
type Found = HashMap<Uid, BTreeMap<Coord, Native>>;

impl Repository {
    /// Replaces unreadable manifests of a branch with the packs' own indexes, in a new commit.
    /// Where several packs hold a chunk, the pack written last counts.
    pub async fn recover_references(&self, branch: &str) -> Result<Recovered> {
        let current = self.load().await?;
        let tip = current.state.tip(branch)?.clone();
        let mut tree = (*self.tree(&tip).await?).clone();
        let mut recovered = Recovered::default();
        let mut damaged = Vec::new();
        for node in tree.nodes().filter(|node| node.is_array()) {
            let (kept, lost) = self.readable_entries(node).await?;
            if !lost.is_empty() {
                recovered.manifests.extend(lost);
                damaged.push(Arc::new(Node { inventories: kept, ..(**node).clone() }));
            }
        }
        recovered.manifests.sort();
        recovered.manifests.dedup();
        if damaged.is_empty() {
            return Ok(recovered);
        }
        let mut found = self.read_trailers().await?;
        damaged.sort_by_key(|node| node.id);
        let writer = self.writer(&current.state);
        let mut builder = RunBuilder::new(current.state.config.compat);
        for node in &damaged {
            let rows = self.missing_rows(node, found.remove(&node.uid).unwrap_or_default()).await?;
            recovered.chunks += rows.len() as u64;
            let rank = node.array()?.shape().len();
            builder.push_array(node.id, rank, rows.len(), rows.into_iter().map(Ok))?;
        }
        let written = builder.finish(writer.label("manifest"))?;
        let file: Arc<str> = id::fresh()?.into();
        let path = format!("i/{file}");
        let bytes_written = written.sealed.bytes.len() as u64;
        self.store().backend().put(&path, vec![written.sealed.bytes.clone()]).await?;
        for node in damaged {
            let mut node = (*node).clone();
            let mut entries = written.inventories(&file, node.id, level_of(recovered.chunks));
            entries.iter_mut().for_each(|entry| entry.flags |= Inventory::OVERRIDES);
            node.inventories.append(&mut entries);
            node.refs_count = self.count_live(&node).await?;
            tree.put(Arc::new(node));
        }
        let message = "recover references from packs";
        let rewrite = Rewrite { branch, message, tree, files: vec![path], bytes_written };
        recovered.snapshot = self.commit_rewrite(&current, &tip, rewrite).await?;
        match recovered.snapshot {
            Some(_) => Ok(recovered),
            None => Err(Error::Conflict {
                message: format!("branch {branch:?} moved meanwhile; try again"),
                conflicts: Vec::new(),
            }),
        }
    }

    /// Entries that can be read, each as a run of its own, and the manifests that cannot.
    async fn readable_entries(&self, node: &Node) -> Result<(Vec<Inventory>, Vec<String>)> {
        let (mut kept, mut lost) = (Vec::new(), Vec::new());
        for entry in &node.inventories {
            match self.inner.manifests.entry(&References::of(node), entry).await {
                Ok(_) => {
                    let flags = entry.flags & !Inventory::CONTINUES;
                    kept.push(Inventory { flags, ..entry.clone() });
                }
                Err(Error::NotFound { .. } | Error::Corrupt { .. }) => {
                    lost.push(entry.file.to_string());
                }
                Err(error) => return Err(error),
            }
        }
        Ok((kept, lost))
    }

    async fn read_trailers(&self) -> Result<Found> {
        let mut packs: Vec<_> =
            self.store().backend().list("c").await?.try_collect::<Vec<_>>().await?;
        packs.sort_by_key(|meta| meta.modified_ms);
        let mut found = Found::new();
        for meta in packs {
            let bytes = self.store().backend().get(&meta.path).await?.bytes;
            let Some(name) = meta.path.strip_prefix("c/") else { continue };
            let file: Arc<str> = name.into();
            // A file without a sound trailer is one chunk, or damaged: neither can be used.
            let Ok(Some(entries)) = pack::parse_trailer(&meta.path, &bytes) else { continue };
            for entry in entries {
                let native = Native {
                    file: file.clone(),
                    offset: entry.offset,
                    length: entry.length,
                    crc32c: Some(entry.crc32c),
                };
                found.entry(entry.uid).or_default().insert(entry.coord, native);
            }
        }
        Ok(found)
    }

    /// Chunks that the readable manifests do not know and that lie inside the grid.
    async fn missing_rows(
        &self,
        node: &Node,
        found: BTreeMap<Coord, Native>,
    ) -> Result<Vec<(Vec<u8>, Payload)>> {
        let grid = node.array()?.grid()?;
        let coords: Vec<Coord> = found.keys().cloned().collect();
        let known = self.inner.manifests.lookup(node, &coords).await?;
        let rows = found.into_iter().zip(known).filter_map(|((coord, native), known)| {
            let inside = coord.decode(grid.rank()).is_ok_and(|index| grid.contains(&index));
            let wanted = inside && known.is_none();
            wanted.then(|| (coord.as_bytes().to_vec(), Payload::Native(native)))
        });
        Ok(rows.collect())
    }

    async fn count_live(&self, node: &Node) -> Result<u64> {
        let mut scan = Scan::new(&self.inner.manifests, node, None);
        let mut count = 0;
        while let Some((_, payload)) = scan.next().await? {
            count += u64::from(!payload.is_removed());
        }
        Ok(count)
    }
}
