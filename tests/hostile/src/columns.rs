//! The columns of Parquet files, with types and values from the fuzzer in a sound frame.
//!
//! Mutated bytes seldom survive Parquet's framing. So here the fuzzer decides on columns: each
//! column of our own writers may be missing, of another type or of any value, and is written by the
//! Parquet library. The result is a file that a hostile, or just a foreign, writer can make.

use std::sync::{Arc, LazyLock};

use arrow_array::builder::{BinaryBuilder, FixedSizeBinaryBuilder, StringBuilder};
use arrow_array::{
    ArrayRef, BooleanArray, FixedSizeListArray, Float64Array, Int8Array, Int64Array,
    LargeListArray, ListArray, RecordBatch, StructArray, UInt64Array, new_null_array,
};
use arrow_buffer::OffsetBuffer;
use arrow_schema::{DataType, Field, FieldRef, Fields, Schema};
use bytes::Bytes;
use chunkyard_engine::repo::{Native, Node, Payload, hostile};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use crate::choices::Choices;
use crate::parquet::{self as files, DATASET};

/// A kind of file: the columns we write, and the target that reads it.
type Kind = (Fields, fn(&[u8]));

static KINDS: LazyLock<[Kind; 4]> = LazyLock::new(|| {
    let root = Node::group(0, "/").expect("a root");
    let native = Native { file: "f".into(), offset: 0, length: 1, crc32c: None };
    let row = (1, vec![0], Payload::Native(native));
    let structure = hostile::render_structure(DATASET, &[Arc::new(root)]);
    let manifest = hostile::render_manifest(DATASET, 1, &[row]);
    let attributes = hostile::render_attributes(DATASET, &[b"{}".to_vec()]);
    let collection = hostile::render_collection(DATASET, &["c/x".into()]);
    [
        (fields(structure), files::structure),
        (fields(manifest), files::manifest),
        (fields(attributes), files::attributes),
        (fields(collection), files::collection),
    ]
});

fn fields(file: chunkyard_engine::Result<Bytes>) -> Fields {
    let file = file.expect("our own file");
    let reader = ParquetRecordBatchReaderBuilder::try_new(file).expect("a Parquet file");
    reader.schema().fields().clone()
}

/// The first byte is the kind of file, the second the number of rows.
pub(crate) fn check(data: &[u8]) {
    let mut choices = Choices::new(data);
    let (fields, read) = choices.pick(&*KINDS);
    let rows = choices.below(6);
    let columns = columns(&mut choices, fields, rows, 0);
    let batch = StructArray::new(columns.0, columns.1, None);
    if let Some(file) = write(&batch) {
        read(&file);
    }
}

/// A Parquet file; `None` if the library cannot write it (a struct without fields).
fn write(columns: &StructArray) -> Option<Vec<u8>> {
    let schema = Arc::new(Schema::new(columns.fields().clone()));
    let batch = RecordBatch::try_new(schema.clone(), columns.columns().to_vec()).ok()?;
    let mut file = Vec::new();
    let mut writer = ArrowWriter::try_new(&mut file, schema, None).ok()?;
    writer.write(&batch).ok()?;
    writer.close().ok()?;
    Some(file)
}

/// Columns after a template: most unchanged, some of another type, some missing.
fn columns(
    choices: &mut Choices<'_>,
    template: &Fields,
    rows: usize,
    depth: usize,
) -> (Fields, Vec<ArrayRef>) {
    let mut made: Vec<(FieldRef, ArrayRef)> = Vec::new();
    for field in template {
        let data_type = match choices.byte() {
            0..=7 if template.len() > 1 && !choices.is_spent() => continue,
            8..=31 => any_type(choices, depth),
            _ => field.data_type().clone(),
        };
        let array = array(choices, &data_type, rows, depth);
        made.push((Arc::new(Field::new(field.name(), array.data_type().clone(), true)), array));
    }
    if made.is_empty() {
        let array: ArrayRef = Arc::new(BooleanArray::from(vec![None; rows]));
        made.push((Arc::new(Field::new("none", DataType::Boolean, true)), array));
    }
    let (fields, arrays): (Vec<_>, Vec<_>) = made.into_iter().unzip();
    (fields.into(), arrays)
}

fn any_type(choices: &mut Choices<'_>, depth: usize) -> DataType {
    let item = |choices: &mut Choices<'_>| {
        let data_type = if depth < 3 { any_type(choices, depth + 1) } else { DataType::Int8 };
        Arc::new(Field::new("item", data_type, true))
    };
    match choices.below(12) {
        0 => DataType::Boolean,
        1 => DataType::Int8,
        2 => DataType::Int64,
        3 => DataType::UInt64,
        4 => DataType::Float64,
        5 => DataType::Utf8,
        6 => DataType::Binary,
        7 => DataType::FixedSizeBinary(1 + choices.below(18) as i32),
        8 => DataType::List(item(choices)),
        9 => DataType::LargeList(item(choices)),
        10 => DataType::FixedSizeList(item(choices), 1 + choices.below(4) as i32),
        _ => DataType::Struct(vec![item(choices)].into()),
    }
}

