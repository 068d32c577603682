use std::sync::Arc;

use chunkyard_array::{ArraySpec, Attributes, GroupSpec};
use serde_json::{Value, json};

use super::*;
use crate::Node;

fn object(value: Value) -> Attributes {
    value.as_object().unwrap().clone()
}

fn array(shape: &[u64], attributes: Value) -> ArraySpec {
    let builder = ArraySpec::builder(shape, shape, "uint8");
    builder.attributes(object(attributes)).build().unwrap()
}

fn node(spec: &ArraySpec) -> Node {
    Node::Array(Arc::new(ArrayNode::new(spec).unwrap()))
}

fn named(spec: &ArraySpec, names: &[&str]) -> ArraySpec {
    let names: Vec<_> = names.iter().map(|name| Some((*name).to_owned())).collect();
    spec.with_dimension_names(Some(&names)).unwrap()
}

/// A group with these attributes, and two arrays in it.
fn pyramid(attributes: Value) -> Dataset {
    let mut dataset = Dataset::default();
    dataset.insert("/i", Node::Group(GroupSpec::new(object(attributes))));
    dataset.insert("/i/0", node(&array(&[8, 16], json!({}))));
    dataset.insert("/i/1", node(&array(&[4, 8], json!({}))));
    dataset
}

fn level(path: &str, scale: Value, translation: Option<Value>) -> Value {
    let mut steps = vec![json!({"type": "scale", "scale": scale})];
    steps.extend(translation.map(|by| json!({"type": "translation", "translation": by})));
    json!({"path": path, "coordinateTransformations": steps})
}

fn entry(levels: Value) -> Value {
    json!({
        "version": "0.4", "name": "cells", "datasets": levels,
        "axes": [
            {"name": "y", "type": "space", "unit": "micrometer"},
            {"name": "x", "type": "space", "unit": "micrometer"},
        ],
    })
}

fn good() -> Value {
    entry(json!([
        level("0", json!([0.5, 0.25]), Some(json!([-2, 4.0]))),
        level("1", json!([1, 0.5]), Some(json!([-2.25, 4]))),
    ]))
}

fn findings(dataset: &Dataset) -> Vec<String> {
    Survey::of(dataset).findings.into_iter().map(|finding| finding.what).collect()
}

fn group_attributes<'a>(dataset: &'a Dataset, path: &str) -> &'a Attributes {
    dataset.groups().find(|(found, _)| *found == path).unwrap().1.attributes()
}

#[test]
fn a_pyramid_of_either_version_is_read() {
    let mut newer = good();
    newer.as_object_mut().unwrap().shift_remove("version");
    for (attributes, version) in [
        (json!({"multiscales": [good()]}), "0.4"),
        (json!({"ome": {"version": "0.5", "multiscales": [newer]}}), "0.5"),
    ] {
        let survey = Survey::of(&pyramid(attributes));
        assert_eq!(survey.findings, []);
        let [found] = &survey.multiscales[..] else { panic!("{:?}", survey.multiscales) };
        assert_eq!(
            (found.name.as_deref(), found.version.as_deref()),
            (Some("cells"), Some(version))
        );
        let paths: Vec<_> = found.levels.iter().map(|level| level.path.as_str()).collect();
        assert_eq!(paths, ["/i/0", "/i/1"]);
        let space = survey.space("/i/0").unwrap();
        let axis = |name: &str, scale| Axis {
            name: Some(name.into()),
            kind: Some("space".into()),
            unit: Some("micrometer".into()),
            scale: Some(scale),
        };
        assert_eq!(space.axes, [axis("y", 0.5), axis("x", 0.25)]);
        assert_eq!(space.translation, Some(vec![-2.0, 4.0]));
        assert_eq!(space.origin, Some(vec![-4, 16]));
        // A quarter of an element is no index.
        let coarse = survey.space("/i/1").unwrap();
        assert_eq!((coarse.scale(), coarse.origin.clone()), (Some(vec![1.0, 0.5]), None));
    }
}

#[test]
fn transformations_of_the_whole_pyramid_come_after_those_of_a_level() {
    let mut whole = good();
    whole["coordinateTransformations"] = json!([{"type": "scale", "scale": [2, 4]}, {"type": "identity"}, {"type": "translation", "translation": [1, 0]}]);
    let survey = Survey::of(&pyramid(json!({"multiscales": [whole]})));
    let found = &survey.multiscales[0].levels[0];
    assert_eq!(found.scale, Some(vec![1.0, 1.0]));
    assert_eq!(found.translation, Some(vec![-3.0, 16.0]));
    assert_eq!(survey.findings, []);
}

