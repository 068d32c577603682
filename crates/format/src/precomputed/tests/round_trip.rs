use std::sync::Arc;

use bytes::Bytes;
use chunkyard_array::codec::picture::PNG;
use chunkyard_array::{ArraySpec, Region};
use chunkyard_store::{ErrorKind, Options};
use futures::TryStreamExt;
use serde_json::json;

use super::*;
use crate::{
    ArrayNode, ChunkCodecs, Dataset, Level, Meter, Node, Occupied, Pack, Reader, Survey, Verdict,
    check, encode_chunk,
};

/// A dataset with one array, as a volume takes it.
fn dataset(spec: &ArraySpec, shards: Option<&[u64]>) -> Dataset {
    let mut dataset = Dataset::default();
    let mut node = ArrayNode::new(spec).unwrap();
    node.sharding = shards.map(chunkyard_array::Sharding::new);
    dataset.insert("/g/8_8_8", Node::Array(Arc::new(node)));
    Precomputed.express(dataset).unwrap()
}

/// Elements that differ from their neighbours, with chunks that are all zero.
fn elements(region: &Region, item: usize) -> Vec<u8> {
    let count = region.num_elements();
    let value = |at: u64| if at % 1000 < 300 { 0 } else { at / 3 % 250 };
    (0..count).flat_map(|at| value(at).to_le_bytes()[..item].to_vec()).collect()
}

/// Writes all elements pack by pack, the chunks of each in the opposite order, and reads them again.
async fn round_trip(dataset: Dataset, place: &Place) -> Arc<dyn Source> {
    let sink = Precomputed.create(place, dataset.clone(), CreateOptions::default()).await.unwrap();
    for (path, node) in dataset.arrays() {
        let codecs = ChunkCodecs::new(node).unwrap();
        let grid = chunkyard_array::Grid::new(node.spec.shape(), &Precomputed.grain(node).unwrap());
        let whole = Region::whole(node.spec.shape());
        let item = node.item_bytes() as usize;
        let all = elements(&whole, item);
        for (number, index) in grid.as_ref().unwrap().chunks_in(&whole).enumerate() {
            let region = grid.as_ref().unwrap().clipped_region(&index);
            let pack = Pack { array: path.into(), number: number as u64, region: region.clone() };
            let mut writer = sink.open_pack(&pack).await.unwrap();
            let mut chunks: Vec<(Vec<u64>, Bytes)> = Vec::new();
            for chunk in codecs.grid().chunks_in(&region) {
                let stored = codecs.stored_region(&chunk);
                let mut decoded = vec![0; stored.num_bytes(item).unwrap()];
                let (shape, zeros) = (node.spec.shape(), vec![0; stored.rank()]);
                chunkyard_array::copy_region(
                    &all,
                    shape,
                    &stored,
                    &mut decoded,
                    stored.shape(),
                    &zeros,
                    item,
                )
                .unwrap();
                let (own, _) = codecs.of(&chunk).unwrap();
                chunks.extend(encode_chunk(&own, &decoded).unwrap().map(|bytes| (chunk, bytes)));
            }
            chunks.reverse();
            writer.push(chunks).await.unwrap();
            let receipt = writer.close().await.unwrap();
            sink.sync(&[receipt]).await.unwrap();
        }
    }
    assert_eq!(Precomputed.probe(place).await.unwrap(), Probe::No("no info".to_owned()));
    sink.finish().await.unwrap();
    let source = Precomputed.open(place, &OpenOptions::default()).await.unwrap();
    for (path, node) in source.dataset().arrays() {
        let whole = Region::whole(node.spec.shape());
        let found = Reader::new(&source, path).unwrap().read_region(&whole).await.unwrap();
        assert!(found[..] == elements(&whole, node.item_bytes() as usize), "{path}");
    }
    source
}

fn places() -> (tempfile::TempDir, [Place; 2]) {
    let directory = tempfile::tempdir().unwrap();
    let local = directory.path().join("a.precomputed");
    let name = directory.path().file_name().unwrap().to_str().unwrap();
    let memory = format!("memory://{}/a.precomputed", name.trim_start_matches('.'));
    let place = |url: &str| Place::new(url, &Options::default()).unwrap();
    let places = [place(local.to_str().unwrap()), place(&memory)];
    (directory, places)
}

