//! Scripts that both implementations play alike, each about one topic.
//!
//! Cases that array-format 0.9 gets wrong are left out: attributes that are set in more than one
//! layer, an array that is defined again after it was deleted, writes to an array without elements,
//! fill values of strings that were never written.

use chunkyard_engine::format::container::model::{AttributeValue, DType, FillValue};

use crate::elements::{list_types, plain_types};
use crate::script::{Definition, Script};

/// All of them, by name.
pub fn all() -> Vec<(&'static str, Script)> {
    vec![
        ("every type", every_type()),
        ("fill values", fill_values()),
        ("clipped edges", clipped_edges()),
        ("scalars", scalars()),
        ("axes without length", axes_without_length()),
        ("never written", never_written()),
        ("names of all lengths", names_of_all_lengths()),
        ("attributes", attributes()),
        ("attributes under later layers", attributes_under_later_layers()),
        ("layers", layers()),
        ("deleted", deleted()),
        ("compacted", compacted()),
        ("layers on a compacted base", layers_on_a_compacted_base()),
    ]
}

/// The name of the array of a type.
fn name_of(dtype: &DType) -> String {
    format!("{dtype:?}").to_lowercase()
}

/// Each type in three chunks.
pub fn every_type() -> Script {
    let define = |dtype: DType| Definition::new(&name_of(&dtype), dtype, &[7]).chunks(&[3]);
    let script = plain_types().into_iter().zip(1..);
    script.fold(Script::new(), |script, (dtype, seed)| script.whole(define(dtype), seed)).flush()
}

/// One chunk of four is written, only in part; strings wholly.
pub fn fill_values() -> Script {
    let fills = [
        (DType::Bool, FillValue::Bool(true)),
        (DType::Int8, FillValue::Int(-101)),
        (DType::Int16, FillValue::Int(-9)),
        (DType::Int32, FillValue::Int(i64::from(i32::MIN))),
        (DType::Int64, FillValue::Int(i64::MIN)),
        (DType::UInt8, FillValue::UInt(255)),
        (DType::UInt16, FillValue::UInt(9)),
        (DType::UInt32, FillValue::UInt(u64::from(u32::MAX))),
        (DType::UInt64, FillValue::UInt(u64::MAX)),
        (DType::Float32, FillValue::Float(f64::NAN)),
        (DType::Float64, FillValue::Float(-0.5)),
        (DType::TimestampNs, FillValue::TimestampNs(i64::MIN)),
    ];
    let mut script = Script::new();
    for ((dtype, fill), seed) in fills.into_iter().zip(1..) {
        let definition = Definition::new(&name_of(&dtype), dtype.clone(), &[4, 5]).chunks(&[2, 3]);
        let name = definition.name.clone();
        script = script.define(definition.fill(fill)).write(&name, &dtype, &[0, 1], &[2, 2], seed);
    }
    let fill = FillValue::String("no words for it".into());
    script.whole(Definition::new("string", DType::String, &[9]).fill(fill), 5).flush()
}

/// Chunks that end beyond the array, in one to four dimensions.
pub fn clipped_edges() -> Script {
    Script::new()
        .whole(Definition::new("one", DType::Int16, &[10]).chunks(&[4]), 1)
        .whole(Definition::new("two", DType::Float32, &[4, 5]).chunks(&[2, 3]), 2)
        .whole(Definition::new("three", DType::UInt8, &[3, 4, 5]).chunks(&[2, 3, 4]), 3)
        .whole(Definition::new("four", DType::Int64, &[2, 3, 2, 3]).chunks(&[2, 2, 2, 2]), 4)
        .whole(Definition::new("larger chunk", DType::UInt32, &[3]).chunks(&[8]), 5)
        .whole(Definition::new("strings", DType::String, &[5, 3]).chunks(&[2, 2]), 6)
        .flush()
}

/// No dimension, one element.
pub fn scalars() -> Script {
    let script = plain_types().into_iter().zip(2..);
    let scalar = |dtype: DType| Definition::new(&name_of(&dtype), dtype, &[]);
    script.fold(Script::new(), |script, (dtype, seed)| script.whole(scalar(dtype), seed)).flush()
}

/// Defined and never written: array-format can do no more with them.
pub fn axes_without_length() -> Script {
    Script::new()
        .define(Definition::new("the first", DType::Float32, &[0, 3]).chunks(&[4, 3]))
        .define(Definition::new("the last", DType::String, &[2, 0]).chunks(&[2, 1]))
        .whole(Definition::new("has length", DType::Int8, &[2]), 1)
        .flush()
}

/// Arrays without any chunk, with and without a fill value.
pub fn never_written() -> Script {
    let fill = FillValue::Int(-7);
    Script::new()
        .define(Definition::new("zero", DType::Float64, &[3, 3]).chunks(&[2, 2]))
        .define(Definition::new("filled", DType::Int32, &[4]).fill(fill))
        .define(Definition::new("empty strings", DType::String, &[2]))
        .flush()
}

