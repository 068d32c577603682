//! Arrays that become a single Bloscpack file, and come back.

use chunkyard_array::ArraySpec;
use chunkyard_engine::ErrorKind;
use chunkyard_engine::format::hostile::superchunk::bloscpack::{FileHead, Parsed};
use chunkyard_engine::pipeline::{Movement, Wishes};
use serde_json::{Value, json};

use super::support::check_file;
use super::wishes;
use crate::convert::by_hand::write_zarr3;
use crate::convert::formats::named;
use crate::convert::sample::{Sample, dtypes};
use crate::convert::support::{PATH, Yard, convert, opened, read, try_convert};

/// Writes an array as a single file, reads it back and converts it on; gives the metadata of the file.
async fn there_and_back(yard: &Yard, sample: &Sample, label: &str) -> Value {
    named("zarr3").write(yard, label, sample).await;
    let source = opened(&yard.at(&format!("{label}{PATH}"))).await;
    let (file, blz) = (yard.at(&format!("{label}.blp")), yard.at(&format!("{label}.blz")));
    let small = Wishes { shards: None, ..wishes("blosc:lz4:5") };
    convert(&source, &file, "blz", &small).await;
    let single = opened(&file).await;
    assert!(read(&single, "/").await == sample.array, "{label}");
    // Its chunks are whole rows, so superchunks are made of them as they are.
    let done = convert(&single, &blz, "blz", &Wishes::default()).await;
    assert_eq!(done.movement(), Movement::Copy, "{label}");
    assert!(read(&opened(&blz).await, "/").await == sample.array, "{label}");

    let bytes = std::fs::read(&file).unwrap();
    check_file("x.blp", &bytes, label);
    let parsed = FileHead::parse("x.blp", &bytes, bytes.len() as u64).unwrap();
    let Parsed::Whole(layout, _) = parsed else { panic!("{label}") };
    serde_json::from_slice(&layout.metadata.unwrap()).unwrap()
}

#[tokio::test]
async fn arrays_become_a_single_file_and_come_back() {
    let yard = Yard::directory();
    for (label, shape, chunks) in [
        ("0d", &[][..], &[][..]),
        ("prime", &[101], &[7]),
        ("four", &[5, 3, 7, 2], &[2, 3, 4, 1]),
        ("larger", &[3, 5], &[16, 5]),
        ("exact", &[8, 6], &[4, 6]),
    ] {
        let said = there_and_back(&yard, &Sample::new(shape, chunks, "uint16"), label).await;
        let tools = json!({"dtype": "'<u2'", "shape": shape, "order": "C", "container": "numpy"});
        assert_eq!(said, tools, "{label}");
    }
}

#[tokio::test]
async fn data_types_that_numpy_has_become_a_single_file() {
    for dtype in dtypes() {
        let label = dtype.get("name").unwrap_or(&dtype).as_str().unwrap().to_owned();
        if !["bfloat16", "string", "bytes"].contains(&label.as_str()) {
            let sample = Sample::new(&[7, 11], &[3, 4], dtype);
            there_and_back(&Yard::directory(), &sample, &label).await;
        }
    }
}

#[tokio::test]
async fn attributes_and_names_of_dimensions_stay_with_a_single_file() {
    let yard = Yard::directory();
    let spec = ArraySpec::builder(&[25, 3], &[4, 3], "float64").dimension_names(["t", "x"]);
    let attributes = [("unit".to_owned(), json!("mV"))].into_iter().collect();
    let spec = spec.attributes(attributes).build().unwrap();
    let sample = Sample::of(spec.clone());
    write_zarr3(&yard, "source", &spec, &sample.array).await;
    let source = opened(&yard.at(&format!("source{PATH}"))).await;
    convert(&source, &yard.at("x.blp"), "blz", &Wishes::default()).await;
    let single = opened(&yard.at("x.blp")).await;
    let found = &single.dataset().array("/").unwrap().spec;
    assert_eq!(found.attributes(), spec.attributes());
    assert_eq!(found.dimension_names(), spec.dimension_names());
}

#[tokio::test]
async fn only_one_array_with_elements_in_a_directory_is_accepted() {
    let (here, memory) = (Yard::directory(), Yard::memory());
    let sample = Sample::new(&[25, 3], &[4, 3], "float64");
    let group = named("zarr3").write(&here, "source", &sample).await;
    let array = opened(&here.at(&format!("source{PATH}"))).await;
    named("zarr3").write(&here, "nothing", &Sample::new(&[0, 3], &[4, 3], "float64")).await;
    let nothing = opened(&here.at(&format!("nothing{PATH}"))).await;
    for (source, target, why) in [
        (&group, here.at("x.blp"), "/group/t"),
        (&array, memory.at("x.blp"), "in a directory"),
        (&nothing, here.at("x.blp"), "without elements"),
    ] {
        let refused = try_convert(source, &target, "blz", &Wishes::default()).await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Unsupported, "{refused}");
        assert!(refused.to_string().contains(why), "{refused}");
    }
}
