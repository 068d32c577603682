//! What is served as Zarr v3 and as volumes, by requests as browsers and clients make them.

mod caching;
mod keys;
mod viewer;
mod volumes;

use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use chunkyard_array::{ArraySpec, Region};
use chunkyard_engine::Result;
use chunkyard_engine::format::Meter;
use chunkyard_engine::labels::{Author, Edit, Labelmap, Layout, Mapping, Volume, commit_edits};
use chunkyard_engine::repo::{CommitOptions, Repository, Session};

pub(super) async fn repository(path: &Path) -> Repository {
    let url = path.to_str().unwrap();
    Repository::create(url, Default::default(), Default::default()).await.unwrap()
}

/// Commits an array of 8 × 6 numbers in chunks of 4 × 4, uncompressed, and returns the id of the snapshot.
pub(super) async fn commit(repository: &Repository, first: u16) -> String {
    let session = repository.writable_session("main").await.unwrap();
    write(&session, first).await;
    let done = session.commit(CommitOptions::message("numbers")).await.unwrap();
    done.snapshot_id.clone()
}

async fn write(session: &Arc<Session>, first: u16) {
    let array = match session.array("/group/numbers").await {
        Ok(array) => array,
        Err(_) => {
            let spec = ArraySpec::builder(&[8, 6], &[4, 4], "uint16")
                .dimension_names(["y", "x"])
                .codecs(vec![
                    serde_json::json!({"name": "bytes", "configuration": {"endian": "little"}}),
                ])
                .build()
                .unwrap();
            session.create_array("/group/numbers", spec).await.unwrap()
        }
    };
    // The last chunk stays what it is when nothing was written.
    let values: Vec<u8> = (0..24).flat_map(|at: u16| (first + at).to_le_bytes()).collect();
    array.write_region(&Region::parse("0:4,0:6", &[8, 6]).unwrap(), values.into()).await.unwrap();
}

/// The chunk of rows 0 to 4 and columns 0 to 4.
pub(super) fn first_chunk(first: u16) -> Vec<u8> {
    let row = |row: u16| (0..4).map(move |column| first + row * 6 + column);
    (0..4).flat_map(row).flat_map(u16::to_le_bytes).collect()
}

/// Labels beyond 2^53, in columns of eight voxels along x; the rest is 0.
pub(super) struct Columns;

pub(super) const SHAPE: [u64; 3] = [24, 32, 40];
pub(super) const BIG: u64 = (1 << 53) + 1;

#[async_trait]
impl Volume for Columns {
    fn shape(&self) -> [u64; 3] {
        SHAPE
    }

    async fn read(&self, region: &Region) -> Result<Vec<u64>> {
        let (origin, end) = (region.origin(), region.end());
        let mut voxels = Vec::new();
        for z in origin[0]..end[0] {
            for _ in origin[1]..end[1] {
                voxels.extend((origin[2]..end[2]).map(|x| label(z, x)));
            }
        }
        Ok(voxels)
    }
}

/// The supervoxel at a voxel; nothing behind the first blocks along z.
pub(super) fn label(z: u64, x: u64) -> u64 {
    if z < 16 { BIG + x / 8 } else { 0 }
}

/// Its body: two are merged.
pub(super) fn body(z: u64, x: u64) -> u64 {
    match label(z, x) {
        label if label == BIG + 1 => BIG,
        label => label,
    }
}

/// A labelmap in which a body has two supervoxels.
pub(super) async fn labelmap(path: &Path) {
    let repository = repository(path).await;
    let session = repository.writable_session("main").await.unwrap();
    let layout = Layout::new(SHAPE).with_block([16; 3]);
    let (map, _) = Labelmap::import(
        &session,
        "/seg",
        layout,
        &Columns,
        &Mapping::default(),
        &Meter::default(),
    )
    .await
    .unwrap();
    map.commit("import").await.unwrap();
    let edits = [Edit::Merge { target: BIG, bodies: vec![BIG + 1] }];
    commit_edits(&repository, "main", "/seg", &edits, &Author::default(), "merge").await.unwrap();
}
