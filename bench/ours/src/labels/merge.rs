//! Two bodies of 1,000 blocks each become one, beside a mapping of any size.

use bench_measure::{Answer, Clock, Options, Outcome, Samples};
use chunkyard_engine::Meter;
use chunkyard_engine::repo::{OpenOptions, Repository, Version};
use chunkyard_labels::{Author, Edit, Labelmap, Layout, commit_edits};

use super::PATH;
use super::mapping::rows;
use super::volumes::Rule;
use crate::commits::create;

/// Pairs of bodies: one to warm up.
const PAIRS: u64 = 8;

/// `rows=…`: merges pair after pair, each in a durable commit.
pub async fn merge(options: &Options) -> Outcome {
    let directory = options.directory.as_str();
    let session = create(directory).await?.writable_session("main").await?;
    // A body is a cube of ten blocks of 16 voxels along each axis.
    let volume = Rule { shape: [160, 160, 320 * PAIRS], label: |[_, _, x]| x / 160 + 1 };
    let layout = Layout { scales: 1, ..Layout::new(volume.shape).with_block([16; 3]) };
    let given = rows(options.number("rows", 100_000)?)?;
    let (map, _) =
        Labelmap::import(&session, PATH, layout, &volume, &given, &Meter::default()).await?;
    map.commit("import").await?;
    drop((map, session, given));
    let repo = Repository::open(directory, OpenOptions::default()).await?;
    let mut samples = Samples::default();
    for pair in 0..PAIRS {
        let (target, body) = (2 * pair + 1, 2 * pair + 2);
        let edit = [Edit::Merge { target, bodies: vec![body] }];
        let clock = Clock::start();
        commit_edits(&repo, "main", PATH, &edit, &Author::default(), "merge").await?;
        if pair > 0 {
            samples.add(clock);
        }
    }
    let session = repo.readonly_session(&Version::branch("main")).await?;
    let map = Labelmap::open(&session, PATH).await?;
    let merged = map.body(1).await?;
    let equal = merged.supervoxels == 2 && merged.voxels == 2 * 160 * 160 * 160;
    Ok(Answer::default().measure("merge", &samples).equal(equal))
}
