//! Checks one file of a table: its bytes, its columns, its rows, and the entries that name it.

use std::sync::Arc;

use chunkyard_store::{Error, Result};

use super::Report;
use super::users::{Affected, Users};
use crate::Repository;
use crate::node::{Inventory, Node};
use crate::parquet_file::Label;
use crate::parquet_stream;
use crate::run::{Block as _, Rows as _, path_of};
use crate::state::State;
use crate::table::TableRows;

/// A file of a table, as the entries of snapshots describe it.
pub(super) struct TableFile {
    pub(super) node: Arc<Node>,
    pub(super) entries: Vec<Inventory>,
}

impl Repository {
    /// Reads a file of a table and checks all of it.
    pub(super) async fn verify_table_file(
        &self,
        file: &Arc<str>,
        table: &TableFile,
        state: &State,
        users: &Users,
        report: &mut Report,
    ) -> Result<()> {
        let path = path_of(file);
        let spans = users.of(&path);
        let affected = Affected::new(state, &spans);
        report.checked.files += 1;
        let checked = self.check_table_file(file, table).await;
        if let Some((bytes, rows)) = report.take(&path, affected, checked)? {
            report.checked.bytes += bytes;
            report.checked.references += rows;
        } else if let Some(last) = report.findings.last_mut() {
            last.array = Some(table.node.path.clone());
        }
        Ok(())
    }

    /// The bytes and rows that were checked.
    async fn check_table_file(&self, file: &Arc<str>, table: &TableFile) -> Result<(u64, u64)> {
        let Some(entry) = table.entries.first() else { return Ok((0, 0)) };
        let path = path_of(file);
        let wrong = |what: &str, expected: String, found: String| Error::Corrupt {
            file: path.clone(),
            what: what.to_owned(),
            expected,
            found,
        };
        let bytes = self.tables().get(file, entry.file_size).await?;
        let label =
            Label { format: TableRows::FORMAT, dataset_id: self.dataset_id(), created_ms: 0 };
        let kind = TableRows::new(table.node.table()?.clone());
        let (mut rows, mut removed) = (0u64, 0u64);
        let (mut first, mut last): (Option<Vec<u8>>, Option<Vec<u8>>) = (None, None);
        for batch in parquet_stream::stream(&path, &label, &bytes, entry.tail, None)? {
            let block = kind.block(file, rows, &batch?)?;
            for at in 0..block.len() {
                let key = block.key(at);
                if last.as_deref().is_some_and(|last| last >= key) {
                    let what = format!("key of row {}", rows + at as u64);
                    return Err(wrong(
                        &what,
                        "one above the row before".into(),
                        format!("{key:02x?}"),
                    ));
                }
                let last = last.get_or_insert_default();
                last.clear();
                last.extend_from_slice(key);
                first.get_or_insert_with(|| key.to_vec());
            }
            rows += block.len() as u64;
            removed += block.removed().map_or(0, |marks| marks.count_set_bits() as u64);
        }
        for entry in &table.entries {
            let facts = |entry: &Inventory| (entry.file_size, entry.tail);
            let model = table.entries.first().map(facts);
            if Some(facts(entry)) != model {
                let found = format!("{:?}", facts(entry));
                return Err(wrong("size and tail in an entry", format!("{model:?}"), found));
            }
            if (entry.row, entry.rows) != (0, Some(rows)) {
                let found = format!("{:?} from row {}", entry.rows, entry.row);
                return Err(wrong("rows of an entry", format!("all {rows}"), found));
            }
            let claims = entry.flags & Inventory::REMOVALS != 0;
            if claims != (removed > 0) {
                let found = format!("REMOVALS {claims}");
                return Err(wrong("flags of an entry", format!("{removed} deletions"), found));
            }
            for (what, recorded, found) in
                [("coord_min", &entry.coord_min, &first), ("coord_max", &entry.coord_max, &last)]
            {
                if recorded != found {
                    return Err(wrong(what, format!("{recorded:02x?}"), format!("{found:02x?}")));
                }
            }
        }
        Ok((bytes.len() as u64, rows))
    }
}
