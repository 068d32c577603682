use serde_json::{Value, json};

use super::*;

fn example() -> Value {
    json!({
        "@type": "neuroglancer_multiscale_volume",
        "type": "segmentation",
        "data_type": "uint64",
        "num_channels": 1,
        "scales": [{
            "key": "8_8_8",
            "size": [94088, 78317, 134576],
            "voxel_offset": [-16, 0, 5],
            "resolution": [8, 8, 8.5],
            "chunk_sizes": [[64, 64, 64]],
            "encoding": "compressed_segmentation",
            "compressed_segmentation_block_size": [8, 8, 8],
            "sharding": identity(9, 6, 19).render(),
            "hidden": true,
        }, {
            "key": "16_16_16",
            "size": [10, 0, 3],
            "voxel_offset": [0, 0, 0],
            "resolution": [16, 16, 16],
            "chunk_sizes": [[64, 64, 64], [10, 1, 3]],
            "encoding": "jxl",
        }],
        "mesh": "mesh",
        "owner": {"name": "x", "since": 1.25},
    })
}

fn parse(document: &Value) -> chunkyard_store::Result<Info> {
    Info::parse("info", document.to_string().as_bytes())
}

#[test]
fn a_document_is_read_and_written_with_what_we_do_not_know() {
    let info = parse(&example()).unwrap();
    let [first, second] = &info.scales[..] else { panic!("two scales") };
    assert_eq!(first.voxel_offset, [-16, 0, 5]);
    assert_eq!(first.resolution, [8.0, 8.0, 8.5]);
    assert_eq!(first.encoding, Encoding::CompressedSegmentation { block: [8; 3] });
    assert_eq!(first.sharding, Some(identity(9, 6, 19)));
    assert_eq!(first.grid(), MALE_CNS);
    assert_eq!(first.rest["hidden"], json!(true));
    assert_eq!(second.encoding, Encoding::Other("jxl".to_owned()));
    assert_eq!(second.grid(), [1, 0, 1]);
    assert_eq!(info.rest.keys().collect::<Vec<_>>(), ["mesh", "owner"]);
    let rendered: Value = serde_json::from_slice(&info.render()).unwrap();
    assert_eq!(rendered, example());
    assert_eq!(Info::parse("info", &info.render()).unwrap(), info);
}

#[test]
fn what_may_be_left_out_has_its_default() {
    let mut document = example();
    let scale = document["scales"][1].as_object_mut().unwrap();
    scale.shift_remove("voxel_offset");
    scale.shift_remove("encoding");
    scale.insert("sharding".to_owned(), Value::Null);
    document.as_object_mut().unwrap().shift_remove("@type");
    let scale = parse(&document).unwrap().scales.remove(1);
    assert_eq!(scale.voxel_offset, [0; 3]);
    assert_eq!(scale.encoding, Encoding::Raw);
    assert_eq!(scale.sharding, None);
}

#[test]
fn a_document_that_means_nothing_is_refused() {
    let first = "/scales/0";
    for (at, value, what) in [
        ("/@type", json!("neuroglancer_legacy_mesh"), "@type"),
        ("/type", json!("mesh"), "type"),
        ("/type", Value::Null, "type"),
        ("/data_type", json!("float64"), "data_type"),
        ("/num_channels", json!(0), "num_channels"),
        ("/num_channels", json!(1u64 << 40), "num_channels"),
        ("/scales", json!([]), "scales"),
        ("/scales", json!({}), "scales"),
        ("/scales/0", json!(5), "scales[0]"),
        (&*format!("{first}/key"), json!(8), "scales[0].key"),
        (&*format!("{first}/size"), json!([1, 2]), "scales[0].size"),
        (&*format!("{first}/size"), json!([1, 2, -3]), "scales[0].size"),
        (&*format!("{first}/size"), json!([1, 2, 1u64 << 63]), "scales[0].size"),
        (&*format!("{first}/voxel_offset"), json!([0, 0, 0.5]), "scales[0].voxel_offset"),
        (&*format!("{first}/voxel_offset"), json!([0, 0, i64::MIN]), "scales[0].voxel_offset"),
        (&*format!("{first}/resolution"), json!([8, 8, 0]), "scales[0].resolution"),
        (&*format!("{first}/resolution"), json!([8, 8, "8"]), "scales[0].resolution"),
        (&*format!("{first}/chunk_sizes"), json!([]), "scales[0].chunk_sizes"),
        (&*format!("{first}/chunk_sizes"), json!([[64, 64, 0]]), "scales[0].chunk_sizes"),
        (
            &*format!("{first}/chunk_sizes"),
            json!([[64, 64, 64], [32, 32, 32]]),
            "scales[0].chunk_sizes",
        ),
        (&*format!("{first}/encoding"), json!(1), "scales[0].encoding"),
        (
            &*format!("{first}/compressed_segmentation_block_size"),
            Value::Null,
            "scales[0].compressed_segmentation_block_size",
        ),
        (&*format!("{first}/sharding/hash"), json!("x"), "scales[0].sharding.hash"),
    ] {
        let mut document = example();
        *document.pointer_mut(at).unwrap() = value;
        let error = parse(&document).unwrap_err();
        assert_eq!(error.kind(), chunkyard_store::ErrorKind::Corrupt);
        assert!(error.to_string().contains(&format!("{what}: expected ")), "{at}: {error}");
    }
    assert!(Info::parse("info", b"{").is_err());
    let error = Info::parse_argument("spec.json", b"[]").unwrap_err();
    assert_eq!(error.kind(), chunkyard_store::ErrorKind::Invalid);
}
