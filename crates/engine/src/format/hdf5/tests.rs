//! Files that h5py and netCDF4 wrote, with what these libraries read back.

use chunkyard_array::{ArraySpec, Codecs, ElementsBuf, Region, copy_region, fill_region};
use serde_json::{Value, json};

use super::*;
use crate::store::{ChunkRef, Options, Store};

const FILES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/hdf5");

fn store() -> Store {
    Store::open(FILES, &Options::default()).unwrap()
}

fn expected(file: &str) -> serde_json::Map<String, Value> {
    let text = std::fs::read(format!("{FILES}/expected.json")).unwrap();
    let all: Value = serde_json::from_slice(&text).unwrap();
    all[file].as_object().unwrap().clone()
}

async fn bytes_of(store: &Store, reference: &ChunkRef) -> bytes::Bytes {
    match reference {
        ChunkRef::Object { path, range, .. } => store.get_range(path, range.clone()).await.unwrap(),
        ChunkRef::Inline(bytes) => bytes.clone(),
        _ => panic!("a file does not point elsewhere"),
    }
}

/// All elements of an array: little-endian bytes in hexadecimal, or a list of strings.
async fn elements(store: &Store, source: &Source, path: &str) -> Value {
    let (_, spec) = source.arrays().find(|(found, _)| *found == path).unwrap();
    let (grid, codecs) = (spec.grid().unwrap(), Codecs::new(spec).unwrap());
    if spec.data_type_name() == "string" {
        let Some(reference) = source.locate(path, 0).await.unwrap() else { panic!("{path}") };
        let decoded = codecs.decode(&bytes_of(store, &reference).await).unwrap();
        let ElementsBuf::Variable { bytes, offsets } = decoded else { panic!("{path}") };
        let text = |pair: &[u64]| {
            String::from_utf8(bytes[pair[0] as usize..pair[1] as usize].to_vec()).unwrap()
        };
        return offsets.windows(2).map(text).collect();
    }
    let item = codecs.item_size().unwrap();
    let shape = spec.shape();
    let mut out = vec![0; Region::whole(shape).num_elements() as usize * item];
    for (number, index) in grid.chunks_in(&Region::whole(shape)).enumerate() {
        let stored = grid.clipped_region(&index);
        match source.locate(path, number as u64).await.unwrap() {
            Some(reference) => {
                let encoded = bytes_of(store, &reference).await;
                let decoded = codecs.decode(&encoded).unwrap();
                let ElementsBuf::Fixed(decoded) = decoded else { panic!("{path}") };
                let within = Region::whole(stored.shape());
                let (from, to) = (codecs.chunk_shape(), stored.origin());
                copy_region(&decoded, from, &within, &mut out, shape, to, item).unwrap();
            }
            None => fill_region(&mut out, shape, &stored, codecs.fill_element()).unwrap(),
        }
    }
    Value::from(out.iter().map(|byte| format!("{byte:02x}")).collect::<String>())
}

#[tokio::test]
async fn every_element_is_what_the_writer_reads_back() {
    let store = store();
    for file in ["earliest.h5", "latest.h5", "user_block.h5", "netcdf.nc"] {
        let source = Source::open(&store, file).await.unwrap();
        let mut expected = expected(file);
        for (path, spec) in source.arrays() {
            // h5py has no such type and reads it as float32.
            let Some(array) = expected.remove(path) else {
                assert_eq!(path, "/types/bfloat16", "{file}");
                continue;
            };
            assert_eq!(Value::from(spec.shape()), array["shape"], "{file}{path}");
            assert_eq!(elements(&store, &source, path).await, array["data"], "{file}{path}");
            let Some(dimensions) = array.get("dimensions") else { continue };
            let names = serde_json::to_value(spec.dimension_names()).unwrap();
            assert_eq!(&names, dimensions, "{file}{path}");
            let attributes = Value::Object(spec.attributes().clone());
            assert_eq!(attributes, array["attributes"], "{file}{path}");
        }
        // What is not an array is said not to be one.
        for path in expected.keys() {
            assert!(source.left_out().iter().any(|left| left.path == *path), "{file}{path}");
        }
    }
}

#[tokio::test]
async fn what_cannot_be_expressed_is_named_with_the_reason() {
    let store = store();
    for file in ["earliest.h5", "latest.h5"] {
        let source = Source::open(&store, file).await.unwrap();
        let left_out: Vec<_> =
            source.left_out().iter().map(|left| (left.path.as_str(), left.why.as_str())).collect();
        let expected = [
            ("/filters/bitshuffle", "chunks filtered by bitshuffle, in its own frame"),
            ("/filters/lz4", "chunks filtered by lz4, in HDF5's own frame"),
            ("/filters/lzf", "chunks filtered by lzf"),
            ("/filters/scale_offset", "chunks filtered by scale-offset"),
            ("/tree", "attribute \"reference\": references to objects"),
            ("/tree/broken", "a soft link to /nowhere, which is not there"),
            ("/tree/external", "an external link to /x in other.h5"),
            ("/tree/group/cycle", "another name of a group"),
            ("/tree/loop", "a soft link to loop, which is not there"),
            ("/tree/soft_group", "a soft link to /tree/group, no dataset"),
            ("/types/array", "elements that are arrays themselves"),
            ("/types/compound", "compounds of x, y"),
            ("/types/long_double", "floating-point numbers that are not as in IEEE 754"),
            ("/types/named_type", "a named data type holds no data"),
            ("/types/narrow", "integers that do not use all bits of their 4 bytes"),
            ("/types/null", "it has a type but no elements"),
            ("/types/ragged", "sequences of variable length"),
            ("/types/reference", "references to objects"),
            ("/virtual", "a virtual dataset, made of parts of other datasets"),
        ];
        assert_eq!(left_out, expected, "{file}");
    }
}

