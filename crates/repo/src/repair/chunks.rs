//! Giving up chunks whose bytes are gone.

use std::collections::HashMap;
use std::sync::Arc;

use chunkyard_store::{Error, Result};
use serde::Serialize;

use crate::coord::Coord;
use crate::manifest::{Payload, Scan};
use crate::{CommitOptions, Repository};

/// Chunks that were given up.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Forgotten {
    /// The commit; none when nothing was missing.
    pub snapshot: Option<String>,
    /// Array and chunk index.
    pub chunks: Vec<(String, Vec<u64>)>,
}

impl Repository {
    /// Marks chunks of a branch whose file is missing or too short as removed, in a new commit:
    /// they read as fill value from then on. Older snapshots stay as they are.
    pub async fn forget_missing(&self, branch: &str) -> Result<Forgotten> {
        let session = self.writable_session(branch).await?;
        let mut forgotten = Forgotten::default();
        let mut sizes: HashMap<Arc<str>, Option<u64>> = HashMap::new();
        for node in session.tree().nodes().filter(|node| node.is_array()) {
            let rank = node.array()?.shape().len();
            let mut scan = Scan::new(&self.inner.manifests, node, None);
            while let Some((coord, payload)) = scan.next().await? {
                let Payload::Native(native) = payload else { continue };
                let size = match sizes.get(&native.file) {
                    Some(size) => *size,
                    None => {
                        let size = self.size_of(&format!("c/{}", native.file)).await?;
                        sizes.insert(native.file.clone(), size);
                        size
                    }
                };
                if size.is_some_and(|size| native.offset + native.length <= size) {
                    continue;
                }
                let coord = Coord::from_bytes(&coord);
                if let Ok(index) = coord.decode(rank) {
                    forgotten.chunks.push((node.path.clone(), index));
                }
                session.erase_chunk_of(node, coord)?;
            }
        }
        if !forgotten.chunks.is_empty() {
            let message = format!("give up {} chunks whose bytes are lost", forgotten.chunks.len());
            let snapshot = session.commit(CommitOptions::message(message)).await?;
            forgotten.snapshot = Some(snapshot.snapshot_id.clone());
        }
        Ok(forgotten)
    }

    async fn size_of(&self, path: &str) -> Result<Option<u64>> {
        match self.store().backend().head(path).await {
            Ok(meta) => Ok(Some(meta.size)),
            Err(Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }
}
