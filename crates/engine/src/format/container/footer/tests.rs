//! Golden footers of other releases, read and written again; and footers that lie.

use std::cell::RefCell;
use std::path::Path;

use super::super::archive::Resident;
use super::super::model::{
    ArrayMeta, AttributeValue, ChunkAddress, ChunkEntry, DType, FillValue, IndexWidth, StatValue,
};
use super::super::trailer::parse_trailer;
use super::*;
use bytes::Bytes;

/// The footer of a golden file, and how many bytes come before it.
fn golden(name: &str) -> (Resident, u64) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/container").join(name);
    let file = Bytes::from(std::fs::read(path).unwrap());
    let end = file.len() - 12;
    let size = parse_trailer(file[end..].first_chunk().unwrap()).unwrap();
    let start = end - size as usize;
    (Resident(file.slice(start..end)), start as u64)
}

const LAYERED: [&str; 4] = ["af9", "af11", "af12", "af14"];

fn found<T>(result: Result<T, Stop>) -> T {
    result.unwrap_or_else(|stop| panic!("{stop:?}"))
}

fn refused<T: std::fmt::Debug>(result: Result<T, Stop>) -> String {
    match result {
        Err(Stop::Corrupt(error)) => error.to_string(),
        other => panic!("{other:?}"),
    }
}

/// All of a footer, in the form in which it is written.
struct Whole {
    root: Root,
    blocks: Vec<BlockMeta>,
    heads: Vec<ArrayHead>,
    chunks: Vec<(Vec<u32>, Vec<ChunkAddress>)>,
    keys: Vec<String>,
    values: Vec<AttributeValue>,
}

impl Whole {
    fn read(view: &dyn View) -> Self {
        let root = found(root(view));
        let heads: Vec<_> = (0..root.arrays.len).map(|at| found(array(view, &root, at))).collect();
        let chunks = heads.iter().map(|head| {
            let mut flat = (Vec::new(), Vec::new());
            let rank = head.meta.shape.len();
            let all = 0..head.chunks.len;
            found(chunk_flat(view, &head.chunks, rank, all, &mut |coord, address| {
                flat.0.extend_from_slice(coord);
                flat.1.push(address);
            }));
            flat
        });
        Self {
            chunks: chunks.collect(),
            blocks: found(blocks(view, &root, 0..root.blocks.len)),
            keys: (0..keys_len(&root)).map(|at| found(attribute_key(view, &root, at))).collect(),
            values: (0..values_len(&root))
                .map(|at| found(attribute_value(view, &root, at)))
                .collect(),
            heads,
            root,
        }
    }

    fn render(&self) -> Result<Vec<u8>, Error> {
        let arrays: Vec<_> = self
            .heads
            .iter()
            .zip(&self.chunks)
            .map(|(head, (coords, addresses))| NewArray { meta: &head.meta, coords, addresses })
            .collect();
        render(&NewFooter {
            blocks: &self.blocks,
            arrays: &arrays,
            attr_keys: &self.keys,
            attr_values: &self.values,
            overlay_index: self.root.overlay_index,
            base_file_hint: &self.root.base_file_hint,
        })
    }

    fn head(&self, name: &str) -> &ArrayHead {
        self.heads.iter().find(|head| head.meta.name == name).unwrap()
    }

    fn attribute(&self, array: &str, key: &str) -> &AttributeValue {
        let pair = self.head(array).meta.attributes.iter();
        let mut pair = pair.filter(|(k, _)| self.keys[*k as usize] == key);
        &self.values[pair.next().unwrap().1 as usize]
    }
}

