//! How the seeds are made: from golden files and from what the codecs encode.
//!
//! `make fuzz-seeds` runs this. Seeds are small and few; a fuzzer finds the rest.

use std::path::{Path, PathBuf};

use bytes::Bytes;
use chunkyard_array::codec::blosc::{self, Compressor, Params, Shuffle};
use chunkyard_array::codec::label_block::value::{Compression as Wrapping, wrap_onto};
use chunkyard_array::codec::label_block::{Block, encode, encode_solid};
use chunkyard_array::{ArraySpec, Codecs, ElementsBuf};
use chunkyard_engine::format::hostile::badger::{Parsed, log_entry};
use chunkyard_engine::format::hostile::container::seal::Seal;
use chunkyard_engine::repo::{Coord, hostile};
use chunkyard_hostile::codec::cases;
use chunkyard_test_support::{dvid_store, unpack_store};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::basic::Compression;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use serde_json::json;

use super::run::fuzz_directory;

/// The dataset of the golden repository.
const DATASET: &str = "66f08abx07q8mbwfg5r7fb72rw";

fn keep(target: &str, name: &str, bytes: &[u8]) {
    let directory = fuzz_directory().join("seeds").join(target);
    std::fs::create_dir_all(&directory).unwrap();
    std::fs::write(directory.join(name), bytes).unwrap();
}

fn golden(kind: &str) -> Vec<(String, Vec<u8>)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/repo/v1/repository");
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(root.join(kind)).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let name = |file: &Path| file.file_name().unwrap().to_str().unwrap()[..4].to_owned();
    files.iter().map(|file| (name(file), std::fs::read(file).unwrap())).collect()
}

/// The same rows without compression, so that a bent byte is a bent value; and where the data ends.
fn plain(file: &[u8]) -> (Vec<u8>, usize) {
    let bytes = Bytes::copy_from_slice(file);
    let reader = ParquetRecordBatchReaderBuilder::try_new(bytes).unwrap();
    let schema = reader.schema().clone();
    let pairs = reader.metadata().file_metadata().key_value_metadata().cloned().unwrap_or_default();
    let kept = ["format", "dataset-id", "next-id"];
    let pairs = pairs.into_iter().filter(|pair| kept.contains(&pair.key.as_str())).collect();
    let properties = WriterProperties::builder()
        .set_compression(Compression::UNCOMPRESSED)
        .set_dictionary_enabled(false)
        .set_statistics_enabled(EnabledStatistics::Page)
        .set_created_by("seed".into())
        .set_key_value_metadata(Some(pairs));
    let mut out = Vec::new();
    let mut writer = ArrowWriter::try_new(&mut out, schema, Some(properties.build())).unwrap();
    for batch in reader.build().unwrap() {
        writer.write(&batch.unwrap()).unwrap();
    }
    let metadata = writer.close().unwrap();
    let columns = metadata.row_groups().iter().flat_map(|group| group.columns());
    let end = columns.map(|column| column.byte_range()).map(|(start, len)| start + len).max();
    (out, end.unwrap() as usize)
}

#[test]
#[ignore = "writes fuzz/seeds"]
fn make_seeds_of_precomputed_volumes() {
    let sharding = json!({"@type": "neuroglancer_uint64_sharded_v1", "hash": "identity", "preshift_bits": 9,
        "minishard_bits": 6, "shard_bits": 19, "minishard_index_encoding": "gzip", "data_encoding": "gzip"});
    let labels = json!({"@type": "neuroglancer_multiscale_volume", "type": "segmentation", "data_type": "uint64",
        "num_channels": 1, "scales": [{"key": "8_8_8", "size": [94088, 78317, 134_576],
        "voxel_offset": [-16, 0, 5], "resolution": [8, 8, 8.5], "chunk_sizes": [[64, 64, 64]],
        "encoding": "compressed_segmentation", "compressed_segmentation_block_size": [8, 8, 8],
        "sharding": sharding}], "mesh": "mesh"});
    let image = json!({"type": "image", "data_type": "uint8", "num_channels": 3, "scales": [{"key": "s0",
        "size": [5, 4, 3], "resolution": [1, 1, 1], "chunk_sizes": [[2, 2, 2], [5, 4, 1]], "encoding": "jpeg",
        "jpeg_quality": 80}]});
    for (name, info) in [("labels", labels), ("image", image)] {
        keep("precomputed_info", name, info.to_string().as_bytes());
    }
    let rows: Vec<u8> =
        [0u64, 1, 2, 0, 4, 0, 8, 0, 7].iter().flat_map(|n| n.to_le_bytes()).collect();
    let mut packed = vec![1];
    chunkyard_array::codec::gzip_onto(&rows, 9, &mut packed).unwrap();
    keep("precomputed_minishard", "raw", &[&[0], &rows[..]].concat());
    keep("precomputed_minishard", "gzip", &packed);
    keep("precomputed_minishard", "preshift", &[&[0b111 << 2], &rows[..]].concat());
    let properties = json!({"@type": "neuroglancer_segment_properties", "inline": {
        "ids": ["3", "18446744073709551615"], "properties": [
            {"id": "name", "description": "its name", "type": "label", "values": ["a", ""]},
            {"id": "size", "data_type": "float32", "type": "number", "values": [16_777_216, 5]},
            {"id": "side", "tags": ["centre", "left"], "type": "tags", "values": [[1], []]},
            {"id": "note", "type": "string", "values": ["x", "y"]},
        ]}, "chunkyard_left_out": 2});
    keep("precomputed_properties", "all", properties.to_string().as_bytes());
}

