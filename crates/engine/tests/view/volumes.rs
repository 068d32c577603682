//! Any source as volumes for Neuroglancer.

use std::sync::Arc;

use chunkyard_engine::ErrorKind;
use chunkyard_engine::format::Source;
use chunkyard_engine::labels::Ids;
use chunkyard_engine::view::{ViewOptions, Volumes};

use super::{Copy, plain};
use crate::convert::formats::{named, sources_by_hand, sources_by_sink};
use crate::convert::naive::{Naive, indices};
use crate::convert::rewrite::{body, labelmap};
use crate::convert::sample::Sample;
use crate::convert::support::{Yard, read};

/// All chunks of the volume at a path, in a store.
async fn stored(name: &str, view: &Volumes, path: &str) -> Copy {
    let copy = Copy::new(&format!("volume-{name}"));
    let volume = view.volume(path).unwrap();
    let folder = if path.is_empty() { String::new() } else { format!("{path}/") };
    for (number, (scale, (_, node))) in
        volume.shown().info.scales.iter().zip(volume.shown().arrays()).enumerate()
    {
        for index in indices(&node.grid().unwrap().grid_shape()) {
            let file = volume.shown().name(number, &index).unwrap();
            let key = format!("{folder}{}/{file}", scale.key);
            let (found, at, chunk) = view.chunk(&key).unwrap_or_else(|| panic!("{name}: {key}"));
            assert_eq!((at, &chunk), (number, &index), "{name}: {key}");
            let mut bytes = found.chunk(at, &chunk).await.unwrap();
            if found.is_gzip(at) {
                bytes = chunkyard_array::codec::gunzip(&bytes, 1 << 24).unwrap().into();
            }
            copy.put(&format!("{}/{file}", scale.key), bytes).await;
        }
    }
    copy.put("info", view.info(&format!("{folder}info")).unwrap().unwrap()).await;
    copy
}

async fn read_shown(name: &str, source: &Arc<dyn Source>, array: &str, scale: &str) -> Naive {
    let view = Volumes::new(source.clone(), plain()).await.unwrap();
    let copy = stored(name, &view, array).await;
    read(&copy.open().await, scale).await
}

#[tokio::test]
async fn every_format_and_type_that_a_volume_holds_is_the_same() {
    let yard = Yard::directory();
    let types = ["uint8", "int8", "uint16", "int16", "int32", "uint32", "uint64", "float32"];
    let mut seen = 0;
    for dtype in types {
        let spec = chunkyard_array::ArraySpec::builder(&[13, 11, 7], &[4, 8, 8], dtype)
            .dimension_names(["z", "y", "x"]);
        let sample = Sample::of(spec.build().unwrap()).sparse(|index| index != [1, 1, 0]);
        for entry in sources_by_hand().chain(sources_by_sink()).filter(|it| (it.holds)(&sample)) {
            let name = format!("{dtype}-{entry:?}");
            let source = entry.write(&yard, &name, &sample).await;
            let path = entry.path().trim_start_matches('/');
            let found = read_shown(&name, &source, path, "/s0").await;
            assert!(found == sample.array, "{name} differs");
            seen += 1;
        }
    }
    assert!(seen > 30, "{seen}");
}

#[tokio::test]
async fn the_scales_of_a_labelmap_are_the_scales_of_a_volume() {
    let source = labelmap("memory://view-volume").await;
    for ids in [Ids::Supervoxels, Ids::Bodies] {
        let options = ViewOptions { ids, ..plain() };
        let view = Volumes::new(source.clone(), options).await.unwrap();
        for path in ["", "seg"] {
            let copy = stored(&format!("labelmap-{ids:?}-{path}"), &view, path).await;
            let volume = copy.open().await;
            let arrays: Vec<_> = volume.dataset().arrays().map(|(path, _)| path).collect();
            assert_eq!(arrays.len(), source.dataset().arrays().count());
            for scale in ["s0", "s1"] {
                let folder = if path.is_empty() { "/seg/" } else { "/" };
                let found = read(&volume, &format!("{folder}{scale}")).await;
                let expected = read(&source, &format!("/seg/{scale}")).await;
                let wanted = expected.cells.iter().map(|cell| {
                    let label = u64::from_le_bytes(cell[..].try_into().unwrap());
                    if ids == Ids::Bodies { body(label) } else { label }.to_le_bytes().to_vec()
                });
                assert!(found.cells.into_iter().eq(wanted), "{ids:?} {path} {scale}");
            }
        }
    }
}

#[tokio::test]
async fn chunks_of_shards_stay_gzip() {
    let yard = Yard::memory();
    let spec = chunkyard_array::ArraySpec::builder(&[16, 16, 16], &[8, 8, 8], "uint64")
        .dimension_names(["z", "y", "x"]);
    let sample = Sample::of(spec.build().unwrap());
    let source = named("precomputed-shards").write(&yard, "gzip", &sample).await;
    let view = Volumes::new(source.clone(), plain()).await.unwrap();
    let volume = view.volume("").unwrap();
    assert!(volume.is_gzip(0));
    let bytes = volume.chunk(0, &[0, 0, 0]).await.unwrap();
    assert_eq!(bytes[..2], [0x1f, 0x8b]);
}

#[tokio::test]
async fn what_no_key_names_is_not_there_and_no_volume_says_why() {
    let source = labelmap("memory://view-volume-keys").await;
    let view = Volumes::new(source, plain()).await.unwrap();
    for key in [
        "",
        "seg/s0",
        "seg/s0/0-16_0-16",
        "seg/s0/0-16_0-16_0-17",
        "seg/s0/0-16_0-16_0-16/",
        "../seg/s0/0-16_0-16_0-16",
        "seg/../seg/s0/0-16_0-16_0-16",
        "seg/s9/0-16_0-16_0-16",
        "seg/s0/-0-16_0-16_0-16",
        "seg/s0/é-16_0-16_0-16",
    ] {
        assert!(view.chunk(key).is_none(), "{key}");
        assert!(view.info(key).is_none(), "{key}");
    }
    assert!(view.chunk("seg/s0/0-16_0-16_0-16").is_some());
    assert_eq!(view.info("nothing/info").unwrap().unwrap_err().kind(), ErrorKind::NotFound);
    assert!(view.info("../info").unwrap().is_err());
    assert!(view.info("seg/../info").unwrap().is_err());
    let yard = Yard::memory();
    let sample = Sample::new(&[4], &[2], "int64");
    let entry = named("zarr3");
    let source = entry.write(&yard, "strange", &sample).await;
    let view = Volumes::new(source, plain()).await.unwrap();
    let error = view.info("info").unwrap().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(error.to_string().contains("int64"), "{error}");
}
