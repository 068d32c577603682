//! Creates a new dataset.

mod document;
pub(crate) mod words;

use std::collections::BTreeMap;

use bytes::Bytes;
use chunkyard_array::Attributes;
use chunkyard_array::codec::blosc::{Compressor, Params, Shuffle};
use chunkyard_store::atomic::{AnyObject, Content, SameBytes, Step};
use chunkyard_store::{Digest, Error, Kind, Noun, Result, Store, Uid};
use serde_json::{Value, json};

pub(crate) use self::document::Document;
use crate::Place;
use crate::superchunk::bloscpack::CHUNK_BYTES_MAX;
use crate::superchunk::chunklen::{self, Base};
use crate::superchunk::dtype::{self, Field, RowType};
use crate::superchunk::handle::{Blz, BlzOptions};
use crate::superchunk::meta::{self, CParams, ColumnStorage, RootDirs, Sizes, Storage};
use crate::superchunk::model::Style;
use crate::superchunk::names;
use crate::superchunk::protocol::Protocol;
use crate::superchunk::read::directory::{
    ATTRIBUTES, COLUMN_ATTRIBUTES, DIMENSION_NAMES, FORMAT, OLD_ATTRIBUTES, ROOT_DIRS, SCALAR,
    SIZES, STORAGE, UNTRIED,
};

/// Describes a new dataset.
#[derive(Debug, Clone)]
pub struct Creation {
    /// How it is laid out.
    pub style: Style,
    /// Type of its rows; a struct makes it a table.
    pub row: RowType,
    /// Shape of a row, if it is not a table.
    pub row_shape: Vec<u64>,
    /// About how many rows it will have.
    pub expected_len: u64,
    /// Attributes.
    pub attributes: Attributes,
    /// The digest behind each chunk.
    pub digest: Digest,
    /// Spare bytes in each chunk, so that it can be changed in place.
    pub slack: u64,
    /// The wish for all columns that have none of their own.
    pub wish: Wish,
    /// Wishes for single columns, by name; names of nested fields are joined by slashes.
    pub columns: BTreeMap<String, Wish>,
    /// Tells it from other datasets, in a style whose files can hold it.
    pub(crate) id: Option<String>,
}

/// What the caller may ask for in a column. The rest is chosen.
#[derive(Debug, Clone, Default)]
pub struct Wish {
    /// Rows of a chunk.
    pub chunklen: Option<u64>,
    /// Chunks of a file.
    pub superchunk: Option<u64>,
    /// How chunks are compressed; if missing, a trial on the first chunk decides.
    pub compression: Option<Compression>,
    /// The default row, as `meta/storage` spells it; zeros if missing.
    pub default: Option<Value>,
    /// Attributes of a column of a table.
    pub attributes: Attributes,
    /// Names of dimensions.
    pub dimension_names: Option<Vec<Option<String>>>,
    /// Whether its one row stands for an array without dimensions.
    pub scalar: bool,
}

/// How chunks are compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Compression {
    /// The codec.
    pub compressor: Compressor,
    /// How hard, 0 to 9.
    pub level: u8,
    /// The shuffle before compression.
    pub shuffle: Shuffle,
    /// Bytes of a block; 0 leaves it to Blosc.
    pub block_bytes: usize,
}

impl Creation {
    /// A dataset of this type; everything else is chosen.
    pub fn new(row: RowType, row_shape: &[u64]) -> Self {
        Self {
            style: Style::Superchunk,
            row,
            row_shape: row_shape.to_vec(),
            expected_len: 1000,
            attributes: Attributes::new(),
            digest: Digest::Adler32,
            slack: 0,
            wish: Wish::default(),
            columns: BTreeMap::new(),
            id: None,
        }
    }

    fn wish_of(&self, key: &str) -> &Wish {
        self.columns.get(key).unwrap_or(&self.wish)
    }

