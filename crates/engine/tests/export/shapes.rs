//! Volumes of odd sizes and places, and specifications that are refused.

use std::sync::Arc;

use chunkyard_array::ArraySpec;
use chunkyard_array::codec::label_block::NAME;
use chunkyard_engine::ErrorKind;
use chunkyard_engine::export::{
    ArrowOptions, Codec, Container, Emit, Exporter, IndexKind, Plan, Progress, Request,
};
use chunkyard_engine::format::precomputed::Info;
use chunkyard_engine::format::{MemorySource, Place, Source};
use chunkyard_engine::job::ExportJob;
use chunkyard_engine::store::{Limits, Options, TEMP_PREFIX};
use chunkyard_test_support::directory;
use serde_json::json;

use super::support::{export, rows, spec, volume};

/// A volume of labels, the same for the same place; some blocks are all 0. Shapes are x, y, z.
fn label(x: u64, y: u64, z: u64) -> u64 {
    match (x / 64 + y / 64 + z / 64) % 3 {
        2 => 0,
        _ => 1 + x / 5 + 100 * (y / 7) + 10_000 * (z / 11),
    }
}

fn source(shape: [u64; 3], origin: [i64; 3], dtype: &str) -> Arc<dyn Source> {
    let [x, y, z] = shape;
    let voxels = (0..z).flat_map(|z| (0..y).flat_map(move |y| (0..x).map(move |x| label(x, y, z))));
    let bytes: Vec<u8> = match dtype {
        "uint32" => voxels.flat_map(|label| (label as u32).to_le_bytes()).collect(),
        _ => voxels.flat_map(u64::to_le_bytes).collect(),
    };
    let attributes = json!({"chunkyard_space": {"origin": [origin[2], origin[1], origin[0]]}});
    let spec = ArraySpec::builder(&[z, y, x], &[z, y, x], dtype)
        .fill_value(0)
        .codecs(vec![json!({"name": "bytes", "configuration": {"endian": "little"}})])
        .attributes(attributes.as_object().unwrap().clone().into_iter().collect())
        .build()
        .unwrap();
    Arc::new(MemorySource::new("/seg", &spec, bytes.into()).unwrap())
}

/// The bits of a grid that DVID and Neuroglancer count.
fn bits(size: [u64; 3]) -> u32 {
    size.iter().map(|size| u64::BITS - (size.div_ceil(64) - 1).leading_zeros()).sum()
}

#[tokio::test]
async fn volumes_of_odd_sizes_have_every_voxel() {
    for (size, within) in [
        ([131, 67, 199], 2),
        ([64, 64, 64], 0),
        ([17, 5, 3], 0),
        ([257, 65, 129], 3),
        ([193, 128, 320], 4),
        ([64 * 5, 64, 1], 3),
    ] {
        for dtype in ["uint64", "uint32"] {
            let source = source(size, [0; 3], dtype);
            let (out, target) = directory();
            let within = within.min(bits(size));
            let sharding = [within, 0, bits(size) - within];
            let request = Request {
                spec: Some(spec(&[(size, [0; 3], sharding)])),
                emit: vec![Emit::Arrow, Emit::Precomputed],
                ..Request::default()
            };
            let report = export(&source, &request, &target).await.unwrap();
            let found = rows(out.path(), 0);
            let expected = |at: [i32; 3]| -> Vec<u64> {
                let [x0, y0, z0] = at.map(|at| at as u64 * 64);
                let voxel = |n: u64| (x0 + n % 64, y0 + n / 64 % 64, z0 + n / 4096);
                let inside = |(x, y, z): (u64, u64, u64)| x < size[0] && y < size[1] && z < size[2];
                (0..64 * 64 * 64)
                    .map(voxel)
                    .map(|(x, y, z)| if inside((x, y, z)) { label(x, y, z) } else { 0 })
                    .collect()
            };
            let mut blocks = 0;
            for n in 0..size.iter().map(|size| size.div_ceil(64)).product::<u64>() {
                let grid = size.map(|size| size.div_ceil(64));
                let at = [n % grid[0], n / grid[0] % grid[1], n / grid[0] / grid[1]];
                let at = at.map(|at| at as i32);
                let voxels = expected(at);
                match found.get(&at) {
                    Some(row) => {
                        assert!(row.voxels(true) == voxels, "{size:?} {at:?}");
                        blocks += 1;
                    }
                    None => assert!(voxels.iter().all(|label| *label == 0), "{size:?} {at:?}"),
                }
            }
            assert_eq!(report.total.blocks, blocks, "{size:?}");
            let info =
                Info::parse("info", &std::fs::read(out.path().join("info")).unwrap()).unwrap();
            let chunks = volume(out.path(), &info.scales[0]);
            assert_eq!(chunks.len() as u64, blocks);
            for (at, row) in &found {
                assert!(chunks[at] == row.voxels(true), "{size:?} {at:?}");
            }
        }
    }
}

