//! Reads the meta files of a dataset: which layout it has, its columns, and how long they are.
//!
//! ```text
//!  meta/storage, meta/sizes, data/__1__.bin     the document's, and ours      Superchunk, Document
//!  the same with data/__0.blp                   BLZ 0.6 and bcolz, an array   Bcolz
//!  __rootdirs__, <column>/meta, <column>/data   BLZ 0.6 and bcolz, a table    Bcolz
//! ```

use bytes::Bytes;
use chunkyard_array::Attributes;
use chunkyard_array::codec::blosc::{Compressor, Params, Shuffle};
use chunkyard_store::{Digest, Error, ErrorKind, Noun, Object, Result, Store, Version};
use futures::{StreamExt, TryStreamExt, stream};
use serde_json::Value;

use crate::superchunk::bloscpack::CHUNK_BYTES_MAX;
use crate::superchunk::corrupt;
use crate::superchunk::dtype::{self, Field, RowType};
use crate::superchunk::meta::{self, CParams, ColumnStorage, RootDirs, Shards, Sizes, Storage};
use crate::superchunk::model::{Column, Style};
use crate::superchunk::names::{self, Style as NameStyle};
use crate::superchunk::roots::Rooted;
use crate::superchunk::write::journal::{self, Journal};

/// The name of our own layout in `meta/storage`.
pub(crate) const FORMAT: &str = "blz-superchunk/1";
pub(crate) const SIZES: &str = "meta/sizes";
pub(crate) const STORAGE: &str = "meta/storage";
pub(crate) const ATTRIBUTES: &str = "meta/attributes";
pub(crate) const SHARDS: &str = "meta/shards";
pub(crate) const LOCK: &str = "meta/lock";
pub(crate) const ROOT_DIRS: &str = "__rootdirs__";
pub(crate) const OLD_ATTRIBUTES: &str = "__attrs__";
/// Our own keys in `meta/storage`, which the document does not have.
pub(crate) const DIMENSION_NAMES: &str = "dimension_names";
pub(crate) const COLUMN_ATTRIBUTES: &str = "attributes";
/// The key in the metadata of a file that names its dataset.
pub(crate) const DATASET: &str = "dataset";
/// The same for the column.
pub(crate) const COLUMN: &str = "column";
/// The dataset has one row, which is an array without dimensions.
pub(crate) const SCALAR: &str = "scalar";
/// Beside `cparams`: which codec is best has not been tried yet.
pub(crate) const UNTRIED: &str = "untried";

/// Columns whose meta files are read at the same time.
const READS: usize = 16;

/// A dataset as its meta files describe it.
#[derive(Debug, Clone)]
pub(crate) struct Directory {
    pub(crate) style: Style,
    /// Whether it is a table.
    pub(crate) table: bool,
    pub(crate) columns: Vec<Column>,
    pub(crate) sizes: Sizes,
    /// Encoded bytes of each column; where only their sum is known, it is in the first.
    pub(crate) cbytes: Vec<i64>,
    /// The state of `meta/sizes`.
    pub(crate) version: Version,
    pub(crate) storage: Option<Storage>,
    pub(crate) attributes: Attributes,
    pub(crate) shards: Shards,
    /// Chunks that count and may not be in their files yet.
    pub(crate) journal: Option<Journal>,
    /// Warnings for the reader.
    pub(crate) cautions: Vec<String>,
}

/// Reads the dataset in a store; `None` if there is none.
pub(crate) async fn read(store: &Store) -> Result<Option<Directory>> {
    if let Some(object) = get(store, ROOT_DIRS).await? {
        let dirs = RootDirs::parse(ROOT_DIRS, &object.bytes)?;
        return read_table(store, &dirs).await.map(Some);
    }
    let (Some(storage), Some(sizes)) = (get(store, STORAGE).await?, get(store, SIZES).await?)
    else {
        return Ok(None);
    };
    let version = Version::from(&sizes.meta);
    let storage = Storage::parse(STORAGE, &storage.bytes)?;
    let sizes = Sizes::parse(SIZES, &sizes.bytes)?;
    let attributes = read_attributes(store, storage.sealed).await?;
    describe(store, storage, sizes, version, attributes).await.map(Some)
}

