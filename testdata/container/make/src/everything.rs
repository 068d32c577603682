//! A footer with every variant of every type that version 4 has, serialised by 0.9 itself. Most of
//! it cannot be made through the interface for arrays.

use std::error::Error;

use af9::address::{BlockId, ChunkAddress};
use af9::block::{BlockMeta, CodecId};
use af9::footer::Footer;
use af9::layout::{ArrayLayout, ArrayMeta, Attributes, ChunkEntry, StorageLayout};
use af9::{AttributeValue, DType, FillValue};

/// Sixteen bytes are the most that a string holds in place.
const SIXTEEN: &str = "sixteen-bytes-xy";
const SEVENTEEN: &str = "seventeen-bytes-x";

/// Forty-eight bytes of blocks, and the footer.
pub fn file() -> Result<Vec<u8>, Box<dyn Error>> {
    let mut file: Vec<u8> = (0..48).collect();
    file.extend(footer().serialize()?);
    Ok(file)
}

fn footer() -> Footer {
    let mut footer = Footer::new_overlay(3, "a/rather/long/path/of/the/base.af");
    footer.blocks = vec![
        block(0, 0, 24, CodecId::None),
        block(1, 24, 16, CodecId::Named("lz4".into())),
        block(2, 40, 8, CodecId::Named("a codec with a name of its own".into())),
    ];
    footer.attr_keys = ["units", "", SIXTEEN, SEVENTEEN].map(String::from).to_vec();
    footer.attr_values = vec![
        AttributeValue::Bool(true),
        AttributeValue::Int8(-8),
        AttributeValue::Int16(-1600),
        AttributeValue::Int32(-320_000),
        AttributeValue::Int64(i64::MIN),
        AttributeValue::UInt8(200),
        AttributeValue::UInt16(60_000),
        AttributeValue::UInt32(u32::MAX),
        AttributeValue::UInt64(u64::MAX),
        AttributeValue::Float32(1.5),
        AttributeValue::Float64(f64::NAN),
        AttributeValue::String("kelvin".into()),
        AttributeValue::String("ü".repeat(50)),
    ];
    footer.arrays = arrays();
    footer
}

fn block(id: u32, file_offset: u64, size: u64, codec: CodecId) -> BlockMeta {
    let uncompressed_size = if codec == CodecId::None { size } else { 2 * size };
    BlockMeta { id: BlockId(id), file_offset, compressed_size: size, uncompressed_size, codec }
}

fn array(name: &str, dtype: DType, shape: &[u32], names: &[&str]) -> ArrayMeta {
    ArrayMeta {
        name: name.into(),
        dtype,
        layout: ArrayLayout {
            shape: shape.to_vec(),
            dimension_names: names.iter().map(|name| String::from(*name)).collect(),
            storage: StorageLayout { chunk_shape: vec![1; shape.len()], chunks: Vec::new() },
        },
        fill_value: None,
        deleted: false,
        attributes: Attributes::U16(Vec::new()),
    }
}

fn chunk(coord: &[u32], block: u32, offset: u32, size: u32) -> ChunkEntry {
    let address = ChunkAddress { block_id: BlockId(block), offset, size };
    ChunkEntry { coord: coord.to_vec(), address }
}

fn arrays() -> Vec<ArrayMeta> {
    let plain = [
        (DType::Bool, Some(FillValue::Bool(true))),
        (DType::Int8, Some(FillValue::Int(-1))),
        (DType::Int16, None),
        (DType::Int32, None),
        (DType::Int64, Some(FillValue::Int(i64::MIN))),
        (DType::UInt8, Some(FillValue::UInt(255))),
        (DType::UInt16, None),
        (DType::UInt32, None),
        (DType::UInt64, Some(FillValue::UInt(u64::MAX))),
        (DType::Float32, Some(FillValue::Float(f64::NAN))),
        (DType::Float64, Some(FillValue::Float(-0.0))),
        (DType::String, Some(FillValue::String("a fill value out of line".into()))),
        (DType::Binary, Some(FillValue::String("short".into()))),
        (DType::TimestampNs, Some(FillValue::TimestampNs(-5))),
    ];
    let mut arrays = Vec::new();
    for (at, (dtype, fill)) in plain.into_iter().enumerate() {
        let mut array = array(&format!("plain/{at}"), dtype, &[3], &["x"]);
        array.fill_value = fill;
        arrays.push(array);
    }

    let list = DType::List { child: Box::new(DType::Float32) };
    let nested = DType::FixedSizeList { child: Box::new(list), size: 7 };
    arrays.push(array(SIXTEEN, nested, &[2], &[SIXTEEN]));

    let names = ["time", SEVENTEEN, "z"];
    let mut volume = array(SEVENTEEN, DType::UInt16, &[4, 5, 6], &names);
    volume.layout.storage.chunk_shape = vec![2, 5, 3];
    // Not in order: 0.9 keeps the order of writing.
    volume.layout.storage.chunks = vec![
        chunk(&[0, 0, 1], 0, 0, 12),
        chunk(&[1, 0, 0], 1, 4, 28),
        chunk(&[0, 0, 0], 0, 12, 12),
    ];
    volume.attributes = Attributes::U16(vec![(0, 11), (2, 12), (3, 0)]);
    arrays.push(volume);

    let mut wide = array("wide", DType::Int8, &[1], &[]);
    wide.attributes = Attributes::U32(vec![(1, 3)]);
    wide.layout.storage.chunks = vec![chunk(&[0], 2, 15, 1)];
    arrays.push(wide);

    let mut widest = array("widest", DType::Int8, &[0], &["none"]);
    widest.attributes = Attributes::U64(vec![(0, 1), (1, 10)]);
    arrays.push(widest);

    let mut scalar = array("scalar", DType::Float64, &[], &[]);
    scalar.layout.storage.chunks = vec![chunk(&[], 1, 0, 4)];
    arrays.push(scalar);

    let mut gone = array("gone", DType::String, &[9], &["x"]);
    gone.deleted = true;
    arrays.push(gone);
    arrays
}
