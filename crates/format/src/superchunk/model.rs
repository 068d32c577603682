//! The parts of a dataset: columns, their chunks, and the files with the chunks.

use std::sync::Arc;

use bytes::Bytes;
use chunkyard_array::codec::blosc::{Compressor, Params, Shuffle};
use chunkyard_array::{ArraySpec, Attributes, ByteOrder, DType};
use chunkyard_store::{Digest, Error, Result};
use serde_json::{Value, json};

use super::dtype::{self, RowType};
use super::names;
use crate::{ArrayNode, Edges};

/// c-blosc never splits larger elements into streams, nor blocks into streams that are shorter than this.
const SPLIT_ITEM_BYTES_MAX: usize = 16;
const SPLIT_STREAM_BYTES_MIN: usize = 128;

/// How a dataset is laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// Many chunks per file, and files grow in place. This is the default.
    Superchunk,
    /// As the BLZ document describes it: many chunks per file, with the header it draws.
    Document,
    /// As BLZ 0.6 and bcolz write it: one chunk per file, counted from 0.
    Bcolz,
}

impl Style {
    /// Its name.
    pub fn word(self) -> &'static str {
        match self {
            Self::Superchunk => "superchunk",
            Self::Document => "document",
            Self::Bcolz => "bcolz",
        }
    }

    /// The style with this name.
    pub fn parse(word: &str) -> Result<Self> {
        match word {
            "superchunk" => Ok(Self::Superchunk),
            "document" => Ok(Self::Document),
            "bcolz" => Ok(Self::Bcolz),
            other => Err(Error::invalid(format!(
                "there is no style {other:?}; use superchunk, document or bcolz"
            ))),
        }
    }
}

/// An array of rows: a column of a table, or all of a dataset that is not a table.
#[derive(Debug, Clone)]
pub struct Column {
    /// Its path: `/` if it is the only one, `/x` or `/position/x` in a table.
    pub path: Arc<str>,
    /// Folder of its files.
    pub folder: String,
    /// Folder of its own meta files, if it has any: bcolz keeps each column like a dataset.
    pub meta: Option<String>,
    /// Type of its elements. A struct here is stored row by row, and read as bytes.
    pub row: RowType,
    /// Shape of a row.
    pub row_shape: Vec<u64>,
    /// Rows of a chunk.
    pub chunklen: u64,
    /// Chunks of a file.
    pub superchunk: u64,
    /// How chunks are compressed; `None` until the first chunk has been tried.
    pub params: Option<Params>,
    /// The digest behind each chunk.
    pub digest: Digest,
    /// Spare bytes in each chunk.
    pub slack: u64,
    /// The bytes that default rows repeat: one element where all are alike, else a whole row. Not always a
    /// row, because a number in a file can make a row two gigabytes long.
    pub default_row: Bytes,
    /// Attributes of its own.
    pub attributes: Attributes,
    /// Names of its dimensions.
    pub dimension_names: Option<Vec<Option<String>>>,
    /// Whether its one row is all of an array without dimensions.
    pub scalar: bool,
    /// The id of the dataset: with it, each file names its dataset and column.
    pub dataset: Option<Arc<str>>,
}

impl Column {
    /// Bytes of an element.
    pub fn item_bytes(&self) -> u64 {
        dtype::item_bytes(&self.row)
    }

    /// Bytes of a row.
    pub fn row_bytes(&self) -> u64 {
        self.row_shape.iter().fold(self.item_bytes(), |bytes, extent| bytes.saturating_mul(*extent))
    }

    /// Bytes of a whole chunk.
    pub fn chunk_bytes(&self) -> u64 {
        self.row_bytes().saturating_mul(self.chunklen)
    }

    /// How chunks are compressed; the default if that has not been tried yet.
    pub fn params_or_default(&self) -> Params {
        self.params.unwrap_or_else(|| default_params(&self.row))
    }

    /// How many rows chunk `chunk` holds in a dataset of `len` rows.
    pub fn rows_in(&self, chunk: u64, len: u64) -> u64 {
        len.saturating_sub(chunk.saturating_mul(self.chunklen)).min(self.chunklen)
    }