fn array(choices: &mut Choices<'_>, data_type: &DataType, rows: usize, depth: usize) -> ArrayRef {
    let null = choices.byte();
    if null < 16 {
        return new_null_array(data_type, rows);
    }
    // One value in eight is null in some columns, none in the others.
    let valid = |choices: &mut Choices<'_>| null < 128 || choices.below(8) > 0;
    match data_type {
        DataType::Boolean => Arc::new(BooleanArray::from_iter(
            (0..rows).map(|_| valid(choices).then(|| choices.below(2) == 1)),
        )),
        DataType::Float64 => Arc::new(Float64Array::from_iter(
            (0..rows).map(|_| valid(choices).then(|| choices.number() as f64)),
        )),
        DataType::Int8 => Arc::new(Int8Array::from_iter(
            (0..rows).map(|_| valid(choices).then(|| choices.byte() as i8)),
        )),
        DataType::Int64 => Arc::new(Int64Array::from_iter(
            (0..rows).map(|_| valid(choices).then(|| choices.number() as i64)),
        )),
        DataType::Utf8 => {
            let mut builder = StringBuilder::new();
            (0..rows).for_each(|_| builder.append_option(valid(choices).then(|| text(choices))));
            Arc::new(builder.finish())
        }
        DataType::Binary => {
            let mut builder = BinaryBuilder::new();
            (0..rows).for_each(|_| builder.append_option(valid(choices).then(|| binary(choices))));
            Arc::new(builder.finish())
        }
        DataType::FixedSizeBinary(size) => {
            let mut builder = FixedSizeBinaryBuilder::new(*size);
            for row in 0..rows {
                let fresh = vec![row as u8 ^ choices.byte(); *size as usize];
                builder.append_value(fresh).expect("of that size");
            }
            Arc::new(builder.finish())
        }
        DataType::List(item) => lists(choices, item, rows, depth, false),
        DataType::LargeList(item) => lists(choices, item, rows, depth, true),
        DataType::FixedSizeList(item, size) => {
            let values = array(choices, item.data_type(), rows * *size as usize, depth + 1);
            let item = Arc::new(Field::new("item", values.data_type().clone(), true));
            FixedSizeListArray::try_new(item, *size, values, None).map_or_else(
                |_| new_null_array(data_type, rows),
                |array| Arc::new(array) as ArrayRef,
            )
        }
        DataType::Struct(fields) => {
            let (fields, arrays) = columns(choices, fields, rows, depth + 1);
            Arc::new(StructArray::new(fields, arrays, None))
        }
        // Every other width of integer: readers widen it.
        _ => Arc::new(UInt64Array::from_iter(
            (0..rows).map(|_| valid(choices).then(|| choices.number())),
        )),
    }
}

fn lists(
    choices: &mut Choices<'_>,
    item: &FieldRef,
    rows: usize,
    depth: usize,
    large: bool,
) -> ArrayRef {
    let lengths: Vec<usize> = (0..rows).map(|_| choices.below(4)).collect();
    let values = array(choices, item.data_type(), lengths.iter().sum(), depth + 1);
    let item = Arc::new(Field::new("item", values.data_type().clone(), true));
    if large {
        let offsets = OffsetBuffer::from_lengths(lengths);
        return Arc::new(LargeListArray::new(item, offsets, values, None));
    }
    Arc::new(ListArray::new(item, OffsetBuffer::from_lengths(lengths), values, None))
}

/// A word that means something somewhere, or any word.
fn text(choices: &mut Choices<'_>) -> String {
    const WORDS: &[&str] = &[
        "/",
        "group",
        "array",
        "/a",
        "/a/b",
        "/b",
        "uint8",
        "regular",
        "default",
        "v2",
        ".",
        "bytes",
        "zstd",
        "ab/cd",
        "file",
        "s3://bucket/key",
        "vcc://x/y",
        "r24",
        "string",
        "{\"name\": \"x\"}",
        "../..",
        "",
    ];
    match choices.byte() {
        0..=199 => (*choices.pick(WORDS)).to_owned(),
        _ => String::from_utf8_lossy(choices.raw(12)).into_owned(),
    }
}

/// Bytes that mean something somewhere, or any bytes.
fn binary(choices: &mut Choices<'_>) -> Vec<u8> {
    const VALUES: &[&[u8]] = &[
        b"{}",
        b"{\"a\": 1}",
        b"0",
        b"null",
        b"\"NaN\"",
        b"{\"endian\": \"little\"}",
        b"{\"level\": 3, \"checksum\": false}",
        b"{\"chunk_grid\": {\"name\": \"rectilinear\"}}",
        b"{\"attributes\": {\"x\": []}}",
        b"{\"shape\": [18446744073709551615]}",
        b"\x00",
        b"\x01",
        b"\x80\x00",
        b"",
        b"0123456789abcdef",
    ];
    match choices.byte() {
        0..=199 => choices.pick(VALUES).to_vec(),
        _ => choices.raw(24).to_vec(),
    }
}