#[test]
#[ignore = "writes fuzz/seeds"]
fn make_seeds_of_mutation_logs() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/dvid/mutlog");
    for (scenario, version) in [("edits", "v2"), ("many", "v01"), ("offset-live", "root")] {
        let log = std::fs::read(root.join(scenario).join(version)).unwrap();
        keep("mutation_log", &format!("{scenario}-{version}"), &log);
    }
}

#[test]
#[ignore = "writes fuzz/seeds"]
fn make_seeds_of_badger_directories() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/badger");
    for (at, name) in [(0u8, "none"), (2, "zstd")] {
        let store = unpack_store(&root.join(format!("{name}.store")));
        let read = |file: &str| std::fs::read(store.path().join("data/badger").join(file)).unwrap();
        keep("badger_manifest", name, &read("MANIFEST"));
        keep("badger_table", name, &[&[at], &read("000004.sst")[..]].concat());
        // The first entry is behind the head of the file.
        let log = &read("000001.vlog")[20..];
        let Parsed::Entry(entry) = log_entry(log) else { panic!("{name} has no entry") };
        keep("badger_log_entry", name, &log[..entry.len]);
    }
    let store = dvid_store("edits");
    let read = |file: &str| std::fs::read(store.path().join("data/badger").join(file)).unwrap();
    keep("badger_manifest", "dvid", &read("MANIFEST"));
    keep("badger_table", "snappy", &[&[1], &read("000002.sst")[..]].concat());
    let store = dvid_store("offset-live");
    let log = std::fs::read(store.path().join("data/badger/00001.mem")).unwrap();
    keep("badger_memtable", "dvid", &log[20..4096]);
}

#[test]
#[ignore = "writes fuzz/seeds"]
fn make_seeds_of_dvid_answers() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/dvid/http");
    let read = |name: &str| std::fs::read(root.join(name)).unwrap();
    // Whole records, as many as fit.
    let beginning = |bytes: &[u8], length: fn(&[u8]) -> u64, max: usize| {
        let mut end = 0;
        while let Some(head) = bytes.get(end..end + 16) {
            let next = end + 16 + length(head) as usize;
            if next > max {
                break;
            }
            end = next;
        }
        bytes[..end].to_vec()
    };
    let of_block = |head: &[u8]| u64::from(u32::from_le_bytes(head[12..16].try_into().unwrap()));
    let of_index = |head: &[u8]| u64::from_le_bytes(head[..8].try_into().unwrap());
    keep("dvid_blocks", "edits-s3", &beginning(&read("edits/blocks_s3.bin"), of_block, 20_000));
    let record = |x: i32, bytes: &[u8]| {
        [&[x, 0, 0, bytes.len() as i32].map(i32::to_le_bytes).concat()[..], bytes].concat()
    };
    keep("dvid_blocks", "two", &[record(1, b"one"), record(0, b"zero")].concat());
    keep("dvid_indices", "edits", &beginning(&read("edits/indices.bin"), of_index, 2000));
    let index = |label: u64, bytes: &[u8]| {
        [&(bytes.len() as u64).to_le_bytes(), &label.to_le_bytes(), bytes].concat()
    };
    let all = [index(1, b"one"), index(72, b""), index(87, b"x"), index(u64::MAX, b"")];
    keep("dvid_indices", "all", &all.concat());
    keep("dvid_indices", "failed", &[index(1, b"one"), vec![0; 16]].concat());
    keep("dvid_lists", "mapping", &read("edits/mappings.bin")[..160]);
    keep("dvid_lists", "text", b"4295895192 8589934594\n5 0\n");
    let labels: Vec<u8> = [72u64, 24, 87, 31873].iter().flat_map(|n| n.to_le_bytes()).collect();
    keep("dvid_lists", "labels", &labels);
    for name in ["basic", "offset-live"] {
        keep("dvid_description", name, &read(&format!("{name}/info.json")));
    }
}

