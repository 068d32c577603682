//! Arrays as they come: with other axes, other chunks, other fill values, and pyramids that are not halved everywhere.

use std::sync::Arc;

use chunkyard_array::ArraySpec;
use chunkyard_array::codec::label_block::NAME;
use chunkyard_engine::export::{Emit, Request};
use chunkyard_engine::format::precomputed::Info;
use chunkyard_engine::format::{MemorySource, OpenOptions, Place, Source};
use chunkyard_engine::store::Options;
use chunkyard_engine::{ErrorKind, open};
use chunkyard_test_support::directory;
use serde_json::{Value, json};

use super::support::{export, rows, spec};

fn label(x: u64, y: u64, z: u64) -> u64 {
    1 + x / 9 + 100 * (y / 7) + 10_000 * (z / 11)
}

fn bytes_codec() -> Vec<Value> {
    vec![json!({"name": "bytes", "configuration": {"endian": "little"}})]
}

/// A volume of labels whose axes come in an order; extents are of x, y and z, and other axes have one element.
fn ordered(size: [u64; 3], order: &[&str]) -> Arc<dyn Source> {
    let extent = |name: &&str| ["x", "y", "z"].iter().position(|axis| axis == name);
    let shape: Vec<u64> =
        order.iter().map(|name| extent(name).map_or(1, |axis| size[axis])).collect();
    let mut voxels = Vec::new();
    for n in 0..shape.iter().product::<u64>() {
        let (mut rest, mut at) = (n, [0; 3]);
        for (name, extent_here) in order.iter().zip(&shape).rev() {
            if let Some(axis) = extent(name) {
                at[axis] = rest % extent_here;
            }
            rest /= extent_here;
        }
        voxels.extend(label(at[0], at[1], at[2]).to_le_bytes());
    }
    let names: Vec<Option<String>> = order.iter().map(|name| Some((*name).to_owned())).collect();
    let spec = ArraySpec::builder(&shape, &shape, "uint64").fill_value(0).codecs(bytes_codec());
    let spec = spec.build().unwrap().with_dimension_names(Some(&names)).unwrap();
    Arc::new(MemorySource::new("/seg", &spec, voxels.into()).unwrap())
}

#[tokio::test]
async fn axes_in_any_order_and_a_single_channel_are_the_same_volume() {
    let size = [70, 30, 131];
    let mut found = Vec::new();
    for order in [
        &["z", "y", "x"][..],
        &["x", "y", "z"],
        &["y", "z", "x"],
        &["c", "z", "y", "x"],
        &["x", "y", "z", "c"],
    ] {
        let (out, target) = directory();
        export(&ordered(size, order), &Request::default(), &target).await.unwrap();
        found.push(rows(out.path(), 0));
    }
    assert_eq!(found[0].len(), 6);
    assert!(found.iter().all(|one| *one == found[0]));
    // Two channels are no segmentation.
    let spec = ArraySpec::builder(&[2, 4, 4, 4], &[2, 4, 4, 4], "uint64");
    let spec = spec.fill_value(0).codecs(bytes_codec()).build().unwrap();
    let two: Arc<dyn Source> =
        Arc::new(MemorySource::new("/seg", &spec, vec![0; 1024].into()).unwrap());
    let (_out, target) = directory();
    let error = export(&two, &Request::default(), &target).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert!(error.to_string().contains("[2, 4, 4, 4]"), "{error}");
}

/// Puts objects and opens what they are.
async fn opened(url: &str, objects: &[(&str, Vec<u8>)]) -> Arc<dyn Source> {
    let place = Place::new(url, &Options::default()).unwrap();
    for (path, bytes) in objects {
        place.directory().put(path, vec![bytes.clone().into()]).await.unwrap();
    }
    open::open(url, &OpenOptions::default()).await.unwrap().source
}

