//! A single Bloscpack file as a source of the pipeline: one array.
//!
//! A file that the tool made of a NumPy array has its type and shape in the metadata. The tool cuts chunks by
//! bytes, so the array keeps its shape if chunks are whole rows, is flat if they are only whole elements,
//! and is bytes otherwise. Any other file is bytes, too.

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use chunkyard_array::codec::blosc::{self, Params};
use chunkyard_array::{Attributes, ByteOrder, ChunkIndex, DType, Region, non_finite};
use chunkyard_store::{ChunkRef, Digest, Error, Fetcher, Noun, Remotes, Result, Store};
use futures::{StreamExt, TryStreamExt, stream};
use serde_json::Value;

use crate::superchunk::corrupt;
use crate::superchunk::dtype::{self, RowType};
use crate::superchunk::model::{Column, Style};
use crate::superchunk::read::files::{FileIndex, read_head, read_index};
use crate::superchunk::read::locate::padded;
use crate::superchunk::roots::Rooted;
use crate::superchunk::write::encode::encode;
use crate::{ChunkStream, Dataset, Locate, Node, OpenOptions, Place, Source};

/// The first bytes of a Bloscpack file.
pub(crate) const MAGIC: &[u8] = b"blpk";
/// Bytes of the largest chunk.
const CHUNK_BYTES_MAX: u64 = super::CHUNK_BYTES_MAX as u64;

/// Whether the object at a place is a Bloscpack file.
pub(crate) async fn is_bloscpack(place: &Place) -> Result<bool> {
    let Some((store, name)) = place.object() else { return Ok(false) };
    match store.head(name).await {
        Ok(meta) if meta.size < MAGIC.len() as u64 => Ok(false),
        Ok(_) => Ok(store.get_range(name, 0..MAGIC.len() as u64).await?.as_ref() == MAGIC),
        Err(Error::NotFound { .. }) => Ok(false),
        Err(error) => Err(error),
    }
}

/// A Bloscpack file.
#[derive(Debug)]
pub struct BloscpackSource {
    dataset: Dataset,
    column: Column,
    /// The number of rows.
    len: u64,
    index: FileIndex,
    fetcher: Fetcher,
    cautions: Vec<String>,
}

impl BloscpackSource {
    /// Opens the file at a place.
    pub async fn open(place: &Place, options: &OpenOptions) -> Result<Self> {
        let missing =
            || Error::NotFound { what: Noun::BloscpackFile, name: place.url().to_owned() };
        let (store, name) = place.object().ok_or_else(missing)?;
        let rooted = Rooted { store: store.clone(), path: name.into(), url: None };
        let size = store.head(name).await?.size;
        let (layout, _, _) = read_head(&rooted, size, false).await?;
        let bytes = RowType::Plain { dtype: DType::from_numpy("|u1")?.0, order: ByteOrder::Little };
        let unknown = column(bytes.clone(), Vec::new(), CHUNK_BYTES_MAX);
        let counted = layout.header.chunks.unwrap_or(u64::MAX);
        let index = read_index(rooted, &unknown, Style::Document, counted).await?;
        let (first, last) =
            (decoded(store, name, &index, true).await?, decoded(store, name, &index, false).await?);
        let before = index.chunks.len().saturating_sub(1) as u64;
        let total = first.saturating_mul(before).saturating_add(last);
        let (mut column, len, cautions) = shaped(layout.metadata.as_deref(), name, first, total)?
            .unwrap_or_else(|| (column(bytes, Vec::new(), first.max(1)), total, Vec::new()));
        column.params = params(store, name, &index, &column).await?;
        let said = layout.metadata.as_deref().and_then(|json| non_finite::parse(json).ok());
        describe(&mut column, said.unwrap_or_default());
        let mut dataset = Dataset::default();
        dataset.insert("/", Node::Array(Arc::new(column.node(len)?)));
        let remotes = Arc::new(Remotes::new(Vec::new(), options.store.clone()));
        let fetcher = Fetcher::new(store.clone(), remotes, *store.limits(), true);
        Ok(Self { dataset, column, len, index, fetcher, cautions })
    }

    async fn reference(&self, chunk: u64) -> Result<ChunkRef> {
        let file = self.index.rooted.name();
        let found = self
            .index
            .reference(chunk)
            .ok_or_else(|| corrupt(&file, &format!("chunk {chunk}"), "there", "no such chunk"))?;
        let rows = self.column.rows_in(chunk, self.len);
        if rows == self.column.chunklen {
            return Ok(found);
        }
        let bytes = self.fetcher.fetch(&[&found]).await?.pop().flatten().unwrap_or_default();
        let wanted = usize::try_from(rows.saturating_mul(self.column.row_bytes())).unwrap_or(0);
        let mut plain = vec![0; wanted];
        blosc::decode_range(&bytes, 0..wanted, &mut plain)?;
        let whole = Bytes::from(padded(&self.column, &plain));
        Ok(ChunkRef::Inline(encode(&self.column, whole).await?))
    }
}

/// Decoded bytes of the first or the last chunk.
async fn decoded(store: &Store, name: &str, index: &FileIndex, first: bool) -> Result<u64> {
    let chunk = if first { index.chunks.first() } else { index.chunks.last() };
    Ok(match chunk {
        Some(chunk) => header(store, name, chunk.start).await?.decoded_bytes,
        None => 0,
    })
}