/// The attributes of a dataset. Either all of its meta files have a checksum or none has: if damage hides the
/// checksum of a file, the file counts as damaged.
pub(crate) async fn read_attributes(store: &Store, sealed: bool) -> Result<Attributes> {
    let Some(object) = get(store, ATTRIBUTES).await? else {
        return match sealed {
            true => Err(corrupt(ATTRIBUTES, "the file", "there", "none")),
            false => read_old_attributes(store, "").await,
        };
    };
    let (attributes, found) = meta::parse_sealed_attributes(ATTRIBUTES, &object.bytes)?;
    match (sealed, found) {
        (true, false) => Err(meta::unsealed(ATTRIBUTES)),
        (false, true) => Err(meta::unsealed(STORAGE)),
        _ => Ok(attributes),
    }
}

/// Like [`read`], where `meta/sizes` may be missing or damaged: then the shape of a row comes from the
/// first file.
pub(crate) async fn read_as(
    store: &Store,
    said: Option<Sizes>,
    attributes: Attributes,
) -> Result<Option<Directory>> {
    if let Some(object) = get(store, ROOT_DIRS).await? {
        let dirs = RootDirs::parse(ROOT_DIRS, &object.bytes)?;
        return read_table(store, &dirs).await.map(Some);
    }
    let Some(storage) = get(store, STORAGE).await? else { return Ok(None) };
    let storage = Storage::parse(STORAGE, &storage.bytes)?;
    let sizes = match said {
        Some(sizes) => sizes,
        None => empty_sizes(store, &storage).await?,
    };
    let version = Version { etag: None, version: None };
    describe(store, storage, sizes, version, attributes).await.map(Some)
}

/// A `meta/sizes` of no rows, where the file is gone: the shape of a row and the id of the dataset come from
/// the first file.
async fn empty_sizes(store: &Store, storage: &Storage) -> Result<Sizes> {
    let row = parse_row(storage)?;
    let folder = match &row {
        RowType::Struct(fields) => {
            leaves(fields, "", "data").first().map(|leaf| leaf.folder.clone())
        }
        RowType::Plain { .. } => None,
    };
    let path = format!("{}/{}", folder.as_deref().unwrap_or("data"), names::superchunk_file(1));
    let metadata = match store.head(&path).await {
        Ok(meta) => {
            let rooted = Rooted { store: store.clone(), path: path.as_str().into(), url: None };
            let (layout, _, _) = super::files::read_head(&rooted, meta.size, true).await?;
            layout.metadata.and_then(|json| serde_json::from_slice::<Value>(&json).ok())
        }
        Err(_) => None,
    };
    let said = |key: &str| metadata.as_ref().and_then(|all| all.get(key));
    let row_shape = match &row {
        RowType::Struct(_) => Some(Vec::new()),
        RowType::Plain { .. } => {
            let shape = said("shape").and_then(|shape| shape.as_array()?.get(1..));
            shape.and_then(|row| row.iter().map(Value::as_u64).collect::<Option<Vec<u64>>>())
        }
    };
    let row_shape = row_shape.ok_or_else(|| {
        Error::unsupported(format!("{SIZES} is gone, and no {path} tells what shape rows have"))
    })?;
    Ok(Sizes {
        shape: [0].into_iter().chain(row_shape).collect(),
        id: said(DATASET).and_then(Value::as_str).map(str::to_owned),
        sealed: storage.sealed,
        ..Sizes::default()
    })
}

/// The type of a row, from `meta/storage`. A text that is not a type is damage; a type that is not supported
/// here is not damage.
fn parse_row(storage: &Storage) -> Result<RowType> {
    dtype::parse(&storage.dtype).map_err(|error| damaged("dtype", error))
}

/// An invalid value in `meta/storage` is damage, not an error of the caller.
fn damaged(key: &str, error: Error) -> Error {
    match error.kind() {
        ErrorKind::Invalid => corrupt(STORAGE, key, "one that a writer writes", error),
        _ => error,
    }
}

