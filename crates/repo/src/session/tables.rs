//! Rows that a session sets and deletes.
//!
//! They are kept sorted in memory, up to a limit; then they go to the store as a run, which the commit
//! only has to name. Nothing refers to it before.

use std::sync::Arc;

use chunkyard_store::{Error, Noun, Result, Uid, clock};

use super::Session;
use crate::node::{Inventory, NodeKind};
use crate::run::{self, Block as _, Keys};
use crate::table::{
    Block, Layers, RunLabel, RunWriter, RunWritten, Table, TableRows, TableSpec, TableStats, Walk,
    level,
};

/// Blocks up to this many rows are merged while they are in memory, so that there are few.
const SMALL_ROWS: usize = 65_536;

/// What a session changes in one table, oldest first.
#[derive(Debug, Clone, Default)]
pub(super) struct TableChanges {
    /// Runs in the store.
    pub(super) stored: Vec<Inventory>,
    /// Rows in the stored runs that are no deletions.
    pub(super) live: u64,
    /// Blocks that are being stored.
    sealed: Vec<Arc<Block>>,
    /// Blocks that came since.
    memory: Vec<Arc<Block>>,
}

impl TableChanges {
    /// Runs that another session stored.
    pub(super) fn of_runs(stored: Vec<Inventory>) -> Self {
        Self { stored, ..Self::default() }
    }

    fn add(&mut self, spec: &TableSpec, block: Block) -> Result<()> {
        self.memory.push(Arc::new(block));
        while let [.., a, b] = self.memory.as_slice()
            && a.len() <= 2 * b.len()
            && a.len() + b.len() <= SMALL_ROWS
        {
            let merged = Arc::new(Block::merge(spec, a, b)?);
            self.memory.truncate(self.memory.len() - 2);
            self.memory.push(merged);
        }
        Ok(())
    }

    fn bytes(&self) -> u64 {
        let blocks = self.sealed.iter().chain(&self.memory);
        blocks.map(|block| block.bytes_held() as u64).sum()
    }

    fn blocks(&self) -> Vec<Arc<Block>> {
        self.sealed.iter().chain(&self.memory).cloned().collect()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.stored.is_empty() && self.sealed.is_empty() && self.memory.is_empty()
    }
}

impl Session {
    /// Creates a table, and the groups above it that do not exist.
    pub async fn create_table(self: &Arc<Self>, path: &str, spec: TableSpec) -> Result<Table> {
        if self.config.compat == crate::Compat::Draft {
            return Err(Error::Unsupported {
                what: "strict draft mode: the draft has no tables".into(),
            });
        }
        let attributes = spec.attributes().clone();
        let spec = Arc::new(spec.with_attributes(serde_json::Map::new()));
        let node = self.create(path, NodeKind::Table(spec), attributes)?;
        Table::open(self.clone(), &node)
    }

    /// A table, for reading and writing rows.
    pub async fn table(self: &Arc<Self>, path: &str) -> Result<Table> {
        let node = self.node(path)?;
        Table::open(self.clone(), &node)
    }

    /// Notes changed rows of a table.
    pub(crate) async fn change_table(&self, uid: Uid, path: &str, block: Block) -> Result<()> {
        let pending: u64 = {
            if self.is_fork() {
                let what = "a fork reads tables; the session it came from changes them";
                return Err(Error::Invalid { what: what.into() });
            }
            let mut work = self.require_editable()?;
            let node = work.tree.by_uid(&uid).ok_or_else(|| gone(path))?;
            let spec = node.table()?.clone();
            work.tables.entry(uid).or_default().add(&spec, block)?;
            work.tables.values().map(TableChanges::bytes).sum()
        };
        if pending > self.repo.inner.options.table_bytes_max {
            self.store_tables().await?;
        }
        Ok(())
    }

    /// Notes rows in the course of a rebase, which holds the session.
    pub(super) fn add_block(&self, uid: Uid, block: Block) -> Result<()> {
        let mut work = self.work();
        let Some(node) = work.tree.by_uid(&uid) else { return Ok(()) };
        let spec = node.table()?.clone();
        work.tables.entry(uid).or_default().add(&spec, block)
    }

