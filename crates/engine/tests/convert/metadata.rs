//! Nothing is silently dropped: attributes, names, unknown members, groups, fill values.

use chunkyard_array::{ArraySpec, GroupSpec};
use chunkyard_engine::format::Node;
use chunkyard_engine::pipeline::{Movement, Wishes};
use serde_json::{Map, Value, json};

use super::by_hand::{fill_value, write_repo, write_zarr3};
use super::formats::{exact_sinks, sources_by_hand};
use super::sample::Sample;
use super::support::{PATH, Yard, convert, opened, read, read_back};

/// A document with one more member.
fn with_member(spec: &ArraySpec, key: &str, value: Value) -> ArraySpec {
    let mut document: Map<String, Value> = serde_json::from_slice(&spec.render()).unwrap();
    document.insert(key.to_owned(), value);
    ArraySpec::parse(&serde_json::to_vec(&document).unwrap()).unwrap()
}

fn odd_attributes() -> Map<String, Value> {
    let attributes = json!({
        "units": "K", "_FillValue": -9999.0, "ä/ö": [1, 2.5, null, {"deep": {"er": true}}],
        "big": u64::MAX, "zero": -0.0, "empty": {}, "zzz": "first", "aaa": "last",
    });
    attributes.as_object().unwrap().clone()
}

#[tokio::test]
async fn attributes_and_dimension_names_arrive_verbatim() {
    for from in sources_by_hand() {
        for to in exact_sinks() {
            let yard = Yard::memory();
            let names = ["time", "λ"];
            let spec = ArraySpec::builder(&[5, 7], &[2, 3], "int16")
                .attributes(odd_attributes())
                .dimension_names(names);
            let sample = Sample::of(spec.build().unwrap());
            let source = from.write(&yard, "source", &sample).await;
            convert(&source, &yard.at("target"), to.format, &to.wishes(&[3, 2])).await;
            let target = opened(&yard.at("target")).await;
            let found = &target.dataset().array(PATH).unwrap().spec;
            let text = |attributes| serde_json::to_string(attributes).unwrap();
            assert_eq!(text(found.attributes()), text(&odd_attributes()), "{from:?} {to:?}");
            let expected = names.map(|name| Some(name.to_owned()));
            assert_eq!(found.dimension_names(), Some(&expected[..]), "{from:?} {to:?}");
        }
    }
}

#[tokio::test]
async fn members_that_need_not_be_understood_arrive_verbatim() {
    let unknown = json!({"must_understand": false, "of": [1, {"x": null}]});
    for to in exact_sinks() {
        let yard = Yard::directory();
        let spec = Sample::new(&[5, 7], &[2, 3], "int16");
        let array = with_member(&spec.spec, "provenance", unknown.clone());
        write_zarr3(&yard, "source", &array, &spec.array).await;
        let group = GroupSpec::new(odd_attributes()).with_member("lineage", unknown.clone());
        for path in ["zarr.json", "group/zarr.json"] {
            let document = group.render().into();
            yard.store("source").put(path, vec![document]).await.unwrap();
        }
        let source = opened(&yard.at("source")).await;
        convert(&source, &yard.at("target"), to.format, &to.wishes(&[3, 2])).await;
        let target = opened(&yard.at("target")).await;
        let found = &target.dataset().array(PATH).unwrap().spec;
        let document: Value = serde_json::from_slice(&found.render()).unwrap();
        assert_eq!(document["provenance"], unknown, "{to:?}");
        for path in ["/", "/group"] {
            let Some(Node::Group(found)) = target.dataset().nodes.get(path) else {
                panic!("{path}")
            };
            assert_eq!(found.render(), group.render(), "{to:?} {path}");
        }
    }
}

