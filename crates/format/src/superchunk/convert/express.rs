//! How BLZ will store a given dataset.
//!
//! Chunks are cut along the first axis only, so each is whole rows: as many as before where chunks are whole
//! rows already, so that they can be copied; otherwise as many as bcolz would take.
//! Chunks are Blosc chunks: parameters of Blosc are kept, `zstd`, `lz4` and `gzip` become the codecs of
//! Blosc, uncompressed elements stay uncompressed, and anything else becomes zstd, level 5, after a
//! byte shuffle. Many chunks make a file, which is the shard of the array.

use std::sync::Arc;

use chunkyard_array::codec::blosc::{Compressor, Params, Shuffle};
use chunkyard_array::{ArraySpec, ByteOrder, Sharding};
use chunkyard_store::{Error, Result};
use serde_json::Value;

use super::draft::Draft;
use crate::superchunk::bloscpack;
use crate::superchunk::chunklen::{self, Base};
use crate::superchunk::create::Compression;
use crate::superchunk::dtype::{self, RowType};
use crate::superchunk::model::{self, Style};
use crate::{ArrayNode, Dataset, Edges, Node};

/// Bytes of the largest chunk.
const CHUNK_BYTES_MAX: u64 = bloscpack::CHUNK_BYTES_MAX as u64;
/// Decoded bytes of a file unless the caller asks for more: a file is written and resumed as a whole, and
/// may wait in memory as a whole for its first chunk.
const FILE_BYTES_MAX: u64 = 128 << 20;
/// A file has room for at least this many chunks, unless they are large.
const ENTRIES_MIN: u64 = 64;
/// A file has at most this many chunks.
const ENTRIES_MAX: u64 = 1 << 20;

/// The dataset as BLZ will hold it, or why it cannot.
pub(crate) fn express(mut dataset: Dataset) -> Result<Dataset> {
    for (path, node) in &mut dataset.nodes {
        let Node::Array(array) = node else { continue };
        let made = expressed(array).map_err(|error| Error::for_array(path, error))?;
        *array = Arc::new(made);
    }
    // Refuses a dataset that BLZ has no place for.
    Draft::new(&dataset, Style::Superchunk)?;
    Ok(dataset)
}

fn expressed(array: &ArrayNode) -> Result<ArrayNode> {
    let (spec, shape) = (&array.spec, array.spec.shape());
    let row = row_type(spec)?;
    let items = shape.iter().skip(1).fold(1u64, |items, extent| items.saturating_mul(*extent));
    let row_bytes = dtype::item_bytes(&row).saturating_mul(items);
    if row_bytes == 0 || row_bytes > CHUNK_BYTES_MAX {
        return Err(Error::unsupported(format!(
            "rows of {row_bytes} bytes in BLZ, where a chunk is whole rows and has 1 to \
             {CHUNK_BYTES_MAX} bytes; write another format, or regions of it"
        )));
    }
    let chunk = chunk_shape(spec, row_bytes);
    let made = spec.with_chunk_shape(&chunk)?.with_codecs(codecs(spec, &row)?)?;
    let sharding = sharding(array, &chunk, row_bytes);
    Ok(ArrayNode { spec: made, sharding, edges: Edges::Padded })
}

/// The type of the elements, with the byte order they keep.
pub(crate) fn row_type(spec: &ArraySpec) -> Result<RowType> {
    let dtype = spec.dtype()?;
    let unsupported = |why: &str| {
        Err(Error::unsupported(format!(
            "{} in BLZ: {why}; give another type with --dtype, or write another format",
            dtype.name()
        )))
    };
    if dtype.item_size().is_none() {
        return unsupported("rows have a fixed size there, so text needs a type of fixed length");
    }
    let order = match kept_codecs(spec).as_deref() {
        Some([bytes, _]) if bytes["configuration"]["endian"] == "big" => ByteOrder::Big,
        _ => ByteOrder::Little,
    };
    let row = RowType::Plain { dtype: dtype.clone(), order };
    // Raw bytes have several names in Zarr and only one in NumPy, so they come back under that one.
    match dtype::render(&row).and_then(|text| dtype::parse(&text)) {
        Ok(_) => Ok(row),
        Err(_) => unsupported("NumPy has no such type"),
    }
}

/// The codecs of an array, if its chunks can be copied as they are.
fn kept_codecs(spec: &ArraySpec) -> Option<Vec<Value>> {
    let codecs = spec.codecs_json();
    match codecs.as_slice() {
        [bytes, blosc] if name(bytes) == "bytes" && name(blosc) == "blosc" => Some(codecs),
        _ => None,
    }
}

fn name(codec: &Value) -> &str {
    codec["name"].as_str().or_else(|| codec.as_str()).unwrap_or_default()
}

