//! Nodes of the hierarchy: groups, arrays and tables, with where their references and rows are kept.

use std::sync::Arc;

use chunkyard_array::ArraySpec;
use chunkyard_store::{Error, Noun, Result, Uid};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::array_metadata::ArrayMetadata;
use super::parquet_file::Tail;
use super::table::TableSpec;

/// A group, an array or a table of one snapshot.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Node {
    /// Handle used by manifests; unique within the snapshot, never reused within a lineage.
    pub id: u32,
    /// Identity, stable across branches, rebases and renames.
    pub uid: Uid,
    /// Absolute path; `/` is the root group.
    pub path: String,
    /// Group, array or table.
    pub kind: NodeKind,
    /// User attributes.
    pub attributes: Attributes,
    /// Where the references or rows are, oldest run first; later entries override earlier ones.
    pub inventories: Vec<Inventory>,
    /// Live references of an array. Of a table no less than its rows: a row that several runs hold may
    /// count several times until all are merged.
    pub refs_count: u64,
}

/// What a node is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum NodeKind {
    /// A group, with the keys of its Zarr document that the columns cannot hold.
    Group {
        /// Usually empty.
        extra: Map<String, Value>,
    },
    /// An array.
    Array(ArrayMetadata),
    /// A table.
    Table(Arc<TableSpec>),
}

/// User attributes, in place or in an attributes file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Attributes {
    /// In the structure file.
    Inline(Arc<Map<String, Value>>),
    /// In an attributes file.
    File(AttributesRef),
}

/// A document of an attributes file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttributesRef {
    /// Name under `a/`.
    pub file: Arc<str>,
    /// Row of the document.
    pub row: u64,
    /// Bit 0: several nodes share the document.
    pub flags: u32,
    /// CRC-32C of the whole file, where known.
    pub file_crc32c: Option<u32>,
}

/// A piece of a manifest that holds references of one array.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Inventory {
    /// Name under `i/`.
    pub file: Arc<str>,
    /// The array's first row in that file.
    pub row: u64,
    /// How many consecutive rows belong to the array; unknown in files of the bare draft.
    pub rows: Option<u64>,
    /// Bounding box of the chunk indices in those rows, half-open per dimension.
    pub extent: Vec<(u64, u64)>,
    /// See the associated constants.
    pub flags: u32,
    /// Size of the file.
    pub file_size: Option<u64>,
    /// Size and checksum of the file's tail.
    pub tail: Option<Tail>,
    /// First coordinate, encoded.
    pub coord_min: Option<Vec<u8>>,
    /// Last coordinate, encoded.
    pub coord_max: Option<Vec<u8>>,
}

impl Inventory {
    /// May override earlier entries.
    pub const OVERRIDES: u32 = 1;
    /// Contains removals.
    pub const REMOVALS: u32 = 1 << 1;
    /// Contains inline data.
    pub const INLINE: u32 = 1 << 2;
    /// Contains virtual references.
    pub const VIRTUAL: u32 = 1 << 3;
    /// Belongs to the same run as the entry before it.
    pub const CONTINUES: u32 = 1 << 4;

    /// The merge level, bits 8 to 15.
    pub fn level(&self) -> u32 {
        self.flags >> 8 & 0xff
    }

    /// The bits for a merge level.
    pub fn level_bits(level: u32) -> u32 {
        level.min(0xff) << 8
    }

    /// Whether the entry can hold this coordinate.
    pub fn may_hold(&self, coord: &[u8], index: Option<&[u64]>) -> bool {
        if self.coord_min.as_deref().is_some_and(|min| coord < min)
            || self.coord_max.as_deref().is_some_and(|max| coord > max)
        {
            return false;
        }
        match index {
            Some(index) if index.len() == self.extent.len() => self
                .extent
                .iter()
                .zip(index)
                .all(|(&(low, high), &component)| (low..high).contains(&component)),
            _ => true,
        }
    }
}

impl Node {
    /// A fresh group.
    pub fn group(id: u32, path: &str) -> Result<Self> {
        Self::new(id, path, NodeKind::Group { extra: Map::new() }, Map::new())
    }

    /// A fresh node of any kind.
    pub fn new(
        id: u32,
        path: &str,
        kind: NodeKind,
        attributes: Map<String, Value>,
    ) -> Result<Self> {
        Ok(Self {
            id,
            uid: Uid::fresh()?,
            path: path.to_owned(),
            kind,
            attributes: Attributes::Inline(Arc::new(attributes)),
            inventories: Vec::new(),
            refs_count: 0,
        })
    }

    /// The array's specification, parsed when it is first asked for; an error for groups.
    pub fn array(&self) -> Result<&Arc<ArraySpec>> {
        match &self.kind {
            NodeKind::Array(metadata) => metadata.spec(&self.path),
            _ => Err(Error::NotFound {
                what: Noun::Array,
                name: format!("{} (it is {})", self.path, self.with_article()),
            }),
        }
    }

    /// What the table is; an error for groups and arrays.
    pub fn table(&self) -> Result<&Arc<TableSpec>> {
        match &self.kind {
            NodeKind::Table(spec) => Ok(spec),
            _ => Err(Error::NotFound {
                what: Noun::Table,
                name: format!("{} (it is {})", self.path, self.with_article()),
            }),
        }
    }

    /// Whether it is a group.
    pub fn is_group(&self) -> bool {
        matches!(self.kind, NodeKind::Group { .. })
    }

    /// Whether it is a table.
    pub fn is_table(&self) -> bool {
        matches!(self.kind, NodeKind::Table(_))
    }

    /// Whether it is an array.
    pub fn is_array(&self) -> bool {
        matches!(self.kind, NodeKind::Array(_))
    }

    /// `array`, `group` or `table`.
    pub fn type_name(&self) -> &'static str {
        match self.kind {
            NodeKind::Group { .. } => "group",
            NodeKind::Array(_) => "array",
            NodeKind::Table(_) => "table",
        }
    }

    /// What it is, in a sentence.
    pub(crate) fn with_article(&self) -> &'static str {
        match self.kind {
            NodeKind::Group { .. } => "a group",
            NodeKind::Array(_) => "an array",
            NodeKind::Table(_) => "a table",
        }
    }

    /// What errors call it.
    pub fn noun(&self) -> Noun {
        match self.kind {
            NodeKind::Group { .. } => Noun::Group,
            NodeKind::Array(_) => Noun::Array,
            NodeKind::Table(_) => Noun::Table,
        }
    }
}