#[test]
#[ignore = "writes fuzz/seeds"]
fn make_seeds_of_a_repository() {
    for (name, bytes) in golden("g").into_iter().rev().take(2) {
        keep("state", &name, &bytes);
    }
    let draft = br#"{"id":"d","generation":0,"snapshots":[{"snapshot-id":"s","timestamp-ms":1,"structure-file":"f"}]}"#;
    keep("state", "draft", draft);
    let run = |file: &str, first: u64, count: u64| {
        format!(r#"{{"file":"{file}","first":{first},"count":{count},"size":99,"crc32c":7}}"#)
    };
    let index = format!(
        r#"{{"dataset-id":"{DATASET}","snapshots":[{}],"writes":[{}],"newest-writes":{{"first":4,"ids":["d","e"]}}}}"#,
        run("a.snapshots.json", 0, 2),
        run("b.writes.json", 0, 4),
    );
    let writes = format!(r#"{{"dataset-id":"{DATASET}","first":0,"ids":["a","b","c","d"]}}"#);
    let snapshots = format!(
        r#"{{"dataset-id":"{DATASET}","snapshots":[{{"snapshot-id":"s","timestamp-ms":1,"structure-file":"f","message":"m"}}]}}"#
    );
    for (name, count, text) in
        [("index", 0, index), ("writes", 4, writes), ("snapshots", 1, snapshots)]
    {
        keep("history", name, &[&[count], text.as_bytes()].concat());
    }
    for (target, kind) in [("structure", "s"), ("manifest", "i"), ("attributes", "a")] {
        for (at, (name, bytes)) in golden(kind).into_iter().enumerate() {
            if at == 0 {
                keep(target, &format!("{name}-written"), &bytes);
            }
            if at < 3 {
                keep(target, &name, &plain(&bytes).0);
            }
        }
    }
    for (name, bytes) in golden("i") {
        let (file, end) = plain(&bytes);
        let tail = u16::try_from(file.len() - end).unwrap().to_le_bytes();
        let rows = hostile::parse_manifest(DATASET, &Bytes::from(bytes)).unwrap();
        let coord = &rows[0].1;
        let length = [coord.len() as u8];
        keep("manifest_pages", &name, &[&length, &coord[..], &tail, &file].concat());
    }
    let list = ["c/ab/file".to_owned(), "i/x".to_owned()];
    let list = hostile::render_collection(DATASET, &list).unwrap();
    keep("collection", "written", &list);
    keep("collection", "two", &plain(&list).0);
    for (at, kind) in [0u8, 1, 2, 3].into_iter().enumerate() {
        let decisions: Vec<u8> = (0..200u8).map(|byte| byte.wrapping_mul(37) | 32).collect();
        keep("columns", &format!("kind-{at}"), &[&[kind, 2], &decisions[..]].concat());
    }
    let uid = chunkyard_engine::repo::Uid::try_from(&[7u8; 16][..]).unwrap();
    let entries = [(uid, vec![0, 1], 0, 3, 9), (uid, vec![0x80, 1], 3, 1, 5)];
    let trailer = hostile::render_pack(&entries);
    keep("pack", "index", &[&[4], &b"abcd"[..], &trailer[..trailer.len() - 20]].concat());
    keep("pack", "whole", &[b"abcd", &trailer[..]].concat());
    let (a, b) = (Coord::encode(&[5, 300]), Coord::encode(&[5, u64::MAX]));
    let first = 2 + 8 * a.as_bytes().len() as u8;
    keep("coordinate", "pair", &[&[first], a.as_bytes(), b.as_bytes()].concat());
}

#[test]
#[ignore = "writes fuzz/seeds"]
fn make_seeds_of_documents_and_texts() {
    let group = br#"{"zarr_format": 3, "node_type": "group", "attributes": {"a": [1, null]}}"#;
    keep("group_metadata", "group", group);
    let level = |path: &str, scale: f64| {
        let steps = [
            json!({"type": "scale", "scale": [scale, 2.5]}),
            json!({"type": "translation", "translation": [-16, 5.0]}),
        ];
        json!({"path": path, "coordinateTransformations": steps})
    };
    let axes = json!([{"name": "y", "type": "space", "unit": "micrometer"}, {"name": "x"}]);
    let list =
        json!([{"version": "0.4", "axes": axes, "datasets": [level("0", 4.0), level("1", 8.0)]}]);
    let key =
        json!({"chunkyard_space": {"axes": [{"unit": "nm", "scale": 8.0}, {}], "origin": [-2, 2]}});
    for (name, group) in [
        ("ome-04", json!({"multiscales": list, "omero": {"version": "0.4"}})),
        ("ome-05", json!({"ome": {"version": "0.5", "multiscales": list}})),
        ("key", json!({})),
    ] {
        keep("space", name, format!("{group}\0{key}").as_bytes());
    }
    for (at, case) in cases().iter().enumerate() {
        if at % 3 == 0 {
            keep("array_metadata", &format!("case-{at}"), &case.spec().render());
        }
    }
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/zarr2/cases.json");
    let golden = std::fs::read(golden).unwrap();
    let golden: Vec<serde_json::Value> = serde_json::from_slice(&golden).unwrap();
    for (at, case) in
        golden.iter().enumerate().filter(|(at, case)| at % 4 == 3 || case["name"] == "named")
    {
        let text = |key: &str| case[key].as_str().unwrap().as_bytes().to_vec();
        keep("v2_metadata", &format!("case-{at}"), &[text("zarray"), text("zattrs")].join(&0));
    }
    let spec = ArraySpec::builder(&[9, 9], &[2, 3], "float32").fill_value("NaN");
    let spec = spec.dimension_names(["y", "x"]).build().unwrap();
    keep("array_metadata", "named", &spec.render());
    for (at, text) in ["0:2,1:3", "...,-1", ":,5", ""].iter().enumerate() {
        let shape = [3, 7, 200, 5, 4];
        let length = text.len() as u8;
        keep("region", &format!("text-{at}"), &[&shape[..], &[length], text.as_bytes()].concat());
    }
    for (at, text) in
        ["zstd:3+crc32c", "blosc:lz4:5:shuffle", "none", "gzip", "<M8[25s]"].iter().enumerate()
    {
        let length = text.len() as u8;
        keep("shorthand", &format!("text-{at}"), &[&[1, length], text.as_bytes()].concat());
    }
    for (at, text) in ["main", "3f/3f9c", "/a/b", "../x", "."].iter().enumerate() {
        keep("names", &format!("text-{at}"), text.as_bytes());
    }
    for (at, text) in [
        "{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }\n",
        "{'descr': '>i2', 'fortran_order': True, 'shape': (2, 3), }\n",
        "{'descr': '|S3', 'fortran_order': False, 'shape': (4,), }\n",
    ]
    .iter()
    .enumerate()
    {
        let length = (text.len() as u16).to_le_bytes();
        let file = [b"\x93NUMPY\x01\x00", &length[..], text.as_bytes(), &[7; 12]].concat();
        keep("npy", &format!("file-{at}"), &file);
    }
    for name in ["netcdf.nc", "small_earliest.h5", "small_latest.h5"] {
        let files = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/hdf5");
        keep("hdf5", name, &std::fs::read(files.join(name)).unwrap());
    }
}

#[test]
#[ignore = "writes fuzz/seeds"]
fn make_seeds_of_containers() {
    let files = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/container");
    let archive = |name: &str| {
        let file = std::fs::read(files.join(name)).unwrap();
        let (rest, trailer) = file.split_last_chunk::<12>().unwrap();
        let len = u64::from_le_bytes(*trailer.first_chunk().unwrap());
        rest[rest.len() - len as usize..].to_vec()
    };
    for name in ["af9-everything", "af9-layers", "af9-layers.1", "af14-layers.1", "af15-everything"]
    {
        keep("container_footer", name, &archive(&format!("{name}.af")));
    }
    for name in ["af9-layers", "af12-layers"] {
        keep("container_stats", name, &archive(&format!("{name}.stats")));
    }
    keep("container_stats", "file", &std::fs::read(files.join("af9-layers.stats")).unwrap());
    let seal = Seal { container: [1; 16], layer: [2; 16], sequence: 9, ..Seal::default() };
    let whole = seal.render(&[7, 8], &[3; 70_000], b"statistics");
    keep("container_seal", "whole", &whole);
    keep("container_seal", "without-checksum", &whole[..whole.len() - 12]);
    let absorbed = Seal { absorbed: vec![(1, [4; 16]), (2, [5; 16])], chunks_sorted: true, ..seal };
    let absorbed = absorbed.render(&[], &[3; 500], b"");
    keep("container_seal", "absorbed", &absorbed[..absorbed.len() - 12]);
}

#[test]
#[ignore = "writes fuzz/seeds"]
fn make_seeds_of_elements_of_containers() {
    let words =
        |words: &[u32]| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>();
    // Depth, leaf, sorts of list, number of elements; filled up to eight bytes.
    let elements: [(&str, [u8; 8], Vec<u8>); 4] = [
        ("numbers", [0, 3, 5, 0, 0, 0, 0, 0], words(&[0x3fc0_0000, 0x7fc0_0000, 0, 1, 2])),
        ("strings", [0, 5, 2, 0, 0, 0, 0, 0], [words(&[0, 1, 3]), b"abc".to_vec()].concat()),
        ("lists", [1, 1, 0, 2, 0, 0, 0, 0], [words(&[0, 2, 3]), vec![1; 6]].concat()),
        (
            "nested",
            [2, 5, 0, 4, 1, 0, 0, 0],
            [words(&[0, 1, 3, 3, 0, 1, 2, 3]), b"abc".to_vec()].concat(),
        ),
    ];
    for (name, head, bytes) in elements {
        keep("container_elements", name, &[&head[..], &bytes].concat());
    }
}

#[test]
#[ignore = "writes fuzz/seeds"]
fn make_seeds_of_superchunks() {
    let files = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/superchunk");
    let read = |path: &str| std::fs::read(files.join(path)).unwrap();
    for name in [
        "v1",
        "v2",
        "interim",
        "interim-deflated",
        "final-adler32",
        "final-sha512",
        "final-no-offsets",
        "final-struct",
    ] {
        keep("bloscpack_head", name, &read(&format!("bloscpack/{name}.blp")));
    }
    for (name, path) in [
        ("sizes", "bcolz/cube/meta/sizes"),
        ("storage", "bcolz/struct/meta/storage"),
        ("storage-nan", "bcolz/whole/meta/storage"),
        ("storage-blz", "blz/cube/meta/storage"),
        ("attributes", "bcolz/line/__attrs__"),
        ("rootdirs", "blz/table/__rootdirs__"),
    ] {
        keep("superchunk_meta", name, &read(path));
    }
    let shards = br#"{"ranges": [{"first": 1, "last": 500, "base": "s3://bucket/a"}]}"#;
    keep("superchunk_meta", "shards", shards);
    let columns =
        br#"{"dtype": "[('a', '<f8'), ('b', 'S3')]", "cparams": {"clevel": 5, "shuffle": 2},
        "chunklen": 9, "dflt": [Infinity, "x"], "format": "blz-superchunk/1", "superchunk": 4,
        "checksum": "crc32", "columns": {"a": {"chunklen": 5, "dflt": NaN}}}"#;
    keep("superchunk_meta", "columns", columns);
    keep("superchunk_meta", "file", b"__1__.bin");
    keep("superchunk_meta", "field", b"%5F_a%20b");
    for (at, text) in [
        "float64",
        "'<i2'",
        ">M8[25us]",
        "|S3",
        "[('x', '<f8'), ('y', '<i2', (3,)), ('n', [('a', '>i4'), (\"it's\", '?')], (2, 4))]",
    ]
    .iter()
    .enumerate()
    {
        keep("numpy_dtype", &format!("text-{at}"), text.as_bytes());
    }
}

#[test]
#[ignore = "writes fuzz/seeds"]
fn make_seeds_of_chunks() {
    let mut position = std::collections::HashMap::new();
    for case in cases() {
        let at: &mut u8 = position.entry(case.target).or_default();
        let codecs = Codecs::new(&case.spec()).unwrap();
        let (compressible, varied) = match codecs.chunk_bytes() {
            Some(len) => {
                // Bytes that are sound for every type: a bool is 0 or 1.
                let ramp = (0..len).map(|i| (i / 16 % 2) as u8).collect();
                let mixed = (0..len).map(|i| (i * i % 251 % 2 + i % 2) as u8 & 1).collect();
                (ElementsBuf::Fixed(ramp), ElementsBuf::Fixed(mixed))
            }
            None => (words(&codecs, "ab"), words(&codecs, "né, and more of it")),
        };
        for (name, chunk) in [("even", compressible), ("mixed", varied)] {
            let encoded = codecs.encode(chunk.as_ref()).unwrap();
            let chunk = case.seal.open(&encoded);
            assert_eq!(case.seal.close(&chunk), encoded, "{case:?}");
            keep(case.target, &format!("{at:02}-{name}"), &[&[*at], &chunk[..]].concat());
        }
        *at += 1;
    }
}

#[test]
#[ignore = "writes fuzz/seeds"]
fn make_seeds_of_blosc_buffers() {
    let plain: Vec<u8> = (0..600_u32).flat_map(|at| (at / 7 * 3).to_le_bytes()).collect();
    for compressor in Compressor::ALL {
        for (shuffle, item) in [(Shuffle::None, 1), (Shuffle::Byte, 4), (Shuffle::Bit, 4)] {
            // Several blocks; those of 1024 bytes are cut into streams.
            let params = Params { compressor, level: 5, shuffle, item, block_bytes: 1024 };
            let mut buffer = Vec::new();
            blosc::encode_onto(&params, &plain, &mut buffer).unwrap();
            let name = format!("{}-{}", compressor.name(), shuffle.name());
            keep("blosc_buffer", &name, &buffer);
        }
    }
    let stored = Params {
        compressor: Compressor::Lz4,
        level: 0,
        shuffle: Shuffle::Byte,
        item: 4,
        block_bytes: 0,
    };
    let mut buffer = Vec::new();
    blosc::encode_onto(&stored, &plain[..100], &mut buffer).unwrap();
    keep("blosc_buffer", "stored", &buffer);
}

#[test]
#[ignore = "writes fuzz/seeds"]
fn make_seeds_of_label_blocks() {
    let size = [16, 8, 8];
    type LabelAt = fn(u64) -> u64;
    // Cells of one label, of two, of four, and of so many that values have nine bits.
    let samples: [(&str, LabelAt); 4] = [
        ("two", |at| if at % 16 < 8 { 7 } else { at / 64 % 2 }),
        ("four", |at| at / 3 % 4 * 1000),
        ("many", |at| at * at % 300),
        ("all", |at| at << 30),
    ];
    let mut blocks = vec![("solid", Vec::new())];
    encode_solid(7, size, &mut blocks[0].1).unwrap();
    for (name, label) in samples {
        let mut block = Vec::new();
        encode(&(0..1024).map(label).collect::<Vec<u64>>(), size, &mut block).unwrap();
        blocks.push((name, block));
    }
    for (name, block) in &blocks {
        keep("label_block", name, block);
        keep("label_block_half", name, &[&[0b1011_0111], &block[..]].concat());
        keep(
            "label_block_segmentation",
            &format!("block-{name}"),
            &[&[12, 7, 3], &block[..]].concat(),
        );
        for extent in [size, [13, 8, 4]] {
            let mut bytes = extent.map(|n| n as u8 - 1).to_vec();
            Block::parse(block).unwrap().segmentation_onto(extent, &mut bytes).unwrap();
            keep("label_block_segmentation", &format!("{name}-{}", extent[0]), &bytes);
        }
    }
    for (name, wrapping) in [
        ("none", Wrapping::None),
        ("snappy", Wrapping::Snappy),
        ("gzip", Wrapping::Gzip(6)),
        ("lz4", Wrapping::Lz4),
    ] {
        let mut value = Vec::new();
        wrap_onto(&blocks[1].1, wrapping, false, &mut value).unwrap();
        keep("label_block_value", name, &value);
    }
    keep("label_block_value", "old-lz4", b"\x80\0\0\0\0plain");
    let mut value = Vec::new();
    wrap_onto(b"123456789", Wrapping::None, true, &mut value).unwrap();
    keep("label_block_value", "checksum", &value);
}

fn words(codecs: &Codecs, word: &str) -> ElementsBuf {
    let count: u64 = codecs.chunk_shape().iter().product();
    let mut offsets = vec![0];
    let mut bytes = Vec::new();
    for at in 0..count {
        bytes.extend_from_slice(if at % 2 == 0 { word.as_bytes() } else { b"" });
        offsets.push(bytes.len() as u64);
    }
    ElementsBuf::Variable { bytes, offsets }
}