fn codecs(spec: &ArraySpec, row: &RowType) -> Result<Vec<Value>> {
    if let Some(kept) = kept_codecs(spec) {
        return Ok(kept);
    }
    let RowType::Plain { dtype, order } = row else { return Ok(spec.codecs_json()) };
    let params = params_wished(spec, dtype::typesize(row))?;
    Ok(vec![model::bytes_codec(dtype, *order), model::blosc_codec(&params)])
}

/// The parameters nearest to the codecs of an array.
fn params_wished(spec: &ArraySpec, item: u8) -> Result<Params> {
    let shuffle = if item > 1 { Shuffle::Byte } else { Shuffle::None };
    let params = |compressor: Compressor, level: u8| {
        let block_bytes = if level == 0 { 0 } else { compressor.block_bytes() };
        Params { compressor, level, shuffle, item, block_bytes }
    };
    for codec in spec.codecs_json().iter().rev() {
        let level = |most: i64| {
            let level = codec["configuration"]["level"].as_i64().unwrap_or(5).clamp(1, most);
            u8::try_from(level).unwrap_or(5)
        };
        return Ok(match name(codec) {
            "bytes" | "transpose" | "crc32c" | "adler32" | "fletcher32" => continue,
            "blosc" => {
                let Compression { compressor, level, shuffle, block_bytes } =
                    compression_of(codec, item)?;
                Params { compressor, level, shuffle, item, block_bytes }
            }
            "numcodecs.lz4" | "lz4" => params(Compressor::Lz4, 5),
            "gzip" | "zlib" | "numcodecs.zlib" => params(Compressor::Zlib, level(9)),
            "zstd" => params(Compressor::Zstd, level(9)),
            _ => params(Compressor::Zstd, 5),
        });
    }
    Ok(params(Compressor::Lz4, 0))
}

/// The compression of an array that went through [`express`].
pub(crate) fn compression(spec: &ArraySpec, item: u8) -> Result<Compression> {
    match spec.codecs_json().last() {
        Some(codec) => compression_of(codec, item),
        None => Err(Error::invalid("an array without codecs")),
    }
}

fn compression_of(codec: &Value, item: u8) -> Result<Compression> {
    let configuration = &codec["configuration"];
    let compressor = Compressor::parse(configuration["cname"].as_str().unwrap_or("lz4"))?;
    let level = configuration["clevel"].as_u64().unwrap_or(5).min(9);
    let shuffle = match configuration["shuffle"].as_str() {
        Some("noshuffle") => Shuffle::None,
        Some("bitshuffle") => Shuffle::Bit,
        _ => Shuffle::Byte,
    };
    let asked = usize::try_from(configuration["blocksize"].as_u64().unwrap_or(0)).unwrap_or(0);
    Ok(Compression {
        compressor,
        level: u8::try_from(level).unwrap_or(5),
        shuffle,
        block_bytes: model::block_of_forced(compressor, item, asked),
    })
}

fn chunk_shape(spec: &ArraySpec, row_bytes: u64) -> Vec<u64> {
    let shape = spec.shape();
    let Some(len) = shape.first().copied() else { return Vec::new() };
    let rows = shape.iter().skip(1).copied();
    let whole = spec.chunk_shape().filter(|chunk| chunk.iter().skip(1).copied().eq(rows.clone()));
    let fits = |len: &u64| len.checked_mul(row_bytes).is_some_and(|bytes| bytes <= CHUNK_BYTES_MAX);
    let kept = whole.and_then(|chunk| chunk.first().copied()).filter(fits);
    let chunklen = kept.unwrap_or_else(|| chunklen::chunklen(len, row_bytes, Base::Bcolz));
    [chunklen].into_iter().chain(rows).collect()
}

/// The shape of a file. Shards that are whole rows and whole chunks are the caller's wish.
fn sharding(array: &ArrayNode, chunk: &[u64], row_bytes: u64) -> Option<Sharding> {
    let (chunklen, row) = chunk.split_first()?;
    let wished = array.sharding.as_ref().map(|sharding| sharding.shard_shape.as_slice());
    let wished = wished.and_then(|shard| shard.split_first()).filter(|(len, rest)| {
        *rest == row && len.is_multiple_of(*chunklen) && **len / chunklen <= ENTRIES_MAX
    });
    let len = wished.map_or_else(
        || {
            let chunk_bytes = chunklen.saturating_mul(row_bytes);
            let expected = array.spec.shape().first().copied().unwrap_or(0);
            let chunks = chunklen::superchunk(expected.saturating_mul(row_bytes), chunk_bytes);
            // A file of few chunks would otherwise be mostly a table of offsets.
            let few = expected.div_ceil(*chunklen).saturating_mul(4).max(ENTRIES_MIN);
            let most = (FILE_BYTES_MAX / chunk_bytes.max(1)).max(1);
            chunklen.saturating_mul(chunks.min(few).min(most))
        },
        |(len, _)| *len,
    );
    Some(Sharding::new(&[len].into_iter().chain(row.iter().copied()).collect::<Vec<_>>()))
}
