//! Footers that five releases of array-format wrote, read and written again.

use std::path::Path;

use bytes::Bytes;

use super::super::super::archive::Resident;
use super::super::super::trailer::parse_trailer;
use super::*;
use crate::container::model::{
    ArrayMeta, AttributeValue, ChunkAddress, ChunkEntry, DType, FillValue, IndexWidth, StatValue,
};

/// The releases that have layers.
const LAYERED: [&str; 4] = ["af9", "af11", "af12", "af14"];

/// The footer of a golden file, and how many bytes come before it.
fn golden(name: &str) -> (Resident, u64) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/container").join(name);
    let file = Bytes::from(std::fs::read(path).unwrap());
    let end = file.len() - 12;
    let size = parse_trailer(file[end..].first_chunk().unwrap()).unwrap();
    let start = end - size as usize;
    (Resident(file.slice(start..end)), start as u64)
}

#[test]
fn a_footer_of_0_9_is_written_again_byte_for_byte() {
    for name in ["af9-everything.af", "af9-layers.af", "af9-layers.1.af", "af9-layers.2.af"] {
        let (view, _) = golden(name);
        assert!(Whole::read(&view).render().unwrap() == view.0, "{name}");
    }
}

#[test]
fn golden_footers_are_valid_but_for_the_attributes_that_old_sidecars_lost() {
    let mut names = vec!["af9-everything.af".to_owned(), "af15-everything.af".to_owned()];
    for release in LAYERED {
        names.extend([format!("{release}-layers.af"), format!("{release}-layers.1.af")]);
    }
    names.push("af14-layers.2.af".into());
    for name in names {
        let (view, data_len) = golden(&name);
        assert_eq!(validate(&view, data_len), [""; 0], "{name}");
    }
    // Before 0.14, an array copied into a sidecar kept the indices of the layer it came from.
    for release in ["af9", "af11", "af12"] {
        let (view, data_len) = golden(&format!("{release}-layers.2.af"));
        let findings = validate(&view, data_len);
        assert!(!findings.is_empty());
        assert!(findings.iter().all(|finding| finding.contains(": attribute ")), "{findings:?}");
    }
}

#[test]
fn every_variant_of_version_4_is_read() {
    let (view, _) = golden("af9-everything.af");
    let whole = Whole::read(&view);
    assert_eq!((whole.root.version, whole.root.overlay_index), (4, 3));
    assert_eq!(whole.root.base_file_hint, "a/rather/long/path/of/the/base.af");
    let codecs: Vec<_> = whole.blocks.iter().map(|block| block.codec.as_deref()).collect();
    assert_eq!(codecs, [None, Some("lz4"), Some("a codec with a name of its own")]);
    assert_eq!(
        whole.blocks[1],
        BlockMeta {
            id: 1,
            file_offset: 24,
            compressed_size: 16,
            uncompressed_size: 32,
            codec: Some("lz4".into())
        }
    );
    assert_eq!(found(block(&view, &whole.root, 1)), whole.blocks[1]);

    assert_eq!(whole.keys, ["units", "", "sixteen-bytes-xy", "seventeen-bytes-x"]);
    assert_eq!(
        whole.values,
        [
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
        ]
    );

    let plain: Vec<_> = whole.heads[..14]
        .iter()
        .map(|head| (head.meta.dtype.clone(), head.meta.fill_value.clone()))
        .collect();
    assert_eq!(
        plain,
        [
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
        ]
    );
    let list = DType::List { child: Box::new(DType::Float32) };
    let nested = DType::FixedSizeList { child: Box::new(list), size: 7 };
    assert_eq!(whole.head("sixteen-bytes-xy").meta.dtype, nested);

    assert_eq!(
        whole.head("seventeen-bytes-x").meta,
        ArrayMeta {
            name: "seventeen-bytes-x".into(),
            dtype: DType::UInt16,
            shape: vec![4, 5, 6],
            dimension_names: ["time", "seventeen-bytes-x", "z"].map(String::from).to_vec(),
            chunk_shape: vec![2, 5, 3],
            fill_value: None,
            deleted: false,
            attributes: vec![(0, 11), (2, 12), (3, 0)],
            index_width: IndexWidth::U16,
        }
    );
    let widths = ["wide", "widest"].map(|name| whole.head(name).meta.index_width);
    assert_eq!(widths, [IndexWidth::U32, IndexWidth::U64]);
    assert_eq!(whole.head("widest").meta.attributes, [(0, 1), (1, 10)]);
    assert!(whole.head("gone").meta.deleted && !whole.head("scalar").meta.deleted);
}

#[test]
fn chunks_come_in_the_order_of_the_table() {
    let (view, _) = golden("af9-everything.af");
    let whole = Whole::read(&view);
    let table = &whole.head("seventeen-bytes-x").chunks;
    let entry = |coord: [u32; 3], block, offset, size| ChunkEntry {
        coord: coord.to_vec(),
        address: ChunkAddress { block, offset, size },
    };
    let all = [entry([0, 0, 1], 0, 0, 12), entry([1, 0, 0], 1, 4, 28), entry([0, 0, 0], 0, 12, 12)];
    assert_eq!(found(chunks(&view, table, 3, 0..3)), all);
    assert_eq!(found(chunks(&view, table, 3, 1..2)), all[1..2]);
    assert_eq!(found(chunks(&view, table, 3, 3..3)), []);
    assert!(refused(chunks(&view, table, 3, 2..4)).contains("chunks 2..4"));
    assert!(refused(chunks(&view, table, 2, 0..3)).contains("a chunk of 2 dimensions"));
    let scalar = &whole.head("scalar").chunks;
    assert_eq!(found(chunks(&view, scalar, 0, 0..1))[0].address.size, 4);
    let address = ChunkAddress { block: 1, offset: 0, size: 4 };
    assert_eq!(found(find_chunk(&view, scalar, &[], 0)), Some(address));
}