    /// The column in the one data model, with `len` rows. There the last chunk is as large as all others;
    /// `locate` fills it up.
    pub fn node(&self, len: u64) -> Result<ArrayNode> {
        let shape: Vec<u64> = [len].into_iter().chain(self.row_shape.iter().copied()).collect();
        let mut chunk: Vec<u64> = vec![self.chunklen.max(1)];
        chunk.extend(self.row_shape.iter().map(|extent| (*extent).max(1)));
        let (shape, chunk) = if self.scalar { (Vec::new(), Vec::new()) } else { (shape, chunk) };
        let (data_type, bytes) = match &self.row {
            RowType::Plain { dtype, order } => {
                let data_type = serde_json::to_value(dtype.metadata())
                    .map_err(|error| Error::invalid(format!("data type {dtype}: {error}")))?;
                (data_type, bytes_codec(dtype, *order))
            }
            RowType::Struct(_) => {
                let bits = self.item_bytes().saturating_mul(8);
                (json!(format!("r{bits}")), json!({"name": "bytes"}))
            }
        };
        let mut builder = ArraySpec::builder(&shape, &chunk, data_type)
            .codecs(vec![bytes, blosc_codec(&self.params_or_default())])
            .attributes(self.attributes.clone());
        let element = usize::try_from(self.item_bytes()).unwrap_or(usize::MAX);
        if let Some(element) = self.default_row.get(..element) {
            builder = builder.fill_bytes(&self.in_native_order(element));
        }
        let mut spec = builder.build()?;
        if let Some(names) = &self.dimension_names {
            spec = spec.with_dimension_names(Some(names))?;
        }
        Ok(ArrayNode { spec, sharding: None, edges: Edges::Padded })
    }

    /// An element in the byte order of the machine.
    fn in_native_order(&self, element: &[u8]) -> Vec<u8> {
        Self::stored_element(&self.row, element)
    }

    /// Converts elements between the byte order of the machine and the stored one, in either direction.
    pub(super) fn stored_element(row: &RowType, element: &[u8]) -> Vec<u8> {
        let mut element = element.to_vec();
        if let RowType::Plain { dtype, order: ByteOrder::Big } = row {
            let unit = swap_unit(dtype).max(1);
            element.chunks_exact_mut(unit).for_each(<[u8]>::reverse);
        }
        element
    }

    /// Converts elements between the byte orders of the machine and of the file, in either direction.
    pub(super) fn swapped(&self, elements: Bytes) -> Bytes {
        match &self.row {
            RowType::Plain { order: ByteOrder::Big, .. } => self.in_native_order(&elements).into(),
            _ => elements,
        }
    }

    /// The file that holds a full chunk, and the chunk's slot in it.
    pub fn place_of(&self, chunk: u64) -> (u64, u64) {
        let per_file = self.superchunk.max(1);
        (chunk / per_file, chunk % per_file)
    }

    /// The file of the rows after the last of `full` full chunks.
    pub fn tail_file(&self, full: u64) -> u64 {
        full.div_ceil(self.superchunk.max(1))
    }

    /// The path of a file.
    pub fn file(&self, style: Style, file: u64) -> String {
        let name = match style {
            Style::Bcolz => names::legacy_file(file),
            _ => names::superchunk_file(file.saturating_add(1)),
        };
        format!("{}/{name}", self.folder)
    }
}

/// Bytes of the unit that a change of byte order reverses.
fn swap_unit(dtype: &DType) -> usize {
    let item = dtype.item_size().unwrap_or(1);
    match dtype.name() {
        "fixed_length_utf32" => 4,
        name if name.starts_with("complex") => item / 2,
        name if name.starts_with("int") || name.starts_with("uint") => item,
        name if name.starts_with("float") || name.starts_with("numpy.") => item,
        _ => 1,
    }
}

/// The default compression.
fn default_params(row: &RowType) -> Params {
    Params {
        compressor: Compressor::Lz4,
        level: 5,
        shuffle: Shuffle::Byte,
        item: dtype::typesize(row),
        block_bytes: 0,
    }
}

pub(super) fn bytes_codec(dtype: &DType, order: ByteOrder) -> Value {
    if swap_unit(dtype) <= 1 {
        return json!({"name": "bytes"});
    }
    let endian = match order {
        ByteOrder::Little => "little",
        ByteOrder::Big => "big",
    };
    json!({"name": "bytes", "configuration": {"endian": endian}})
}

pub(super) fn blosc_codec(params: &Params) -> Value {
    let shuffle = match params.shuffle {
        Shuffle::None => "noshuffle",
        Shuffle::Byte => "shuffle",
        Shuffle::Bit => "bitshuffle",
    };
    json!({"name": "blosc", "configuration": {
        "cname": params.compressor.name(),
        "clevel": params.level,
        "shuffle": shuffle,
        "typesize": params.item,
        "blocksize": forced_block(params),
    }})
}

/// The block size to request from c-blosc: where it splits blocks into streams, one for each byte of an
/// element, it takes the request for the size of a stream.
fn forced_block(params: &Params) -> usize {
    let item = usize::from(params.item.max(1));
    let splits = params.compressor != Compressor::Zstd
        && item <= SPLIT_ITEM_BYTES_MAX
        && params.block_bytes / item >= SPLIT_STREAM_BYTES_MIN;
    if splits { params.block_bytes / item } else { params.block_bytes }
}

/// The block size that c-blosc makes of a request.
pub(super) fn block_of_forced(compressor: Compressor, item: u8, asked: usize) -> usize {
    let item = usize::from(item.max(1));
    let splits = compressor != Compressor::Zstd
        && item <= SPLIT_ITEM_BYTES_MAX
        && asked >= SPLIT_STREAM_BYTES_MIN;
    if splits { asked.saturating_mul(item) } else { asked }
}
