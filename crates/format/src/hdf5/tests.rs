//! Files that h5py and netCDF4 wrote, with the values that these libraries read back.

use std::sync::Arc;

use chunkyard_array::{ArraySpec, ElementsBuf, Region};
use chunkyard_store::ChunkRef;
use futures::TryStreamExt;
use serde_json::{Value, json};

use crate::hdf5::Hdf5;
use crate::{Format as _, OpenOptions, Place, Probe, Reader, Source};

const FILES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/hdf5");

const FILE_NAMES: [&str; 6] = [
    "earliest.h5",
    "latest.h5",
    "netcdf.nc",
    "small_earliest.h5",
    "small_latest.h5",
    "user_block.h5",
];

fn expected(file: &str) -> serde_json::Map<String, Value> {
    let text = std::fs::read(format!("{FILES}/expected.json")).unwrap();
    let all: Value = serde_json::from_slice(&text).unwrap();
    all[file].as_object().unwrap().clone()
}

async fn open(file: &str) -> Arc<dyn Source> {
    let options = OpenOptions::default();
    let place = Place::new(&format!("{FILES}/{file}"), &options.store).unwrap();
    assert!(matches!(Hdf5.probe(&place).await.unwrap(), Probe::Yes(_)));
    Hdf5.open(&place, &options).await.unwrap()
}

/// All elements of an array: little-endian bytes in hexadecimal, or a list of strings.
async fn elements(source: &Arc<dyn Source>, path: &str) -> Value {
    let region = Region::whole(source.dataset().array(path).unwrap().spec.shape());
    let reader = Reader::new(source, path).unwrap();
    match reader.read_elements(&region).await.unwrap() {
        ElementsBuf::Fixed(bytes) => {
            Value::from(bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>())
        }
        ElementsBuf::Variable { bytes, offsets } => {
            let text = |pair: &[u64]| {
                String::from_utf8(bytes[pair[0] as usize..pair[1] as usize].to_vec()).unwrap()
            };
            offsets.windows(2).map(text).collect()
        }
    }
}

#[tokio::test]
async fn every_element_is_what_the_writer_reads_back() {
    for file in FILE_NAMES {
        let source = open(file).await;
        let mut expected = expected(file);
        for (path, array) in source.dataset().arrays() {
            let spec = &array.spec;
            // h5py has no such type and reads it as float32.
            let Some(expected) = expected.remove(path) else {
                assert_eq!(path, "/types/bfloat16", "{file}");
                continue;
            };
            assert_eq!(Value::from(spec.shape()), expected["shape"], "{file}{path}");
            assert_eq!(elements(&source, path).await, expected["data"], "{file}{path}");
            let Some(dimensions) = expected.get("dimensions") else { continue };
            let names = serde_json::to_value(spec.dimension_names()).unwrap();
            assert_eq!(&names, dimensions, "{file}{path}");
            let mut attributes = Value::Object(spec.attributes().clone());
            // base64.b64encode(struct.pack("<d", math.nan)), as xarray spells it.
            if let Some(fill) = attributes.get_mut("_FillValue").filter(|fill| fill.is_string()) {
                assert_eq!(fill, "AAAAAAAA+H8=");
                *fill = json!("NaN");
            }
            assert_eq!(attributes, expected["attributes"], "{file}{path}");
        }
        // Anything that is not an array is reported as such.
        for path in expected.keys() {
            let losses = &source.dataset().losses;
            assert!(losses.iter().any(|loss| loss.name == *path), "{file}{path}");
        }
    }
}

