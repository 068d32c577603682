//! Footers of version 4, byte for byte as 0.9 writes them.
//!
//! Readers of 0.9 check more than that pointers point somewhere: children must come before their
//! parents and in the order of the fields. So the order here is fixed, and so is padding: even an
//! empty `Vec` is aligned.

use chunkyard_store::{Error, Result};

use super::super::archive::Writer;
use super::{ARRAY_LEN, BLOCK_LEN, DEPTH_MAX, RANK_MAX};
use crate::container::model::{
    ArrayMeta, AttributeValue, BlockMeta, ChunkAddress, DType, FillValue, IndexWidth,
};

/// The version that we write.
const VERSION: u32 = 4;

/// The content of a new footer.
#[derive(Debug, Clone, Copy)]
pub struct NewFooter<'a> {
    /// The blocks of the layer, with ids that count from zero.
    pub blocks: &'a [BlockMeta],
    /// Its arrays.
    pub arrays: &'a [NewArray<'a>],
    /// Keys of attributes.
    pub attr_keys: &'a [String],
    /// Values of attributes.
    pub attr_values: &'a [AttributeValue],
    /// Which layer it is: zero for the base.
    pub overlay_index: u32,
    /// Path of the base; empty for the base itself.
    pub base_file_hint: &'a str,
}

/// An array and its chunks.
#[derive(Debug, Clone, Copy)]
pub struct NewArray<'a> {
    /// Its description.
    pub meta: &'a ArrayMeta,
    /// The coords of all its chunks, one after another: one number per dimension each.
    pub coords: &'a [u32],
    /// Where its chunks are.
    pub addresses: &'a [ChunkAddress],
}

/// The footer, without its trailer.
pub fn render(footer: &NewFooter<'_>) -> Result<Vec<u8>> {
    footer.arrays.iter().try_for_each(check)?;
    let chunks = |array: &NewArray<'_>| 4 * array.coords.len() + 32 * array.addresses.len();
    let mut out = Writer::with_capacity(
        footer.arrays.iter().map(|array| chunks(array) + 2 * ARRAY_LEN as usize).sum::<usize>()
            + footer.blocks.len() * BLOCK_LEN as usize
            + 64 * (footer.attr_keys.len() + footer.attr_values.len() + 2),
    );
    let blocks = blocks(&mut out, footer.blocks);
    let children: Vec<Children> =
        footer.arrays.iter().map(|array| children(&mut out, array)).collect::<Result<_>>()?;
    let arrays = out.pad(8);
    for (array, children) in footer.arrays.iter().zip(&children) {
        array_entry(&mut out, array, children);
    }
    let keys = out.strings(footer.attr_keys);
    let values = values(&mut out, footer.attr_values)?;
    let hint = out.text(footer.base_file_hint);
    out.pad(8);
    out.u64(VERSION.into());
    out.vec(blocks, footer.blocks.len());
    out.vec(arrays, footer.arrays.len());
    out.vec(keys, footer.attr_keys.len());
    out.vec(values, footer.attr_values.len());
    out.u64(footer.overlay_index.into());
    out.string(footer.base_file_hint, hint);
    Ok(out.finish())
}

/// Refuses an array that could be written but not read again.
fn check(array: &NewArray<'_>) -> Result<()> {
    let ArrayMeta { name, shape, .. } = array.meta;
    if shape.len() > RANK_MAX {
        let what = format!("array {name:?} has {} dimensions, at most {RANK_MAX} fit", shape.len());
        return Err(Error::invalid(what));
    }
    if array.addresses.len().checked_mul(shape.len()) != Some(array.coords.len()) {
        return Err(Error::invalid(format!(
            "array {name:?} has {} dimensions and {} chunks, but {} numbers in their coords",
            shape.len(),
            array.addresses.len(),
            array.coords.len()
        )));
    }
    Ok(())
}

