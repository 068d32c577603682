//! Where the elements lie travels too: axes, units, resolution, origin and pyramids.

use std::sync::Arc;

use chunkyard_array::{ArraySpec, Attributes, GroupSpec};
use chunkyard_engine::format::{Axis, Finding, Node, SPACE_KEY, Source, Space, Survey};
use chunkyard_engine::pipeline::Wishes;
use chunkyard_engine::store::{Options, Store};
use chunkyard_engine::{Error, ErrorKind};
use serde_json::{Value, json};

use super::formats::{named, sinks, sinks_of_hierarchies};
use super::support::{Yard, convert, opened, read, try_convert};

const GROUP: &str = "/image";
const LEVELS: [(&str, [u64; 3]); 2] = [("/image/0", [2, 8, 6]), ("/image/1", [2, 4, 3])];

/// Chunks are their bytes.
fn plain() -> Vec<Value> {
    vec![json!({"name": "bytes"})]
}

fn object(value: Value) -> Attributes {
    value.as_object().unwrap().clone()
}

/// What OME-Zarr says of the pyramid; in version 0.4 each entry has its version.
fn multiscales(version: Option<&str>) -> Value {
    let level = |path: &str, scale: [f64; 3], translation: Option<[f64; 3]>| {
        let mut steps = vec![json!({"type": "scale", "scale": scale})];
        steps.extend(translation.map(|by| json!({"type": "translation", "translation": by})));
        json!({"path": path, "coordinateTransformations": steps})
    };
    let mut entry = json!({
        "name": "cells",
        "axes": [
            {"name": "c", "type": "channel"},
            {"name": "y", "type": "space", "unit": "nanometer"},
            {"name": "x", "type": "space", "unit": "nanometer"},
        ],
        "datasets": [
            level("0", [1.0, 8.0, 4.0], Some([0.0, -64.0, 20.0])),
            level("1", [1.0, 16.0, 8.0], None),
        ],
        "type": "mean",
    });
    if let Some(version) = version {
        entry["version"] = json!(version);
    }
    json!([entry])
}

/// A pyramid as plain documents, one byte per chunk at most. The first chunk of each level is stored.
async fn write_pyramid(yard: &Yard, version: &str) -> Arc<dyn Source> {
    let name = format!("source-{version}");
    let store = yard.store(&name);
    let put = async |path: &str, document: Value| {
        store.put(path, vec![document.to_string().into()]).await.unwrap();
    };
    let is_04 = version == "0.4";
    if is_04 {
        put(".zgroup", json!({"zarr_format": 2})).await;
        put("image/.zgroup", json!({"zarr_format": 2})).await;
        let list = multiscales(Some(version));
        put("image/.zattrs", json!({"multiscales": list, "omero": {"id": 1}, "mine": [1]})).await;
    } else {
        let ome = json!({"version": version, "multiscales": multiscales(None), "omero": {"id": 1}});
        let group = GroupSpec::new(object(json!({"mine": [1], "ome": ome})));
        put("zarr.json", json!({"zarr_format": 3, "node_type": "group"})).await;
        store.put("image/zarr.json", vec![group.render().into()]).await.unwrap();
    }
    for (path, shape) in LEVELS {
        let folder = path.trim_start_matches('/');
        let chunk: Vec<u8> = (1..=shape.iter().product::<u64>() as u8).collect();
        if is_04 {
            let zarray = json!({
                "zarr_format": 2, "shape": shape, "chunks": shape, "dtype": "|u1", "order": "C",
                "compressor": null, "filters": null, "fill_value": 0, "dimension_separator": "/",
            });
            put(&format!("{folder}/.zarray"), zarray).await;
            store.put(&format!("{folder}/0/0/0"), vec![chunk.into()]).await.unwrap();
        } else {
            let spec = ArraySpec::builder(&shape, &shape, "uint8").codecs(plain());
            let spec = spec.dimension_names(["c", "y", "x"]).build().unwrap();
            let document = vec![spec.render().into()];
            store.put(&format!("{folder}/zarr.json"), document).await.unwrap();
            store.put(&format!("{folder}/c/0/0/0"), vec![chunk.into()]).await.unwrap();
        }
    }
    opened(&yard.at(&name)).await
}

