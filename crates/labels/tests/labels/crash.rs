//! A process dies at any operation of an import, an edit, a merge of branches, or a compaction of tables:
//! afterwards the labelmap is as before or as after.

use chunkyard_format::Meter;
use chunkyard_labels::{
    Author, Edit, Labelmap, Layout, Mapping, Resolution, Run, Runs, commit_edits, merge_branch,
};
use chunkyard_repo::{OpenOptions, Repository, Version};
use chunkyard_store::fault::{Mode, Plan, Unsynced, at_every_operation};
use chunkyard_store::{Result, Store};
use chunkyard_test_support::{Place, duplicate};

use super::support::{PATH, Voxels, assert_sound, bodies, create, edit, import, tip, voxels};

/// Four columns in two blocks.
fn columns() -> Voxels {
    let shape = [16, 16, 32];
    let count = shape.iter().product::<u64>() as usize;
    Voxels { shape, labels: (0..count).map(|place| (place as u64 % 32) / 8 + 1).collect() }
}

fn layout() -> Layout {
    Layout::new([16, 16, 32]).with_block([16; 3])
}

fn split(supervoxel: u64, x: u64, part: u64) -> Edit {
    let voxels = (0..16).map(|z| Run { start: [z, 3, x], length: 2 }).collect();
    let (part, rest) = (Some(part), Some(part + 1));
    Edit::SplitSupervoxel { supervoxel, voxels: Runs::new(voxels), part, rest }
}

#[derive(Debug, Clone, Copy)]
enum Work {
    Import,
    Edit,
    Join,
    Optimise,
}

impl Work {
    async fn run(self, store: Store) -> Result<()> {
        let repo = Repository::open_in(store, OpenOptions::default()).await?;
        let author = Author::default();
        match self {
            Self::Import => {
                let session = repo.writable_session("main").await?;
                let voxels = columns();
                let meter = Meter::default();
                let (map, _) = Labelmap::import(
                    &session,
                    "/second",
                    layout(),
                    &voxels,
                    &Mapping::default(),
                    &meter,
                )
                .await?;
                map.commit("import").await?;
            }
            Self::Edit => {
                let edits = [split(3, 17, 700), Edit::Merge { target: 4, bodies: vec![3] }];
                commit_edits(&repo, "main", PATH, &edits, &author, "edit").await?;
            }
            Self::Join => {
                let (theirs, resolution) = (Version::branch("other"), Resolution::default());
                merge_branch(&repo, "main", &theirs, PATH, &resolution, &author).await?;
            }
            Self::Optimise => {
                repo.optimise("main").await?;
            }
        }
        Ok(())
    }
}

/// Everything that a reader sees of the labelmap.
async fn picture(repo: &Repository) -> String {
    let map = tip(repo, "main").await;
    assert_sound(&map).await;
    let mapping: Vec<_> = map.load_mapping().await.unwrap().rows().collect();
    let second = map.session().node("/second").is_ok();
    let bodies: Vec<_> = bodies(&map).await.into_iter().map(|b| (b.body, b.voxels)).collect();
    let labels = voxels(&map, 0).await;
    let sum = labels.iter().fold(0u64, |sum, label| sum.wrapping_mul(31).wrapping_add(*label));
    format!("{bodies:?} {mapping:?} {sum} {second}")
}

async fn furnished(store: &Store) {
    let repo = create(store).await;
    import(&repo, layout(), &columns()).await;
    repo.create_branch("other", &Version::branch("main")).await.unwrap();
    edit(&repo, "main", split(1, 1, 500)).await.unwrap();
    edit(&repo, "other", split(2, 9, 600)).await.unwrap();
    for _ in 0..2 {
        let merge = Edit::Merge { target: 1, bodies: vec![4] };
        let mutation = edit(&repo, "main", merge).await.unwrap().mutation;
        edit(&repo, "main", Edit::Revert { mutation }).await.unwrap();
    }
}

/// Power cuts on a directory are what loses most; a death in memory is the same work with other requests.
const DEATHS: [(Place, Mode, Unsynced); 4] = [
    (Place::Local, Mode::Die, Unsynced::Reverted),
    (Place::Local, Mode::DieAfter, Unsynced::Emptied),
    (Place::Local, Mode::Tear, Unsynced::Kept),
    (Place::Memory, Mode::DieAfter, Unsynced::Kept),
];

async fn dies_everywhere(work: Work) {
    for (place, mode, unsynced) in DEATHS.into_iter().filter(|(place, ..)| place.is_wanted()) {
        let (_guard, template) = place.open();
        furnished(&template).await;
        let before = picture(&reopen(&template).await).await;
        let (_guard, store) = duplicate(&template, place).await;
        work.run(store.clone()).await.unwrap();
        let after = picture(&reopen(&store).await).await;
        assert_eq!(before == after, matches!(work, Work::Optimise));
        for attempt in at_every_operation(Plan::new(0, mode).with_power_cut(unsynced)) {
            let (_guard, store) = duplicate(&template, place).await;
            let plan = attempt.plan();
            let (faulty, fault) = attempt.wrap(&store);
            let outcome = work.run(faulty).await;
            fault.die().await.unwrap();
            let found = picture(&reopen(&store).await).await;
            let acknowledged = outcome.is_ok();
            assert!(
                found == after || found == before && !acknowledged,
                "{work:?} {plan:?}: {outcome:?}"
            );
        }
    }
}

#[tokio::test]
async fn an_import_is_all_or_nothing() {
    dies_everywhere(Work::Import).await;
}

#[tokio::test]
async fn edits_of_one_commit_are_all_or_nothing() {
    dies_everywhere(Work::Edit).await;
}

#[tokio::test]
async fn a_merge_of_branches_is_all_or_nothing() {
    dies_everywhere(Work::Join).await;
}

#[tokio::test]
async fn a_compaction_of_tables_changes_nothing() {
    dies_everywhere(Work::Optimise).await;
}

async fn reopen(store: &Store) -> Repository {
    Repository::open_in(store.clone(), OpenOptions::default()).await.unwrap()
}