#[test]
fn every_sort_of_attribute_is_read_in_versions_5_and_6() {
    let files = ["af11-layers.1.af", "af12-layers.1.af", "af14-layers.1.af", "af15-everything.af"];
    for (name, version) in files.into_iter().zip([5, 5, 5, 6]) {
        let (view, _) = golden(name);
        let whole = Whole::read(&view);
        assert_eq!(whole.root.version, version);
        let scalars = [
            ("units", AttributeValue::String("K".into())),
            ("long_name", AttributeValue::String("temperature at two metres".into())),
            ("flag", AttributeValue::Bool(true)),
            ("i8", AttributeValue::Int8(-1)),
            ("i16", AttributeValue::Int16(-2)),
            ("i32", AttributeValue::Int32(-3)),
            ("i64", AttributeValue::Int64(-4)),
            ("u8", AttributeValue::UInt8(1)),
            ("u16", AttributeValue::UInt16(2)),
            ("u32", AttributeValue::UInt32(3)),
            ("u64", AttributeValue::UInt64(4)),
            ("f32", AttributeValue::Float32(0.5)),
            ("f64", AttributeValue::Float64(0.25)),
        ];
        for (key, value) in scalars {
            assert_eq!(whole.attribute("weather/temperature", key), &value, "{name}");
        }
        let strings = ["K", "", "a string of more than 16"].map(String::from).to_vec();
        let lists = [
            ("binary", AttributeValue::Binary(vec![0xde, 0xad])),
            ("bools", AttributeValue::BoolList(vec![true, false])),
            ("i8s", AttributeValue::Int8List(vec![-1, 1])),
            ("i16s", AttributeValue::Int16List(vec![-2, 2])),
            ("i32s", AttributeValue::Int32List(vec![-3, 3])),
            ("i64s", AttributeValue::Int64List(vec![-4, 4])),
            ("u8s", AttributeValue::UInt8List(vec![1, 2, 3])),
            ("u16s", AttributeValue::UInt16List(vec![4])),
            ("u32s", AttributeValue::UInt32List(vec![])),
            ("u64s", AttributeValue::UInt64List(vec![5, 6])),
            ("f32s", AttributeValue::Float32List(vec![0.5, f32::NAN])),
            ("f64s", AttributeValue::Float64List(vec![0.25])),
            ("strings", AttributeValue::StringList(strings)),
            ("binaries", AttributeValue::BinaryList(vec![vec![9], vec![]])),
        ];
        for (key, value) in lists {
            assert_eq!(whole.attribute("weather/rain", key), &value, "{name}");
        }
        let error = whole.render().unwrap_err();
        assert_eq!(error.kind(), chunkyard_store::ErrorKind::Invalid, "{name}");
    }
}

#[test]
fn layers_of_all_releases_say_the_same_of_arrays_and_chunks() {
    for release in LAYERED {
        let (view, _) = golden(&format!("{release}-layers.1.af"));
        let whole = Whole::read(&view);
        assert_eq!(whole.root.overlay_index, 1);
        assert_eq!(whole.root.base_file_hint, format!("{release}-layers.af"));
        let names = found(array_names(&view, &whole.root, 0..6));
        let expected = ["weather/temperature", "weather/rain", "stations", "raw", "time"];
        let (names, deleted): (Vec<_>, Vec<_>) = names.into_iter().unzip();
        assert!(whole.heads.iter().map(|head| head.meta.deleted).eq(deleted));
        assert_eq!(names[..5], expected);
        assert_eq!(names[5], "a-name-of-more-than-16-bytes");
        let (coords, addresses) = &whole.chunks[0];
        assert_eq!(coords, &[0, 0, 0, 1, 1, 1]);
        // Chunks at the edge are clipped: 2 × 3 elements of 4 bytes, 2 × 2 twice.
        assert_eq!(addresses.iter().map(|a| a.size).collect::<Vec<_>>(), [24, 16, 16]);
        assert_eq!(whole.blocks[0].codec.as_deref(), Some("zstd"));

        let (view, _) = golden(&format!("{release}-layers.2.af"));
        let whole = Whole::read(&view);
        assert!(whole.head("raw").meta.deleted);
        assert_eq!(whole.chunks[0].0, [1, 0]);
        let (view, _) = golden(&format!("{release}-layers.af"));
        assert_eq!(found(root(&view)).arrays.len, 0);
    }
}

#[test]
fn version_6_keeps_statistics_and_sorts_chunks() {
    let (view, _) = golden("af15-everything.af");
    let whole = Whole::read(&view);
    let stats = whole.head("weather/rain").stats.as_ref().unwrap();
    assert_eq!(stats.name, "weather/rain");
    assert_eq!((&stats.min, &stats.max), (&Some(StatValue::Int(-20)), &Some(StatValue::Int(40))));
    assert_eq!(stats.row_count, 7);
    let stations = whole.head("stations").stats.as_ref().unwrap();
    assert_eq!(stations.max, Some(StatValue::Bytes("Ås".into())));
    assert_eq!(whole.chunks[0].0, [0, 0, 0, 1, 1, 1]);
    assert_eq!(whole.head("weather/temperature").meta.chunk_shape, [2, 3]);
    assert!(matches!(
        whole.head("weather/temperature").meta.fill_value,
        Some(FillValue::Float(fill)) if fill.is_nan()
    ));
}