#[test]
fn a_rendered_pyramid_is_read_again() {
    let dataset = pyramid(json!({"multiscales": [good()]}));
    let mut expected = Survey::of(&dataset).multiscales.remove(0);
    let again = pyramid(json!({"ome": expected.render().unwrap()}));
    expected.version = Some("0.5".to_owned());
    let survey = Survey::of(&again);
    assert_eq!((survey.multiscales, survey.findings), (vec![expected.clone()], vec![]));
    expected.group = "/elsewhere".to_owned();
    assert!(expected.render().is_err());
}

#[test]
fn a_rendered_space_is_read_again() {
    let axis = |name: Option<&str>, unit: Option<&str>, scale| Axis {
        name: name.map(str::to_owned),
        kind: unit.map(|_| "space".to_owned()),
        unit: unit.map(str::to_owned),
        scale,
    };
    let nanometers = |scale| axis(Some("x"), Some("nanometer"), Some(scale));
    for (axes, origin) in [
        (vec![nanometers(8.0), axis(None, None, None)], Some(vec![-16, 1 << 60])),
        (vec![axis(Some("y"), None, None), nanometers(4.5)], None),
        (vec![axis(None, None, None), axis(None, None, None)], Some(vec![0, 0])),
        (vec![axis(Some("a"), None, None), axis(None, None, None)], None),
        (vec![axis(None, None, None), axis(None, None, None)], None),
    ] {
        let space = Space { axes, translation: None, origin };
        let spec = space.render(&array(&[4, 6], json!({"kept": 1, KEY: "old"}))).unwrap();
        let expected = if space.is_stated() { 2 } else { 1 };
        assert_eq!(spec.attributes().len(), expected, "{space:?}");
        let mut dataset = Dataset::default();
        dataset.insert("/", node(&spec));
        let survey = Survey::of(&dataset);
        assert_eq!((survey.space("/"), &survey.findings), (Some(&space), &vec![]));
    }
}

#[test]
fn an_origin_and_a_scale_give_a_translation() {
    let key = json!({"origin": [3, -2], "axes": [{"scale": 2}, {"scale": 0.5}]});
    let mut dataset = Dataset::default();
    dataset.insert("/", node(&array(&[4, 6], json!({KEY: key}))));
    let survey = Survey::of(&dataset);
    assert_eq!(survey.space("/").unwrap().translation, Some(vec![6.0, -1.0]));
    assert_eq!(survey.space("/nowhere"), None);
}

#[test]
fn units_come_from_the_nearest_coordinate_array() {
    let mut dataset = Dataset::default();
    let coordinate =
        |units: Value, name| node(&named(&array(&[4], json!({"units": units})), &[name]));
    dataset.insert("/x", coordinate(json!("m"), "x"));
    dataset.insert("/y", coordinate(json!("far"), "y"));
    dataset.insert("/g/y", coordinate(json!("degrees_north"), "y"));
    dataset.insert("/g/t", node(&array(&[4], json!({"units": "days"}))));
    dataset.insert("/g/z", coordinate(json!(["list"]), "z"));
    dataset.insert("/g/a", node(&named(&array(&[1, 1, 1, 1], json!({})), &["t", "z", "y", "x"])));
    let survey = Survey::of(&dataset);
    let units = |path: &str| -> Vec<Option<String>> {
        survey.space(path).unwrap().axes.iter().map(|axis| axis.unit.clone()).collect()
    };
    // `/g/t` has no dimension of its name, so it is no coordinate.
    let expected = [None, None, Some("degrees_north".to_owned()), Some("m".to_owned())];
    assert_eq!(units("/g/a"), expected);
    assert_eq!(units("/x"), [Some("m".to_owned())]);
    assert_eq!(survey.findings, []);
}

