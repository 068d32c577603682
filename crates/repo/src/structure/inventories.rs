//! The column `inventories`: where the references of each array are.

use std::collections::HashSet;
use std::sync::Arc;

use arrow_array::{Array, BinaryArray, ListArray, StringArray, UInt64Array};
use chunkyard_store::Result;

use super::arrays::{items, structs_of};
use super::read::check_name;
use crate::columns::{Columns, pair_list, required};
use crate::node::Inventory;
use crate::parquet_file::Tail;

/// The entries of all arrays of a file. Each column is converted once, whatever the number of rows.
pub(super) struct Inventories<'a> {
    file: &'a str,
    lists: ListArray,
    files: StringArray,
    first_rows: UInt64Array,
    row_counts: UInt64Array,
    extents: ListArray,
    pairs: Vec<(u64, u64)>,
    flags: UInt64Array,
    sizes: UInt64Array,
    tail_sizes: UInt64Array,
    tail_crcs: UInt64Array,
    minima: BinaryArray,
    maxima: BinaryArray,
    /// Names already checked. Many arrays share a manifest, and so its name.
    names: HashSet<Arc<str>>,
}

impl<'a> Inventories<'a> {
    pub(super) fn new(file: &'a str, lists: ListArray) -> Result<Self> {
        let entries = structs_of(file, "inventories", &lists)?;
        let columns = Columns::of_struct(file, "inventories", &entries);
        let extents = columns.lists("extent")?;
        let pairs = match extents.null_count() == extents.len() {
            true => Vec::new(),
            false => pair_list(file, "inventories.extent", extents.values())?,
        };
        Ok(Self {
            file,
            files: columns.strings("inventory_file")?,
            first_rows: columns.uints("row")?,
            row_counts: columns.uints("rows")?,
            extents,
            pairs,
            flags: columns.uints("flags")?,
            sizes: columns.uints("file_size")?,
            tail_sizes: columns.uints("tail_size")?,
            tail_crcs: columns.uints("tail_crc32c")?,
            minima: columns.binaries("coord_min")?,
            maxima: columns.binaries("coord_max")?,
            names: HashSet::new(),
            lists,
        })
    }

    /// The entries of one row of the file.
    pub(super) fn get(&mut self, row: usize) -> Result<Vec<Inventory>> {
        items(&self.lists, row).map(|at| self.entry(at)).collect()
    }

    fn entry(&mut self, at: usize) -> Result<Inventory> {
        let uint = |array: &UInt64Array| array.is_valid(at).then(|| array.value(at));
        let binary = |array: &BinaryArray| array.is_valid(at).then(|| array.value(at).to_vec());
        let tail = match (uint(&self.tail_sizes), uint(&self.tail_crcs)) {
            (Some(size), Some(crc)) => Some(Tail { size, crc32c: crc as u32 }),
            _ => None,
        };
        let extent = self.pairs.get(items(&self.extents, at)).unwrap_or_default();
        Ok(Inventory {
            row: required(uint(&self.first_rows), self.file, "inventories.row", at)?,
            rows: uint(&self.row_counts),
            extent: extent.to_vec(),
            flags: uint(&self.flags).unwrap_or(0) as u32,
            file_size: uint(&self.sizes),
            tail,
            coord_min: binary(&self.minima),
            coord_max: binary(&self.maxima),
            file: self.name(at)?,
        })
    }

    fn name(&mut self, at: usize) -> Result<Arc<str>> {
        let name = self.files.is_valid(at).then(|| self.files.value(at));
        let name = required(name, self.file, "inventories.inventory_file", at)?;
        if let Some(known) = self.names.get(name) {
            return Ok(known.clone());
        }
        check_name(self.file, name)?;
        let name: Arc<str> = name.into();
        self.names.insert(name.clone());
        Ok(name)
    }
}