#[tokio::test]
async fn nested_and_empty_groups_arrive() {
    for to in exact_sinks() {
        let yard = Yard::directory();
        let sample = Sample::new(&[5], &[2], "uint8");
        write_zarr3(&yard, "source", &sample.spec, &sample.array).await;
        let store = yard.store("source");
        for path in ["group/a/zarr.json", "group/a/b/zarr.json", "other/zarr.json"] {
            let group = GroupSpec::new(odd_attributes()).render();
            store.put(path, vec![group.into()]).await.unwrap();
        }
        let source = opened(&yard.at("source")).await;
        convert(&source, &yard.at("target"), to.format, &to.wishes(&[3])).await;
        let target = opened(&yard.at("target")).await;
        let paths: Vec<_> = target.dataset().nodes.keys().map(String::as_str).collect();
        assert_eq!(paths, ["/", "/group", "/group/a", "/group/a/b", PATH, "/other"]);
        let groups: Vec<_> = target.dataset().groups().collect();
        assert_eq!(groups[3].1.attributes(), &odd_attributes());
    }
}

#[tokio::test]
async fn fill_values_of_all_bits_arrive() {
    for fill in [
        json!("NaN"),
        json!("Infinity"),
        json!("-Infinity"),
        json!("0x7fc00001"),
        json!(-0.0),
        json!(1.5),
    ] {
        for from in sources_by_hand().filter(|from| from.sink.is_some()) {
            for to in exact_sinks() {
                for chunks in [[4, 4], [3, 5]] {
                    let yard = Yard::memory();
                    let spec = ArraySpec::builder(&[9, 10], &[4, 4], "float32")
                        .fill_value(fill.clone())
                        .build()
                        .unwrap();
                    let sample = Sample::of(spec).sparse(|index| index == [1, 1]);
                    let source = from.write(&yard, "source", &sample).await;
                    convert(&source, &yard.at("target"), to.format, &to.wishes(&chunks)).await;
                    assert!(read_back(&yard, "target").await == sample.array, "{fill} {from:?}");
                    let target = opened(&yard.at("target")).await;
                    let found = fill_value(&target.dataset().array(PATH).unwrap().spec);
                    assert_eq!(found.to_string(), fill.to_string(), "{from:?} {to:?}");
                }
            }
        }
    }
}

/// A shard in a repository is one chunk, which is copied whole and packed again as before.
#[tokio::test]
async fn a_sharded_array_of_a_repository_is_sharded_elsewhere() {
    let yard = Yard::memory();
    let sample = Sample::new(&[13, 11], &[2, 3], "uint32");
    let sharding = chunkyard_array::Sharding::new(&[4, 6]);
    let spec = sample.spec.sharded(&sharding).unwrap();
    write_repo(&yard, "source", &spec, &sample.array).await;
    let source = opened(&yard.at("source")).await;
    let done = convert(&source, &yard.at("target"), "zarr3", &Wishes::default()).await;
    assert_eq!(done.movement(), Movement::Copy);
    assert!(read_back(&yard, "target").await == sample.array);
    let target = opened(&yard.at("target")).await;
    assert_eq!(target.dataset().array(PATH).unwrap().sharding, Some(sharding));
}

#[tokio::test]
async fn padding_that_does_not_fit_the_new_type_is_no_element() {
    let yard = Yard::memory();
    let sample = Sample::of(ArraySpec::builder(&[5], &[4], "uint8").build().unwrap());
    let longer = Sample::of(sample.spec.with_shape(&[8]).unwrap());
    let mut array = longer.array.clone();
    array.cells = (1..=8u8).map(|value| vec![if value > 5 { 200 } else { value }]).collect();
    // Shrunk afterwards: the last chunk still holds elements beyond the edge.
    write_zarr3(&yard, "source", &longer.spec, &array).await;
    let document = sample.spec.render().into();
    yard.store("source").put("group/t/zarr.json", vec![document]).await.unwrap();
    let source = opened(&yard.at("source")).await;
    let wishes = Wishes { dtype: Some("int8".into()), ..Wishes::default() };
    let done = convert(&source, &yard.at("target"), "zarr3", &wishes).await;
    assert_eq!(done.movement(), Movement::Transcode);
    let found = read(&opened(&yard.at("target")).await, PATH).await;
    assert_eq!(found.cells.concat(), [1, 2, 3, 4, 5]);
}
