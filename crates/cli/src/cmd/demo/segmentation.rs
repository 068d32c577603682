//! A small segmentation: cells in a row, edited by two people at once.

use anyhow::Result;
use async_trait::async_trait;
use chunkyard_array::Region;
use chunkyard_engine::Meter;
use chunkyard_engine::labels::{
    Author, Edit, LabelDiff, Labelmap, Layout, Mapping, Resolution, Run, Runs, Volume,
    commit_edits, diff, merge_branch,
};
use chunkyard_engine::repo::{Repository, Version};

pub(super) const PATH: &str = "/cells";
const SHAPE: [u64; 3] = [64, 96, 160];
/// Voxels of a cell along x.
const WIDTH: u64 = 32;

/// What happened: lines for people, and what differs from the import.
pub(super) struct Report {
    pub(super) lines: Vec<String>,
    pub(super) diff: LabelDiff,
}

/// Five cells side by side, 1 to 5, with a gap of label 0 above them.
struct Cells;

#[async_trait]
impl Volume for Cells {
    fn shape(&self) -> [u64; 3] {
        SHAPE
    }

    async fn read(&self, region: &Region) -> chunkyard_engine::Result<Vec<u64>> {
        let (start, shape) = (region.origin(), region.shape());
        let label = |z: u64, x: u64| if z < 4 { 0 } else { x / WIDTH + 1 };
        let row = |z: u64| (start[2]..start[2] + shape[2]).map(move |x| label(z, x));
        let rows = (start[0]..start[0] + shape[0]).flat_map(|z| (0..shape[1]).map(move |_| z));
        Ok(rows.flat_map(row).collect())
    }
}

/// Merges two bodies on one branch, splits one on another, and merges the branches.
pub(super) async fn edit_on_two_branches(repo: &Repository) -> Result<Report> {
    let session = repo.writable_session("main").await?;
    let (map, imported) = Labelmap::import(
        &session,
        PATH,
        Layout::new(SHAPE),
        &Cells,
        &Mapping::default(),
        &Meter::default(),
    )
    .await?;
    let first = Version::Snapshot(map.commit("import a segmentation").await?.snapshot_id.clone());
    let mut lines =
        vec![format!("imported {} bodies of {} voxels", imported.bodies, imported.voxels)];
    for name in ["alice", "bob"] {
        repo.create_branch(name, &first).await?;
    }
    let by = |user: &str| Author { user: user.into(), note: String::new() };
    let merge = Edit::Merge { target: 1, bodies: vec![2] };
    commit_edits(repo, "alice", PATH, &[merge], &by("alice"), "merge 2 into 1").await?;
    lines.push("alice merged body 2 into 1".into());
    let rows = (4..SHAPE[0]).flat_map(|z| (0..SHAPE[1] / 2).map(move |y| [z, y, 3 * WIDTH]));
    let voxels = Runs::new(rows.map(|start| Run { start, length: WIDTH }).collect());
    let split = Edit::SplitBody { body: 4, voxels, new_body: None, halves: Vec::new() };
    commit_edits(repo, "bob", PATH, &[split], &by("bob"), "split 4").await?;
    lines.push("bob split body 4".into());
    for name in ["alice", "bob"] {
        let (theirs, resolution) = (Version::branch(name), Resolution::default());
        let author = Author { note: format!("merge {name}'s edits"), ..by(name) };
        merge_branch(repo, "main", &theirs, PATH, &resolution, &author).await?;
        repo.delete_branch(name).await?;
    }
    lines.push("both branches are merged into main, where bodies changed:".into());
    let diff = diff(repo, &first, &Version::branch("main"), PATH).await?;
    Ok(Report { lines, diff })
}