    /// The entry for a column in `meta/storage`.
    fn column(&self, key: &str, row: &RowType, shape: &[u64]) -> Result<ColumnStorage> {
        let wish = self.wish_of(key);
        let items = shape.iter().fold(1u64, |items, extent| items.saturating_mul(*extent));
        let row_bytes = dtype::item_bytes(row).saturating_mul(items);
        let limit = u64::from(CHUNK_BYTES_MAX);
        if row_bytes == 0 || row_bytes > limit {
            return Err(Error::invalid(format!(
                "{}rows of {row_bytes} bytes; Blosc takes 1 to {limit}",
                of_column(key)
            )));
        }
        let base = match self.style {
            Style::Document => Base::Blz,
            Style::Superchunk | Style::Bcolz => Base::Bcolz,
        };
        let chosen = chunklen::chunklen(self.expected_len, row_bytes, base);
        let chunklen = wish.chunklen.unwrap_or(chosen);
        let chunk_bytes =
            chunklen.checked_mul(row_bytes).filter(|bytes| (1..=limit).contains(bytes));
        let Some(chunk_bytes) = chunk_bytes else {
            return Err(Error::invalid(format!(
                "{}chunks of {chunklen} rows of {row_bytes} bytes; Blosc takes 1 to {limit} bytes",
                of_column(key)
            )));
        };
        let expected_bytes = self.expected_len.saturating_mul(row_bytes);
        let per_file = match self.style {
            Style::Bcolz => 1,
            _ => {
                wish.superchunk.unwrap_or_else(|| chunklen::superchunk(expected_bytes, chunk_bytes))
            }
        };
        if per_file == 0 {
            return Err(Error::invalid(format!("{}files of 0 chunks", of_column(key))));
        }
        let dflt = match &wish.default {
            Some(value) => value.clone(),
            None => meta::default_value(&vec![0; dtype::item_bytes(row) as usize], row)?,
        };
        meta::default_element(&dflt, row, shape)?;
        let mut other = Attributes::new();
        if !wish.attributes.is_empty() {
            other.insert(COLUMN_ATTRIBUTES.into(), Value::Object(wish.attributes.clone()));
        }
        if let Some(names) = &wish.dimension_names {
            other.insert(DIMENSION_NAMES.into(), json!(names));
        }
        if wish.scalar {
            other.insert(SCALAR.into(), Value::Bool(true));
        }
        if wish.compression.is_none() && self.style == Style::Superchunk {
            other.insert(UNTRIED.into(), Value::Bool(true));
        }
        let cparams = wish.compression.as_ref().map(cparams_of).unwrap_or_default();
        Ok(ColumnStorage { chunklen, cparams, dflt, superchunk: Some(per_file), other })
    }

    fn storage(&self) -> Result<Storage> {
        let (columns, whole) = match &self.row {
            RowType::Struct(fields) => {
                let mut columns = BTreeMap::new();
                self.add_columns(fields, "", &mut columns)?;
                let first = columns.values().next().cloned();
                let first = first.ok_or_else(|| Error::invalid("a table without columns"))?;
                (Some(columns), first)
            }
            RowType::Plain { .. } => (None, self.column("", &self.row, &self.row_shape)?),
        };
        let ours = self.style == Style::Superchunk;
        Ok(Storage {
            dtype: dtype::render(&self.row)?,
            cparams: whole.cparams,
            chunklen: whole.chunklen,
            dflt: whole.dflt,
            expectedlen: self.expected_len,
            format: ours.then(|| FORMAT.to_owned()),
            superchunk: whole.superchunk,
            checksum: Some(self.digest),
            slack: self.slack,
            columns,
            sealed: true,
            other: whole.other,
            cparams_key: "cparams",
        })
    }

    fn add_columns(
        &self,
        fields: &[Field],
        above: &str,
        columns: &mut BTreeMap<String, ColumnStorage>,
    ) -> Result<()> {
        for field in fields {
            let dir = names::field_dir(&field.name);
            let key = if above.is_empty() { dir } else { format!("{above}/{dir}") };
            match &field.kind {
                RowType::Struct(inner) if field.shape.is_empty() => {
                    self.add_columns(inner, &key, columns)?;
                }
                kind => {
                    let column = self.column(&key, kind, &field.shape)?;
                    if columns.insert(key.clone(), column).is_some() {
                        return Err(Error::invalid(format!("two columns are called {key:?}")));
                    }
                }
            }
        }
        Ok(())
    }

