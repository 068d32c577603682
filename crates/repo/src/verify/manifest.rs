//! Checks one manifest: its bytes, its rows, and the entries that point into it.
//!
//! A sweep looks at each row once, some thousands at a time: entries are sorted by their first row,
//! and a row is shown to the entries that hold it. So neither memory nor time depends on how many
//! arrays share a file, and memory does not depend on how many rows it has.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use bytes::Bytes;
use chunkyard_store::{Error, Result};

use super::chunks::ChunkFiles;
use super::users::Affected;
use super::{Level, Report};
use crate::manifest::{Block, stream_blocks};
use crate::node::{Inventory, Node};
use crate::parquet_file::Tail;
use crate::state::State;
use crate::{Repository, Uid, check_file, coord};

/// What is known of a manifest before it is read.
#[derive(Default)]
pub(super) struct Manifest {
    /// The entries that point into it, by first row and array. Usually one each; snapshots may
    /// describe the same rows differently.
    pub(super) entries: BTreeMap<(u64, Uid), Vec<Entry>>,
    /// Size and checksum, where it is the change file of a snapshot.
    pub(super) change: Option<(Option<u64>, Option<u32>)>,
}

/// An inventory entry with the array it belongs to.
pub(super) struct Entry {
    pub(super) inventory: Inventory,
    pub(super) node: Arc<Node>,
}

impl Manifest {
    /// Remembers an entry, unless it is known.
    pub(super) fn add(&mut self, inventory: &Inventory, node: &Arc<Node>) {
        let known = self.entries.entry((inventory.row, node.uid)).or_default();
        if !known.iter().any(|entry| entry.inventory == *inventory) {
            known.push(Entry { inventory: inventory.clone(), node: node.clone() });
        }
    }

    fn first(&self) -> Option<&Inventory> {
        Some(&self.entries.values().flatten().next()?.inventory)
    }

    /// Size of the tail, to check the file with; unknown for a file that is only a change file.
    pub(super) fn tail(&self) -> Option<Tail> {
        self.first()?.tail
    }

    /// Paths of the arrays by the handle that rows carry.
    pub(super) fn arrays(&self) -> HashMap<u64, Arc<str>> {
        let entries = self.entries.values().flatten();
        entries.map(|entry| (entry.node.id.into(), entry.node.path.as_str().into())).collect()
    }
}

impl Repository {
    /// Reads a manifest and checks all of it. The files its entries refer to go to `files`.
    pub(super) async fn verify_manifest(
        &self,
        file: &Arc<str>,
        manifest: &Manifest,
        state: &State,
        files: &mut ChunkFiles,
        report: &mut Report,
    ) -> Result<()> {
        let path = format!("i/{file}");
        let spans = files.users.of(&path);
        let affected = Affected::new(state, &spans);
        report.checked.files += 1;
        let bytes = self.read_manifest(file, manifest).await;
        let Some(bytes) = report.take(&path, affected, bytes)? else { return Ok(()) };
        let blocks = stream_blocks(file, self.dataset_id(), &bytes, manifest.tail());
        let Some(blocks) = report.take(&path, affected, blocks)? else { return Ok(()) };
        report.checked.bytes += bytes.len() as u64;
        let mut sweep = Sweep::new(&path, manifest, report.level);
        for block in blocks {
            let Some(block) = report.take(&path, affected, block)? else {
                // The files it named before the damage are still needed.
                files.end_of_manifest(file, &spans);
                return Ok(());
            };
            sweep.look_at(&block, files);
        }
        report.checked.references += sweep.references;
        for fault in sweep.finish() {
            let finding = report.error(&path, fault.what, affected);
            finding.array = fault.array;
        }
        files.end_of_manifest(file, &spans);
        Ok(())
    }

    /// The bytes of a manifest, whose length must match every entry, and a change file's checksum
    /// too.
    pub(super) async fn read_manifest(
        &self,
        file: &Arc<str>,
        manifest: &Manifest,
    ) -> Result<Bytes> {
        let (size, crc) = manifest.change.unwrap_or_default();
        let known = manifest.first().and_then(|entry| entry.file_size);
        let bytes = self.inner.manifests.get(file, known.or(size)).await?;
        check_file(&format!("i/{file}"), &bytes, size, crc)?;
        Ok(bytes)
    }
}

/// Something wrong with a manifest.
struct Fault {
    what: String,
    array: Option<String>,
}

/// A walk over the rows of a manifest.
struct Sweep<'a> {
    path: &'a str,
    level: Level,
    /// Entries that begin at a later row, the next one last.
    ahead: Vec<Check<'a>>,
    /// Entries that hold the current row.
    open: Vec<Check<'a>>,
    closed: Vec<Check<'a>>,
    /// The row before the current one.
    last: Option<(u64, Vec<u8>)>,
    /// Errors in rows: the first of each kind.
    disorder: Option<String>,
    unsound: Option<Fault>,
    /// Rows that belong to an entry.
    references: u64,
}

impl<'a> Sweep<'a> {
    fn new(path: &'a str, manifest: &'a Manifest, level: Level) -> Self {
        let first = manifest.first();
        let entries = manifest.entries.values().flatten().rev();
        Self {
            path,
            level,
            ahead: entries.map(|entry| Check::new(path, entry, first)).collect(),
            open: Vec::new(),
            closed: Vec::new(),
            last: None,
            disorder: None,
            unsound: None,
            references: 0,
        }
    }