async fn describe(
    store: &Store,
    storage: Storage,
    sizes: Sizes,
    version: Version,
    attributes: Attributes,
) -> Result<Directory> {
    match (storage.sealed, sizes.sealed) {
        (true, false) => return Err(meta::unsealed(SIZES)),
        (false, true) => return Err(meta::unsealed(STORAGE)),
        _ => {}
    }
    let row = parse_row(&storage)?;
    let shards = match &sizes.shards {
        Some(shards) => shards.clone(),
        None => read_shards(store).await?.unwrap_or_default(),
    };
    let ours = storage.format.as_deref() == Some(FORMAT);
    if let Some(other) = storage.format.as_deref().filter(|_| !ours) {
        return Err(Error::unsupported(format!(
            "{STORAGE} says {other:?}; this reads {FORMAT:?} and datasets without a format"
        )));
    }
    let columns_apart = match (&row, &storage.columns) {
        (RowType::Plain { .. }, _) => false,
        (_, Some(_)) => true,
        (RowType::Struct(_), None) => !store.list_dir("data").await?.dirs.is_empty(),
    };
    let row_shape = sizes.shape.get(1..).unwrap_or_default();
    let mut columns = columns(row, row_shape, &storage, columns_apart)?;
    for column in &mut columns {
        column.dataset = sizes.id.as_deref().map(Into::into);
    }
    let mut style = Style::Superchunk;
    if !ours {
        for column in &mut columns {
            // In a table that was created here, each column has its own.
            let said = match storage.columns {
                Some(_) => Some(column.superchunk),
                None => storage.superchunk,
            };
            let (found, per_file) = find_style(store, column, said).await?;
            (style, column.superchunk) = (found, per_file);
        }
    }
    let mut cbytes = vec![0; columns.len()];
    if let Some(first) = cbytes.first_mut() {
        *first = i64::try_from(sizes.cbytes).unwrap_or(i64::MAX);
    }
    Ok(Directory {
        style,
        table: columns_apart,
        columns,
        sizes,
        cbytes,
        version,
        storage: Some(storage),
        attributes,
        shards,
        journal: journal::read(store).await?,
        cautions: Vec::new(),
    })
}

/// Reads `meta/shards`, for a dataset whose `meta/sizes` cannot be read or has no list of files elsewhere.
pub(crate) async fn read_shards(store: &Store) -> Result<Option<Shards>> {
    let object = get(store, SHARDS).await?;
    object.map(|object| Shards::parse(SHARDS, &object.bytes)).transpose()
}

/// A table as BLZ 0.6 and bcolz keep it: each column is a dataset of its own.
async fn read_table(store: &Store, dirs: &RootDirs) -> Result<Directory> {
    let found: Vec<(Column, Sizes, Version)> = stream::iter(dirs.names.clone())
        .map(|name| async move {
            let dir = dirs.directory(&name).unwrap_or(&name);
            read_column(store, &name, dir).await
        })
        .buffered(READS)
        .try_collect()
        .await?;
    let len = found.iter().map(|(_, sizes, _)| sizes.shape.first().copied().unwrap_or(0)).min();
    let len = len.unwrap_or(0);
    let longer = found.iter().find(|(_, sizes, _)| sizes.shape.first() > Some(&len));
    let cautions = longer.map(|(column, sizes, _)| {
        format!(
            "columns have different lengths: {} has {:?} rows; only the {len} rows that all of them \
             have are read",
            column.path,
            sizes.shape.first().copied().unwrap_or(0)
        )
    });
    let nbytes = found.iter().map(|(_, sizes, _)| sizes.nbytes).fold(0, u64::saturating_add);
    let cbytes = found.iter().map(|(_, sizes, _)| sizes.cbytes).fold(0, u64::saturating_add);
    let sizes = Sizes { shape: vec![len], nbytes, cbytes, ..Sizes::default() };
    let each = found.iter().map(|(_, sizes, _)| i64::try_from(sizes.cbytes).unwrap_or(i64::MAX));
    Ok(Directory {
        cbytes: each.collect(),
        style: Style::Bcolz,
        table: true,
        sizes,
        version: Version { etag: None, version: None },
        storage: None,
        attributes: read_old_attributes(store, "").await?,
        shards: Shards::default(),
        journal: journal::read(store).await?,
        cautions: cautions.into_iter().collect(),
        columns: found.into_iter().map(|(column, _, _)| column).collect(),
    })
}

async fn read_column(store: &Store, name: &str, dir: &str) -> Result<(Column, Sizes, Version)> {
    let need = |path: String| async move {
        get(store, &path).await?.ok_or_else(|| Error::Corrupt {
            file: ROOT_DIRS.to_owned(),
            what: format!("the column {name:?}"),
            expected: format!("a file {path}"),
            found: "none".to_owned(),
        })
    };
    let (storage_path, sizes_path) = (format!("{dir}/{STORAGE}"), format!("{dir}/{SIZES}"));
    let storage = Storage::parse(&storage_path, &need(storage_path.clone()).await?.bytes)?;
    let sizes = need(sizes_path.clone()).await?;
    let version = Version::from(&sizes.meta);
    let sizes = Sizes::parse(&sizes_path, &sizes.bytes)?;
    let mut column = bcolz_column(name, dir, sizes.shape.get(1..).unwrap_or_default(), &storage)?;
    column.attributes = read_old_attributes(store, &format!("{dir}/")).await?;
    column.superchunk = find_style(store, &column, storage.superchunk).await?.1;
    Ok((column, sizes, version))
}