    /// The meta files of a new dataset; the last one makes it a dataset.
    pub(crate) fn documents(&self) -> Result<Vec<(String, Document)>> {
        let mut shape = vec![0];
        shape.extend(&self.row_shape);
        match (&self.row, self.style) {
            (RowType::Struct(fields), Style::Bcolz) => self.bcolz_table(fields),
            (_, style) => {
                let storage = self.storage()?;
                let generation = (style == Style::Superchunk).then_some(1);
                let sealed = style != Style::Bcolz;
                let id = self.id.clone().filter(|_| sealed);
                let sizes = Sizes { shape, generation, id, sealed, ..Sizes::default() };
                meta::refuse_seal(&self.attributes)?;
                // bcolz would show the checksum as an attribute, and never renew it.
                let (path, storage) = match style {
                    Style::Bcolz => (OLD_ATTRIBUTES, bcolz_storage(storage)),
                    _ => (ATTRIBUTES, storage),
                };
                let attributes =
                    Document::Attributes { attributes: self.attributes.clone(), sealed };
                Ok(vec![
                    (path.to_owned(), attributes),
                    (STORAGE.to_owned(), Document::Storage(storage)),
                    (SIZES.to_owned(), Document::Sizes(sizes)),
                ])
            }
        }
    }

    /// Each column is a dataset of its own, and a list of them makes the table.
    fn bcolz_table(&self, fields: &[Field]) -> Result<Vec<(String, Document)>> {
        let mut files = Vec::new();
        let mut listed = Vec::new();
        for field in fields {
            if let RowType::Struct(_) = field.kind {
                return Err(Error::unsupported(format!(
                    "the column {:?}, which is a struct, in the style of bcolz",
                    field.name
                )));
            }
            if names::field_dir(&field.name) != field.name {
                return Err(Error::invalid(format!(
                    "{:?} is no name of a directory, as bcolz needs it",
                    field.name
                )));
            }
            let column = Self {
                row: field.kind.clone(),
                row_shape: field.shape.clone(),
                attributes: self.wish_of(&field.name).attributes.clone(),
                wish: self.wish_of(&field.name).clone(),
                columns: BTreeMap::new(),
                ..self.clone()
            };
            let own = column.documents()?.into_iter();
            files.extend(own.map(|(path, document)| (format!("{}/{path}", field.name), document)));
            listed.push(field.name.clone());
        }
        let attributes = self.attributes.clone();
        let attributes = Document::Attributes { attributes, sealed: false };
        files.push((OLD_ATTRIBUTES.to_owned(), attributes));
        let dirs = RootDirs { names: listed, dirs: None };
        files.push((ROOT_DIRS.to_owned(), Document::RootDirs(dirs)));
        Ok(files)
    }
}

/// The column's name as the beginning of a message; empty where columns have no names.
fn of_column(key: &str) -> String {
    match key {
        "" => String::new(),
        key => format!("column {key:?}: "),
    }
}

/// The compression as `meta/storage` spells it.
pub(crate) fn cparams_of(compression: &Compression) -> CParams {
    CParams {
        clevel: compression.level,
        shuffle: match compression.shuffle {
            Shuffle::None => 0,
            Shuffle::Byte => 1,
            Shuffle::Bit => 2,
        },
        cname: Some(compression.compressor.name().to_owned()),
        blocksize: Some(compression.block_bytes as u64).filter(|bytes| *bytes > 0),
        ..CParams::default()
    }
}

impl From<Params> for Compression {
    fn from(params: Params) -> Self {
        let Params { compressor, level, shuffle, block_bytes, .. } = params;
        Self { compressor, level, shuffle, block_bytes }
    }
}

/// The keys that bcolz expects, and our keys that it ignores and no other file holds.
fn bcolz_storage(storage: Storage) -> Storage {
    let cparams = CParams {
        cname: Some(storage.cparams.cname.clone().unwrap_or_else(|| "blosclz".into())),
        quantize: Some(0),
        blocksize: None,
        ..storage.cparams
    };
    let kept = |key: &String| key == DIMENSION_NAMES || key == SCALAR;
    let other = storage.other.into_iter().filter(|(key, _)| kept(key)).collect();
    Storage { cparams, superchunk: None, checksum: None, sealed: false, other, ..storage }
}