/// What a dataset says, without the version and the place of the OME metadata.
fn facts(source: &Arc<dyn Source>) -> (Vec<Value>, Vec<Space>) {
    let survey = Survey::of(source.dataset());
    assert_eq!(survey.findings, Vec::<Finding>::new());
    let pyramids = survey.multiscales.iter().map(|pyramid| {
        let mut pyramid = json!(pyramid);
        pyramid.as_object_mut().unwrap().shift_remove("version");
        pyramid
    });
    let spaces = source.dataset().arrays().map(|(path, _)| survey.space(path).unwrap().clone());
    (pyramids.collect(), spaces.collect())
}

fn attributes(source: &Arc<dyn Source>, path: &str) -> Attributes {
    match source.dataset().nodes.get(path) {
        Some(Node::Group(group)) => group.attributes().clone(),
        Some(Node::Array(array)) => array.spec.attributes().clone(),
        None => panic!("{path} is missing"),
    }
}

#[tokio::test]
async fn pyramids_arrive_in_every_format_and_come_back() {
    let yard = Yard::memory();
    for version in ["0.4", "0.5"] {
        let source = write_pyramid(&yard, version).await;
        let (pyramids, spaces) = facts(&source);
        assert_eq!(pyramids[0]["levels"].as_array().unwrap().len(), 2, "{pyramids:?}");
        assert_eq!(spaces[0].origin, Some(vec![0, -8, 5]));
        for to in sinks() {
            let name = to.called(&format!("{version}-{to:?}"));
            convert(&source, &yard.at(&name), to.format, &Wishes::default()).await;
            let target = opened(&yard.at(&name)).await;
            assert_eq!(facts(&target), (pyramids.clone(), spaces.clone()), "{name}");
            // And back to Zarr v3, where OME-Zarr has the version that belongs there.
            let back = format!("{name}-back");
            convert(&target, &yard.at(&back), "zarr3", &Wishes::default()).await;
            let back = opened(&yard.at(&back)).await;
            assert_eq!(facts(&back), (pyramids.clone(), spaces.clone()), "{name}");
            let ome =
                json!({"version": "0.5", "multiscales": multiscales(None), "omero": {"id": 1}});
            assert_eq!(
                attributes(&back, GROUP),
                object(json!({"mine": [1], "ome": ome})),
                "{name}"
            );
            for (path, _) in LEVELS {
                let names = back.dataset().array(path).unwrap().spec.dimension_names().unwrap();
                assert_eq!(names, ["c", "y", "x"].map(|name| Some(name.to_owned())), "{name}");
                assert!(read(&back, path).await == read(&source, path).await, "{name} {path}");
            }
        }
    }
}

#[tokio::test]
async fn other_formats_keep_version_04_as_it_is() {
    let yard = Yard::memory();
    let source = write_pyramid(&yard, "0.4").await;
    for to in [named("container"), named("superchunk")] {
        let name = to.called("verbatim");
        convert(&source, &yard.at(&name), to.format, &Wishes::default()).await;
        let target = opened(&yard.at(&name)).await;
        assert_eq!(attributes(&target, GROUP), attributes(&source, GROUP), "{to:?}");
    }
}

#[tokio::test]
async fn a_crop_moves_the_levels_of_a_pyramid() {
    let yard = Yard::memory();
    for version in ["0.4", "0.5"] {
        let source = write_pyramid(&yard, version).await;
        for to in sinks() {
            let name = to.called(&format!("crop-{version}-{to:?}"));
            let wishes = Wishes { region: Some(":,2:4,1:3".into()), ..Wishes::default() };
            convert(&source, &yard.at(&name), to.format, &wishes).await;
            let (_, spaces) = facts(&opened(&yard.at(&name)).await);
            assert_eq!(spaces[0].translation, Some(vec![0.0, -48.0, 24.0]), "{name}");
            assert_eq!(spaces[0].origin, Some(vec![0, -6, 6]), "{name}");
            assert_eq!(spaces[1].translation, Some(vec![0.0, 32.0, 8.0]), "{name}");
            assert_eq!(spaces[1].origin, Some(vec![0, 2, 1]), "{name}");
        }
    }
}