fn spec_of<'a>(source: &'a Source, path: &str) -> &'a ArraySpec {
    source.arrays().find(|(found, _)| *found == path).map(|(_, spec)| spec).unwrap()
}

#[tokio::test]
async fn types_keep_what_they_mean() {
    let source = Source::open(&store(), "latest.h5").await.unwrap();
    for (name, expected) in [
        ("i1_little", json!("int8")),
        ("u8_big", json!("uint64")),
        ("f2_big", json!("float16")),
        ("bfloat16", json!("bfloat16")),
        ("c8_little", json!("complex64")),
        ("c16_big", json!("complex128")),
        ("bool", json!("bool")),
        ("enum", json!("uint8")),
        ("opaque", json!("r24")),
        ("fixed_string", json!("r40")),
        ("text", json!("string")),
        (
            "datetime",
            json!({"name": "numpy.datetime64", "configuration": {"unit": "s", "scale_factor": 1}}),
        ),
    ] {
        let spec = spec_of(&source, &format!("/types/{name}"));
        assert_eq!(serde_json::to_value(&spec.metadata().data_type).unwrap(), expected, "{name}");
    }
    let fill = |name: &str| {
        let spec = spec_of(&source, &format!("/types/{name}"));
        serde_json::to_value(&spec.metadata().fill_value).unwrap()
    };
    assert_eq!(fill("i4_big"), json!(-3));
    assert_eq!(fill("c8_big"), json!([-3.0, 0.0]));
    assert_eq!(fill("nan"), json!("NaN"));
    let members = &spec_of(&source, "/types/enum").attributes()["hdf5_enum"];
    assert_eq!(*members, json!({"A": 1, "B": 2}));
}

#[tokio::test]
async fn attributes_become_json() {
    for file in ["earliest.h5", "latest.h5"] {
        let source = Source::open(&store(), file).await.unwrap();
        let group = |wanted: &str| {
            let (_, spec) = source.groups().find(|(path, _)| *path == wanted).unwrap();
            Value::Object(spec.attributes().clone())
        };
        let expected = json!({
            "text": "hé", "number": -3, "numbers": [1.5, 2.0], "one_number": [7], "bytes": "abc",
            "matrix": [[0, 1, 2], [3, 4, 5]], "texts": ["a", "", "ccc"], "flag": true,
            "nothing": null, "not_a_number": "NaN",
        });
        assert_eq!(group("/tree"), expected, "{file}");
        // More than a header holds.
        assert_eq!(group("/tree/group").as_object().unwrap().len(), 20, "{file}");
        assert_eq!(source.groups().filter(|(path, _)| path.starts_with("/tree/many/")).count(), 40);
        let names = |path: &str| spec_of(&source, path).dimension_names().map(<[_]>::to_vec);
        let some = |name: &str| Some(name.to_owned());
        assert_eq!(names("/tree/scaled"), Some(vec![some("label"), some("scale")]));
        assert_eq!(names("/tree/half_named"), Some(vec![None, some("scale")]));
        assert_eq!(names("/tree/scale"), Some(vec![some("scale")]));
        assert_eq!(names("/fixed"), None);
    }
    let source = Source::open(&store(), "netcdf.nc").await.unwrap();
    let (_, root) = source.groups().next().unwrap();
    let expected = json!({"title": "a title", "empty": "", "levels": [1, 2, 3]});
    assert_eq!(Value::Object(root.attributes().clone()), expected);
}

#[tokio::test]
async fn only_stored_chunks_are_listed() {
    for file in ["earliest.h5", "latest.h5", "user_block.h5"] {
        let source = Source::open(&store(), file).await.unwrap();
        for (path, expected) in [
            ("/sparse", vec![0, 11]),
            ("/never_written", vec![]),
            ("/contiguous_empty", vec![]),
            ("/empty", vec![]),
            ("/compact", vec![0]),
            // Rows and columns that the dataset has lost are still in its index.
            ("/shrunk", vec![0, 1]),
        ] {
            assert_eq!(source.stored(path).unwrap(), expected, "{file}{path}");
        }
        assert!(source.stored("/nothing").is_err());
    }
}

#[tokio::test]
async fn a_chunk_without_its_filters_is_encoded_like_the_others() {
    let (store, path) = (store(), "/filters/unfiltered_chunk");
    for file in ["earliest.h5", "latest.h5"] {
        let source = Source::open(&store, file).await.unwrap();
        let chunk = |number| source.locate(path, number);
        assert!(matches!(chunk(0).await.unwrap(), Some(ChunkRef::Inline(_))), "{file}");
        assert!(matches!(chunk(1).await.unwrap(), Some(ChunkRef::Object { .. })), "{file}");
        // Where no chunk went through the filter, the array has no such codec.
        let codecs = spec_of(&source, "/filters/blosc_lz4_1").codecs_json();
        assert_eq!(codecs.len(), 1, "{file}: {codecs:?}");
    }
}