async fn header(store: &Store, name: &str, at: u64) -> Result<blosc::Header> {
    let end = at.saturating_add(blosc::HEADER_BYTES as u64);
    Ok(blosc::Header::parse(&store.get_range(name, at..end).await?)?)
}

/// How the first chunk is compressed; the others are taken to be alike.
async fn params(
    store: &Store,
    name: &str,
    index: &FileIndex,
    column: &Column,
) -> Result<Option<Params>> {
    let Some(chunk) = index.chunks.first() else { return Ok(None) };
    let header = header(store, name, chunk.start).await?;
    let (compressor, shuffle) = (header.compressor(), header.shuffle());
    let known = column.params_or_default();
    Ok(Some(Params { compressor, shuffle, item: header.item, ..known }))
}

type Shaped = (Column, u64, Vec<String>);

/// The array that the metadata describes; `None` if it describes none.
fn shaped(metadata: Option<&[u8]>, file: &str, chunk: u64, total: u64) -> Result<Option<Shaped>> {
    let said = metadata.and_then(|json| non_finite::parse(json).ok());
    let Some(said) = said.filter(|said| said["container"] == "numpy") else { return Ok(None) };
    let (Some(text), Some(shape)) = (said["dtype"].as_str(), said["shape"].as_array()) else {
        return Ok(None);
    };
    let row = dtype::parse(text)?;
    let Some(shape) = shape.iter().map(Value::as_u64).collect::<Option<Vec<u64>>>() else {
        return Ok(None);
    };
    let item = dtype::item_bytes(&row);
    let bytes = shape.iter().fold(item, |bytes, extent| bytes.saturating_mul(*extent));
    if bytes != total {
        return Err(corrupt(file, "bytes of the array", bytes, total));
    }
    if shape.is_empty() && chunk == item {
        let one = Column { scalar: true, ..column(row, Vec::new(), 1) };
        return Ok(Some((one, 1, Vec::new())));
    }
    let row_shape = shape.get(1..).unwrap_or_default().to_vec();
    let row_bytes = row_shape.iter().fold(item, |bytes, extent| bytes.saturating_mul(*extent));
    let whole = |bytes: u64| bytes > 0 && chunk.is_multiple_of(bytes);
    let in_rows = said["order"] != "F" || row_shape.is_empty();
    if in_rows && whole(row_bytes) && !shape.is_empty() {
        let len = shape.first().copied().unwrap_or(0);
        return Ok(Some((column(row, row_shape, (chunk / row_bytes).max(1)), len, Vec::new())));
    }
    if !whole(item) {
        return Ok(None);
    }
    let why = if in_rows { "its chunks are not whole rows" } else { "they lie in Fortran's order" };
    let caution = format!("an array of shape {shape:?} is given as its elements one by one: {why}");
    let cautions = if shape.len() == 1 { Vec::new() } else { vec![caution] };
    Ok(Some((column(row, Vec::new(), (chunk / item).max(1)), total / item, cautions)))
}

/// Takes attributes and dimension names, which only our files have. Names that do not fit the dimensions are
/// ignored.
fn describe(column: &mut Column, mut said: Value) {
    if let Some(Value::Object(attributes)) = said.get_mut("attributes").map(Value::take) {
        column.attributes = attributes.into_iter().collect();
    }
    let names = said.get_mut("dimension_names").map(Value::take);
    let names = names.and_then(|names| serde_json::from_value::<Vec<Option<String>>>(names).ok());
    let dimensions = if column.scalar { 0 } else { 1 + column.row_shape.len() };
    column.dimension_names = names.filter(|names| names.len() == dimensions);
}

fn column(row: RowType, row_shape: Vec<u64>, chunklen: u64) -> Column {
    Column {
        dataset: None,
        path: "/".into(),
        folder: String::new(),
        meta: None,
        row_shape,
        chunklen,
        superchunk: u64::MAX,
        params: None,
        digest: Digest::None,
        slack: 0,
        default_row: Bytes::from_static(&[0]),
        attributes: Attributes::new(),
        dimension_names: None,
        scalar: false,
        row,
    }
}

#[async_trait]
impl Locate for BloscpackSource {
    fn fetcher(&self) -> &Fetcher {
        &self.fetcher
    }

    async fn locate(&self, _array: &str, chunks: &[ChunkIndex]) -> Result<Vec<Option<ChunkRef>>> {
        let mut found = Vec::with_capacity(chunks.len());
        for index in chunks {
            found.push(Some(self.reference(index.first().copied().unwrap_or(0)).await?));
        }
        Ok(found)
    }
}

impl Source for BloscpackSource {
    fn dataset(&self) -> &Dataset {
        &self.dataset
    }

    fn identity(&self) -> String {
        let FileIndex { size, guard, chunks, .. } = &self.index;
        let chunks = format!("{chunks:?}");
        format!("{size} {guard:?} {:08x}", crc32c::crc32c(chunks.as_bytes()))
    }

    fn chunks<'a>(&'a self, array: &'a str, within: &'a Region) -> ChunkStream<'a> {
        let all = async move {
            let grid = self.dataset.array(array)?.grid()?;
            let each = stream::iter(grid.chunks_in(within)).then(move |index| async move {
                let chunk = index.first().copied().unwrap_or(0);
                Ok((index, self.reference(chunk).await?))
            });
            Ok::<_, Error>(each)
        };
        stream::once(all).try_flatten().boxed()
    }

    fn cautions(&self) -> Vec<String> {
        self.cautions.clone()
    }
}