#[tokio::test]
async fn a_selection_lists_the_levels_that_are_there() {
    let yard = Yard::memory();
    let source = write_pyramid(&yard, "0.4").await;
    let wishes =
        Wishes { arrays: vec!["/image/1".into()], into: "sub/group".into(), ..Wishes::default() };
    for to in sinks() {
        let name = to.called(&format!("selection-{to:?}"));
        convert(&source, &yard.at(&name), to.format, &wishes).await;
        let target = opened(&yard.at(&name)).await;
        let survey = Survey::of(target.dataset());
        assert_eq!(survey.findings, Vec::<Finding>::new(), "{name}");
        let levels = &survey.multiscales[0].levels;
        let paths: Vec<_> = levels.iter().map(|level| level.path.as_str()).collect();
        assert_eq!(paths, ["/sub/group/image/1"], "{name}");
    }
}

#[tokio::test]
async fn a_crop_of_a_pyramid_without_positions_is_a_loss() {
    let yard = Yard::memory();
    let source = write_pyramid(&yard, "0.5").await;
    drop(source);
    let mut list = multiscales(None);
    list[0]["datasets"][0] = json!({"path": "0"});
    let group = GroupSpec::new(object(json!({"ome": {"version": "0.5", "multiscales": list}})));
    let store = yard.store("source-0.5");
    store.put("image/zarr.json", vec![group.render().into()]).await.unwrap();
    let source = opened(&yard.at("source-0.5")).await;
    let mut wishes = Wishes { region: Some(":,2:4,1:3".into()), ..Wishes::default() };
    let refused = try_convert(&source, &yard.at("t"), "zarr3", &wishes).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Unsupported);
    assert!(refused.to_string().contains("positions: pyramid 0 of /image: /image/0"), "{refused}");
    wishes.lossy.insert("positions".to_owned());
    convert(&source, &yard.at("t"), "zarr3", &wishes).await;
    let target = opened(&yard.at("t")).await;
    assert_eq!(attributes(&target, GROUP), object(json!({"ome": {"version": "0.5"}})));
}

#[tokio::test]
async fn an_origin_without_a_pyramid_arrives_and_moves() {
    let yard = Yard::memory();
    let axis = |name: &str, scale| Axis {
        name: Some(name.into()),
        kind: Some("space".into()),
        unit: Some("nanometer".into()),
        scale: Some(scale),
    };
    let space = Space {
        axes: vec![axis("x", 4.5), axis("y", 8.0)],
        translation: None,
        origin: Some(vec![-10, 1 << 40]),
    };
    let spec = ArraySpec::builder(&[6, 8], &[6, 8], "uint8").codecs(plain()).build().unwrap();
    let spec = space.render(&spec).unwrap();
    let store = yard.store("source");
    let root = GroupSpec::new(Attributes::new());
    store.put("zarr.json", vec![root.render().into()]).await.unwrap();
    store.put("a/zarr.json", vec![spec.render().into()]).await.unwrap();
    let chunk: Vec<u8> = (0..48).collect();
    store.put("a/c/0/0", vec![chunk.into()]).await.unwrap();
    let source = opened(&yard.at("source")).await;
    let (_, expected) = facts(&source);
    assert_eq!(expected[0].translation, Some(vec![-45.0, 8.0 * (1u64 << 40) as f64]));
    for to in sinks() {
        let name = to.called(&format!("{to:?}"));
        convert(&source, &yard.at(&name), to.format, &Wishes::default()).await;
        let target = opened(&yard.at(&name)).await;
        assert_eq!(facts(&target).1, expected, "{name}");
        let wishes = Wishes { region: Some("2:4,3:8".into()), ..Wishes::default() };
        let cropped = yard.at(&format!("{name}-cropped"));
        convert(&target, &cropped, "zarr3", &wishes).await;
        let (_, moved) = facts(&opened(&cropped).await);
        assert_eq!(moved[0].origin, Some(vec![-8, (1 << 40) + 3]), "{name}");
        assert_eq!(moved[0].axes, expected[0].axes, "{name}");
    }
    let key = &attributes(&source, "/a")[SPACE_KEY];
    assert_eq!(key["origin"], json!([-10, 1u64 << 40]));
}

