//! Volumes of odd shapes and ids: one voxel, rows, nothing at all, ids at the end of the type, blocks that are no
//! cubes, and extents of thousands of millions of blocks.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use chunkyard_array::{ArraySpec, Region};
use chunkyard_format::{Meter, Source};
use chunkyard_labels::{
    ArrayVolume, Author, Edit, Ids, Imported, Labelmap, Layout, Mapping, Run, Runs, Volume, diff,
};
use chunkyard_repo::{CommitOptions, RepoSource, Version};
use chunkyard_store::{ErrorKind, Result};
use chunkyard_test_support::memory;
use serde_json::json;

use super::naive::Naive;
use super::support::{PATH, Voxels, assert_sound, bodies, create, edit, import, tip};

const LAST: u64 = u64::MAX;
const BEYOND_SIGNED: u64 = 1 << 63;

#[tokio::test]
async fn volumes_of_all_shapes_are_kept_voxel_by_voxel() {
    let blocks = [[16; 3], [32, 16, 48], [64; 3]];
    let shapes = [[1, 1, 1], [1, 1, 17], [33, 1, 1], [1, 50, 2], [16, 16, 16], [17, 31, 65]];
    for block in blocks {
        for shape in shapes {
            let ids = [LAST, BEYOND_SIGNED, 1, 0];
            let count = shape.iter().product::<u64>() as usize;
            let labels = (0..count).map(|place| ids[place * 7 / count.max(7) % 4]).collect();
            let voxels = Voxels { shape, labels };
            let repo = create(&memory()).await;
            import(&repo, Layout::new(shape).with_block(block), &voxels).await;
            let map = tip(&repo, "main").await;
            Naive::new(&voxels).assert_equals(&map).await;
            let end = shape.map(|extent| extent - 1);
            let found = map.labels_at(&[end, [0; 3]], Ids::Supervoxels).await.unwrap();
            assert_eq!(found, [voxels.labels[count - 1], voxels.labels[0]], "{shape:?} {block:?}");
            let error = map.labels_at(&[shape], Ids::Bodies).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Invalid);
        }
    }
}

#[tokio::test]
async fn a_volume_of_zeros_has_no_bodies_and_can_be_asked_everything() {
    let repo = create(&memory()).await;
    let voxels = Voxels { shape: [20, 20, 40], labels: vec![0; 16_000] };
    import(&repo, Layout::new(voxels.shape).with_block([16; 3]), &voxels).await;
    let map = tip(&repo, "main").await;
    assert_sound(&map).await;
    assert!(bodies(&map).await.is_empty());
    assert_eq!(
        (map.count_of_bodies().await.unwrap(), map.count_of_voxels().await.unwrap()),
        (0, 0)
    );
    assert_eq!(map.labels_at(&[[19, 19, 39]], Ids::Bodies).await.unwrap(), [0]);
    let whole = Region::whole(&voxels.shape);
    assert!(map.labels_in(&whole, Ids::Bodies).await.unwrap().is_empty());
    assert!(map.load_mapping().await.unwrap().is_empty());
    for error in [
        map.body(0).await.unwrap_err(),
        map.sparse_volume(1, None).await.unwrap_err(),
        map.binary_blocks(1, None).await.unwrap_err(),
        edit(&repo, "main", Edit::Merge { target: 1, bodies: vec![2] }).await.unwrap_err(),
    ] {
        assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
    }
    let main = Version::branch("main");
    assert!(diff(&repo, &main, &main, PATH).await.unwrap().is_empty());
}

#[tokio::test]
async fn ids_at_the_end_of_the_type_are_edited_like_others() {
    let repo = create(&memory()).await;
    let shape = [16, 16, 48];
    let ids = [LAST, BEYOND_SIGNED, LAST - 1];
    let labels = (0..16 * 16 * 48).map(|place: usize| ids[place % 48 / 16]).collect();
    let voxels = Voxels { shape, labels };
    import(&repo, Layout::new(shape).with_block([16; 3]), &voxels).await;
    let mut naive = Naive::new(&voxels);
    edit(&repo, "main", Edit::Merge { target: LAST, bodies: vec![BEYOND_SIGNED] }).await.unwrap();
    naive.apply(&naive.moved(0, &[BEYOND_SIGNED], LAST));
    let cleave =
        Edit::Cleave { body: LAST, supervoxels: vec![LAST], new_body: Some(BEYOND_SIGNED + 1) };
    edit(&repo, "main", cleave).await.unwrap();
    naive.apply(&naive.moved(0, &[LAST], BEYOND_SIGNED + 1));
    let runs = Runs::new((0..16).map(|z| Run { start: [z, 5, 32], length: 16 }).collect());
    let split = Edit::SplitSupervoxel {
        supervoxel: LAST - 1,
        voxels: runs.clone(),
        part: Some(LAST - 2),
        rest: Some(LAST - 3),
    };
    edit(&repo, "main", split).await.unwrap();
    let places: BTreeSet<usize> =
        (0..16).flat_map(|z| (32..48).map(move |x| (z * 16 + 5) * 48 + x)).collect();
    naive.apply(&naive.cut(0, LAST - 1, &places, [LAST - 2, LAST - 3]));
    let map = tip(&repo, "main").await;
    naive.assert_equals(&map).await;
    assert_eq!(map.sparse_volume(LAST - 1, Some(LAST - 2)).await.unwrap(), runs);
    assert_eq!(map.blame(LAST).await.unwrap().len(), 1);
}

