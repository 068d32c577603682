use chunkyard_array::non_finite;
use chunkyard_store::{Digest, ErrorKind};
use serde_json::{Value, json};

use super::*;
use crate::superchunk::dtype;

/// What bcolz 1.13 wrote.
const STORAGE: &str = "{\"dtype\": \"float64\", \"cparams\": {\"clevel\": 5, \"shuffle\": 1, \
    \"cname\": \"lz4\", \"quantize\": 0}, \"chunklen\": 100, \"expectedlen\": 500, \"dflt\": 1.5}\n";

/// The document's example.
const DOCUMENT: &str = "{\"dtype\": \"float64\", \"cparams\": {\"shuffle\": true, \"clevel\": 5},
     \"chunklen\": 16384, \"dflt\": 0.0, \"expectedlen\": 10000000}";

fn storage(text: &str) -> Result<Storage> {
    Storage::parse("meta/storage", text.as_bytes())
}

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap()
}

#[test]
fn json_is_what_python_writes() {
    for (value, expected) in [
        (json!({"a": [1, -2, 1.5], "b": {}, "c": []}), r#"{"a": [1, -2, 1.5], "b": {}, "c": []}"#),
        (json!([null, true, false]), "[null, true, false]"),
        (json!("né \u{1f600}\u{7f}\u{1}/"), r#""n\u00e9 \ud83d\ude00\u007f\u0001/""#),
        (json!("\"\\\n\r\t\u{8}\u{c}"), r#""\"\\\n\r\t\b\f""#),
        (json!([u64::MAX, i64::MIN]), "[18446744073709551615, -9223372036854775808]"),
        (
            json!([0.0, -0.0, 1.0, 100.0, 1e15, 123456789012345680.0]),
            "[0.0, -0.0, 1.0, 100.0, 1000000000000000.0, 1.2345678901234568e+17]",
        ),
        (json!([1e16, 1e22, 1.5e300]), "[1e+16, 1e+22, 1.5e+300]"),
        (json!([0.0001, 0.00001, 1.25e-7, 5e-324]), "[0.0001, 1e-05, 1.25e-07, 5e-324]"),
        (json!([0.1, 1.0 / 3.0]), "[0.1, 0.3333333333333333]"),
    ] {
        assert_eq!(ascii_json(&value), expected);
    }
}

#[test]
fn sizes_are_read_and_written_to_the_byte() {
    let file = b"{\"shape\": [500, 5], \"nbytes\": 20000, \"cbytes\": 6240}\n";
    let sizes = Sizes::parse("meta/sizes", file).unwrap();
    let expected = Sizes { shape: vec![500, 5], nbytes: 20000, cbytes: 6240, ..Sizes::default() };
    assert_eq!(sizes, expected);
    assert_eq!(sizes.render(), file);
    let ours = b"{\"shape\": [18446744073709551615], \"nbytes\": 1, \"cbytes\": 2, \
        \"generation\": 18446744073709551615, \"x\": {\"y\": 1}}\n";
    let sizes = Sizes::parse("meta/sizes", ours).unwrap();
    assert_eq!((sizes.shape[0], sizes.generation), (u64::MAX, Some(u64::MAX)));
    assert_eq!(sizes.render(), ours);
}

#[test]
fn the_compressed_size_of_other_programs_is_an_estimate() {
    for estimate in ["-128", "1e30", "\"?\"", "null"] {
        let file = format!("{{\"shape\": [1], \"nbytes\": 8, \"cbytes\": {estimate}}}");
        assert_eq!(Sizes::parse("meta/sizes", file.as_bytes()).unwrap().cbytes, 0);
    }
}

#[test]
fn errors_in_sizes_name_the_file_and_the_key() {
    for (file, key) in [
        ("{\"nbytes\": 8}", "shape"),
        ("{\"shape\": [], \"nbytes\": 8}", "shape"),
        ("{\"shape\": [-1], \"nbytes\": 8}", "shape"),
        ("{\"shape\": [1.5], \"nbytes\": 8}", "shape"),
        ("{\"shape\": [18446744073709551616], \"nbytes\": 8}", "shape"),
        ("{\"shape\": [1]}", "nbytes"),
        ("{\"shape\": [1], \"nbytes\": 8, \"generation\": -1}", "generation"),
        ("[1]", "its text"),
        ("", "its text"),
        ("{\"shape\": [1], \"nbytes\": 8} x", "its text"),
    ] {
        let error = Sizes::parse("meta/sizes", file.as_bytes()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt);
        let found = error.to_string();
        assert!(found.starts_with(&format!("meta/sizes is corrupt: {key}")), "{found}");
    }
    let many = format!("{{\"shape\": {}1], \"nbytes\": 8}}", "[".repeat(1000));
    assert!(Sizes::parse("meta/sizes", many.as_bytes()).is_err());
}

#[test]
fn storage_of_bcolz_is_read_and_written_to_the_byte() {
    let found = storage(STORAGE).unwrap();
    let cparams = CParams { cname: Some("lz4".into()), quantize: Some(0), ..CParams::default() };
    assert_eq!((&found.cparams, found.cparams_key), (&cparams, "cparams"));
    assert_eq!((found.chunklen, found.expectedlen), (100, 500));
    assert_eq!(text(found.render()), STORAGE);
}

#[test]
fn storage_of_the_document_and_of_blz_is_read() {
    let found = storage(DOCUMENT).unwrap();
    assert_eq!(found.cparams, CParams::default());
    assert_eq!((found.chunklen, found.dflt.as_f64()), (16384, Some(0.0)));
    let blz = DOCUMENT.replace("cparams", "bparams").replace("true", "false");
    let found = storage(&blz).unwrap();
    assert_eq!((found.cparams.shuffle, found.cparams_key), (0, "bparams"));
    let written = text(found.render());
    assert!(written.contains("\"bparams\": {\"clevel\": 5, \"shuffle\": false}"), "{written}");
    assert_eq!(storage(&written).unwrap(), found);
}

#[test]
fn our_own_keys_and_unknown_ones_are_kept() {
    let column = ColumnStorage {
        chunklen: 7,
        cparams: CParams { shuffle: 2, blocksize: Some(65536), ..CParams::default() },
        dflt: json!("NaN"),
        superchunk: Some(3),
        other: Map::new(),
    };
    let ours = Storage {
        dtype: "[('a b', '<f8'), ('n', [('x', 'S3')])]".into(),
        format: Some("blz-superchunk/1".into()),
        superchunk: Some(64),
        checksum: Some(Digest::Crc32),
        slack: 5,
        columns: Some([("a%20b".into(), column)].into()),
        dflt: json!(["NaN", ["NaN"]]),
        other: json!({"later": [1]}).as_object().unwrap().clone(),
        ..storage(STORAGE).unwrap()
    };
    let written = text(ours.render());
    assert_eq!(storage(&written).unwrap(), ours);
    assert!(written.contains("\"dflt\": [NaN, [\"NaN\"]]"), "{written}");
    assert!(written.contains("\"dflt\": NaN, \"superchunk\": 3"), "{written}");
    assert!(written.contains("\"checksum\": \"crc32\", \"slack\": 5, \"columns\""), "{written}");
    assert!(written.ends_with("\"later\": [1]}\n"), "{written}");
}

#[test]
fn errors_in_storage_name_the_key() {
    for (from, to, key) in [
        ("\"float64\"", "8", "dtype"),
        ("100", "0", "chunklen"),
        ("100", "1e2", "chunklen"),
        ("\"clevel\": 5", "\"clevel\": 10", "cparams.clevel"),
        ("\"shuffle\": 1", "\"shuffle\": 3", "cparams.shuffle"),
        ("\"lz4\"", "4", "cparams.cname"),
        ("500", "\"500\"", "expectedlen"),
        ("\"dflt\"", "\"checksum\": \"sha3\", \"dflt\"", "checksum"),
        ("\"dflt\"", "\"superchunk\": 0, \"dflt\"", "superchunk"),
        ("\"dflt\"", "\"columns\": {\"a\": {}}, \"dflt\"", "columns.a.chunklen"),
        ("\"dflt\"", "\"columns\": [], \"dflt\"", "columns"),
    ] {
        let found = storage(&STORAGE.replace(from, to)).unwrap_err().to_string();
        assert!(found.starts_with(&format!("meta/storage is corrupt: {key}: ")), "{found}");
    }
}

#[test]
fn values_that_json_does_not_have_are_read_as_python_writes_them() {
    for (dflt, value) in [("NaN", "NaN"), ("-Infinity", "-Infinity"), ("Infinity", "Infinity")] {
        let file = STORAGE.replace("1.5", dflt);
        let found = storage(&file).unwrap();
        assert_eq!(found.dflt, json!(value));
        assert_eq!(text(found.render()), file);
    }
    // In attributes they are numbers, and are written as numbers.
    let file = b"{\"NaN\": [NaN, \"NaN \\\" NaN\", -1], \"x\\\\\": Infinity}\n";
    let mut found = parse_attributes("a", file).unwrap();
    assert_eq!(render_attributes(&found), file);
    assert_eq!(non_finite::seal(&mut found), ["/NaN/0", "/x\\"]);
}

#[test]
fn attributes_come_back_and_may_be_missing() {
    let file = b"{\"temperature\": 11.4, \"scale\": \"Celsius\", \"coords\": {\"lat\": 40.1, \"lon\": 0.5}}\n";
    assert_eq!(render_attributes(&parse_attributes("a", file).unwrap()), file);
    assert_eq!(parse_attributes("a", b"\n").unwrap(), Map::new());
    assert_eq!(render_attributes(&Map::new()), b"{}\n");
    assert!(parse_attributes("a", b"[]").is_err());
}

#[test]
fn the_columns_of_a_table_are_found_beside_it_whatever_path_is_written() {
    let file =
        b"{\"names\": [\"x\", \"y\"], \"dirs\": {\"x\": \"/home/me/t/x\", \"y\": \"t/f1/\"}}\n";
    let table = RootDirs::parse("__rootdirs__", file).unwrap();
    assert_eq!(table.directory("x"), Some("x"));
    assert_eq!(table.directory("y"), Some("f1"));
    assert_eq!(table.render(), file);
    let table = RootDirs::parse("__rootdirs__", b"{\"names\": [\"f0\", \"f1\"]}\n").unwrap();
    assert_eq!(table.directory("f1"), Some("f1"));
    assert_eq!(table.render(), b"{\"names\": [\"f0\", \"f1\"]}\n");
    for wrong in [
        "{}",
        "{\"names\": [1]}",
        "{\"names\": [\"a\", \"a\"]}",
        "{\"names\": [\"..\"]}",
        "{\"names\": [\"a/b\"]}",
        "{\"names\": [\"\"]}",
        "{\"names\": [\"a\"], \"dirs\": {\"a\": \"x/..\"}}",
        "{\"names\": [\"a\"], \"dirs\": {\"a\": 1}}",
    ] {
        let error = RootDirs::parse("__rootdirs__", wrong.as_bytes()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{wrong}");
    }
}

#[test]
fn shards_say_where_each_file_is() {
    let file = b"{\"ranges\": [{\"first\": 1, \"last\": 500, \"base\": \"s3://a/b\"}, \
        {\"first\": 502, \"last\": 502, \"base\": \"/x\"}]}\n";
    let shards = Shards::parse("meta/shards", file).unwrap();
    assert_eq!(shards.render(false), file);
    let found = [0, 1, 500, 501, 502, 503].map(|number| shards.base_of(number));
    assert_eq!(found, [None, Some("s3://a/b"), Some("s3://a/b"), None, Some("/x"), None]);
    for wrong in [
        "{\"first\": 0, \"last\": 1, \"base\": \"a\"}",
        "{\"first\": 2, \"last\": 1, \"base\": \"a\"}",
        "{\"first\": 1, \"last\": 1, \"base\": \"\"}",
        "{\"first\": 1, \"last\": 2, \"base\": \"a\"}, {\"first\": 2, \"last\": 3, \"base\": \"a\"}",
        "1",
    ] {
        let file = format!("{{\"ranges\": [{wrong}]}}");
        let error = Shards::parse("meta/shards", file.as_bytes()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
    }
}

#[test]
fn sizes_say_where_files_are() {
    let file = b"{\"shape\": [7], \"nbytes\": 56, \"cbytes\": 9, \"generation\": 3, \"shards\": \
        [{\"first\": 2, \"last\": 2, \"base\": \"/x\"}], \"mine\": 1}\n";
    let mut sizes = Sizes::parse("meta/sizes", file).unwrap();
    assert_eq!(sizes.render(), file);
    let shards = sizes.shards.take().unwrap();
    assert_eq!(shards.base_of(2), Some("/x"));
    assert!(Sizes::parse("meta/sizes", &sizes.render()).unwrap().shards.is_none());
    let many = [4, 6, 3, 1].into_iter().fold(shards, |shards, number| shards.with(number, "/x"));
    let ranges: Vec<_> = many.ranges.iter().map(|range| range.first..=range.last).collect();
    assert_eq!(ranges, [1..=4, 6..=6]);
    assert_eq!(many.with(5, "/y").ranges.len(), 3);
    for wrong in ["1", "{}", "[1]", "[{\"first\": 0, \"last\": 1, \"base\": \"a\"}]"] {
        let file = format!("{{\"shape\": [7], \"nbytes\": 56, \"shards\": {wrong}}}");
        let error = Sizes::parse("meta/sizes", file.as_bytes()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
    }
}

/// The bytes of a fill value of this type, and the fill value they become again.
fn filled(kind: &str, dflt: Value) -> (Vec<u8>, Value) {
    let kind = dtype::parse(kind).unwrap();
    let element = default_element(&dflt, &kind, &[]).unwrap();
    let value = default_value(&element, &kind).unwrap();
    assert_eq!(default_element(&value, &kind, &[]).unwrap(), element, "{value}");
    (element, value)
}

#[test]
fn fill_values_of_every_type_become_bytes_and_come_back() {
    for (kind, dflt, bytes) in [
        ("bool", json!(true), &[1][..]),
        ("int8", json!(-1), &[0xff]),
        ("int16", json!(-2), &[0xfe, 0xff]),
        (">i4", json!(1), &[0, 0, 0, 1]),
        ("uint64", json!(u64::MAX), &[0xff; 8]),
        ("int64", json!(i64::MIN), &i64::MIN.to_le_bytes()),
        ("float16", json!(1.5), &[0, 0x3e]),
        ("float32", json!(1.5), &1.5f32.to_le_bytes()),
        ("float64", json!("NaN"), &f64::NAN.to_le_bytes()),
        (">f8", json!("-Infinity"), &f64::NEG_INFINITY.to_be_bytes()),
        ("complex64", json!([1.0, 2.0]), &[0, 0, 0x80, 0x3f, 0, 0, 0, 0x40]),
        ("|S3", json!("a\u{e9}"), &[b'a', 0xe9, 0]),
        (">U2", json!("é"), &[0, 0, 0, 0xe9, 0, 0, 0, 0]),
        ("|V2", json!("\u{1}"), &[1, 0]),
        ("datetime64[ns]", json!(0), &[0; 8]),
        ("[('a', 'i1'), ('b', '<i2', (99999999999, 0))]", json!([1, []]), &[1]),
        (
            "[('a', '<i2'), ('b', 'S1', (2,)), ('n', [('c', '?')])]",
            json!([1, ["x", "y"], [true]]),
            b"\x01\0xy\x01",
        ),
    ] {
        assert_eq!(filled(kind, dflt.clone()), (bytes.to_vec(), dflt), "{kind}");
    }
}

#[test]
fn other_spellings_of_a_fill_value_are_read() {
    for (kind, dflt, bytes) in [
        ("bool", json!(0), &[0][..]),
        ("int16", json!(3.0), &[3, 0]),
        ("int16", json!(true), &[1, 0]),
        ("float32", json!(1), &1f32.to_le_bytes()),
        ("complex64", json!(1), &[0, 0, 0x80, 0x3f, 0, 0, 0, 0]),
        ("datetime64[s]", json!("NaT"), &i64::MIN.to_le_bytes()),
        ("<U2", Value::Null, &[0; 8]),
        ("[('a', '<i2', (2,)), ('b', 'S1')]", json!(0), &[0; 5]),
        ("[('a', '<i2', (2,)), ('b', 'S1')]", json!([7, ""]), &[7, 0, 7, 0, 0]),
    ] {
        assert_eq!(filled(kind, dflt).0, bytes, "{kind}");
    }
}

#[test]
fn a_list_of_the_rows_shape_is_a_row_or_the_one_element_it_repeats() {
    let row = |kind: &str, dflt: Value, shape: &[u64]| {
        default_element(&dflt, &dtype::parse(kind).unwrap(), shape).ok()
    };
    assert_eq!(row("uint8", json!([[1, 2], [3, 4]]), &[2, 2]), Some(vec![1, 2, 3, 4]));
    assert_eq!(row("uint8", json!([[5, 5], [5, 5]]), &[2, 2]), Some(vec![5]));
    assert_eq!(row("uint8", json!(6), &[1 << 40]), Some(vec![6]));
    assert_eq!(row("[('a', 'u1'), ('b', 'u1')]", json!([1, 2]), &[2]), Some(vec![1, 2]));
    let two = json!([[1, 2], [3, 4]]);
    assert_eq!(row("[('a', 'u1'), ('b', 'u1')]", two, &[2]), Some(vec![1, 2, 3, 4]));
    assert_eq!(row("uint8", json!([1, 2, 3]), &[2]), None);
    assert_eq!(row("uint8", json!([[1, 2], [3]]), &[2, 2]), None);
}

#[test]
fn fill_values_of_another_type_are_refused() {
    for (kind, dflt) in [
        ("int8", json!(128)),
        ("uint8", json!(-1)),
        ("int64", json!(1.5)),
        ("int64", json!(1e300)),
        ("float64", json!("x")),
        ("float16", json!(1e10)),
        ("float32", json!(-1e39)),
        ("|S1", json!("ab")),
        ("|S1", json!("∂")),
        ("<U1", json!("ab")),
        ("complex64", json!([1])),
        ("[('a', '<i2')]", json!([1, 2])),
        ("[('a', '<i2')]", json!(1)),
        ("[('a', '<i2', (3,))]", json!([[1, 2]])),
    ] {
        let kind = dtype::parse(kind).unwrap();
        let error = default_element(&dflt, &kind, &[]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid, "{dflt}");
    }
    let huge = dtype::parse("[('a', '<f8', (200000000,))]").unwrap();
    let error = default_element(&json!(0), &huge, &[]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(default_value(&[0; 3], &dtype::parse("int32").unwrap()).is_err());
    assert!(default_value(&[0xff; 4], &dtype::parse("<U1").unwrap()).is_err());
}

#[test]
fn a_checksum_covers_every_bit_of_its_file() {
    let attributes = json!({"unit": "K", "__crc32c_": "00000000"});
    for attributes in [json!({}), attributes] {
        let attributes = attributes.as_object().unwrap().clone();
        let whole = render_sealed_attributes(&attributes);
        assert_eq!(parse_sealed_attributes("a", &whole).unwrap(), (attributes.clone(), true));
        assert_eq!(parse_attributes("a", &whole).unwrap(), attributes);
        for at in 0..whole.len() {
            for bit in 0..8 {
                let mut other = whole.clone();
                other[at] ^= 1 << bit;
                let read = parse_sealed_attributes("a", &other);
                assert!(!read.is_ok_and(|(_, sealed)| sealed), "{at}.{bit}");
            }
        }
        for len in 0..whole.len() {
            assert!(!parse_sealed_attributes("a", &whole[..len]).is_ok_and(|(_, sealed)| sealed));
        }
    }
}

#[test]
fn files_with_a_checksum_are_written_as_they_were_read() {
    let sealed = Sizes { shape: vec![5], sealed: true, id: Some("x".into()), ..Sizes::default() };
    let file = sealed.render();
    assert_eq!(Sizes::parse("meta/sizes", &file).unwrap(), sealed);
    let sealed = Storage { sealed: true, ..storage(STORAGE).unwrap() };
    assert_eq!(Storage::parse("meta/storage", &sealed.render()).unwrap(), sealed);
    let other = seal::sealed(b"{\"a\": 1}\n".to_vec());
    assert_eq!(text(other), "{\"a\": 1, \"__crc32c__\": \"efa86ef0\"}\n");
}