#[test]
fn what_0_9_wrote_is_written_again_byte_for_byte() {
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
        assert_eq!(error.kind(), crate::ErrorKind::Invalid, "{name}");
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

/// An array of one dimension with these chunks.
fn one_array(meta: &ArrayMeta, coords: &[u32]) -> Resident {
    let address = |at| ChunkAddress { block: 0, offset: at, size: 1 };
    let addresses: Vec<_> = (0..coords.len() as u32).map(address).collect();
    let block = BlockMeta {
        id: 0,
        file_offset: 0,
        compressed_size: 9,
        uncompressed_size: 1 << 20,
        codec: Some("zstd".into()),
    };
    let footer = NewFooter {
        blocks: &[block],
        arrays: &[NewArray { meta, coords, addresses: &addresses }],
        attr_keys: &[],
        attr_values: &[],
        overlay_index: 0,
        base_file_hint: "",
    };
    Resident(render(&footer).unwrap().into())
}

fn line(len: u32) -> ArrayMeta {
    ArrayMeta {
        name: "line".into(),
        dtype: DType::UInt8,
        shape: vec![len],
        dimension_names: vec!["x".into()],
        chunk_shape: vec![1],
        fill_value: None,
        deleted: false,
        attributes: vec![],
        index_width: IndexWidth::U16,
    }
}

#[test]
fn a_chunk_is_found_from_any_guess_in_full_and_in_sparse_tables() {
    let full: Vec<u32> = (0..50).collect();
    let sparse: Vec<u32> = (0..50).map(|at| at * at + 3).collect();
    for coords in [&full[..], &sparse, &sparse[..1], &[]] {
        let view = one_array(&line(3000), coords);
        let table = found(array(&view, &found(root(&view)), 0)).chunks;
        for wanted in 0..3000u32 {
            for guess in [u64::from(wanted), 0, 20, u64::MAX] {
                let expected = coords.iter().position(|at| *at == wanted);
                let address = found(find_chunk(&view, &table, &[wanted], guess));
                assert_eq!(address.map(|at| at.offset as usize), expected, "{wanted} {guess}");
            }
        }
        assert_eq!(validate(&view, 9), [""; 0]);
    }
}

/// Gives bytes only where they have been asked for before.
struct Lazy {
    whole: Resident,
    here: RefCell<Vec<Range<u64>>>,
}

impl View for Lazy {
    fn len(&self) -> u64 {
        self.whole.len()
    }

    fn get(&self, range: Range<u64>) -> Result<Bytes, Stop> {
        if !range.is_empty() && !self.here.borrow().contains(&range) {
            return Err(Stop::Lack(range));
        }
        self.whole.get(range)
    }
}

impl Lazy {
    /// Calls a parser until nothing is lacking; how often it was.
    fn drive<T>(&self, parser: impl Fn(&dyn View) -> Result<T, Stop>) -> (T, usize) {
        for lacks in 0.. {
            match parser(self) {
                Ok(value) => return (value, lacks),
                Err(Stop::Lack(range)) => {
                    assert!(range.end <= self.len());
                    self.here.borrow_mut().push(range);
                }
                Err(Stop::Corrupt(error)) => panic!("{error}"),
            }
        }
        unreachable!()
    }
}

#[test]
fn parsers_ask_for_what_they_lack_and_only_for_that() {
    let coords: Vec<u32> = (0..1000).collect();
    let lazy = Lazy { whole: one_array(&line(1000), &coords), here: RefCell::default() };
    let (root, _) = lazy.drive(root);
    let (head, _) = lazy.drive(|view| array(view, &root, 0));
    assert_eq!(head.meta, line(1000));
    let (address, lacks) = lazy.drive(|view| find_chunk(view, &head.chunks, &[700], 700));
    assert_eq!((address.unwrap().offset, lacks), (700, 2));
    let (entries, lacks) = lazy.drive(|view| chunks(view, &head.chunks, 1, 100..200));
    assert_eq!((entries.len(), lacks), (100, 2));
    let fetched: u64 = lazy.here.borrow().iter().map(|range| range.end - range.start).sum();
    assert!(fetched < 5000, "{fetched}");
}

#[test]
fn coords_that_are_scattered_are_read_all_the_same() {
    // Two entries whose coords are far apart: the second points to the first u32 of the footer.
    let view = one_array(&line(5000), &(0..5000).collect::<Vec<_>>());
    let table = found(array(&view, &found(root(&view)), 0)).chunks;
    let mut bytes = view.0.to_vec();
    let last = table.at + 4999 * 32;
    let place = last as usize..last as usize + 8;
    // The coords begin where the first entry points to.
    let first = found(Record::read(&view, table.at, 8)).target(0).unwrap();
    bytes[place].copy_from_slice(&first.wrapping_sub(last).to_le_bytes());
    let bent = Resident(bytes.into());
    let entries = found(chunks(&bent, &table, 1, 4990..5000));
    let coords: Vec<_> = entries.iter().map(|entry| entry.coord[0]).collect();
    assert_eq!(coords, [4990, 4991, 4992, 4993, 4994, 4995, 4996, 4997, 4998, 0]);
    let findings = validate(&bent, 9);
    assert!(findings[0].contains("readers of array-format refuse the footer"), "{findings:?}");
    assert!(findings[1].contains("chunk [0] is there more than once"), "{findings:?}");
}

#[test]
fn other_versions_are_unsupported_by_number_and_what_is_none_is_corrupt() {
    let (view, _) = golden("af9-layers.af");
    for version in [1u8, 3, 7] {
        let mut bytes = view.0.to_vec();
        bytes[0] = version;
        let said = refused(root(&Resident(bytes.into())));
        assert_eq!(said, format!("not supported: a container with a footer of version {version}"));
    }
    for len in [0, 8, 71, 95, 96] {
        let error = match root(&Resident(vec![0xee; len].into())) {
            Err(Stop::Corrupt(error)) => error,
            other => panic!("{other:?}"),
        };
        assert_eq!(error.kind(), crate::ErrorKind::Corrupt);
    }
}

#[test]
fn what_validate_finds_is_said_with_names_and_numbers() {
    let mut meta = line(3);
    meta.attributes = vec![(1, 0)];
    meta.dimension_names.push("y".into());
    let findings = validate(&one_array(&meta, &[0, 1, 7]), 5);
    assert_eq!(
        findings,
        [
            "block 0: 9 bytes at 0 are not within the 5 bytes of data",
            "array \"line\" has 1 dimensions and names for 2",
            "array \"line\": attribute key 1 of 0",
            "array \"line\": attribute value 0 of 0",
            "array \"line\": chunk [7] is not on its grid [3]",
        ]
    );
}

#[test]
fn what_does_not_fit_a_footer_is_not_written() {
    let write = |meta: &ArrayMeta, coords: &[u32]| {
        let array =
            NewArray { meta, coords, addresses: &[ChunkAddress { block: 0, offset: 0, size: 1 }] };
        let footer = NewFooter {
            blocks: &[],
            arrays: &[array],
            attr_keys: &[],
            attr_values: &[],
            overlay_index: 0,
            base_file_hint: "",
        };
        render(&footer).map(|_| ()).map_err(|error| error.to_string())
    };
    assert_eq!(write(&line(1), &[0]), Ok(()));
    assert!(write(&line(1), &[0, 1]).unwrap_err().contains("2 numbers in their coords"));
    let attributes = vec![(0, 65536)];
    let narrow = ArrayMeta { attributes: attributes.clone(), ..line(1) };
    assert!(write(&narrow, &[0]).unwrap_err().contains("attribute index 65536"));
    let wide = ArrayMeta { attributes, index_width: IndexWidth::U32, ..line(1) };
    assert_eq!(write(&wide, &[0]), Ok(()));
    let deep = |depth| {
        let nest = |child, _| DType::List { child: Box::new(child) };
        ArrayMeta { dtype: (1..depth).fold(DType::Int8, nest), ..line(1) }
    };
    assert_eq!(write(&deep(64), &[0]), Ok(()));
    assert!(write(&deep(65), &[0]).unwrap_err().contains("nested 64 deep or more"));
    let view = one_array(&deep(64), &[0]);
    assert_eq!(found(array(&view, &found(root(&view)), 0)).meta, deep(64));
}
