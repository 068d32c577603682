use serde_json::json;

use super::{ByteOrder, DType};

#[test]
fn numpy_descriptions_translate_both_ways() {
    for (numpy, zarr, size) in [
        ("|b1", "bool", 1),
        ("|i1", "int8", 1),
        ("<i2", "int16", 2),
        ("<i4", "int32", 4),
        ("<i8", "int64", 8),
        ("|u1", "uint8", 1),
        ("<u2", "uint16", 2),
        ("<u4", "uint32", 4),
        ("<u8", "uint64", 8),
        ("<f2", "float16", 2),
        ("<f4", "float32", 4),
        ("<f8", "float64", 8),
        ("<c8", "complex64", 8),
        ("<c16", "complex128", 16),
        ("|V5", "r40", 5),
        ("|S3", "null_terminated_bytes", 3),
        ("<M8[ns]", "numpy.datetime64", 8),
        ("<M8[25s]", "numpy.datetime64", 8),
        ("<m8[D]", "numpy.timedelta64", 8),
        ("<m8", "numpy.timedelta64", 8),
        ("<U12", "fixed_length_utf32", 48),
    ] {
        let (dtype, order) = DType::from_numpy(numpy).unwrap();
        assert_eq!((dtype.name(), dtype.item_size()), (zarr, Some(size)), "{numpy}");
        assert_eq!(order, ByteOrder::Little);
        assert_eq!(dtype.to_numpy().as_deref(), Some(numpy));
    }
}

#[test]
fn the_byte_order_is_told_apart_from_the_type() {
    let (dtype, order) = DType::from_numpy(">f8").unwrap();
    assert_eq!((dtype.name(), order), ("float64", ByteOrder::Big));
    let (dtype, _) = DType::from_numpy(">M8[us]").unwrap();
    assert_eq!(dtype.to_numpy().as_deref(), Some("<M8[us]"));
}

#[test]
fn descriptions_without_a_zarr_type_are_refused() {
    for numpy in ["", "<", "f", "<f3", "|O", "|S0", "|V0", "<U", "<M8[", "<M8[0s]", "<M8[xx]", "é1"]
    {
        assert!(DType::from_numpy(numpy).is_err(), "{numpy}");
    }
    let huge = format!("|V{}", u64::MAX);
    assert!(DType::from_numpy(&huge).is_err());
}

#[test]
fn every_type_of_the_core_and_its_extensions_is_accepted() {
    let sizes = [
        (json!("bool"), Some(1)),
        (json!("int2"), Some(1)),
        (json!("uint4"), Some(1)),
        (json!("bfloat16"), Some(2)),
        (json!("float8_e4m3"), Some(1)),
        (json!("complex_float16"), Some(4)),
        (json!("r24"), Some(3)),
        (json!({"name": "float32"}), Some(4)),
        (json!("string"), None),
        (json!("bytes"), None),
    ];
    for (json, size) in sizes {
        assert_eq!(DType::parse(&json).unwrap().item_size(), size, "{json}");
    }
    for json in [json!("float33"), json!("r9"), json!(7), json!({"configuration": {}})] {
        assert!(DType::parse(&json).is_err(), "{json}");
    }
}
