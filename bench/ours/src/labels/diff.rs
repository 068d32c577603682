//! Two versions that differ in 100 bodies, of any number of them.

use bench_measure::{Answer, Clock, Options, Outcome, Samples};
use chunkyard_engine::Meter;
use chunkyard_engine::repo::{OpenOptions, Repository, Version};
use chunkyard_labels::{Author, Edit, Labelmap, Layout, Mapping, commit_edits, diff as compare};

use super::PATH;
use super::volumes::Rule;
use crate::commits::create;

/// Merges between the versions: each changes a body and makes another one vanish.
const MERGES: u64 = 50;

/// `bodies=…`: compares the tip of `main` with the version before.
pub async fn diff(options: &Options) -> Outcome {
    let directory = options.directory.as_str();
    let bodies = options.number("bodies", 10_000)?;
    if !std::path::Path::new(directory).exists() {
        let session = create(directory).await?.writable_session("main").await?;
        // Columns of 2 × 2 voxels: 512 of them in a slab of 16 × 128 voxels.
        let slabs = bodies.div_ceil(512);
        let label = |[_, y, x]: [u64; 3]| x / 2 * 64 + y / 2 + 1;
        let volume = Rule { shape: [16, 128, 16 * slabs], label };
        let layout = Layout { scales: 1, ..Layout::new(volume.shape).with_block([16; 3]) };
        let mapping = Mapping::default();
        let (map, _) =
            Labelmap::import(&session, PATH, layout, &volume, &mapping, &Meter::default()).await?;
        map.commit("import").await?;
        let repo = Repository::open(directory, OpenOptions::default()).await?;
        repo.create_tag("before", &Version::branch("main"), false).await?;
        let apart = bodies / MERGES;
        let edits: Vec<Edit> = (0..MERGES)
            .map(|at| Edit::Merge { target: at * apart + 1, bodies: vec![at * apart + 2] })
            .collect();
        commit_edits(&repo, "main", PATH, &edits, &Author::default(), "merges").await?;
    }
    let repo = Repository::open(directory, OpenOptions::default()).await?;
    let (before, after) = (Version::Tag("before".into()), Version::branch("main"));
    let (mut samples, mut equal) = (Samples::default(), true);
    for repeat in 0..=options.number("repeats", 3)?.max(5) {
        let clock = Clock::start();
        let found = compare(&repo, &before, &after, PATH).await?;
        if repeat > 0 {
            samples.add(clock);
        }
        equal &= found.vanished.len() as u64 == MERGES && found.grown.len() as u64 == MERGES;
    }
    Ok(Answer::default().measure("diff", &samples).equal(equal))
}