    /// What a table consists of, as the session sees it.
    pub(crate) fn table_layers(&self, uid: &Uid, path: &str) -> Result<Layers> {
        let work = self.work();
        let node = work.tree.by_uid(uid).ok_or_else(|| gone(path))?;
        let mut layers = Layers { entries: node.inventories.clone(), memory: Vec::new() };
        if let Some(changes) = work.tables.get(uid) {
            layers.entries.extend(changes.stored.iter().cloned());
            layers.memory = changes.blocks();
        }
        Ok(layers)
    }

    pub(crate) fn table_stats(&self, uid: &Uid, path: &str) -> Result<TableStats> {
        let layers = self.table_layers(uid, path)?;
        let work = self.work();
        let node = work.tree.by_uid(uid).ok_or_else(|| gone(path))?;
        let own = work.tables.get(uid);
        let in_memory = |block: &Arc<Block>| {
            (block.len() - block.removed().map_or(0, |marks| marks.count_set_bits())) as u64
        };
        Ok(TableStats {
            rows_max: node.refs_count
                + own.map_or(0, |own| own.live)
                + layers.memory.iter().map(in_memory).sum::<u64>(),
            bytes: layers.entries.iter().filter_map(|entry| entry.file_size).sum(),
            runs: (run::runs(&layers.entries).len() + layers.memory.len()) as u64,
        })
    }

    /// Stores all rows that are in memory, as one run of each table.
    pub(super) async fn store_tables(&self) -> Result<()> {
        if self.work().tables.is_empty() {
            return Ok(());
        }
        // Runs are stacked in the order in which their rows came, so one at a time.
        let _storing = self.storing.lock().await;
        let tables: Vec<Uid> = self.work().tables.keys().copied().collect();
        for uid in tables {
            let (spec, blocks, is_new) = {
                let mut work = self.work();
                let is_new = work.base_tree.by_uid(&uid).is_none();
                let Some(node) = work.tree.by_uid(&uid) else { continue };
                let spec = node.table()?.clone();
                let Some(changes) = work.tables.get_mut(&uid) else { continue };
                let mut memory = std::mem::take(&mut changes.memory);
                changes.sealed.append(&mut memory);
                (spec, changes.sealed.clone(), is_new && changes.stored.is_empty())
            };
            if blocks.is_empty() {
                continue;
            }
            // A table that is new has nothing below that a deletion could hide.
            let written = self.store_blocks(uid, &spec, blocks, !is_new).await?;
            let mut work = self.work();
            work.files.extend(written.paths());
            work.bytes_written += written.bytes;
            let (live, rows) = (written.live, written.rows);
            if let Some(changes) = work.tables.get_mut(&uid) {
                changes.live += live;
                changes.stored.extend(written.on_level(level(rows)));
                changes.sealed.clear();
            }
        }
        Ok(())
    }

    async fn store_blocks(
        &self,
        uid: Uid,
        spec: &Arc<TableSpec>,
        memory: Vec<Arc<Block>>,
        keeps_removed: bool,
    ) -> Result<RunWritten> {
        let marks = keeps_removed && memory.iter().any(|block| block.removed().is_some());
        let layers = Layers { entries: Vec::new(), memory };
        let kind = TableRows::new(spec.clone());
        let mut walk = Walk::new(self.repo.tables(), kind, &layers, Keys::ALL);
        if keeps_removed {
            walk = walk.with_removed();
        }
        let dataset_id = self.repo.dataset_id();
        let label = RunLabel { uid, dataset_id, now_ms: clock::now_ms() };
        let mut writer = RunWriter::new(self.repo.tables(), label, spec, marks);
        while let Some(merged) = walk.next().await? {
            writer.push(merged).await?;
        }
        writer.finish().await
    }
}

fn gone(path: &str) -> Error {
    Error::NotFound { what: Noun::Table, name: path.to_owned() }
}