#[tokio::test]
async fn losses_are_named_with_the_reason() {
    for file in ["earliest.h5", "latest.h5"] {
        let source = open(file).await;
        let losses = source.dataset().losses.iter();
        let losses: Vec<_> = losses.map(|loss| (loss.name.as_str(), loss.what.as_str())).collect();
        let expected = [
            ("/filters/bitshuffle", "chunks filtered by bitshuffle, in its own frame"),
            ("/filters/lz4", "chunks filtered by lz4, in HDF5's own frame"),
            ("/filters/lzf", "chunks filtered by lzf"),
            ("/filters/scale_offset", "chunks filtered by scale-offset"),
            ("/types/array", "elements that are arrays themselves"),
            ("/types/compound", "compounds of x, y"),
            ("/types/long_double", "floating-point numbers that are not as in IEEE 754"),
            ("/types/narrow", "integers that do not use all bits of their 4 bytes"),
            ("/types/null", "it has a type but no elements"),
            ("/types/ragged", "sequences of variable length"),
            ("/types/reference", "references to objects"),
            ("/virtual", "a virtual dataset, made of parts of other datasets"),
            ("attributes", "/tree: attribute \"reference\": references to objects"),
            ("links", "/tree/broken: a soft link to /nowhere, which is not there"),
            ("links", "/tree/external: an external link to /x in other.h5"),
            ("links", "/tree/group/cycle: another name of a group"),
            ("links", "/tree/loop: a soft link to loop, which is not there"),
            ("links", "/tree/soft_group: a soft link to /tree/group, no dataset"),
            ("types", "/types/named_type: a data type of its own"),
        ];
        assert_eq!(losses, expected, "{file}");
    }
}

fn spec_of<'a>(source: &'a Arc<dyn Source>, path: &str) -> &'a ArraySpec {
    &source.dataset().array(path).unwrap().spec
}