/// A row for each voxel of DVID's masks that is inside, by a reader that follows its description alone.
fn voxels_of_masks(bytes: &[u8]) -> (u64, BTreeSet<[u64; 3]>) {
    let u32_at = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap()) as usize;
    let cells = [0, 4, 8].map(u32_at);
    let id = u64::from_le_bytes(bytes[12..20].try_into().unwrap());
    let (mut at, mut found) = (20, BTreeSet::new());
    while at < bytes.len() {
        let first = [at, at + 4, at + 8].map(u32_at);
        let block_flag = bytes[at + 12];
        at += 13;
        assert_ne!(block_flag, 0, "a block without voxels of the body is not listed");
        for z in 0..cells[2] {
            for y in 0..cells[1] {
                for x in 0..cells[0] {
                    let mut mask = [if block_flag == 1 { 0xff } else { 0 }; 64];
                    if block_flag == 2 {
                        match bytes[at] {
                            2 => {
                                mask.copy_from_slice(&bytes[at + 1..at + 65]);
                                at += 64;
                            }
                            flag => mask.fill(if flag == 1 { 0xff } else { 0 }),
                        }
                        at += 1;
                    }
                    for bit in (0..512).filter(|bit| mask[bit / 8] >> (bit % 8) & 1 == 1) {
                        let place = [
                            first[2] + z * 8 + bit / 64,
                            first[1] + y * 8 + bit / 8 % 8,
                            first[0] + x * 8 + bit % 8,
                        ];
                        found.insert(place.map(|at| at as u64));
                    }
                }
            }
        }
    }
    assert_eq!(at, bytes.len());
    (id, found)
}

#[tokio::test]
async fn masks_have_the_voxels_that_runs_have() {
    let repo = create(&memory()).await;
    let shape = [32, 40, 50];
    let label = |place: u64| match (place / 2000, place / 50 % 40, place % 50) {
        (z, _, _) if z < 16 => 1,
        (z, y, x) if (z + y + x) % 5 == 0 => 2,
        (_, y, x) if y < 24 && x < 24 => 3,
        _ => 0,
    };
    let labels = (0..shape.iter().product()).map(label).collect();
    import(&repo, Layout::new(shape).with_block([16, 32, 16]), &Voxels { shape, labels }).await;
    edit(&repo, "main", Edit::Merge { target: 3, bodies: vec![2] }).await.unwrap();
    let map = tip(&repo, "main").await;
    for (body, supervoxel) in [(1, None), (3, None), (3, Some(2)), (3, Some(3))] {
        let masks = map.binary_blocks(body, supervoxel).await.unwrap();
        let (id, found) = voxels_of_masks(&masks);
        assert_eq!(id, supervoxel.unwrap_or(body));
        let runs = map.sparse_volume(body, supervoxel).await.unwrap();
        let expected: BTreeSet<[u64; 3]> = runs
            .runs()
            .iter()
            .flat_map(|run| (0..run.length).map(|x| [run.start[0], run.start[1], run.start[2] + x]))
            .collect();
        assert_eq!(found, expected, "{body} {supervoxel:?}");
    }
    let solid = map.binary_blocks(1, None).await.unwrap();
    let heads = map.blocks_of(1).await.unwrap().len();
    assert!(solid.len() < 20 + heads * (13 + 64 + 24 * 64), "whole blocks and cells have no mask");
}

/// Counts what is read of a volume.
struct Counted {
    inner: ArrayVolume,
    boxes: AtomicU64,
}

#[async_trait]
impl Volume for Counted {
    fn shape(&self) -> [u64; 3] {
        self.inner.shape()
    }

    fn occupied(&self) -> Result<Option<futures::stream::BoxStream<'_, Result<Region>>>> {
        self.inner.occupied()
    }

    async fn read(&self, region: &Region) -> Result<Vec<u64>> {
        self.boxes.fetch_add(1, Ordering::Relaxed);
        self.inner.read(region).await
    }
}

