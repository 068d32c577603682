//! Dropping snapshots that cannot be read.

use chunkyard_store::{Error, Result};

use crate::Repository;
use crate::maintain::{Expired, forget};

impl Repository {
    /// Forgets snapshots whose structure file is missing or broken, unless a reference points at
    /// one of them. Returns their ids.
    pub async fn drop_unreadable(&self) -> Result<Vec<String>> {
        let state = self.state().await?;
        let mut broken = Vec::new();
        for snapshot in &state.snapshots {
            match self.tree(snapshot).await {
                Ok(_) => {}
                Err(error @ (Error::Store { .. } | Error::OutcomeUnknown { .. })) => {
                    return Err(error);
                }
                Err(_) => broken.push(snapshot.snapshot_id.clone()),
            }
        }
        if broken.is_empty() {
            return Ok(broken);
        }
        self.update(|next| {
            let needed = next.refs.values().find(|r| broken.contains(&r.snapshot_id));
            if let Some(reference) = needed {
                return Err(Error::Invalid {
                    what: format!(
                        "the {} {:?} points at the unreadable snapshot {}; reset or delete it first",
                        reference.kind.noun(),
                        reference.name,
                        reference.snapshot_id
                    ),
                });
            }
            let expired = Expired { snapshots: broken.clone(), references: Vec::new() };
            forget(next, &expired);
            Ok(broken.clone())
        })
        .await
    }
}