fn blocks(out: &mut Writer, blocks: &[BlockMeta]) -> u64 {
    let name = |block: &BlockMeta| block.codec.clone().unwrap_or_default();
    let texts: Vec<u64> = blocks.iter().map(|block| out.text(&name(block))).collect();
    let at = out.pad(8);
    for (block, text) in blocks.iter().zip(texts) {
        out.u64(block.id.into());
        out.u64(block.file_offset);
        out.u64(block.compressed_size);
        out.u64(block.uncompressed_size);
        match &block.codec {
            None => out.zeros(24),
            Some(codec) => {
                out.tag(1);
                out.string(codec, text);
            }
        }
    }
    at
}

/// Where the targets of an array's pointers are.
struct Children {
    name: u64,
    dtype: u64,
    shape: u64,
    dimension_names: u64,
    chunk_shape: u64,
    chunks: u64,
    fill: u64,
    attributes: u64,
}

fn children(out: &mut Writer, array: &NewArray<'_>) -> Result<Children> {
    let meta = array.meta;
    Ok(Children {
        name: out.text(&meta.name),
        dtype: dtype_child(out, &meta.dtype, 0)?,
        shape: out.u32s(&meta.shape),
        dimension_names: out.strings(&meta.dimension_names),
        chunk_shape: out.u32s(&meta.chunk_shape),
        chunks: chunks(out, array),
        fill: match &meta.fill_value {
            Some(FillValue::String(text)) => out.text(text),
            _ => out.position(),
        },
        attributes: attributes(out, meta)?,
    })
}

fn array_entry(out: &mut Writer, array: &NewArray<'_>, children: &Children) {
    let meta = array.meta;
    out.string(&meta.name, children.name);
    dtype(out, &meta.dtype, children.dtype);
    out.vec(children.shape, meta.shape.len());
    out.vec(children.dimension_names, meta.dimension_names.len());
    out.vec(children.chunk_shape, meta.chunk_shape.len());
    out.vec(children.chunks, array.addresses.len());
    fill_value(out, meta.fill_value.as_ref(), children.fill);
    out.tag(meta.deleted.into());
    out.tag(match meta.index_width {
        IndexWidth::U16 => 0,
        IndexWidth::U32 => 1,
        IndexWidth::U64 => 2,
    });
    out.vec(children.attributes, meta.attributes.len());
}

/// All coords, then all entries.
fn chunks(out: &mut Writer, array: &NewArray<'_>) -> u64 {
    // Without chunks there are no coords, and no padding for them.
    let mut coord =
        if array.addresses.is_empty() { out.position() } else { out.u32s(array.coords) };
    let (rank, len) = (array.meta.shape.len() as u64, 4 * array.meta.shape.len() as u64);
    let at = out.pad(8);
    let mut position = at;
    for address in array.addresses {
        let ChunkAddress { block, offset, size } = *address;
        let place = u64::from(block) | u64::from(offset) << 32;
        let entry = [coord.wrapping_sub(position), rank, place, size.into()];
        out.put(entry.map(u64::to_le_bytes).as_flattened());
        coord += len;
        position += 32;
    }
    at
}

/// The child that a list type points to.
fn dtype_child(out: &mut Writer, parent: &DType, depth: usize) -> Result<u64> {
    let (DType::FixedSizeList { child, .. } | DType::List { child }) = parent else {
        return Ok(out.position());
    };
    if depth + 1 >= DEPTH_MAX {
        return Err(Error::invalid(format!("lists are nested {DEPTH_MAX} deep or more")));
    }
    let grandchild = dtype_child(out, child, depth + 1)?;
    let at = out.pad(8);
    dtype(out, child, grandchild);
    Ok(at)
}

fn dtype(out: &mut Writer, dtype: &DType, child: u64) {
    let tag = match dtype {
        DType::Bool => 0,
        DType::Int8 => 1,
        DType::Int16 => 2,
        DType::Int32 => 3,
        DType::Int64 => 4,
        DType::UInt8 => 5,
        DType::UInt16 => 6,
        DType::UInt32 => 7,
        DType::UInt64 => 8,
        DType::Float32 => 9,
        DType::Float64 => 10,
        DType::String => 11,
        DType::Binary => 12,
        DType::TimestampNs => 15,
        DType::FixedSizeList { size, .. } => {
            out.tag(13);
            out.pointer(child);
            return out.u64((*size).into());
        }
        DType::List { .. } => {
            out.tag(14);
            out.pointer(child);
            return out.zeros(8);
        }
    };
    out.tag(tag);
    out.zeros(16);
}