/// The columns of a dataset, from `meta/storage`: one, or with `apart` one for each field of a struct.
pub(crate) fn columns(
    row: RowType,
    row_shape: &[u64],
    storage: &Storage,
    apart: bool,
) -> Result<Vec<Column>> {
    if let RowType::Struct(fields) = &row
        && apart
    {
        return leaves(fields, "", "data").iter().map(|leaf| leaf.column(storage)).collect();
    }
    let mut column = of_storage("/", "data", row, row_shape.to_vec(), storage)?;
    column.attributes = Attributes::new();
    Ok(vec![check_chunk(column)?])
}

/// A column of a table of BLZ 0.6 or bcolz, from its own `meta/storage`.
pub(crate) fn bcolz_column(
    name: &str,
    dir: &str,
    row_shape: &[u64],
    storage: &Storage,
) -> Result<Column> {
    let (path, row) = (format!("/{}", names::field_dir(name)), parse_row(storage)?);
    let mut column = of_storage(&path, &format!("{dir}/data"), row, row_shape.to_vec(), storage)?;
    column.meta = Some(format!("{dir}/meta"));
    check_chunk(column)
}

/// A field that is not a struct itself: a column.
struct Leaf<'a> {
    /// The names on the way to it, as their directories are called, joined by slashes.
    key: String,
    folder: String,
    field: &'a Field,
}

/// The columns of a struct, nested ones included.
fn leaves<'a>(fields: &'a [Field], above: &str, folder: &str) -> Vec<Leaf<'a>> {
    let mut found = Vec::new();
    for field in fields {
        let dir = names::field_dir(&field.name);
        let key = if above.is_empty() { dir.clone() } else { format!("{above}/{dir}") };
        let folder = format!("{folder}/{dir}");
        match &field.kind {
            RowType::Struct(inner) if field.shape.is_empty() => {
                found.extend(leaves(inner, &key, &folder));
            }
            _ => found.push(Leaf { key, folder, field }),
        }
    }
    found
}

impl Leaf<'_> {
    fn column(&self, storage: &Storage) -> Result<Column> {
        let own = storage.columns.as_ref().and_then(|columns| columns.get(&self.key));
        let (row, shape) = (self.field.kind.clone(), self.field.shape.clone());
        let path = format!("/{}", self.key);
        let mut column = of_storage(&path, &self.folder, row, shape, storage)?;
        if let Some(ColumnStorage { chunklen, cparams, dflt, superchunk, other }) = own {
            column.chunklen = *chunklen;
            column.superchunk = superchunk.unwrap_or(column.superchunk).max(1);
            column.params = params_of(cparams, other, &column.row)?;
            column.default_row = default_row(dflt, &column.row, &column.row_shape)?;
            column.attributes = attributes_of(other);
            column.dimension_names = dimension_names_of(other);
        }
        check_chunk(column)
    }
}

/// A column as `meta/storage` describes it.
fn of_storage(
    path: &str,
    folder: &str,
    row: RowType,
    row_shape: Vec<u64>,
    storage: &Storage,
) -> Result<Column> {
    Ok(Column {
        path: path.into(),
        folder: folder.to_owned(),
        meta: None,
        chunklen: storage.chunklen,
        superchunk: storage.superchunk.unwrap_or(1).max(1),
        params: params_of(&storage.cparams, &storage.other, &row)?,
        digest: storage.checksum.unwrap_or(Digest::None),
        slack: storage.slack,
        // A table has a default for each column.
        default_row: match storage.columns {
            Some(_) => default_row(&Value::Null, &row, &row_shape)?,
            None => default_row(&storage.dflt, &row, &row_shape)?,
        },
        attributes: attributes_of(&storage.other),
        dimension_names: dimension_names_of(&storage.other),
        scalar: storage.other.contains_key(SCALAR) && row_shape.is_empty(),
        dataset: None,
        row,
        row_shape,
    })
}

/// The bytes that default rows repeat: an element, or a whole row.
fn default_row(dflt: &Value, row: &RowType, row_shape: &[u64]) -> Result<Bytes> {
    let element = meta::default_element(dflt, row, row_shape);
    element.map(Bytes::from).map_err(|error| damaged("dflt", error))
}