#[tokio::test]
async fn a_volume_keeps_its_place_left_of_zero_too() {
    let size = [130, 70, 66];
    let here = export_rows(&source(size, [0; 3], "uint64"), &Request::default()).await;
    assert!(!here.is_empty());
    for origin in [[-128, 64, -192], [640, -64, 0]] {
        let there = export_rows(&source(size, origin, "uint64"), &Request::default()).await;
        let moved = origin.map(|origin| (origin / 64) as i32);
        for (at, row) in &here {
            let at = [at[0] + moved[0], at[1] + moved[1], at[2] + moved[2]];
            assert_eq!(there[&at].block, row.block, "{at:?}");
        }
        assert_eq!(there.len(), here.len());
    }
}

async fn export_rows(
    source: &Arc<dyn Source>,
    request: &Request,
) -> std::collections::BTreeMap<[i32; 3], super::support::Row> {
    let (out, target) = directory();
    export(source, request, &target).await.unwrap();
    rows(out.path(), 0)
}

#[tokio::test]
async fn a_doubled_axis_is_taken_back() {
    // Every plane twice, from a plane that is not even on.
    let shape = [70, 40, 131];
    let [x, y, z] = shape;
    let doubled: Vec<u8> = (0..z)
        .flat_map(|z| (0..y).flat_map(move |y| (0..x).map(move |x| label(x, y, z / 2))))
        .flat_map(u64::to_le_bytes)
        .collect();
    let spec = ArraySpec::builder(&[z, y, x], &[64, 64, 64], "uint64")
        .fill_value(0)
        .codecs(vec![json!({"name": "bytes", "configuration": {"endian": "little"}})])
        .build()
        .unwrap();
    let doubled: Arc<dyn Source> =
        Arc::new(MemorySource::new("/seg", &spec, doubled.into()).unwrap());
    let request = Request { factor: [1, 1, 2], ..Request::default() };
    let found = export_rows(&doubled, &request).await;
    let plain =
        export_rows(&source([x, y, z.div_ceil(2)], [0; 3], "uint64"), &Request::default()).await;
    assert_eq!(found, plain);
}

#[tokio::test]
async fn an_empty_segmentation_has_no_shards() {
    let spec_of = |codecs: Vec<serde_json::Value>| {
        ArraySpec::builder(&[128, 128, 128], &[64, 64, 64], "uint64")
            .fill_value(0)
            .codecs(codecs)
            .build()
    };
    let plain = spec_of(vec![json!({"name": NAME})]).unwrap();
    let zarr = Place::new("memory://export-empty/a.zarr", &Options::default()).unwrap();
    zarr.directory().put("zarr.json", vec![plain.render().into()]).await.unwrap();
    let opened =
        chunkyard_engine::open::open("memory://export-empty/a.zarr", &Default::default()).await;
    let (out, target) = directory();
    let request = Request {
        source: "memory://export-empty/a.zarr".to_owned(),
        emit: vec![Emit::Arrow, Emit::Precomputed],
        ..Request::default()
    };
    let report = export(&opened.unwrap().source, &request, &target).await.unwrap();
    assert_eq!((report.total.shards, report.total.blocks), (0, 0));
    assert!(rows(out.path(), 0).is_empty());
    assert!(out.path().join("info").exists());
}

/// What is wrong with a specification.
type Change = fn(&mut serde_json::Value);

