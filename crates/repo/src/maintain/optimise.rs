//! Optimising: every array's references in one run, tiled. An ordinary commit whose change is
//! empty.

use std::sync::Arc;

use chunkyard_store::{Result, clock};
use serde::Serialize;
use serde_json::{Map, Value};

use crate::node::Inventory;
use crate::run::levels;
use crate::session::Writer;
use crate::state::{Snapshot, State, Summary};
use crate::structure::{self, SnapshotLabel};
use crate::swap::{Loaded, Swap};
use crate::tree::Tree;
use crate::{Mode, Repository, id, read_only};

/// What was merged.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct OptimiseReport {
    /// The commit; none when there was nothing to do.
    pub snapshot: Option<String>,
    /// Arrays whose runs were merged.
    pub arrays: u64,
    /// Inventory entries before.
    pub entries_before: u64,
    /// Inventory entries after.
    pub entries_after: u64,
}

impl Repository {
    /// Merges the runs of every array of a branch into one.
    pub async fn optimise(&self, branch: &str) -> Result<OptimiseReport> {
        let mut line = self.inner.state_file.line_up();
        loop {
            let _turn = line.turn().await;
            let current = self.load().await?;
            match self.optimise_once(&current, branch).await {
                Ok(Some(report)) => return Ok(report),
                Ok(None) => {}
                Err(error) => self.overtaken(&current, error).await?,
            }
        }
    }

    /// `None` when the state moved on meanwhile.
    async fn optimise_once(
        &self,
        current: &Loaded,
        branch: &str,
    ) -> Result<Option<OptimiseReport>> {
        let tip = current.state.tip(branch)?.clone();
        let before = self.tree(&tip).await?;
        let plans: Vec<_> = before
            .nodes()
            .filter_map(|node| Some((node.clone(), levels::plan_all(&node.inventories)?)))
            .collect();
        let entries = |tree: &Tree| tree.nodes().map(|n| n.inventories.len() as u64).sum();
        let mut report = OptimiseReport {
            arrays: plans.len() as u64,
            entries_before: entries(&before),
            ..OptimiseReport::default()
        };
        if plans.is_empty() {
            report.entries_after = report.entries_before;
            return Ok(Some(report));
        }
        let mut tree = (*before).clone();
        let mut bytes_written = 0;
        let writer = self.writer(&current.state);
        let files = writer.merge(&mut tree, plans, &mut bytes_written).await?;
        report.entries_after = entries(&tree);
        let rewrite = Rewrite { branch, message: "optimise", tree, files, bytes_written };
        let snapshot = self.commit_rewrite(current, &tip, rewrite).await?;
        Ok(snapshot.map(|id| OptimiseReport { snapshot: Some(id), ..report }))
    }

    pub(crate) fn writer<'a>(&'a self, state: &'a State) -> Writer<'a> {
        Writer {
            store: self.store(),
            manifests: &self.inner.manifests,
            tables: self.tables(),
            dataset_id: self.dataset_id(),
            config: &state.config,
            now_ms: clock::now_ms(),
        }
    }

    /// Commits a tree that holds the same data in another layout. `None` when the branch moved: the
    /// caller starts again from the new tip.
    pub(crate) async fn commit_rewrite(
        &self,
        current: &Loaded,
        tip: &Snapshot,
        mut rewrite: Rewrite<'_>,
    ) -> Result<Option<String>> {
        let state = &current.state;
        if state.status.mode == Mode::ReadOnly {
            return Err(read_only(state));
        }
        let snapshot_id = id::fresh()?;
        let timestamp_ms = clock::now_ms().max(tip.timestamp_ms + 1);
        let label = SnapshotLabel {
            snapshot_id: &snapshot_id,
            parent_snapshot_id: Some(&tip.snapshot_id),
            timestamp_ms,
            message: rewrite.message,
            change_file: None,
            branch: Some(rewrite.branch),
        };
        let compat = state.config.compat;
        let sealed = structure::render(&rewrite.tree, self.dataset_id(), &label, compat)?;
        let structure_file = id::fresh()?;
        let size = sealed.bytes.len() as u64;
        let path = format!("s/{structure_file}");
        self.store().backend().put(&path, vec![sealed.bytes]).await?;
        rewrite.files.push(path);
        let snapshot = Snapshot {
            snapshot_id: snapshot_id.clone(),
            parent_snapshot_id: Some(tip.snapshot_id.clone()),
            timestamp_ms,
            structure_file,
            message: rewrite.message.to_owned(),
            change_file: None,
            change_base: Some(tip.snapshot_id.clone()),
            change_size: None,
            change_crc32c: None,
            structure_size: Some(size),
            structure_crc32c: Some(sealed.crc32c),
            summary: Summary {
                nodes: rewrite.tree.len() as u64,
                bytes_written: rewrite.bytes_written + size,
                ..Summary::default()
            },
            properties: Map::from_iter([("maintenance".to_owned(), Value::Bool(true))]),
            unknown: Map::new(),
        };
        let mut next = state.successor(timestamp_ms)?;
        next.snapshots.push(Arc::new(snapshot));
        if let Some(reference) = next.refs.get_mut(rewrite.branch) {
            reference.snapshot_id = snapshot_id.clone();
        }
        next.require_wide();
        let mut entries = rewrite.tree.nodes().flat_map(|node| &node.inventories);
        if entries.any(|entry| entry.flags & Inventory::OVERRIDES != 0) {
            next.require_feature("delta-inventories");
        }
        match self.inner.state_file.swap(current, next, &rewrite.files).await? {
            Swap::Won(_) => Ok(Some(snapshot_id)),
            Swap::Lost => {
                self.store().backend().delete(&rewrite.files).await?;
                Ok(None)
            }
        }
    }
}

/// The same data, laid out anew.
pub(crate) struct Rewrite<'a> {
    pub(crate) branch: &'a str,
    pub(crate) message: &'static str,
    pub(crate) tree: Tree,
    pub(crate) files: Vec<String>,
    pub(crate) bytes_written: u64,
}