#[tokio::test]
async fn volumes_of_any_order_of_axes_go_there_and_back() {
    for (shape, chunks, names, dtype, shards) in [
        (&[37, 20, 11][..], &[16, 8, 8][..], &["z", "y", "x"][..], "uint64", None),
        (&[37, 20, 11], &[16, 8, 8], &["z", "y", "x"], "uint64", Some(&[32, 16, 16][..])),
        (&[37, 20, 11], &[16, 8, 8], &["x", "y", "z"], "uint64", Some(&[32, 16, 16])),
        (&[3, 9, 20, 11], &[3, 8, 8, 8], &["c", "z", "y", "x"], "uint16", Some(&[3, 8, 16, 8])),
        (&[9, 20, 11, 2], &[8, 8, 8, 2], &["z", "y", "x", "channel"], "float32", None),
        (&[30, 7], &[8, 8], &["y", "x"], "uint32", Some(&[16, 8])),
        (&[100], &[8], &["z"], "int8", Some(&[64])),
        (&[1, 1, 1], &[8, 8, 8], &["z", "y", "x"], "uint32", Some(&[8, 8, 8])),
    ] {
        let (_directory, places) = places();
        for place in places {
            let builder = ArraySpec::builder(shape, chunks, dtype);
            let spec = builder.dimension_names(names.iter().copied()).build().unwrap();
            let source = round_trip(dataset(&spec, shards), &place).await;
            let found = source.dataset().array("/g/8_8_8").unwrap();
            assert_eq!((found.spec.shape(), found.grid().unwrap().chunk_shape()), (shape, chunks));
            assert_eq!(found.spec.dimension_names(), spec.dimension_names(), "{names:?}");
            assert_eq!(found.sharding.is_some(), shards.is_some());
            let whole = Region::whole(shape);
            let listed: Vec<_> = source.chunks("/g/8_8_8", &whole).try_collect().await.unwrap();
            let Occupied::Cells { grid, cells } = source.occupied("/g/8_8_8").unwrap() else {
                panic!("cells")
            };
            let cells: Vec<_> = cells.try_collect().await.unwrap();
            for (index, place) in listed {
                let located =
                    source.locate("/g/8_8_8", std::slice::from_ref(&index)).await.unwrap();
                let same = located[0].as_ref() == Some(&place) || shards.is_none();
                assert!(same && located[0].is_some(), "{index:?}");
                let region = found.grid().unwrap().clipped_region(&index);
                let inside = |cell: &Vec<u64>| grid.chunk_region(cell).intersect(&region).is_some();
                assert!(cells.iter().any(inside), "{index:?} in {cells:?}");
            }
            let report = check(&source, Level::Bytes, &Meter::default()).await.unwrap();
            assert!(report.errors == 0 && report.verdict != Verdict::Damaged, "{report:?}");
        }
    }
}

#[tokio::test]
async fn attributes_origin_and_resolution_are_kept() {
    let (_directory, [place, _]) = places();
    let space = json!({"axes": [{"unit": "micrometer", "scale": 0.04}, {"scale": 8.0}, {"scale": 8.0}],
        "origin": [-5, 7, 0]});
    let mut attributes = chunkyard_array::Attributes::new();
    attributes.insert("chunkyard_space".to_owned(), space);
    attributes.insert("owner".to_owned(), json!({"name": "x"}));
    let spec = ArraySpec::builder(&[10, 9, 8], &[8, 8, 8], "uint8").attributes(attributes);
    let spec = spec.build().unwrap();
    let mut wished = dataset(&spec, None);
    let title = json!({"title": "t"}).as_object().unwrap().clone();
    wished.insert("/g", Node::Group(chunkyard_array::GroupSpec::new(title.clone())));
    let source = round_trip(wished, &place).await;
    let found = source.dataset().array("/g/8_8_8").unwrap();
    assert_eq!(found.spec.attributes(), spec.attributes());
    assert_eq!(found.spec.dimension_names(), None);
    let group = source.dataset().groups().find(|(path, _)| *path == "/g").unwrap().1;
    assert_eq!(group.attributes(), &title);
    let info: serde_json::Value =
        serde_json::from_slice(&place.directory().get("info").await.unwrap().bytes).unwrap();
    assert_eq!(info["scales"][0]["voxel_offset"], json!([0, 7, -5]));
    assert_eq!(info["scales"][0]["resolution"], json!([8, 8, 40]));
    let survey = Survey::of(source.dataset());
    assert_eq!(survey.space("/g/8_8_8").unwrap().origin, Some(vec![-5, 7, 0]));
}

#[tokio::test]
async fn what_a_volume_cannot_hold_is_refused() {
    let refused = |specs: &[ArraySpec]| {
        let mut dataset = Dataset::default();
        for (number, spec) in specs.iter().enumerate() {
            let node = ArrayNode::new(spec).unwrap();
            dataset.insert(format!("/a{number}"), Node::Array(Arc::new(node)));
        }
        let error = Precomputed.express(dataset).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
        error.to_string()
    };
    let spec = |shape: &[u64], dtype: &str| ArraySpec::builder(shape, &vec![8; shape.len()], dtype);
    let plain = spec(&[8, 8, 8], "uint8").build().unwrap();
    assert!(refused(&[spec(&[8, 8, 8], "float64").build().unwrap()]).contains("float64"));
    assert!(refused(&[spec(&[8; 5], "uint8").build().unwrap()]).contains("5 dimensions"));
    assert!(refused(&[spec(&[0, 8, 8], "uint8").build().unwrap()]).contains("without any voxel"));
    assert!(refused(&[spec(&[8, 8, 8], "uint8").fill_value(7).build().unwrap()]).contains("fill"));
    assert!(refused(&[plain.clone(), plain]).contains("2 arrays as one"));
    assert!(refused(&[]).contains("without arrays"));
}

