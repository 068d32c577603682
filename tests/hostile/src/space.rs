//! Where elements lie: OME-Zarr metadata and the attribute of an array, with any content.

use std::sync::Arc;

use chunkyard_array::{ArraySpec, Attributes, GroupSpec, non_finite};
use chunkyard_engine::format::{
    ArrayNode, Dataset, FINDINGS_MAX, Fate, Node, Survey, carry_array, carry_group, in_zarr3,
};
use serde_json::Value;

/// The attributes of a group and, after a zero byte, of an array in it; both may be missing.
pub(crate) fn check(data: &[u8]) {
    let mut parts = data.splitn(2, |byte| *byte == 0);
    let mut attributes = || match parts.next().map(non_finite::parse) {
        Some(Ok(Value::Object(attributes))) => attributes,
        _ => Attributes::new(),
    };
    let group = GroupSpec::new(attributes());
    let builder = ArraySpec::builder(&[4, 6], &[2, 3], "uint8");
    let Ok(spec) = builder.attributes(attributes()).build() else { return };
    let fine = spec.with_shape(&[8, 12]).expect("a shape of the same rank");
    let dataset = dataset(&group, &[("/i/0", &fine), ("/i/1", &spec)]);
    let survey = surveyed(&dataset);

    // What was understood is said again in the same way.
    let space = survey.space("/i/1").expect("every array has a space");
    let said = space.render(&spec).expect("a space can be rendered");
    let alone = surveyed(&self::dataset(&GroupSpec::new(Attributes::new()), &[("/i/1", &said)]));
    let again = alone.space("/i/1").expect("every array has a space");
    assert_eq!((&again.axes, &again.origin), (&space.axes, &space.origin));

    // A crop keeps what is true, and a fact that is gone has a reason.
    let start = [1, 2];
    let (cropped, lost) = carry_group("/i", &group, &dataset, &|_| Fate::Kept(start.to_vec()));
    if let Ok(moved) = carry_array(&spec, &start) {
        let after = surveyed(&self::dataset(&cropped, &[("/i/0", &fine), ("/i/1", &moved)]));
        let all = after.multiscales.len() + lost.len() >= survey.multiscales.len();
        assert!(all || !after.findings.is_empty());
    }
    let (same, lost) = carry_group("/i", &group, &dataset, &|_| Fate::Kept(vec![0, 0]));
    assert!(same == group && lost.is_empty());

    let once = in_zarr3(dataset).expect("metadata stays valid");
    assert_eq!(surveyed(&once).multiscales.len(), survey.multiscales.len());
    let twice = in_zarr3(once.clone()).expect("metadata stays valid");
    for ((path, once), twice) in once.nodes.iter().zip(twice.nodes.values()) {
        let bytes = |node: &Node| node.render().expect("a node can be rendered");
        assert_eq!(bytes(once), bytes(twice), "{path}");
    }
}

fn dataset(group: &GroupSpec, arrays: &[(&str, &ArraySpec)]) -> Dataset {
    let mut dataset = Dataset::default();
    dataset.insert("/i", Node::Group(group.clone()));
    for (path, spec) in arrays {
        let array = ArrayNode::new(spec).expect("a plain array");
        dataset.insert(*path, Node::Array(Arc::new(array)));
    }
    dataset
}

fn surveyed(dataset: &Dataset) -> Survey {
    let survey = Survey::of(dataset);
    assert!(survey.findings.len() <= FINDINGS_MAX);
    assert!(survey.findings.iter().all(|finding| finding.what.len() < 10_000));
    for (path, array) in dataset.arrays() {
        let space = survey.space(path).expect("every array has a space");
        let rank = array.spec.shape().len();
        assert_eq!(space.axes.len(), rank);
        assert!(space.axes.iter().all(|axis| axis.scale.is_none_or(|s| s > 0.0 && s.is_finite())));
        assert!(space.origin.as_ref().is_none_or(|origin| origin.len() == rank));
        assert!(space.translation.as_ref().is_none_or(|translation| translation.len() == rank));
    }
    for multiscale in &survey.multiscales {
        assert!(multiscale.levels.iter().all(|level| dataset.array(&level.path).is_ok()));
    }
    survey
}
