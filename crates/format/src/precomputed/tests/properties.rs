use serde_json::{Value, json};

use super::*;

fn example() -> SegmentProperties {
    let label = PropertyValues::Label(vec!["a".to_owned(), String::new(), "c".to_owned()]);
    SegmentProperties {
        ids: vec![3, u64::MAX, 1],
        properties: vec![
            Property {
                id: "name".to_owned(),
                description: Some("its name".to_owned()),
                values: label,
            },
            Property::counts("size", [16_777_217, 5, 0]),
            Property::tags("side", ["left", "", "centre"]),
        ],
        left_out: 0,
    }
}

#[test]
fn properties_are_written_as_neuroglancer_has_them_and_read_again() {
    let bytes = example().render().unwrap();
    let document: Value = serde_json::from_slice(&bytes).unwrap();
    assert_eq!(
        document,
        json!({"@type": "neuroglancer_segment_properties", "inline": {
            "ids": ["3", "18446744073709551615", "1"],
            "properties": [
                {"id": "name", "description": "its name", "type": "label", "values": ["a", "", "c"]},
                {"id": "size", "data_type": "float32", "type": "number", "values": [16_777_216, 5, 0]},
                {"id": "side", "tags": ["centre", "left"], "type": "tags", "values": [[1], [], [0]]},
            ],
        }})
    );
    assert_eq!(SegmentProperties::parse("info", &bytes).unwrap(), example());
}

#[test]
fn segments_beyond_the_bound_are_counted() {
    let capped = example().capped(2).capped(1);
    assert_eq!((&capped.ids[..], capped.left_out), (&[3][..], 2));
    let bytes = capped.render().unwrap();
    assert_eq!(SegmentProperties::parse("info", &bytes).unwrap(), capped);
    assert_eq!(example().capped(3), example());
}

#[test]
fn values_that_the_format_does_not_have_are_refused() {
    let number = |data_type: &str, value: f64| {
        let values =
            PropertyValues::Number { data_type: data_type.to_owned(), values: vec![value] };
        let property = Property { id: "n".to_owned(), description: None, values };
        SegmentProperties { ids: vec![1], properties: vec![property], left_out: 0 }.render()
    };
    number("uint8", 255.0).unwrap();
    for (data_type, value) in
        [("uint64", 1.0), ("uint8", 256.0), ("int8", 0.5), ("uint32", -1.0), ("float32", f64::NAN)]
    {
        assert!(number(data_type, value).is_err(), "{data_type} {value}");
    }
    let mut short = example();
    short.ids.pop();
    assert!(short.render().unwrap_err().to_string().contains("3 values for 2 segments"));
}

#[test]
fn documents_that_lie_are_corrupt() {
    let whole: Value = serde_json::from_slice(&example().render().unwrap()).unwrap();
    for (at, value) in [
        ("/@type", json!("x")),
        ("/inline", json!([])),
        ("/inline/ids", json!([1, 2, 3])),
        ("/inline/ids", json!(["1", "2"])),
        ("/inline/properties/0/type", json!("x")),
        ("/inline/properties/0/values", json!(["a", "b"])),
        ("/inline/properties/0/values", json!(["a", "b", 3])),
        ("/inline/properties/1/values", json!(["a", "b", "c"])),
        ("/inline/properties/2/values", json!([[0], [2], []])),
        ("/inline/properties/2/tags", json!([1])),
    ] {
        let mut document = whole.clone();
        *document.pointer_mut(at).unwrap() = value;
        let error = SegmentProperties::parse("info", document.to_string().as_bytes()).unwrap_err();
        assert_eq!(error.kind(), chunkyard_store::ErrorKind::Corrupt, "{at}");
    }
}