/// An array of 2^31 chunks of 16 voxels along each axis but one, three of which are stored.
#[tokio::test]
async fn the_cost_of_a_sparse_import_follows_what_is_stored() {
    let store = memory();
    let repo = create(&store).await;
    let shape = [16, 1 << 20, 1 << 19];
    let session = repo.writable_session("main").await.unwrap();
    let spec = ArraySpec::builder(&shape, &[16, 16, 16], "uint64").fill_value(0).build().unwrap();
    let array = session.create_array("/sparse", spec).await.unwrap();
    for (label, at) in [(7u64, [0, 0, 0]), (8, [0, 1 << 19, 1 << 18]), (9, [0, (1 << 20) - 16, 32])]
    {
        let region = Region::new(at.to_vec(), vec![16; 3]).unwrap();
        let voxels: Vec<u8> = std::iter::repeat_n(label, 4096).flat_map(u64::to_le_bytes).collect();
        array.write_region(&region, voxels.into()).await.unwrap();
    }
    session.commit(CommitOptions::message("three chunks")).await.unwrap();

    let from = repo.readonly_session(&Version::branch("main")).await.unwrap();
    let source: Arc<dyn Source> = Arc::new(RepoSource::new(from).await.unwrap());
    let volume =
        Counted { inner: ArrayVolume::of(&source, "/sparse").unwrap(), boxes: AtomicU64::new(0) };
    let layout = Layout { scales: 2, ..Layout::new(shape).with_block([16; 3]) };
    let session = repo.writable_session("main").await.unwrap();
    let (meter, mapping) = (Meter::default(), Mapping::default());
    let (map, imported) =
        Labelmap::import(&session, PATH, layout, &volume, &mapping, &meter).await.unwrap();
    assert_eq!(volume.boxes.into_inner(), 3);
    let expected = Imported { bodies: 3, supervoxels: 3, voxels: 3 * 4096, blocks: 3 };
    assert_eq!(imported, expected);
    map.commit("import").await.unwrap();

    let map = tip(&repo, "main").await;
    assert_sound(&map).await;
    let whole = Region::whole(&shape);
    assert_eq!(map.labels_in(&whole, Ids::Bodies).await.unwrap(), [7, 8, 9]);
    let half = Region::new(vec![0, 0, 0], vec![16, (1 << 19) + 1, 1 << 19]).unwrap();
    assert_eq!(map.labels_in(&half, Ids::Bodies).await.unwrap(), [7, 8]);
    assert_eq!(map.body(9).await.unwrap().bounds.end, [16, 1 << 20, 48]);
}

/// Where nothing is stored, such a volume has a label.
#[tokio::test]
async fn a_fill_value_that_is_a_label_is_imported_everywhere() {
    let repo = create(&memory()).await;
    let session = repo.writable_session("main").await.unwrap();
    let spec = ArraySpec::builder(&[16, 16, 160], &[16, 16, 16], "uint32").fill_value(json!(5));
    session.create_array("/filled", spec.build().unwrap()).await.unwrap();
    session.commit(CommitOptions::message("nothing but fill")).await.unwrap();
    let from = repo.readonly_session(&Version::branch("main")).await.unwrap();
    let source: Arc<dyn Source> = Arc::new(RepoSource::new(from).await.unwrap());
    let volume = ArrayVolume::of(&source, "/filled").unwrap();
    let session = repo.writable_session("main").await.unwrap();
    let layout = Layout::new(volume.shape()).with_block([16; 3]);
    let (meter, mapping) = (Meter::default(), Mapping::default());
    let (map, imported) =
        Labelmap::import(&session, PATH, layout, &volume, &mapping, &meter).await.unwrap();
    assert_eq!((imported.voxels, imported.bodies), (16 * 16 * 160, 1));
    assert_sound(&map).await;
}

/// A block that something else than an edit took away leaves nothing behind in coarser scales.
#[tokio::test]
async fn coarser_scales_are_made_anew_where_blocks_are_gone() {
    let repo = create(&memory()).await;
    let shape = [16, 16, 160];
    let labels = (0..16 * 16 * 160u64).map(|place| place % 160 / 80 + 1).collect();
    import(&repo, Layout::new(shape).with_block([16; 3]), &Voxels { shape, labels }).await;
    let session = repo.writable_session("main").await.unwrap();
    let map = Labelmap::open(&session, PATH).await.unwrap();
    for x in 5..10 {
        session.erase_chunk(&format!("{PATH}/s0"), &[0, 0, x]).unwrap();
    }
    map.downsample(&Meter::default()).await.unwrap();
    for scale in 1..map.layout().scales {
        let found = super::support::voxels(&map, scale).await;
        let width = 160 >> scale;
        let kept = found.iter().enumerate().filter(|(_, label)| **label == 2);
        let kept = kept.filter(|(place, _)| place % width > width / 2).count();
        assert_eq!(kept, 0, "scale {scale}");
    }
    let report = map.verify(&Meter::default()).await.unwrap();
    assert!(!report.problems.iter().any(|problem| problem.contains("of scale")), "{report:?}");
    assert!(
        report.problems.iter().any(|problem| problem.contains("body 2 in block [0, 0, 9]")),
        "{report:?}"
    );
    let error = map.apply(&Edit::Merge { target: 1, bodies: vec![9] }, &Author::default()).await;
    assert_eq!(error.unwrap_err().kind(), ErrorKind::NotFound);
}