/// Lies, each of which leaves both arrays readable and convertible.
#[tokio::test]
async fn a_lying_document_harms_no_array() {
    let yard = Yard::memory();
    let source = write_pyramid(&yard, "0.5").await;
    let elements = read(&source, "/image/0").await;
    let store = yard.store("source-0.5");
    let mut cases = vec![json!(null), json!("multiscales"), json!([]), json!([[[]]])];
    for (key, value) in [
        ("axes", json!((0..2_000).map(|n| json!({"name": n.to_string()})).collect::<Vec<_>>())),
        ("axes", json!([{"name": "y"}, {"name": "x"}])),
        (
            "datasets",
            json!([{"path": "../image/0"}, {"path": ".."}, {"path": "/"}, {"path": "gone"}]),
        ),
        (
            "datasets",
            json!([{"path": "0", "coordinateTransformations": [{"type": "scale", "scale": ["NaN", 1, 1]}]}]),
        ),
        ("coordinateTransformations", json!([{"type": "scale", "scale": [1e308, 1e308, 1e308]}])),
    ] {
        let mut list = multiscales(None);
        list[0][key] = value;
        cases.push(list);
    }
    for (number, list) in cases.into_iter().enumerate() {
        let ome = json!({"version": "0.5", "multiscales": list});
        let group = GroupSpec::new(object(json!({"ome": ome})));
        store.put("image/zarr.json", vec![group.render().into()]).await.unwrap();
        let source = opened(&yard.at("source-0.5")).await;
        let survey = Survey::of(source.dataset());
        assert_eq!(survey.findings.is_empty(), number == 2, "{number}: {:?}", survey.findings);
        assert!(read(&source, "/image/0").await == elements);
        for to in sinks_of_hierarchies() {
            let name = to.called(&format!("lies-{number}-{to:?}"));
            convert(&source, &yard.at(&name), to.format, &Wishes::default()).await;
            let target = opened(&yard.at(&name)).await;
            assert_eq!(attributes(&target, GROUP), *group.attributes(), "{name}");
        }
    }
}

/// The units of dimension scales, which other formats find by the names of the axes.
#[tokio::test]
async fn units_of_hdf5_scales_arrive_in_every_format() {
    let yard = Yard::memory();
    let files = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/hdf5");
    let bytes = std::fs::read(format!("{files}/scales.h5")).unwrap();
    let file = yard.at("file");
    let store = Store::open(&file, &Options::default()).unwrap();
    store.put("scales.h5", vec![bytes.into()]).await.unwrap();
    let source = opened(&format!("{file}/scales.h5")).await;
    let expected = |survey: &Survey, path: &str| -> Vec<(String, String)> {
        let axes = &survey.space(path).unwrap().axes;
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        axes.iter().map(|axis| (text(&axis.name), text(&axis.unit))).collect()
    };
    let check = |source: &Arc<dyn Source>| {
        let survey = Survey::of(source.dataset());
        assert_eq!(survey.findings, Vec::<Finding>::new());
        let pairs = |pairs: &[(&str, &str)]| -> Vec<(String, String)> {
            pairs.iter().map(|(name, unit)| ((*name).to_owned(), (*unit).to_owned())).collect()
        };
        let near = expected(&survey, "/near");
        assert_eq!(near, pairs(&[("y", "degrees_north"), ("x", "degrees_east")]));
        // Its scales lie in another group, one has a label instead of its name, one no unit.
        let far = expected(&survey, "/deep/far");
        assert_eq!(far, pairs(&[("row", "degrees_north"), ("z", "m"), ("n", "")]));
        // A scale of the same name lies nearer, but is not the one that is attached.
        assert_eq!(expected(&survey, "/deep/shadowed"), pairs(&[("x", "degrees_east")]));
    };
    check(&source);
    assert!(attributes(&source, "/near").get(SPACE_KEY).is_none(), "the names are enough");
    for to in sinks_of_hierarchies() {
        let name = to.called(&format!("{to:?}"));
        let done = try_convert(&source, &yard.at(&name), to.format, &Wishes::default()).await;
        let done: Result<_, Error> = done;
        done.unwrap();
        check(&opened(&yard.at(&name)).await);
    }
}
