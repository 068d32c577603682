//! Expiry: forgetting old snapshots. One swap; no file is touched.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use chunkyard_store::{Error, Result};
use serde::Serialize;

use crate::Repository;
use crate::state::{ReferenceKind, Snapshot, State};

/// Which snapshots may go.
#[derive(Debug, Clone, Default)]
pub struct ExpireOptions {
    /// Snapshots older than this time (milliseconds since 1970) may go.
    pub older_than_ms: Option<i64>,
    /// Each branch keeps this many of its newest snapshots.
    pub keep_last: Option<usize>,
    /// Also drop tags and branches (not the default one) whose target is older than the limit.
    pub drop_references: bool,
}

/// What went.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Expired {
    /// Ids of the snapshots that are gone.
    pub snapshots: Vec<String>,
    /// Names of dropped references.
    pub references: Vec<String>,
}

impl Repository {
    /// Forgets old snapshots. A snapshot that a reference points at always stays, and a kept
    /// snapshot whose parent goes is re-parented to its nearest kept ancestor.
    pub async fn expire(&self, options: &ExpireOptions) -> Result<Expired> {
        if options.older_than_ms.is_none() && options.keep_last.is_none() {
            return Err(Error::Invalid {
                what: "expire needs an age limit, a number of snapshots to keep, or both".into(),
            });
        }
        // Nothing to do means nothing to swap.
        if plan(&*self.state().await?, options) == Expired::default() {
            return Ok(Expired::default());
        }
        self.update(|next| {
            let expired = plan(next, options);
            forget(next, &expired);
            Ok(expired)
        })
        .await
    }
}

fn plan(state: &State, options: &ExpireOptions) -> Expired {
    let is_old = |snapshot: &Snapshot| {
        options.older_than_ms.is_none_or(|limit| snapshot.timestamp_ms < limit)
    };
    let mut expired = Expired::default();
    let mut keep: HashSet<&str> = HashSet::new();
    for reference in state.refs.values() {
        let Some(target) = state.snapshot(&reference.snapshot_id) else { continue };
        let droppable = options.drop_references
            && reference.name != state.default_branch
            && options.older_than_ms.is_some()
            && is_old(target);
        if droppable {
            expired.references.push(reference.name.clone());
            continue;
        }
        keep.insert(&target.snapshot_id);
        if reference.kind == ReferenceKind::Branch {
            let newest = options.keep_last.unwrap_or(0);
            for (at, snapshot) in state.ancestry(&target.snapshot_id).enumerate() {
                if at < newest || !is_old(snapshot) {
                    keep.insert(&snapshot.snapshot_id);
                }
            }
        }
    }
    let reachable = state.reachable();
    for snapshot in &state.snapshots {
        // A snapshot no reference reaches counts by its age alone.
        let young = !reachable.contains(snapshot.snapshot_id.as_str())
            && options.older_than_ms.is_some()
            && !is_old(snapshot);
        if !young && !keep.contains(snapshot.snapshot_id.as_str()) {
            expired.snapshots.push(snapshot.snapshot_id.clone());
        }
    }
    expired
}

/// Takes snapshots and references out of a state; re-parents what stays.
pub(crate) fn forget(next: &mut State, expired: &Expired) {
    let gone: HashSet<&str> = expired.snapshots.iter().map(String::as_str).collect();
    let parents: HashMap<String, Option<String>> = next
        .snapshots
        .iter()
        .map(|s| (s.snapshot_id.clone(), s.parent_snapshot_id.clone()))
        .collect();
    let nearest_kept = |mut id: Option<String>| {
        while let Some(current) = id.as_deref().filter(|id| gone.contains(id)) {
            id = parents.get(current).cloned().flatten();
        }
        id
    };
    next.snapshots.retain(|snapshot| !gone.contains(snapshot.snapshot_id.as_str()));
    next.snapshots_changed();
    for snapshot in &mut next.snapshots {
        let parent = nearest_kept(snapshot.parent_snapshot_id.clone());
        if parent != snapshot.parent_snapshot_id {
            // `change_base` stays: the mismatch tells later readers that the change file no longer
            // describes the step from the parent.
            Arc::make_mut(snapshot).parent_snapshot_id = parent;
        }
    }
    for name in &expired.references {
        if next.refs.remove(name).is_some_and(|r| r.kind == ReferenceKind::Tag) {
            next.deleted_tags.push(name.clone());
        }
    }
}