#[tokio::test]
async fn types_keep_what_they_mean() {
    let source = open("latest.h5").await;
    for (name, expected) in [
        ("i1_little", json!("int8")),
        ("u8_big", json!("uint64")),
        ("f2_big", json!("float16")),
        ("bfloat16", json!("bfloat16")),
        ("c8_little", json!("complex64")),
        ("c16_big", json!("complex128")),
        ("bool", json!("bool")),
        ("enum", json!("uint8")),
        ("opaque", json!({"name": "raw_bytes", "configuration": {"length_bytes": 3}})),
        (
            "fixed_string",
            json!({"name": "null_terminated_bytes", "configuration": {"length_bytes": 5}}),
        ),
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
        let source = open(file).await;
        let group = |wanted: &str| {
            let (_, spec) = source.dataset().groups().find(|(path, _)| *path == wanted).unwrap();
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
        assert_eq!(
            source.dataset().groups().filter(|(path, _)| path.starts_with("/tree/many/")).count(),
            40
        );
        let names = |path: &str| spec_of(&source, path).dimension_names().map(<[_]>::to_vec);
        let some = |name: &str| Some(name.to_owned());
        assert_eq!(names("/tree/scaled"), Some(vec![some("label"), some("scale")]));
        assert_eq!(names("/tree/half_named"), Some(vec![None, some("scale")]));
        assert_eq!(names("/tree/scale"), Some(vec![some("scale")]));
        assert_eq!(names("/fixed"), None);
    }
    let source = open("netcdf.nc").await;
    let (_, root) = source.dataset().groups().next().unwrap();
    let expected = json!({"title": "a title", "empty": "", "levels": [1, 2, 3]});
    assert_eq!(Value::Object(root.attributes().clone()), expected);
}

#[tokio::test]
async fn only_stored_chunks_are_listed() {
    for file in ["earliest.h5", "latest.h5", "user_block.h5"] {
        let source = open(file).await;
        for (path, expected) in [
            ("/sparse", vec![vec![0, 0], vec![3, 2]]),
            ("/never_written", vec![]),
            ("/contiguous_empty", vec![]),
            ("/empty", vec![]),
            ("/compact", vec![vec![0]]),
            // Rows and columns that the dataset has lost by shrinking are still in its index.
            ("/shrunk", vec![vec![0, 0], vec![0, 1]]),
        ] {
            let region = Region::whole(spec_of(&source, path).shape());
            let chunks: Vec<_> = source.chunks(path, &region).try_collect().await.unwrap();
            let mut found: Vec<_> = chunks.into_iter().map(|(index, _)| index).collect();
            found.sort();
            assert_eq!(found, expected, "{file}{path}");
        }
        let one = Region::new([9, 6], [2, 2]).unwrap();
        let chunks: Vec<_> = source.chunks("/sparse", &one).try_collect().await.unwrap();
        assert_eq!(chunks.len(), 1, "{file}");
        let mut nothing = source.chunks("/nothing", &one);
        assert!(nothing.try_next().await.is_err());
    }
}

#[tokio::test]
async fn a_chunk_without_its_filters_is_encoded_like_the_others() {
    let path = "/filters/unfiltered_chunk";
    for file in ["earliest.h5", "latest.h5"] {
        let source = open(file).await;
        let located = source.locate(path, &[vec![0], vec![1]]).await.unwrap();
        assert!(matches!(located[0], Some(ChunkRef::Inline(_))), "{file}");
        assert!(matches!(located[1], Some(ChunkRef::Object { .. })), "{file}");
        // Where no chunk went through the filter, the array has no such codec.
        let codecs = spec_of(&source, "/filters/blosc_too_small").codecs_json();
        assert_eq!(codecs.len(), 1, "{file}: {codecs:?}");
        let codecs = spec_of(&source, "/filters/blosc_lz4_1").codecs_json();
        assert_eq!(codecs.len(), 2, "{file}: {codecs:?}");
    }
}

#[tokio::test]
async fn chunks_at_the_edges_may_have_no_filters() {
    for file in ["small_earliest.h5", "small_latest.h5"] {
        let source = open(file).await;
        for path in ["/unfiltered_edges", "/unfiltered_edges_grow", "/unfiltered_edges_grow_twice"]
        {
            // Two chunks are whole and four are not, so most chunks have no filters.
            assert_eq!(spec_of(&source, path).codecs_json().len(), 1, "{file}{path}");
            let located = source.locate(path, &[vec![0, 0], vec![1, 1]]).await.unwrap();
            assert!(matches!(located[0], Some(ChunkRef::Inline(_))), "{file}{path}");
            assert!(matches!(located[1], Some(ChunkRef::Object { .. })), "{file}{path}");
        }
    }
}

/// A shape proves nothing: neither memory nor time may follow from it alone.
#[test]
fn a_false_shape_costs_nothing() {
    // The shape in the dataspace messages of GRID; this file has no checksums, and every kind of
    // index.
    let honest: Vec<u8> = [7u64, 9].iter().flat_map(|n| n.to_le_bytes()).collect();
    let file = std::fs::read(format!("{FILES}/small_earliest.h5")).unwrap();
    let places: Vec<usize> =
        (0..file.len() - 16).filter(|&at| file[at..at + 16] == honest[..]).collect();
    assert!(places.len() >= 5, "{places:?}");
    for shape in [[1 << 40, 9], [7, 1 << 40], [u64::MAX; 2], [1 << 31; 2], [0, 9], [1 << 33, 1]] {
        let lie: Vec<u8> = shape.iter().flat_map(|n| n.to_le_bytes()).collect();
        for &at in &places {
            let mut bent = file.clone();
            bent[at..at + 16].copy_from_slice(&lie);
            // The maximum shape follows the present one.
            bent[at + 16..at + 32].copy_from_slice(&lie);
            let began = std::time::Instant::now();
            if let Ok(found) = super::hostile::read_hdf5(&bent) {
                let inside = |&(start, bytes): &(u64, u64)| start + bytes <= file.len() as u64;
                assert!(found.chunks.iter().all(inside), "{shape:?} at {at}");
            }
            assert!(began.elapsed().as_secs() < 20, "{shape:?} at {at}");
        }
    }
}