#[tokio::test]
async fn a_bad_specification_is_refused_before_anything_is_written() {
    let source = source([128, 128, 128], [0; 3], "uint64");
    let good = |change: Change| {
        let mut document: serde_json::Value =
            serde_json::from_slice(&spec(&[([128; 3], [0; 3], [3, 0, 0])])).unwrap();
        change(&mut document);
        document.to_string().into_bytes()
    };
    let cases: [(Change, &str); 9] = [
        (|spec| spec["scales"][0]["chunk_sizes"][0][0] = json!(32), "chunk_sizes"),
        (|spec| drop(spec["scales"][0].as_object_mut().unwrap().remove("sharding")), "sharding"),
        (|spec| spec["scales"][0]["sharding"]["preshift_bits"] = json!(1), "shard_bits"),
        (|spec| spec["scales"][0]["voxel_offset"] = json!([10, 0, 0]), "voxel_offset"),
        (|spec| spec["type"] = json!("image"), "image"),
        (|spec| spec["data_type"] = json!("uint8"), "uint8"),
        (|spec| spec["scales"][0]["size"] = json!([0, 1, 1]), "size"),
        (|spec| spec["scales"][0]["sharding"]["hash"] = json!("murmurhash3_x86_128"), "hash"),
        (|spec| *spec = json!({"scales": 3}), "type"),
    ];
    for (change, named) in cases {
        let (out, target) = directory();
        let request = Request { spec: Some(good(change)), ..Request::default() };
        let error = export(&source, &request, &target).await.unwrap_err();
        assert!(
            matches!(error.kind(), ErrorKind::Invalid | ErrorKind::Unsupported),
            "{named}: {error}"
        );
        assert!(error.to_string().contains(named), "{named}: {error}");
        assert_eq!(std::fs::read_dir(out.path()).unwrap().count(), 0, "{named}");
    }
}

#[tokio::test]
async fn batches_streams_and_both_indices_hold_the_same_records() {
    let source = source([320, 128, 64], [0; 3], "uint64");
    let one = export_rows(&source, &Request::default()).await;
    for batch in [1, 3, 1000] {
        let arrow = ArrowOptions { batch, ..ArrowOptions::default() };
        let request = Request { arrow, ..Request::default() };
        assert_eq!(export_rows(&source, &request).await, one, "batches of {batch}");
    }
    let (out, target) = directory();
    let arrow = ArrowOptions {
        container: Container::Stream,
        index: vec![IndexKind::Json, IndexKind::Csv],
        ..ArrowOptions::default()
    };
    let request = Request { arrow, ..Request::default() };
    export(&source, &request, &target).await.unwrap();
    let stream = std::fs::read(out.path().join("s0/0_0_0.arrow")).unwrap();
    let csv = std::fs::read_to_string(out.path().join("s0/0_0_0.csv")).unwrap();
    let mut lines = csv.lines();
    let head: usize =
        lines.next().unwrap().strip_prefix("# schema_size=").unwrap().parse().unwrap();
    assert_eq!(lines.next(), Some("x,y,z,offset,size,batch_idx"));
    let mut seen = 0;
    for line in lines {
        let numbers: Vec<usize> = line.split(',').map(|number| number.parse().unwrap()).collect();
        let [x, y, z, offset, size, number] = numbers[..] else { panic!("{line}") };
        // The schema and one message are a stream of one batch: what a reader of ranges makes of it.
        let bytes = [&stream[..head], &stream[offset..offset + size]].concat();
        let reader = arrow_ipc::reader::StreamReader::try_new(&bytes[..], None).unwrap();
        let batches: Vec<_> = reader.map(Result::unwrap).collect();
        assert_eq!((batches.len(), batches[0].num_rows(), number), (1, 1, 0));
        assert!(one.contains_key(&[x, y, z].map(|at| at as i32)));
        seen += 1;
    }
    assert_eq!(seen, one.len());
}

#[tokio::test]
async fn a_target_of_another_export_is_refused() {
    let source = source([128, 64, 64], [0; 3], "uint64");
    let (_out, target) = directory();
    export(&source, &Request::default(), &target).await.unwrap();
    let again = export(&source, &Request::default(), &target).await.unwrap();
    assert_eq!(again.resumed, again.total.shards + again.total.empty_shards);
    let arrow = ArrowOptions { codec: Codec::Zstd(1), ..ArrowOptions::default() };
    let other = Request { arrow, ..Request::default() };
    let error = export(&source, &other, &target).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert!(error.to_string().contains("form of Arrow shards"), "{error}");
}