impl Blz {
    /// Creates an empty dataset. Refuses a place that is not empty.
    pub async fn create(place: &Place, creation: &Creation, options: BlzOptions) -> Result<Self> {
        let store = place.directory();
        if store.kind() == Kind::ReadOnly {
            return Err(Error::unsupported(format!("writing to {}, a web server", store.url())));
        }
        let exists = || Error::AlreadyExists { what: Noun::Occupant, name: place.url().to_owned() };
        let mut creation = creation.clone();
        creation.id.get_or_insert(Uid::fresh()?.to_string());
        let documents = creation.documents()?.into_iter();
        let mut files: Vec<(String, Bytes)> =
            documents.map(|(path, document)| (path, document.render())).collect();
        if place.is_object().await? || !is_free(store, &files).await? {
            return Err(exists());
        }
        let Some((last, bytes)) = files.pop() else { return Err(exists()) };
        crate::publish::publish(store, files).await?;
        match publish_new(store, &last, bytes, creation.style != Style::Bcolz).await? {
            true => Self::open(place, options).await,
            false => Err(exists()),
        }
    }

    /// Deletes a dataset that was just created and has no committed rows, and drops the rows of this handle.
    /// `false` if it stays: another writer has added rows, or it is in an object store, which cannot delete an
    /// object only if it is unchanged.
    pub async fn take_back(self, place: &Place) -> Result<bool> {
        let mut writing = self.shared.writing.lock().await;
        writing.abandon();
        let store = &self.shared.access.store;
        if self.shared.access.protocol == Protocol::Claimed {
            return Ok(false);
        }
        let lock = writing.committed().lock().await?;
        writing.reread().await?;
        let committed = writing.committed();
        if committed.len() > 0 {
            return Ok(false);
        }
        // The files that make it a dataset go first.
        let commits: Vec<String> =
            [ROOT_DIRS.to_owned()].into_iter().chain(committed.sizes_paths()).collect();
        store.delete(&commits).await?;
        store.delete(&[OLD_ATTRIBUTES.to_owned()]).await?;
        let own = committed.columns.iter().filter_map(|column| column.meta.as_deref());
        let own = own.filter_map(|meta| meta.strip_suffix("/meta"));
        for folder in own.chain(["meta", "data"]) {
            store.delete_dir(folder).await?;
        }
        drop(lock);
        let left = store.list_dir("").await?;
        if let (true, true, Some((parent, name))) =
            (left.objects.is_empty(), left.dirs.is_empty(), place.object())
        {
            parent.delete_dir(name).await?;
        }
        Ok(true)
    }
}

/// Whether the place is empty, or has only files of a process that died while it created a dataset.
async fn is_free(store: &Store, files: &[(String, Bytes)]) -> Result<bool> {
    let last = files.last().map(|(path, _)| path.as_str());
    let is_begun = |path: &str| {
        let name = path.rsplit('/').next().unwrap_or(path);
        name.starts_with(names::TEMP)
            || (Some(path) != last && files.iter().any(|(known, _)| known == path))
    };
    let is_folder = |dir: &str| {
        let inside = format!("{}/", dir.trim_end_matches('/'));
        files.iter().any(|(path, _)| path.starts_with(&inside))
    };
    let mut folders = vec![String::new()];
    while let Some(folder) = folders.pop() {
        let found = store.list_dir(&folder).await?;
        let free = found.objects.iter().all(|meta| is_begun(&meta.path));
        if !free || !found.dirs.iter().all(|dir| is_folder(dir)) {
            return Ok(false);
        }
        folders.extend(found.dirs);
    }
    Ok(true)
}

/// Creates a file; `false` if it exists already. Durable when this returns. Only a file with an identity of
/// its own is known again after a lost reply.
async fn publish_new(store: &Store, path: &str, bytes: Bytes, is_unique: bool) -> Result<bool> {
    let (folder, _) = path.rsplit_once('/').unwrap_or(("", path));
    let slash = if folder.is_empty() { "" } else { "/" };
    let temp = format!("{folder}{slash}{}{}", names::TEMP, Uid::fresh()?);
    let content = Content::Parts(vec![bytes.clone()]);
    let what = || format!("creating {path} in {}", store.url());
    if is_unique {
        let witness = SameBytes { store, path, expected: None, bytes: &bytes };
        let created = Step::new(store, path, witness).create(content, &temp).await?;
        return Ok(created.known(what)?.is_some());
    }
    let created = Step::new(store, path, AnyObject { store, path }).create(content, &temp).await?;
    Ok(created.known(what)?.is_some())
}