#[tokio::test]
async fn what_is_not_stored_is_the_fill_value() {
    let spec = ArraySpec::builder(&[128, 64, 64], &[64, 64, 64], "uint64").fill_value(7);
    let spec = spec.codecs(vec![json!({"name": NAME})]).build().unwrap();
    let url = "memory://export-fill/a.zarr";
    let source = opened(url, &[("zarr.json", spec.render())]).await;
    let (out, target) = directory();
    let request = Request { source: url.to_owned(), ..Request::default() };
    let report = export(&source, &request, &target).await.unwrap();
    assert_eq!(report.total.blocks, 2);
    for (at, row) in rows(out.path(), 0) {
        assert!(row.voxels(true).iter().all(|label| *label == 7), "{at:?}");
    }
}

#[tokio::test]
async fn chunks_of_any_size_become_the_same_blocks() {
    let size = [200, 130, 150];
    let plain = ordered(size, &["z", "y", "x"]);
    let sharding = [(size, [0; 3], [3, 0, 4])];
    let request = |source: &str| Request {
        source: source.to_owned(),
        spec: Some(spec(&sharding)),
        emit: vec![Emit::Arrow, Emit::Precomputed],
        ..Request::default()
    };
    let (out, target) = directory();
    export(&plain, &request(""), &target).await.unwrap();
    let expected = rows(out.path(), 0);
    for (n, chunk) in [[150, 130, 200], [128, 128, 128], [100, 33, 70], [16, 16, 16], [64, 64, 64]]
        .into_iter()
        .enumerate()
    {
        let chunks = ArraySpec::builder(&[150, 130, 200], &chunk, "uint64").fill_value(0).codecs(
            [bytes_codec(), vec![json!({"name": "gzip", "configuration": {"level": 1}})]].concat(),
        );
        let url = format!("memory://export-chunks-{n}/a.zarr");
        convert(&plain, &chunks.build().unwrap(), &url).await;
        let source = opened(&url, &[]).await;
        let (out, target) = directory();
        export(&source, &request(&url), &target).await.unwrap();
        assert!(rows(out.path(), 0) == expected, "{chunk:?}");
    }
}

/// Writes an array chunk by chunk.
async fn convert(source: &Arc<dyn Source>, spec: &ArraySpec, url: &str) {
    use chunkyard_array::Region;
    use chunkyard_array::codec::Codecs;
    use chunkyard_array::{Elements, Grid};
    use chunkyard_engine::format::Reader;
    let reader = Reader::new(source, "/seg").unwrap();
    let place = Place::new(url, &Options::default()).unwrap();
    place.directory().put("zarr.json", vec![spec.render().into()]).await.unwrap();
    let (codecs, shape) = (Codecs::new(spec).unwrap(), spec.shape().to_vec());
    let grid = Grid::new(&shape, codecs.chunk_shape()).unwrap();
    for number in 0..grid.grid_shape().iter().product::<u64>() {
        let index = grid.index_of(number).unwrap();
        let region: Region = grid.clipped_region(&index);
        let read = reader.read_elements(&region).await.unwrap();
        let Elements::Fixed(read) = read.as_ref() else { panic!("labels have a size") };
        // Edge chunks are padded.
        let chunk = codecs.chunk_shape();
        let mut padded = vec![0; codecs.chunk_bytes().unwrap()];
        let row = region.shape()[2] as usize * 8;
        for (n, line) in read.chunks(row).enumerate() {
            let rows = region.shape()[1] as usize;
            let at = ((n / rows) * chunk[1] as usize + n % rows) * chunk[2] as usize * 8;
            padded[at..at + row].copy_from_slice(line);
        }
        let encoded = codecs.encode(Elements::Fixed(&padded)).unwrap();
        let path = format!("c/{}/{}/{}", index[0], index[1], index[2]);
        place.directory().put(&path, vec![encoded.into()]).await.unwrap();
    }
}

