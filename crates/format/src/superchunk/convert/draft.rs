//! Plans which BLZ datasets a dataset of the one model becomes, before anything is written.
//!
//! ```text
//!  an array at the root                          a BLZ array
//!  arrays of one length, in any groups           a BLZ table: groups are structs in its rows
//!  anything else                                 a tree of BLZ arrays
//! ```
//!
//! A table has no place for attributes of its groups, nor for names that no directory can have: a dataset
//! with any of those becomes a tree. An array without dimensions is one row, marked as `scalar`.

use std::collections::BTreeMap;

use bytes::Bytes;
use chunkyard_array::{Attributes, fill_element};
use chunkyard_store::{Error, Noun, Result, Version};

use super::express;
use super::pack_writer::id_within;
use super::tree::{HIERARCHY, Hierarchy, folder_of};
use crate::superchunk::create::{Creation, Document, Wish};
use crate::superchunk::dtype::{self, Field, RowType};
use crate::superchunk::meta::{self, Shards, Sizes};
use crate::superchunk::model::{Column, Style};
use crate::superchunk::names;
use crate::superchunk::read::directory::{self, Directory, ROOT_DIRS, SIZES, STORAGE};
use crate::{ArrayNode, Dataset, Node};

/// What will be written.
#[derive(Debug, Clone)]
pub(crate) struct Draft {
    pub(crate) style: Style,
    pub(crate) members: Vec<DraftMember>,
    /// The list of a tree.
    pub(crate) hierarchy: Option<Hierarchy>,
}

/// A dataset that will be written.
#[derive(Debug, Clone)]
pub(crate) struct DraftMember {
    /// Where it is in the tree.
    pub(crate) path: String,
    /// Its folder, with a slash at the end; empty if it is not part of a tree.
    pub(crate) folder: String,
    pub(crate) len: u64,
    /// Its columns, as a reader will find them.
    pub(crate) columns: Vec<Column>,
    /// Its meta files; the last one makes it a dataset.
    documents: Vec<(String, Document)>,
    creation: Creation,
}

impl Draft {
    /// The datasets that an expressed dataset becomes.
    pub(crate) fn new(dataset: &Dataset, style: Style) -> Result<Self> {
        if let Some(Node::Array(array)) = dataset.nodes.get("/") {
            let only = DraftMember::of_array("/", String::new(), array, style)?;
            return Ok(Self { style, members: vec![only], hierarchy: None });
        }
        if let Some(table) = table(dataset, style)? {
            return Ok(Self { style, members: vec![table], hierarchy: None });
        }
        let mut members = Vec::new();
        for (path, array) in dataset.arrays() {
            let member = DraftMember::of_array(path, folder_of(path), array, style);
            members.push(member.map_err(|error| Error::for_array(path, error))?);
        }
        let groups = dataset.groups();
        let groups = groups.map(|(path, group)| (path.to_owned(), group.plain_attributes()));
        let arrays = members.iter().map(|member| member.path.clone()).collect();
        let hierarchy = Some(Hierarchy::new(groups.collect(), arrays));
        Ok(Self { style, members, hierarchy })
    }
}

impl DraftMember {
    fn of_array(path: &str, folder: String, array: &ArrayNode, style: Style) -> Result<Self> {
        let (len, row_shape) = rows(array);
        let mut creation = Creation::new(express::row_type(&array.spec)?, row_shape);
        creation.style = style;
        creation.expected_len = len;
        creation.attributes = array.spec.plain_attributes();
        creation.wish = wish(array, Attributes::new())?;
        Self::of(path, folder, len, creation)
    }

    /// Reports errors now and not only when it is written.
    fn of(path: &str, folder: String, len: u64, creation: Creation) -> Result<Self> {
        let documents = creation.documents()?;
        let columns = columns(&creation, &documents)?;
        Ok(Self { path: path.to_owned(), folder, len, columns, documents, creation })
    }

    /// Its meta files, with an id of the whole that tells it from other datasets. `stored` gives the encoded bytes
    /// of a column.
    pub(crate) fn files(
        &self,
        id: Option<&str>,
        stored: impl Fn(&Column) -> u64,
    ) -> Vec<(String, Bytes)> {
        let id = id.map(|id| id_within(id, &self.path));
        let rendered = |(path, document): &(String, Document)| {
            let bytes = match (document, path.strip_suffix("/sizes")) {
                (Document::Sizes(drafted), Some(folder)) => {
                    let own = |column: &&Column| {
                        folder == "meta" || column.meta.as_deref() == Some(folder)
                    };
                    let own: Vec<&Column> = self.columns.iter().filter(own).collect();
                    let id = id.clone().filter(|_| drafted.sealed);
                    let drafted = Sizes { id, ..drafted.clone() };
                    Document::Sizes(self.sizes(drafted, &own, &stored)).render()
                }
                _ => document.render(),
            };
            (format!("{}{path}", self.folder), bytes)
        };
        self.documents.iter().map(rendered).collect()
    }

    fn sizes(&self, drafted: Sizes, columns: &[&Column], stored: impl Fn(&Column) -> u64) -> Sizes {
        let row = columns.iter().fold(0u64, |sum, column| sum.saturating_add(column.row_bytes()));
        let cbytes = columns.iter().fold(0u64, |sum, column| sum.saturating_add(stored(column)));
        let mut sizes = Sizes { nbytes: self.len.saturating_mul(row), cbytes, ..drafted };
        if let Some(first) = sizes.shape.first_mut() {
            *first = self.len;
        }
        sizes
    }