#[test]
fn metadata_that_lies_is_left_out_with_the_reason() {
    let axes = |axes: Value| {
        let mut entry = good();
        entry["axes"] = axes;
        json!({"multiscales": [entry]})
    };
    let levels = |levels: Value| json!({"multiscales": [entry(levels)]});
    let scaled = |scale: Value| levels(json!([level("0", scale, None)]));
    let steps = |steps: Value| levels(json!([{"path": "0", "coordinateTransformations": steps}]));
    let path = |path: Value| levels(json!([{"path": path, "coordinateTransformations": []}]));
    let many: Vec<Value> = (0..1_000_000).map(|n| json!(n.to_string())).collect();
    let crowd = vec![level("0", json!([1, 1]), None); 1000];
    let endless = vec![json!({"type": "scale", "scale": [1, 1]}); 1000];
    for (attributes, expected) in [
        (json!({"multiscales": 7}), "no list"),
        (json!({"ome": {"multiscales": {"a": 1}}}), "no list"),
        (json!({"multiscales": vec![json!({}); 1000]}), "[1000 members]"),
        (json!({"multiscales": [5]}), "no list of axes"),
        (axes(json!("yx")), "no list of axes"),
        (axes(json!([])), "0 axes"),
        (axes(Value::Array(many)), "1000000 axes"),
        (axes(json!([{"name": "x"}, {"name": "x"}])), "same name"),
        (axes(json!([{"name": "y"}, {"type": "space"}])), "name of an axis"),
        (axes(json!([{"name": "y"}, {"name": "x".repeat(300)}])), "no text"),
        (axes(json!([{"name": "y"}, {"name": "x", "unit": 5}])), "unit 5"),
        (axes(json!([{"name": "z"}, {"name": "y"}, {"name": "x"}])), "has 2 dimensions"),
        (json!({"multiscales": [{"axes": ["y", "x"]}]}), "no list of datasets"),
        (levels(json!([])), "none of its levels"),
        (levels(Value::Array(crowd)), "1000 levels"),
        (path(json!(5)), "is no text"),
        (path(json!("../i/0")), "no path below"),
        (path(json!("0/../../i/0")), "no path below"),
        (path(json!("/i/0")), "no path below"),
        (path(json!("")), "no path below"),
        (path(json!(".")), "no path below"),
        (path(json!("a/".repeat(1 << 16))), "no path below"),
        (path(json!("2")), "no array /i/2"),
        (scaled(json!([1])), "1 members for 2 dimensions"),
        (scaled(json!(["NaN", 1])), "no finite number"),
        (scaled(serde_json::from_str("[1e999, 1]").unwrap()), "no finite number"),
        (scaled(json!([0, 1])), "not positive"),
        (scaled(json!([-1, 1])), "not positive"),
        (scaled(json!({})), "is no list"),
        (steps(json!([{"type": "scale", "path": "somewhere"}])), "has no scale"),
        (steps(json!([{"type": "affine"}])), "unknown"),
        (steps(json!([5])), "unknown"),
        (steps(Value::Array(endless)), "no short list"),
        (
            steps(
                json!([{"type": "scale", "scale": [1e300, 1]}, {"type": "scale", "scale": [1e300, 1]}]),
            ),
            "out of range",
        ),
        (
            steps(
                json!([{"type": "scale", "scale": [1e-300, 1]}, {"type": "scale", "scale": [1e-300, 1]}]),
            ),
            "out of range",
        ),
        (steps(json!([{"type": "translation", "translation": [1, null]}])), "no finite number"),
    ] {
        let dataset = pyramid(attributes);
        let survey = Survey::of(&dataset);
        let found = findings(&dataset);
        assert!(found.iter().any(|what| what.contains(expected)), "{expected}: {found:?}");
        assert!(found.iter().all(|what| what.len() < 300), "{found:?}");
        assert_eq!(survey.multiscales, [], "{expected}");
        assert!(!survey.space("/i/0").unwrap().is_stated(), "{expected}");
    }
}

#[test]
fn a_level_that_lies_leaves_the_others() {
    let lies = json!([
        level("0", json!([1, 1]), None),
        level("0", json!([2, 2]), None),
        level("gone", json!([4, 4]), None),
        level("1", json!([2, 2]), None),
    ]);
    let dataset = pyramid(json!({"multiscales": [entry(lies)]}));
    let survey = Survey::of(&dataset);
    assert_eq!(survey.multiscales[0].levels.len(), 2);
    assert_eq!(
        findings(&dataset),
        [
            "level 1 is left out: /i/0 is listed before",
            "level 2 is left out: there is no array /i/gone"
        ]
    );
    assert_eq!(survey.space("/i/0").unwrap().scale(), Some(vec![1.0, 1.0]));
}

