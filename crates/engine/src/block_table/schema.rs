//! The columns.

use std::sync::Arc;

use arrow_schema::{DataType, Field, Schema, SchemaRef};

/// The columns of a block table.
pub fn schema() -> SchemaRef {
    let list = |name| Field::new_list(name, Field::new("item", DataType::UInt64, true), false);
    let field = |name, kind| Field::new(name, kind, false);
    let bin = |name| Field::new(name, DataType::Binary, true);
    Arc::new(Schema::new(vec![
        field("shard_id", DataType::UInt64),
        field("morton", DataType::UInt64),
        field("part", DataType::UInt16),
        field("parts", DataType::UInt16),
        field("scale", DataType::UInt8),
        field("x", DataType::Int32),
        field("y", DataType::Int32),
        field("z", DataType::Int32),
        list("labels"),
        list("supervoxels"),
        field("nbytes", DataType::UInt32),
        field("raw_nbytes", DataType::UInt32),
        field("codec", DataType::Utf8),
        field("crc32c", DataType::UInt32),
        bin("bin1"),
        bin("bin2"),
        bin("bin3"),
        bin("bin4"),
    ]))
}