/// Refuses chunks that are too long for Blosc, before any memory is allocated for one.
fn check_chunk(column: Column) -> Result<Column> {
    let bytes = column.chunk_bytes();
    if bytes > u64::from(CHUNK_BYTES_MAX) {
        let path = &column.path;
        let what = format!("chunklen of {path}");
        let expected = format!("chunks of at most {CHUNK_BYTES_MAX} bytes, as Blosc has them");
        return Err(corrupt(STORAGE, &what, expected, format!("{bytes} bytes")));
    }
    Ok(column)
}

/// How chunks are compressed, from `cparams`; `None` where the trial is still to come.
fn params_of(cparams: &CParams, other: &Attributes, row: &RowType) -> Result<Option<Params>> {
    if other.contains_key(UNTRIED) {
        return Ok(None);
    }
    let compressor = match &cparams.cname {
        Some(name) => {
            let unknown = |error| corrupt(STORAGE, "cname", "a codec of Blosc", error);
            Compressor::parse(name).map_err(unknown)?
        }
        None => Compressor::BloscLz,
    };
    let shuffle = match cparams.shuffle {
        0 => Shuffle::None,
        1 => Shuffle::Byte,
        _ => Shuffle::Bit,
    };
    let block_bytes = cparams.blocksize.unwrap_or(0);
    Ok(Some(Params {
        compressor,
        level: cparams.clevel.min(9),
        shuffle,
        item: dtype::typesize(row),
        block_bytes: usize::try_from(block_bytes).unwrap_or(0),
    }))
}

fn attributes_of(other: &Attributes) -> Attributes {
    match other.get(COLUMN_ATTRIBUTES) {
        Some(Value::Object(attributes)) => attributes.clone(),
        _ => Attributes::new(),
    }
}

fn dimension_names_of(other: &Attributes) -> Option<Vec<Option<String>>> {
    let names = other.get(DIMENSION_NAMES)?.as_array()?;
    Some(names.iter().map(|name| name.as_str().map(str::to_owned)).collect())
}

async fn read_old_attributes(store: &Store, folder: &str) -> Result<Attributes> {
    let path = format!("{folder}{OLD_ATTRIBUTES}");
    match get(store, &path).await? {
        Some(object) => meta::parse_attributes(&path, &object.bytes),
        None => Ok(Attributes::new()),
    }
}

/// Finds out how the files of a column are named and how many chunks each has, where our key is missing.
async fn find_style(store: &Store, column: &Column, said: Option<u64>) -> Result<(Style, u64)> {
    let dir = store.list_dir(&column.folder).await?;
    let mut found: Vec<(NameStyle, u64)> = Vec::new();
    for meta in &dir.objects {
        let name = meta.path.rsplit('/').next().unwrap_or_default();
        found.extend(names::parse_file(name));
    }
    let (old, new): (Vec<_>, Vec<_>) =
        found.into_iter().partition(|(style, _)| *style == NameStyle::Legacy);
    if !old.is_empty() && !new.is_empty() {
        return Err(Error::Corrupt {
            file: column.folder.clone(),
            what: "names of files".to_owned(),
            expected: "__0.blp … or __1__.bin …".to_owned(),
            found: "both".to_owned(),
        });
    }
    let style = match (new.is_empty(), said) {
        (true, None) => Style::Bcolz,
        (true, Some(_)) if !old.is_empty() => Style::Bcolz,
        _ => Style::Document,
    };
    if let Some(said) = said {
        return Ok((style, said.max(1)));
    }
    // All files but the last have as many chunks as the first; a lookup reports a file that has not.
    let first = column.file(style, 0);
    let per_file = match store.head(&first).await {
        // On an object store an empty object is a removed one.
        Ok(meta) if meta.size == 0 => 1,
        Ok(meta) => {
            let rooted = Rooted { store: store.clone(), path: first.into(), url: None };
            let (layout, _, _) = super::files::read_head(&rooted, meta.size, false).await?;
            layout.header.chunks.unwrap_or(u64::MAX)
        }
        Err(Error::NotFound { .. }) => 1,
        Err(error) => return Err(error),
    };
    Ok((style, per_file.max(1)))
}

pub(crate) async fn get(store: &Store, path: &str) -> Result<Option<Object>> {
    match store.get(path).await {
        Ok(object) => Ok(Some(object)),
        Err(Error::NotFound { what: Noun::Object, .. }) => Ok(None),
        Err(error) => Err(error),
    }
}