#[tokio::test]
async fn a_check_finds_what_is_missing_damaged_or_too_much() {
    let source = source([320, 128, 128], [0; 3], "uint64");
    let (out, target) = directory();
    let size = [320, 128, 128];
    let request = Request {
        spec: Some(spec(&[(size, [0; 3], [2, 0, bits(size) - 2])])),
        ..Request::default()
    };
    let place = Place::new("memory://export-source", &Options::default()).unwrap();
    let plan = Plan::of(&source, &place, &request, &target).unwrap();
    let open = || Exporter::new(plan.clone(), source.clone(), target.clone(), Limits::default());
    let exporter = open().await.unwrap();
    exporter.run(&Progress::default()).await.unwrap();
    let sound = exporter.check().await.unwrap();
    assert_eq!((sound.errors(), sound.present + sound.empty), (0, sound.expected));
    let files: Vec<_> = std::fs::read_dir(out.path().join("s0"))
        .unwrap()
        .map(|file| file.unwrap().path())
        .collect();
    let arrow = |skip: usize| {
        let mut arrows: Vec<_> =
            files.iter().filter(|path| path.extension().unwrap() == "arrow").collect();
        arrows.sort();
        arrows[skip].clone()
    };
    let mut bytes = std::fs::read(arrow(0)).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(arrow(0), &bytes).unwrap();
    std::fs::remove_file(arrow(1)).unwrap();
    std::fs::write(out.path().join("s0/1_2_3.arrow"), b"x").unwrap();
    let found = exporter.check().await.unwrap();
    assert_eq!((found.damaged.len(), found.unexpected.len()), (2, 1), "{found:?}");
    // What comes last is looked for as well.
    let log = std::fs::read(out.path().join("export.log.json")).unwrap();
    std::fs::remove_file(out.path().join("export.log.json")).unwrap();
    let killed = exporter.check().await.unwrap();
    assert_eq!(killed.damaged.len(), 3, "{killed:?}");
    std::fs::write(out.path().join("export.log.json"), log).unwrap();
    // A run writes what is gone; what has its size is left to the check.
    exporter.run(&Progress::default()).await.unwrap();
    let found = exporter.check().await.unwrap();
    assert_eq!((found.damaged.len(), found.unexpected.len()), (1, 1), "{found:?}");
}

#[tokio::test]
async fn a_check_looks_at_what_makes_the_volume_one() {
    let source = source([128, 64, 64], [0; 3], "uint64");
    let (out, target) = directory();
    let request = Request { emit: vec![Emit::Precomputed], ..Request::default() };
    let place = Place::new("memory://export-source", &Options::default()).unwrap();
    let plan = Plan::of(&source, &place, &request, &target).unwrap();
    let exporter = Exporter::new(plan, source, target.clone(), Limits::default()).await.unwrap();
    exporter.run(&Progress::default()).await.unwrap();
    assert_eq!(exporter.check().await.unwrap().errors(), 0);
    let info = std::fs::read_to_string(out.path().join("info")).unwrap();
    for wrong in [None, Some("{".to_owned()), Some(info.replace("128", "129"))] {
        std::fs::remove_file(out.path().join("info")).unwrap();
        if let Some(wrong) = &wrong {
            std::fs::write(out.path().join("info"), wrong).unwrap();
        }
        let found = exporter.check().await.unwrap();
        assert_eq!((found.errors(), &*found.damaged[0].path), (1, "info"), "{wrong:?}");
        exporter.run(&Progress::default()).await.unwrap();
    }
    assert_eq!(exporter.check().await.unwrap().errors(), 0);
}

#[tokio::test]
async fn a_run_leaves_the_target_of_a_job_alone() {
    let source = source([128, 64, 64], [0; 3], "uint64");
    let (out, target) = directory();
    let request = Request::default();
    let place = Place::new("memory://export-source", &Options::default()).unwrap();
    let plan = Plan::of(&source, &place, &request, &target).unwrap();
    let exporter = Exporter::new(plan, source, target.clone(), Limits::default()).await.unwrap();
    let (_jobs, jobs) = directory();
    let (_, new) = ExportJob::default().create(jobs.clone(), &exporter).await.unwrap();
    assert!(new);
    // A worker is writing this.
    let temporary = out.path().join(format!("s0/{TEMP_PREFIX}0"));
    std::fs::create_dir_all(out.path().join("s0")).unwrap();
    std::fs::write(&temporary, b"half a shard").unwrap();
    let error = exporter.run(&Progress::default()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert!(error.to_string().contains(jobs.url()), "{error}");
    let (_others, others) = directory();
    ExportJob::default().create(others, &exporter).await.unwrap_err();
    assert!(temporary.exists());
    let (_, new) = ExportJob::default().create(jobs, &exporter).await.unwrap();
    assert!(!new);
    // The job was given up.
    std::fs::remove_file(out.path().join(".export.job")).unwrap();
    exporter.run(&Progress::default()).await.unwrap();
    assert!(!temporary.exists());
}
