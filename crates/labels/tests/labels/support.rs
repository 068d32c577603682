//! Small labelmaps, and ways to look at all of one.

use async_trait::async_trait;
use chunkyard_array::Region;
use chunkyard_format::Meter;
use chunkyard_labels::{
    Author, Body, Edit, Labelmap, Layout, Mapping, Mutation, Volume, commit_edits, widen,
};
use chunkyard_repo::{CreateOptions, OpenOptions, Repository, Version};
use chunkyard_store::{Result, Store};
use futures::TryStreamExt;

/// The group of every labelmap here.
pub(crate) const PATH: &str = "/seg";

/// A volume in memory.
pub(crate) struct Voxels {
    pub(crate) shape: [u64; 3],
    pub(crate) labels: Vec<u64>,
}

/// Short, for the report of a failure.
impl std::fmt::Debug for Voxels {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let labels: std::collections::BTreeSet<_> = self.labels.iter().collect();
        write!(f, "{:?} voxels of {labels:?}", self.shape)
    }
}

#[async_trait]
impl Volume for Voxels {
    fn shape(&self) -> [u64; 3] {
        self.shape
    }

    async fn read(&self, region: &Region) -> Result<Vec<u64>> {
        let (start, shape) = (region.origin(), region.shape());
        let mut out = Vec::new();
        for z in start[0]..start[0] + shape[0] {
            for y in start[1]..start[1] + shape[1] {
                let from = ((z * self.shape[1] + y) * self.shape[2] + start[2]) as usize;
                out.extend_from_slice(&self.labels[from..from + shape[2] as usize]);
            }
        }
        Ok(out)
    }
}

/// A repository in a store.
pub(crate) async fn create(store: &Store) -> Repository {
    Repository::create_in(store.clone(), OpenOptions::default(), CreateOptions::default())
        .await
        .unwrap()
}

/// A labelmap of some voxels, committed to `main`.
pub(crate) async fn import(repo: &Repository, layout: Layout, voxels: &Voxels) {
    let session = repo.writable_session("main").await.unwrap();
    let (map, imported) =
        Labelmap::import(&session, PATH, layout, voxels, &Mapping::default(), &Meter::default())
            .await
            .unwrap();
    let count = voxels.labels.iter().filter(|label| **label != 0).count() as u64;
    assert_eq!(imported.voxels, count);
    map.commit("import").await.unwrap();
}

/// The tip of a branch.
pub(crate) async fn tip(repo: &Repository, branch: &str) -> Labelmap {
    let session = repo.readonly_session(&Version::branch(branch)).await.unwrap();
    Labelmap::open(&session, PATH).await.unwrap()
}

/// One edit as one commit.
pub(crate) async fn edit(repo: &Repository, branch: &str, edit: Edit) -> Result<Mutation> {
    let author = Author { user: "test".into(), note: String::new() };
    let (mutations, _) =
        commit_edits(repo, branch, PATH, std::slice::from_ref(&edit), &author, "edit").await?;
    Ok(mutations.into_iter().next().unwrap())
}

/// All bodies, by id.
pub(crate) async fn bodies(map: &Labelmap) -> Vec<Body> {
    let batches: Vec<Vec<Body>> = map.all_bodies(0).unwrap().try_collect().await.unwrap();
    batches.concat()
}

/// All supervoxels of a scale, x fastest.
pub(crate) async fn voxels(map: &Labelmap, scale: usize) -> Vec<u64> {
    let array = map.array(scale).unwrap();
    let region = Region::whole(array.spec().shape());
    widen(&array.read_region(&region).await.unwrap(), 8)
}

/// Recounts everything, and fails with what does not agree.
pub(crate) async fn assert_sound(map: &Labelmap) {
    let found = map.verify(&Meter::default()).await.unwrap();
    assert!(found.is_sound(), "{:#?}", found.problems);
}
