use super::*;
use crate::{ByteOrder, DType, Error};

fn of(numpy: &str) -> RowType {
    let (dtype, order) = DType::from_numpy(numpy).unwrap();
    RowType::Plain { dtype, order }
}

fn named(name: &str, kind: RowType, shape: &[u64]) -> Field {
    Field { name: name.into(), kind, shape: shape.to_vec() }
}

/// Text, NumPy's description, bytes.
const PLAIN: [(&str, &str, u64); 19] = [
    ("bool", "|b1", 1),
    ("int8", "|i1", 1),
    ("int32", "<i4", 4),
    ("uint64", "<u8", 8),
    ("float16", "<f2", 2),
    ("float64", "<f8", 8),
    ("complex64", "<c8", 8),
    ("complex128", "<c16", 16),
    ("datetime64[ns]", "<M8[ns]", 8),
    ("datetime64[25s]", "<M8[25s]", 8),
    ("datetime64", "<M8", 8),
    ("timedelta64[us]", "<m8[us]", 8),
    (">f8", ">f8", 8),
    (">M8[ns]", ">M8[ns]", 8),
    ("|S3", "|S3", 3),
    ("<U5", "<U5", 20),
    (">U5", ">U5", 20),
    ("|V16", "|V16", 16),
    ("|V300", "|V300", 300),
];

#[test]
fn types_of_one_value_are_read_and_written_as_numpy_prints_them() {
    for (text, numpy, bytes) in PLAIN {
        let found = parse(text).unwrap();
        assert_eq!(found, of(numpy), "{text}");
        assert_eq!(render(&found).unwrap(), text);
        assert_eq!(item_bytes(&found), bytes, "{text}");
    }
}

#[test]
fn other_spellings_of_the_same_type_are_read() {
    for (text, same) in [
        ("'<i2'", "int16"),
        ("\"float64\"", "float64"),
        (" f8 ", "float64"),
        ("=f8", "float64"),
        ("S3", "|S3"),
        ("<S3", "|S3"),
        (">S3", "|S3"),
        ("?", "bool"),
        ("|b1", "bool"),
        (">i1", "int8"),
        ("M8[s]", "datetime64[s]"),
    ] {
        assert_eq!(render(&parse(text).unwrap()).unwrap(), same, "{text}");
    }
}

#[test]
fn fields_are_read_and_written_as_numpy_prints_them() {
    let text = "[('x', '<f8'), ('y', '<i2', (3,)), ('n', [('a', '>i4'), ('b', '?')], (2, 4)), \
                (\"it's\", 'S3'), ('u', '<U2'), ('t', '<M8[ns]')]";
    let nested = RowType::Struct(vec![named("a", of(">i4"), &[]), named("b", of("|b1"), &[])]);
    let expected = RowType::Struct(vec![
        named("x", of("<f8"), &[]),
        named("y", of("<i2"), &[3]),
        named("n", nested, &[2, 4]),
        named("it's", of("|S3"), &[]),
        named("u", of("<U2"), &[]),
        named("t", of("<M8[ns]"), &[]),
    ]);
    assert_eq!(parse(text).unwrap(), expected);
    assert_eq!(render(&expected).unwrap(), text);
    assert_eq!(item_bytes(&expected), 8 + 6 + 40 + 3 + 8 + 8);
    let short = "[('a', '|b1'), ('b', '|i1', 3)]";
    assert_eq!(render(&parse(short).unwrap()).unwrap(), "[('a', '?'), ('b', 'i1', (3,))]");
}

#[test]
fn a_row_in_big_endian_order_says_so_in_every_value() {
    let RowType::Plain { order, .. } = parse(">u2").unwrap() else { panic!("one value") };
    assert_eq!(order, ByteOrder::Big);
}

#[test]
fn objects_are_refused_because_they_are_pickles() {
    for text in ["object", "O", "|O", "'O'", "|O8", "[('a', 'O')]"] {
        let error = parse(text).unwrap_err();
        assert!(matches!(error, Error::Unsupported { .. }), "{text}: {error}");
        assert!(error.to_string().contains("pickle"), "{error}");
    }
}

#[test]
fn types_that_only_numpy_has_are_unsupported() {
    for text in [
        "float128",
        "{'names': ['a'], 'formats': ['<i4'], 'offsets': [4], 'itemsize': 8}",
        "[(('title', 'a'), '<f8')]",
        "[('', '|V4')]",
        "<U9999999",
        "|V9999999",
    ] {
        let error = parse(text).unwrap_err();
        assert!(matches!(error, Error::Unsupported { .. }), "{text}: {error}");
    }
}

#[test]
fn texts_that_are_not_types_are_refused() {
    for text in [
        "",
        "x",
        "[]",
        "[()]",
        "[('a',)]",
        "[('a', 1)]",
        "[1]",
        "['<f8']",
        "('<f8', (3,))",
        "[('a', '<f8'), ('a', '<i2')]",
        "[('a', '<f8', ('b',))]",
        "'",
        "[('a', '<f8')",
        "|S0",
        "M8[x]",
        "float64[ns]",
        "'[(1)]'",
    ] {
        assert!(parse(text).is_err(), "{text}");
    }
}