#[tokio::test]
async fn a_key_that_leads_out_of_the_volume_is_refused() {
    for key in ["../b", "a/../../b", "", "/", "https://x/y"] {
        let (_directory, [place, _]) = places();
        let info = json!({"type": "image", "data_type": "uint8", "num_channels": 1, "scales": [{
            "key": key, "size": [8, 8, 8], "resolution": [1, 1, 1], "chunk_sizes": [[8, 8, 8]],
        }]});
        let bytes: Bytes = info.to_string().into_bytes().into();
        place.directory().put("info", vec![bytes]).await.unwrap();
        let error = Precomputed.open(&place, &OpenOptions::default()).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported, "{key}: {error}");
    }
}

#[tokio::test]
async fn a_volume_whose_encoding_is_not_decoded_is_listed_and_the_encoding_named() {
    for encoding in ["jxl", "compresso"] {
        let (_directory, [place, _]) = places();
        let info = json!({"type": "image", "data_type": "uint8", "num_channels": 1, "scales": [{
            "key": "s0", "size": [8, 8, 8], "resolution": [1, 1, 1], "chunk_sizes": [[8, 8, 8]],
            "encoding": encoding,
        }]});
        let picture = Bytes::from_static(b"no picture");
        place.directory().put("s0/0-8_0-8_0-8", vec![picture]).await.unwrap();
        let bytes: Bytes = info.to_string().into_bytes().into();
        place.directory().put("info", vec![bytes]).await.unwrap();
        let source = Precomputed.open(&place, &OpenOptions::default()).await.unwrap();
        assert_eq!(source.dataset().array("/s0").unwrap().spec.shape(), [8, 8, 8]);
        let error = Reader::new(&source, "/s0").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported, "{encoding}: {error}");
        assert!(error.to_string().contains(&format!("neuroglancer.{encoding}")), "{error}");
    }
}

#[tokio::test]
async fn pictures_have_every_voxel_and_say_what_they_are() {
    for (shape, chunks, names, dtype, shards) in [
        (&[37, 20, 11][..], &[16, 8, 8][..], &["z", "y", "x"][..], "uint8", None),
        (&[37, 20, 11], &[16, 8, 8], &["x", "y", "z"], "uint16", Some(&[32, 16, 16][..])),
        (&[9, 20, 11, 3], &[8, 8, 8, 3], &["z", "y", "x", "channel"], "uint8", None),
    ] {
        let (_directory, [place, _]) = places();
        let builder = ArraySpec::builder(shape, chunks, dtype).codecs(vec![json!({"name": PNG})]);
        let spec = builder.dimension_names(names.iter().copied());
        let source = round_trip(dataset(&spec.build().unwrap(), shards), &place).await;
        let bytes = place.directory().get("info").await.unwrap();
        let info = Info::parse("info", &bytes.bytes).unwrap();
        assert_eq!(info.scales[0].encoding, Encoding::Png);
        let sharding = info.scales[0].sharding;
        assert!(sharding.is_none_or(|sharding| sharding.data_encoding == Packing::Raw));
        let report = check(&source, Level::Bytes, &Meter::default()).await.unwrap();
        assert!(report.errors == 0 && report.verdict != Verdict::Damaged, "{report:?}");
    }
}

#[tokio::test]
async fn what_is_no_picture_is_corrupt() {
    for encoding in ["png", "jpeg"] {
        let (_directory, [place, _]) = places();
        let info = json!({"type": "image", "data_type": "uint8", "num_channels": 1, "scales": [{
            "key": "s0", "size": [8, 8, 8], "resolution": [1, 1, 1], "chunk_sizes": [[8, 8, 8]],
            "encoding": encoding,
        }]});
        let picture = Bytes::from_static(b"no picture");
        place.directory().put("s0/0-8_0-8_0-8", vec![picture]).await.unwrap();
        let bytes: Bytes = info.to_string().into_bytes().into();
        place.directory().put("info", vec![bytes]).await.unwrap();
        let source = Precomputed.open(&place, &OpenOptions::default()).await.unwrap();
        let reader = Reader::new(&source, "/s0").unwrap();
        let error = reader.read_region(&Region::whole(&[8, 8, 8])).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{encoding}: {error}");
    }
}