    fn look_at(&mut self, block: &Block, files: &mut ChunkFiles) {
        for at in 0..block.len() {
            let (row, id, coord) =
                (block.first_row + at as u64, block.array_id(at), block.coord(at));
            if !block.is_bare {
                self.check_order(row, id, coord);
            }
            while let Some(next) = self.ahead.pop_if(|next| next.entry.inventory.row <= row) {
                self.open.push(next);
            }
            let closed = &mut self.closed;
            closed.extend(self.open.extract_if(.., |check| check.ends_before(row, id)));
            for check in &mut self.open {
                check.look_at(self.path, row, id, coord);
                self.references += 1;
            }
            let array = self.open.first().map(|check| &check.array);
            match block.payload(at) {
                Ok(payload) => match array {
                    Some(array) if self.level >= Level::Existence => files.add(payload, array),
                    _ => {}
                },
                Err(error) if self.unsound.is_none() => {
                    let array = array.map(|array| array.to_string());
                    self.unsound = Some(Fault { what: error.to_string(), array });
                }
                Err(_) => {}
            }
        }
    }

    fn check_order(&mut self, row: u64, id: u64, coord: &[u8]) {
        match &mut self.last {
            Some((last_id, last)) => {
                if (*last_id, last.as_slice()) >= (id, coord) && self.disorder.is_none() {
                    let what = format!("row {row} is not in order of array_id and coord");
                    self.disorder = Some(what);
                }
                *last_id = id;
                last.clear();
                last.extend_from_slice(coord);
            }
            none => *none = Some((id, coord.to_vec())),
        }
    }

    fn finish(self) -> impl Iterator<Item = Fault> {
        let disorder = self.disorder.map(|what| Fault { what, array: None });
        let checks = self.closed.into_iter().chain(self.open).chain(self.ahead.into_iter().rev());
        let path = self.path;
        let faults = checks.filter_map(move |check| {
            let array = Some(check.entry.node.path.clone());
            let error = check.finish(path).err()?;
            Some(Fault { what: error.to_string(), array })
        });
        disorder.into_iter().chain(self.unsound).chain(faults)
    }
}

/// An entry being compared with its rows.
struct Check<'a> {
    entry: &'a Entry,
    array: Arc<str>,
    /// The first thing that is wrong; nothing is looked for after it.
    fault: Option<Error>,
    extent: Vec<(u64, u64)>,
    first: Option<Vec<u8>>,
    last: Vec<u8>,
    count: u64,
}

impl<'a> Check<'a> {
    fn new(path: &str, entry: &'a Entry, model: Option<&Inventory>) -> Self {
        let inventory = &entry.inventory;
        let facts = |entry: &Inventory| (entry.file_size, entry.tail);
        let (rank, fault) = match entry.node.array() {
            Err(error) => (0, Some(error)),
            Ok(spec) => {
                let odd = model.filter(|model| facts(model) != facts(inventory));
                let fault = odd.map(|model| {
                    let (expected, found) = (facts(model), facts(inventory));
                    let what = "size and tail in an entry";
                    wrong(path, what, format!("{expected:?}"), format!("{found:?}"))
                });
                (spec.shape().len(), fault)
            }
        };
        Self {
            entry,
            array: entry.node.path.as_str().into(),
            fault,
            extent: vec![(u64::MAX, 0); rank],
            first: None,
            last: Vec::new(),
            count: 0,
        }
    }

    fn ends_before(&self, row: u64, array_id: u64) -> bool {
        let inventory = &self.entry.inventory;
        match inventory.rows {
            Some(rows) => row >= inventory.row.saturating_add(rows),
            // The draft does not say where an array's rows end.
            None => array_id != u64::from(self.entry.node.id),
        }
    }

    fn look_at(&mut self, path: &str, row: u64, array_id: u64, coord: &[u8]) {
        if self.fault.is_some() {
            return;
        }
        let id = self.entry.node.id;
        if array_id != u64::from(id) {
            let what = format!("array_id of row {row}");
            self.fault = Some(wrong(path, &what, id.to_string(), array_id.to_string()));
            return;
        }
        let rank = self.extent.len();
        let index = match coord::decode(coord, rank) {
            Ok(index) => index,
            Err(error) => {
                let (what, expected) =
                    (format!("coord of row {row}"), format!("{rank} components"));
                self.fault = Some(wrong(path, &what, expected, error.to_string()));
                return;
            }
        };
        for (bound, component) in self.extent.iter_mut().zip(&index) {
            *bound = (bound.0.min(*component), bound.1.max(component.saturating_add(1)));
        }
        self.first.get_or_insert_with(|| coord.to_vec());
        self.last.clear();
        self.last.extend_from_slice(coord);
        self.count += 1;
    }

    fn finish(self, path: &str) -> Result<()> {
        if let Some(fault) = self.fault {
            return Err(fault);
        }
        let inventory = &self.entry.inventory;
        if let Some(rows) = inventory.rows.filter(|rows| *rows != self.count) {
            let (expected, found) = (rows.to_string(), self.count.to_string());
            return Err(wrong(path, "rows of an entry", expected, found));
        }
        if self.count > 0 && inventory.extent != self.extent {
            let (expected, found) = (&inventory.extent, &self.extent);
            let (expected, found) = (format!("{expected:?}"), format!("{found:?}"));
            return Err(wrong(path, "extent of an entry", expected, found));
        }
        let last = self.first.is_some().then_some(self.last);
        for (what, recorded, found) in [
            ("coord_min", &inventory.coord_min, self.first),
            ("coord_max", &inventory.coord_max, last),
        ] {
            if recorded.is_some() && *recorded != found {
                return Err(wrong(path, what, format!("{recorded:02x?}"), format!("{found:02x?}")));
            }
        }
        Ok(())
    }
}

fn wrong(path: &str, what: &str, expected: String, found: String) -> Error {
    Error::Corrupt { file: path.to_owned(), what: what.to_owned(), expected, found }
}