fn fill_value(out: &mut Writer, value: Option<&FillValue>, text: u64) {
    let Some(value) = value else { return out.zeros(32) };
    out.tag(1);
    let (tag, bits) = match value {
        FillValue::Bool(value) => {
            out.put(&[0, (*value).into()]);
            return out.zeros(22);
        }
        FillValue::String(value) => {
            out.tag(4);
            return out.string(value, text);
        }
        FillValue::Int(value) => (1, value.cast_unsigned()),
        FillValue::UInt(value) => (2, *value),
        FillValue::Float(value) => (3, value.to_bits()),
        FillValue::TimestampNs(value) => (5, value.cast_unsigned()),
    };
    out.tag(tag);
    out.u64(bits);
    out.zeros(8);
}

fn attributes(out: &mut Writer, meta: &ArrayMeta) -> Result<u64> {
    let wide = |index: u64| {
        let what = format!("array {:?} has an attribute index {index}", meta.name);
        Error::invalid(format!("{what}, too large for {:?}", meta.index_width))
    };
    let at = out.pad(match meta.index_width {
        IndexWidth::U16 => 2,
        IndexWidth::U32 => 4,
        IndexWidth::U64 => 8,
    });
    for index in meta.attributes.iter().flat_map(|(key, value)| [*key, *value]) {
        match meta.index_width {
            IndexWidth::U16 => {
                out.put(&u16::try_from(index).map_err(|_| wide(index))?.to_le_bytes());
            }
            IndexWidth::U32 => out.u32(u32::try_from(index).map_err(|_| wide(index))?),
            IndexWidth::U64 => out.u64(index),
        }
    }
    Ok(at)
}

fn values(out: &mut Writer, values: &[AttributeValue]) -> Result<u64> {
    let texts: Vec<u64> = values
        .iter()
        .map(|value| match value {
            AttributeValue::String(text) => out.text(text),
            _ => out.position(),
        })
        .collect();
    let at = out.pad(8);
    for (value, text) in values.iter().zip(texts) {
        attribute_value(out, value, text)?;
    }
    Ok(at)
}

fn attribute_value(out: &mut Writer, value: &AttributeValue, text: u64) -> Result<()> {
    let mut scalar = |tag: u8, bytes: &[u8]| {
        out.put(&[tag]);
        out.zeros(bytes.len() - 1);
        out.put(bytes);
        out.zeros(24 - 2 * bytes.len());
        Ok(())
    };
    match value {
        AttributeValue::Bool(value) => scalar(0, &[(*value).into()]),
        AttributeValue::Int8(value) => scalar(1, &value.to_le_bytes()),
        AttributeValue::Int16(value) => scalar(2, &value.to_le_bytes()),
        AttributeValue::Int32(value) => scalar(3, &value.to_le_bytes()),
        AttributeValue::Int64(value) => scalar(4, &value.to_le_bytes()),
        AttributeValue::UInt8(value) => scalar(5, &value.to_le_bytes()),
        AttributeValue::UInt16(value) => scalar(6, &value.to_le_bytes()),
        AttributeValue::UInt32(value) => scalar(7, &value.to_le_bytes()),
        AttributeValue::UInt64(value) => scalar(8, &value.to_le_bytes()),
        AttributeValue::Float32(value) => scalar(9, &value.to_le_bytes()),
        AttributeValue::Float64(value) => scalar(10, &value.to_le_bytes()),
        AttributeValue::String(value) => {
            out.tag(11);
            out.string(value, text);
            Ok(())
        }
        _ => Err(Error::invalid("attributes of lists or bytes do not fit a footer of version 4")),
    }
}
