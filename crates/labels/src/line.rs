//! The versions that a session comes from, and where among them a mutation came in.

use std::sync::Arc;

use chunkyard_repo::{Snapshot, Version};
use chunkyard_store::{ErrorKind, Result};

use crate::Labelmap;
use crate::rows::{self, Mutation};

/// The versions of a line, newest first, and how many of them have a mutation: the newest ones.
pub(crate) struct Since {
    pub(crate) line: Vec<Arc<Snapshot>>,
    pub(crate) count: usize,
}

impl Labelmap {
    /// The commit that brought a mutation into this line of versions, by itself or by a merge; if that has expired,
    /// the oldest version left that has it. `None` if it is not committed.
    pub async fn commit_of(&self, mutation: u64) -> Result<Option<Arc<Snapshot>>> {
        let Since { line, count } = self.since(mutation).await?;
        Ok(count.checked_sub(1).and_then(|oldest| line.get(oldest)).cloned())
    }

    pub(crate) async fn since(&self, mutation: u64) -> Result<Since> {
        let state = self.session.repository().state().await?;
        let tip = self.session.snapshot().snapshot_id.clone();
        let line: Vec<Arc<Snapshot>> = state.ancestry(&tip).cloned().collect();
        let (mut low, mut high) = (0, line.len());
        while low < high {
            let middle = low + (high - low) / 2;
            match self.has_mutation(&line[middle], mutation).await? {
                true => low = middle + 1,
                false => high = middle,
            }
        }
        Ok(Since { line, count: low })
    }

    async fn has_mutation(&self, snapshot: &Snapshot, mutation: u64) -> Result<bool> {
        let Some(map) = self.at_version(snapshot).await? else { return Ok(false) };
        let found: Vec<Option<Mutation>> = rows::get(&map.mutations, &[mutation]).await?;
        Ok(found.into_iter().flatten().next().is_some())
    }

    /// This labelmap at another version, if it was there.
    pub(crate) async fn at_version(&self, snapshot: &Snapshot) -> Result<Option<Self>> {
        let version = Version::Snapshot(snapshot.snapshot_id.clone());
        let session = self.session.repository().readonly_session(&version).await?;
        match Self::open(&session, &self.path).await {
            Ok(map) => Ok(Some(map)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }
}