#[test]
fn facts_that_differ_are_found() {
    // Dimension names against axes.
    let mut dataset = pyramid(json!({"multiscales": [good()]}));
    dataset.insert("/i/1", node(&named(&array(&[4, 8], json!({})), &["x", "y"])));
    assert_eq!(
        findings(&dataset),
        ["level 1 is left out: the dimensions of /i/1 have other names than the axes"]
    );
    // The attribute against a pyramid.
    for (key, differs) in [
        (json!({"origin": [-4, 16]}), false),
        (json!({"origin": [0, 0]}), true),
        (json!({"axes": [{"unit": "micrometer"}, {"scale": 0.25}]}), false),
        (json!({"axes": [{"unit": "nanometer"}, {}]}), true),
        (json!({"axes": [{}, {"scale": 1}]}), true),
        (json!({"axes": [{}]}), true),
        (json!({"axes": [{}, 5]}), true),
        (json!({"origin": [0, 1.5]}), true),
        (json!({"origin": "here"}), true),
        (json!("here"), true),
    ] {
        let mut dataset = pyramid(json!({"multiscales": [good()]}));
        dataset.insert("/i/0", node(&array(&[8, 16], json!({KEY: key.clone()}))));
        let survey = Survey::of(&dataset);
        assert_eq!(survey.findings.len(), usize::from(differs), "{key}: {:?}", survey.findings);
        assert_eq!(survey.space("/i/0").unwrap().origin, Some(vec![-4, 16]), "the pyramid counts");
    }
    // Two pyramids of one array.
    let coarse = entry(json!([level("0", json!([9, 9]), None)]));
    let dataset = pyramid(json!({"multiscales": [good(), good(), coarse]}));
    let survey = Survey::of(&dataset);
    assert_eq!(
        findings(&dataset),
        ["/i/0 is listed again, with another position; the first counts"]
    );
    assert_eq!(survey.space("/i/0").unwrap().scale(), Some(vec![0.5, 0.25]));
}

#[test]
fn findings_are_few_however_many_lies_there_are() {
    let lies = vec![json!({"axes": ["x"], "datasets": vec![json!({}); 200]}); 200];
    let dataset = pyramid(json!({"multiscales": lies}));
    assert_eq!(findings(&dataset).len(), FINDINGS_MAX);
}

#[test]
fn levels_that_stay_behind_are_no_longer_listed() {
    let dataset = pyramid(json!({"multiscales": [good()], "omero": {}, "other": 1}));
    let (_, group) = dataset.groups().find(|(path, _)| *path == "/i").unwrap();
    let carried = |left: &[&str]| {
        let fate = |path: &str| match left.contains(&path) {
            true => Fate::Left,
            false => Fate::Kept(vec![0, 0]),
        };
        let (group, lost) = carry_group("/i", group, &dataset, &fate);
        assert!(lost.is_empty());
        Value::Object(group.attributes().clone())
    };
    assert_eq!(carried(&[])["multiscales"], json!([good()]));
    let mut coarse = good();
    coarse["datasets"].as_array_mut().unwrap().remove(0);
    assert_eq!(carried(&["/i/0"])["multiscales"], json!([coarse]));
    assert_eq!(carried(&["/i/0", "/i/1"]), json!({"omero": {}, "other": 1}));
}

#[test]
fn a_cropped_level_says_where_it_begins() {
    let entry = entry(json!([
        level("0", json!([0.5, 0.25]), Some(json!([-2, 4]))),
        level("1", json!([1, 0.5]), None),
    ]));
    let dataset = pyramid(json!({"multiscales": [entry]}));
    let (_, group) = dataset.groups().find(|(path, _)| *path == "/i").unwrap();
    let (group, lost) = carry_group("/i", group, &dataset, &|_| Fate::Kept(vec![2, 4]));
    assert!(lost.is_empty());
    let mut cropped = dataset.clone();
    cropped.insert("/i", Node::Group(group));
    let survey = Survey::of(&cropped);
    assert_eq!(survey.findings, []);
    assert_eq!(survey.space("/i/0").unwrap().translation, Some(vec![-1.0, 5.0]));
    assert_eq!(survey.space("/i/0").unwrap().origin, Some(vec![-2, 20]));
    assert_eq!(survey.space("/i/1").unwrap().origin, Some(vec![2, 4]));
}

#[test]
fn a_pyramid_that_cannot_be_cropped_is_lost_with_the_reason() {
    for level in [json!({"path": "0"}), level("0", json!(["NaN", 1]), None)] {
        let dataset = pyramid(json!({"ome": {"multiscales": [entry(json!([level]))]}}));
        let (_, group) = dataset.groups().find(|(path, _)| *path == "/i").unwrap();
        let (same, lost) = carry_group("/i", group, &dataset, &|_| Fate::Kept(vec![0, 0]));
        assert_eq!((&same, lost.len()), (group, 0), "without a crop it stays as it is");
        let (left, lost) = carry_group("/i", group, &dataset, &|_| Fate::Kept(vec![1, 0]));
        assert!(lost[0].starts_with("pyramid 0 of /i: /i/0: "), "{lost:?}");
        assert_eq!(left.attributes()["ome"], json!({}));
    }
}