/// Names that a footer holds inline, and names that it does not.
pub fn names_of_all_lengths() -> Script {
    let name = |length: usize| "abcdefghij".chars().cycle().take(length).collect::<String>();
    let lengths = [1, 15, 16, 17, 63, 64, 65, 70, 200].into_iter().zip(1..);
    let script = lengths.fold(Script::new(), |script, (length, seed)| {
        script.whole(Definition::new(&name(length), DType::UInt16, &[2]), seed)
    });
    script
        .whole(Definition::new("a/b/c d.e", DType::UInt16, &[2]), 20)
        .whole(Definition::new("größe/東京/température", DType::UInt16, &[2]), 21)
        .flush()
}

/// Every type of value that version 4 has.
pub fn attributes() -> Script {
    let values = [
        AttributeValue::Bool(true),
        AttributeValue::Int8(-8),
        AttributeValue::Int16(-16),
        AttributeValue::Int32(-32),
        AttributeValue::Int64(i64::MIN),
        AttributeValue::UInt8(8),
        AttributeValue::UInt16(16),
        AttributeValue::UInt32(32),
        AttributeValue::UInt64(u64::MAX),
        AttributeValue::Float32(0.5),
        AttributeValue::Float64(f64::NAN),
        AttributeValue::String("K".into()),
        AttributeValue::String("a text that does not fit where short ones are".into()),
    ];
    let script = Script::new()
        .whole(Definition::new("many", DType::UInt8, &[2]), 1)
        .whole(Definition::new("one", DType::UInt8, &[2]), 2)
        .define(Definition::new("none", DType::UInt8, &[2]));
    let keyed = values.into_iter().enumerate();
    let script = keyed.fold(script, |script, (at, value)| {
        script.attribute("many", &format!("a key of the number {at}"), value)
    });
    let meter = || AttributeValue::String("m".into());
    // Set twice, shared with another array, and the same value under two keys.
    script
        .attribute("one", "units", AttributeValue::Int8(0))
        .attribute("one", "units", meter())
        .attribute("many", "units", meter())
        .attribute("one", "length", meter())
        .flush()
}

/// Attributes of one layer stay when later layers write chunks.
pub fn attributes_under_later_layers() -> Script {
    let definition = Definition::new("a", DType::Int32, &[6]).chunks(&[2]);
    let dtype = definition.dtype.clone();
    Script::new()
        .whole(definition, 1)
        .attribute("a", "units", AttributeValue::String("K".into()))
        .attribute("a", "scale", AttributeValue::Float64(0.01))
        .flush()
        .write("a", &dtype, &[2], &[2], 2)
        .flush()
        .write("a", &dtype, &[5], &[1], 3)
        .flush()
}

/// Whole chunks and parts of chunks, written again in later layers; arrays that come later.
pub fn layers() -> Script {
    let (grid, words) = (DType::Float64, DType::String);
    let fill = FillValue::Float(f64::NAN);
    let definition = Definition::new("grid", grid.clone(), &[5, 7]).chunks(&[2, 3]).fill(fill);
    Script::new()
        .define(definition)
        .write("grid", &grid, &[0, 0], &[4, 6], 1)
        .whole(Definition::new("words", words.clone(), &[8]).chunks(&[3]), 2)
        .flush()
        .write("grid", &grid, &[0, 0], &[2, 3], 3)
        .flush()
        .write("words", &words, &[2], &[5], 4)
        .whole(Definition::new("later", DType::UInt64, &[3]), 5)
        .flush()
        .write("grid", &grid, &[1, 2], &[4, 5], 6)
        .write("later", &DType::UInt64, &[1], &[1], 7)
        .flush()
}

/// One of three arrays is deleted in a later layer, and one before it was ever flushed.
pub fn deleted() -> Script {
    Script::new()
        .whole(Definition::new("kept", DType::Int32, &[4]), 1)
        .whole(Definition::new("gone", DType::Int32, &[4]), 2)
        .whole(Definition::new("changed", DType::Int32, &[4]), 3)
        .flush()
        .delete("gone")
        .write("changed", &DType::Int32, &[0], &[4], 4)
        .flush()
        .whole(Definition::new("gone at once", DType::Int8, &[2]), 5)
        .delete("gone at once")
        .flush()
}

/// Layers and deletions, then one file.
pub fn compacted() -> Script {
    let mut script = layers();
    script.steps.extend(deleted().steps);
    script.attribute("kept", "units", AttributeValue::String("K".into())).flush().compact()
}

/// Layers that are written after a compaction.
pub fn layers_on_a_compacted_base() -> Script {
    compacted()
        .write("grid", &DType::Float64, &[0, 0], &[1, 7], 11)
        .whole(Definition::new("after", DType::Bool, &[5]).chunks(&[2]), 12)
        .flush()
        .write("after", &DType::Bool, &[1], &[3], 13)
        .flush()
}

/// Arrays of lists, which array-format writes and reads as raw chunks only.
pub fn lists() -> Script {
    let define = |(dtype, name): (DType, u64)| {
        (Definition::new(&format!("list {name}"), dtype, &[5, 3]).chunks(&[2, 2]), name)
    };
    let script = list_types().into_iter().zip(1..).map(define);
    script.fold(Script::new(), |script, (definition, seed)| script.whole(definition, seed)).flush()
}