    /// What a reader would find if the meta files were written.
    pub(crate) fn directory(&self) -> Directory {
        let columns = self.columns.clone();
        let shape: Vec<u64> =
            [self.len].into_iter().chain(self.creation.row_shape.iter().copied()).collect();
        let all: Vec<&Column> = columns.iter().collect();
        let sizes = self.sizes(Sizes { shape, ..Sizes::default() }, &all, |_| 0);
        Directory {
            style: self.creation.style,
            table: matches!(self.creation.row, RowType::Struct(_)),
            cbytes: vec![0; columns.len()],
            columns,
            sizes,
            version: Version { etag: None, version: None },
            storage: None,
            attributes: self.creation.attributes.clone(),
            shards: Shards::default(),
            journal: None,
            cautions: Vec::new(),
        }
    }
}

/// The columns of a new dataset, as a reader will find them.
fn columns(creation: &Creation, documents: &[(String, Document)]) -> Result<Vec<Column>> {
    let storage = |path: String| {
        let found = documents.iter().find_map(|(at, document)| match document {
            Document::Storage(storage) if *at == path => Some(storage),
            _ => None,
        });
        found.ok_or_else(|| Error::NotFound { what: Noun::MetaFile, name: path.clone() })
    };
    match (&creation.row, creation.style) {
        (RowType::Struct(fields), Style::Bcolz) => {
            let column = |field: &Field| {
                let own = storage(format!("{}/{STORAGE}", field.name))?;
                directory::bcolz_column(&field.name, &field.name, &field.shape, own)
            };
            fields.iter().map(column).collect()
        }
        (row, _) => {
            let storage = storage(STORAGE.to_owned())?;
            let apart = matches!(row, RowType::Struct(_));
            directory::columns(row.clone(), &creation.row_shape, storage, apart)
        }
    }
}

/// The number of rows of an array, and their shape. An array without dimensions is one row.
fn rows(array: &ArrayNode) -> (u64, &[u64]) {
    match array.spec.shape().split_first() {
        Some((len, row)) => (*len, row),
        None => (1, &[]),
    }
}

/// What an expressed array asks of its column.
fn wish(array: &ArrayNode, attributes: Attributes) -> Result<Wish> {
    let (spec, row) = (&array.spec, express::row_type(&array.spec)?);
    let chunklen = spec.chunk_shape().and_then(|chunk| chunk.first()).copied().unwrap_or(1).max(1);
    let file = array.sharding.as_ref().and_then(|sharding| sharding.shard_shape.first());
    let element = fill_element(&spec.dtype()?, &spec.metadata().fill_value)?;
    let element = Column::stored_element(&row, &element);
    let default = meta::default_value(&element, &row)?;
    if meta::default_element(&default, &row, &[])? != element {
        return Err(Error::unsupported("a fill value that JSON has no number for, in BLZ"));
    }
    Ok(Wish {
        chunklen: Some(chunklen),
        superchunk: Some(file.map_or(1, |len| len / chunklen).max(1)),
        compression: Some(express::compression(spec, dtype::typesize(&row))?),
        default: Some(default),
        attributes,
        dimension_names: spec.dimension_names().map(<[_]>::to_vec),
        scalar: spec.shape().is_empty(),
    })
}

/// The table that a dataset is, if it can be one.
fn table(dataset: &Dataset, style: Style) -> Result<Option<DraftMember>> {
    let plain =
        |path: &str| path.trim_matches('/').split('/').all(|name| names::field_dir(name) == name);
    let mut len = None;
    for (path, array) in dataset.arrays() {
        let Some(rows) = array.spec.shape().first() else { return Ok(None) };
        let nested = path.trim_matches('/').contains('/');
        if *len.get_or_insert(*rows) != *rows || !plain(path) || (nested && style == Style::Bcolz) {
            return Ok(None);
        }
    }
    let Some(len) = len else { return Ok(None) };
    let (mut attributes, mut fields) = (Attributes::new(), Vec::new());
    for (path, group) in dataset.groups() {
        if path == "/" {
            attributes = group.plain_attributes();
            continue;
        }
        let below = format!("{path}/");
        let used = dataset.arrays().any(|(array, _)| array.starts_with(&below));
        if !used || !group.attributes().is_empty() {
            return Ok(None);
        }
    }
    let mut columns = BTreeMap::new();
    for (path, array) in dataset.arrays() {
        let (key, row) = (path.trim_matches('/'), express::row_type(&array.spec)?);
        add_field(&mut fields, key, row, rows(array).1);
        let own = wish(array, array.spec.plain_attributes());
        columns.insert(key.to_owned(), own.map_err(|error| Error::for_array(path, error))?);
    }
    let row = RowType::Struct(fields);
    if dtype::parse(&dtype::render(&row)?).is_err() {
        // The size of a table's row must also fit what NumPy can have.
        return Ok(None);
    }
    let mut creation = Creation::new(row, &[]);
    creation.style = style;
    creation.expected_len = len;
    (creation.attributes, creation.columns) = (attributes, columns);
    DraftMember::of("/", String::new(), len, creation).map(Some)
}

/// Adds a column to the fields of a struct, below the structs that its path names.
fn add_field(fields: &mut Vec<Field>, key: &str, kind: RowType, shape: &[u64]) {
    let Some((first, rest)) = key.split_once('/') else {
        fields.push(Field { name: key.to_owned(), kind, shape: shape.to_vec() });
        return;
    };
    let at = fields.iter().position(|field| field.name == first).unwrap_or_else(|| {
        let kind = RowType::Struct(Vec::new());
        fields.push(Field { name: first.to_owned(), kind, shape: Vec::new() });
        fields.len() - 1
    });
    if let Some(Field { kind: RowType::Struct(inner), .. }) = fields.get_mut(at) {
        add_field(inner, rest, kind, shape);
    }
}

/// Files that make a directory a dataset, or a tree of them.
pub(crate) const COMMITS: &[&str] = &[HIERARCHY, ROOT_DIRS, SIZES];