#[test]
fn a_cropped_array_moves_its_origin() {
    let crop = |attributes: Value, start: &[u64]| {
        let spec = carry_array(&array(&[8, 16], attributes), start)?;
        Ok::<_, chunkyard_store::Error>(Value::Object(spec.attributes().clone()))
    };
    assert_eq!(crop(json!({"a": 1}), &[1, 2]).unwrap(), json!({"a": 1}));
    let moved = crop(json!({KEY: {"origin": [-4, 7]}}), &[1, 2]).unwrap();
    assert_eq!(moved, json!({KEY: {"origin": [-3, 9]}}));
    let moved = crop(json!({KEY: {"axes": [{"scale": 2.0}, {}]}}), &[0, 2]).unwrap();
    assert_eq!(moved, json!({KEY: {"axes": [{"scale": 2.0}, {}], "origin": [0, 2]}}));
    let lies = json!({KEY: {"origin": "here"}});
    assert_eq!(crop(lies.clone(), &[1, 2]).unwrap(), lies);
    let error = crop(json!({KEY: {"origin": [i64::MAX, 0]}}), &[1, 0]).unwrap_err();
    assert_eq!(error.kind(), chunkyard_store::ErrorKind::Unsupported);
}

#[test]
fn version_04_becomes_05_in_zarr3() {
    let mut dataset = pyramid(
        json!({"multiscales": [good()], "omero": {"version": "0.4", "id": 1}, "mine": [1]}),
    );
    let labels = GroupSpec::new(object(json!({"labels": ["cells"]})));
    dataset.insert("/i/labels", Node::Group(labels.clone()));
    dataset.insert("/labels", Node::Group(labels));
    let before = Survey::of(&dataset);
    let dataset = in_zarr3(dataset).unwrap();
    let mut entry = good();
    entry.as_object_mut().unwrap().shift_remove("version");
    let ome = json!({"version": "0.5", "multiscales": [entry], "omero": {"id": 1}});
    assert_eq!(group_attributes(&dataset, "/i"), &object(json!({"mine": [1], "ome": ome})));
    let labels = json!({"ome": {"version": "0.5", "labels": ["cells"]}});
    assert_eq!(group_attributes(&dataset, "/i/labels"), &object(labels));
    // These are labels of something else.
    assert_eq!(group_attributes(&dataset, "/labels"), &object(json!({"labels": ["cells"]})));
    let names = dataset.array("/i/1").unwrap().spec.dimension_names().unwrap().to_vec();
    assert_eq!(names, [Some("y".to_owned()), Some("x".to_owned())]);
    let after = Survey::of(&dataset);
    assert_eq!(after.findings, []);
    assert_eq!(after.multiscales[0].levels, before.multiscales[0].levels);
    assert_eq!(after.space("/i/0"), before.space("/i/0"));
    // Once is enough.
    let again = in_zarr3(dataset.clone()).unwrap();
    assert_eq!(group_attributes(&again, "/i"), group_attributes(&dataset, "/i"));
}

#[test]
fn plates_and_wells_become_05_too() {
    let plate = json!({"version": "0.4", "rows": [], "columns": [], "wells": [{"path": "A/1"}]});
    for (attributes, moves) in [
        (json!({"plate": plate, "bioformats2raw.layout": 3}), true),
        (json!({"well": {"version": "0.4", "images": [{"path": "0"}]}}), true),
        (json!({"plate": "Eurasian", "well": {"depth": 5}, "multiscales": "no"}), false),
    ] {
        let mut dataset = Dataset::default();
        dataset.insert("/", Node::Group(GroupSpec::new(object(attributes.clone()))));
        let after = in_zarr3(dataset).unwrap();
        let after = group_attributes(&after, "/");
        assert_eq!(after.contains_key("ome"), moves, "{attributes}");
        assert_eq!(*after == object(attributes), !moves);
    }
}

#[test]
fn doubtful_metadata_stays_as_it_is_in_zarr3() {
    let old = json!({"version": "0.3", "axes": ["y", "x"], "datasets": [{"path": "0"}]});
    let lies = entry(json!([level("gone", json!([1, 1]), None)]));
    for attributes in [
        json!({"multiscales": [old]}),
        json!({"multiscales": [lies]}),
        json!({"multiscales": [good(), {"version": "0.4"}]}),
        json!({"multiscales": []}),
        json!({"multiscales": [good()], "ome": {"version": "0.5"}}),
    ] {
        let dataset = in_zarr3(pyramid(attributes.clone())).unwrap();
        assert_eq!(group_attributes(&dataset, "/i"), &object(attributes));
    }
}
