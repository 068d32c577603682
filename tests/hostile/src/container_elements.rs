//! Chunks of a container: lists within lists, and their statistics.

use chunkyard_engine::format::container::model::{DType, FillValue};
use chunkyard_engine::format::container::statistics::of_chunk;
use chunkyard_engine::format::hostile::container::elements::{
    decode, encode, list_chunk_from_offsets_bytes, list_chunk_to_offsets_bytes,
};

use crate::choices::Choices;
use crate::error::is_about_bytes;

const LEAVES: &[DType] = &[
    DType::Bool,
    DType::Int16,
    DType::UInt32,
    DType::Float32,
    DType::Float64,
    DType::String,
    DType::Binary,
    DType::TimestampNs,
];

/// The first bytes choose a type and a number of elements; the rest is the chunk.
pub(crate) fn elements(data: &[u8]) {
    let (head, bytes) = data.split_at(data.len().min(8));
    let mut choices = Choices::new(head);
    let dtype = dtype(&mut choices);
    let count = choices.number();
    match decode(&dtype, count, bytes) {
        Err(error) => is_about_bytes(&error),
        Ok(values) => {
            let again = encode(&dtype, &values).expect("decoded values can be encoded");
            assert_eq!(again, bytes, "{count} of {dtype:?}");
        }
    }
    match list_chunk_to_offsets_bytes(&dtype, count, bytes) {
        Err(error) => is_about_bytes(&error),
        Ok(elements) => {
            let again = list_chunk_from_offsets_bytes(&dtype, count, &elements);
            assert_eq!(again.expect("a conversion can be undone"), bytes, "{count} of {dtype:?}");
        }
    }
    match list_chunk_from_offsets_bytes(&dtype, count, bytes) {
        Err(error) => is_about_bytes(&error),
        Ok(lists) => {
            let again = list_chunk_to_offsets_bytes(&dtype, count, &lists);
            assert_eq!(again.expect("a conversion can be undone"), bytes, "{count} of {dtype:?}");
        }
    }
    for fill in [None, Some(FillValue::Int(0)), Some(FillValue::Float(f64::NAN))] {
        match of_chunk(&dtype, fill.as_ref(), bytes) {
            Err(error) => is_about_bytes(&error),
            Ok(stats) => {
                assert!(stats.non_null <= bytes.len() as u64);
                assert_eq!(stats.min.is_some(), stats.non_null > 0);
                assert_eq!(stats.max.is_some(), stats.non_null > 0);
            }
        }
    }
}

fn dtype(choices: &mut Choices<'_>) -> DType {
    let depth = choices.below(4);
    let leaf = choices.pick(LEAVES).clone();
    (0..depth).fold(leaf, |child, _| {
        let child = Box::new(child);
        match choices.pick(&[None, None, Some(0), Some(1), Some(3)]) {
            None => DType::List { child },
            Some(size) => DType::FixedSizeList { child, size: *size },
        }
    })
}
