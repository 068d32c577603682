//! Translates the vocabulary of our model into array-format's.

use array_format as af;
use chunkyard_engine::format::container::model::{
    ArrayStats, AttributeValue, DType, FillValue, StatValue,
};

pub(super) fn dtype(dtype: &DType) -> af::DType {
    match dtype {
        DType::Bool => af::DType::Bool,
        DType::Int8 => af::DType::Int8,
        DType::Int16 => af::DType::Int16,
        DType::Int32 => af::DType::Int32,
        DType::Int64 => af::DType::Int64,
        DType::UInt8 => af::DType::UInt8,
        DType::UInt16 => af::DType::UInt16,
        DType::UInt32 => af::DType::UInt32,
        DType::UInt64 => af::DType::UInt64,
        DType::Float32 => af::DType::Float32,
        DType::Float64 => af::DType::Float64,
        DType::String => af::DType::String,
        DType::Binary => af::DType::Binary,
        DType::TimestampNs => af::DType::TimestampNs,
        DType::FixedSizeList { child, size } => {
            af::DType::FixedSizeList { child: Box::new(self::dtype(child)), size: *size }
        }
        DType::List { child } => af::DType::List { child: Box::new(self::dtype(child)) },
    }
}

pub(super) fn fill(fill: &FillValue) -> af::FillValue {
    match fill {
        FillValue::Bool(value) => af::FillValue::Bool(*value),
        FillValue::Int(value) => af::FillValue::Int(*value),
        FillValue::UInt(value) => af::FillValue::UInt(*value),
        FillValue::Float(value) => af::FillValue::Float(*value),
        FillValue::String(value) => af::FillValue::String(value.clone()),
        FillValue::TimestampNs(value) => af::FillValue::TimestampNs(*value),
    }
}

pub(super) fn attribute(value: &AttributeValue) -> af::AttributeValue {
    match value {
        AttributeValue::Bool(value) => af::AttributeValue::Bool(*value),
        AttributeValue::Int8(value) => af::AttributeValue::Int8(*value),
        AttributeValue::Int16(value) => af::AttributeValue::Int16(*value),
        AttributeValue::Int32(value) => af::AttributeValue::Int32(*value),
        AttributeValue::Int64(value) => af::AttributeValue::Int64(*value),
        AttributeValue::UInt8(value) => af::AttributeValue::UInt8(*value),
        AttributeValue::UInt16(value) => af::AttributeValue::UInt16(*value),
        AttributeValue::UInt32(value) => af::AttributeValue::UInt32(*value),
        AttributeValue::UInt64(value) => af::AttributeValue::UInt64(*value),
        AttributeValue::Float32(value) => af::AttributeValue::Float32(*value),
        AttributeValue::Float64(value) => af::AttributeValue::Float64(*value),
        AttributeValue::String(value) => af::AttributeValue::String(value.clone()),
        other => panic!("version 4 has no {other:?}"),
    }
}

pub(super) fn statistics(stats: &ArrayStats) -> af::ArrayStats {
    let value = |value: &StatValue| match value {
        StatValue::Int(value) => af::StatValue::Int(*value),
        StatValue::UInt(value) => af::StatValue::UInt(*value),
        StatValue::Float(value) => af::StatValue::Float(*value),
        StatValue::Bytes(value) => af::StatValue::Bytes(value.clone()),
        StatValue::TimestampNs(value) => af::StatValue::TimestampNs(*value),
    };
    af::ArrayStats {
        name: stats.name.clone(),
        min: stats.min.as_ref().map(value),
        max: stats.max.as_ref().map(value),
        null_count: stats.null_count,
        row_count: stats.row_count,
    }
}