#[tokio::test]
async fn each_scale_of_a_pyramid_has_its_own_size_of_voxels() {
    let array = |shape: [u64; 3]| {
        let spec = ArraySpec::builder(&shape, &[64, 64, 64], "uint64").fill_value(1);
        spec.codecs(bytes_codec()).build().unwrap().render()
    };
    let axis = |name: &str| json!({"name": name, "type": "space", "unit": "nanometer"});
    let level = |path: &str, scale: [f64; 3]| json!({"path": path, "coordinateTransformations": [{"type": "scale", "scale": scale}]});
    let group = json!({
        "zarr_format": 3, "node_type": "group", "attributes": {"ome": {"version": "0.5", "multiscales": [{
            "axes": [axis("z"), axis("y"), axis("x")],
            "datasets": [level("0", [40.0, 8.0, 8.0]), level("1", [40.0, 16.0, 16.0]), level("2", [80.0, 32.0, 32.0])]
        }]}}
    });
    let url = "memory://export-pyramid/a.zarr";
    let objects = [
        ("zarr.json", group.to_string().into_bytes()),
        ("0/zarr.json", array([64, 128, 128])),
        ("1/zarr.json", array([64, 64, 64])),
        ("2/zarr.json", array([32, 32, 32])),
    ];
    let source = opened(url, &objects).await;
    let (out, target) = directory();
    let request = Request {
        source: url.to_owned(),
        emit: vec![Emit::Precomputed],
        factor: [1, 1, 2],
        ..Request::default()
    };
    export(&source, &request, &target).await.unwrap();
    let info = Info::parse("info", &std::fs::read(out.path().join("info")).unwrap()).unwrap();
    let found: Vec<_> = info.scales.iter().map(|scale| (scale.resolution, &*scale.key)).collect();
    assert_eq!(
        found,
        [
            ([8.0, 8.0, 80.0], "8_8_80"),
            ([16.0, 16.0, 80.0], "16_16_80"),
            ([32.0, 32.0, 160.0], "32_32_160")
        ]
    );
}

/// Four billion chunks of which a few are stored, in one shard and in many.
#[tokio::test]
async fn room_for_billions_of_chunks_costs_nothing() {
    let chunks = 1600;
    let spec_of = ArraySpec::builder(&[64 * chunks; 3], &[64; 3], "uint64").fill_value(0);
    let array = spec_of.codecs(vec![json!({"name": NAME})]).build().unwrap();
    let codecs = chunkyard_array::codec::Codecs::new(&array).unwrap();
    let mut objects = vec![("zarr.json".to_owned(), array.render())];
    let mut expected = Vec::new();
    for (n, at) in [[0, 0, 0], [1599, 0, 3], [800, 801, 802], [1599, 1599, 1599]].iter().enumerate()
    {
        let voxels: Vec<u8> = (0..64 * 64 * 64_u64)
            .flat_map(|voxel| (1 + n as u64 + voxel / 4096).to_le_bytes())
            .collect();
        let chunk = codecs.encode(chunkyard_array::Elements::Fixed(&voxels)).unwrap();
        let [x, y, z] = at;
        objects.push((format!("c/{z}/{y}/{x}"), chunk));
        expected.push(*at);
    }
    expected.sort();
    let url = "memory://export-sparse/a.zarr";
    let named: Vec<_> = objects.iter().map(|(path, bytes)| (&**path, bytes.clone())).collect();
    let source = opened(url, &named).await;
    for bits in [[33, 0, 0], [20, 13, 0], [9, 3, 21], [0, 0, 33]] {
        let (out, target) = directory();
        let request = Request {
            source: url.to_owned(),
            spec: Some(spec(&[([64 * chunks; 3], [0; 3], bits)])),
            emit: vec![Emit::Arrow, Emit::Precomputed, Emit::Table],
            ..Request::default()
        };
        let report = export(&source, &request, &target).await.unwrap();
        assert_eq!(report.total.blocks, 4, "{bits:?}");
        let found: Vec<_> = rows(out.path(), 0).into_keys().collect();
        assert_eq!(found, expected, "{bits:?}");
    }
}
