//! A volume becomes a labelmap: blocks, coarser scales, index and tables, in one durable commit.

use bench_measure::{Answer, Clock, Idle, Options, Outcome, Samples};
use chunkyard_array::Region;
use chunkyard_engine::Meter;
use chunkyard_engine::repo::Version;
use chunkyard_labels::{Labelmap, Layout, Mapping, Volume, widen};

use super::PATH;
use super::volumes::Stored;
use crate::commits::create;
use crate::disk::Disk;

/// `data=DIRECTORY z=… y=… x=… scales=…`.
pub async fn import(options: &Options) -> Outcome {
    let shape = [options.number("z", 64)?, options.number("y", 256)?, options.number("x", 256)?];
    let bytes = std::fs::read(format!("{}/supervoxels", options.text("data")))?;
    let volume = Stored { bytes, shape };
    let layout = Layout { scales: options.number("scales", 4)? as usize, ..Layout::new(shape) };
    let (mut returned, mut memory) = (Samples::default(), 0);
    for _ in 0..options.number("repeats", 1)?.max(1) {
        let directory = options.directory.as_str();
        if std::path::Path::new(directory).exists() {
            std::fs::remove_dir_all(directory)?;
        }
        let (idle, clock) = (Idle::now(), Clock::start());
        let repo = create(directory).await?;
        let session = repo.writable_session("main").await?;
        let (mapping, meter) = (Mapping::default(), Meter::default());
        let layout = layout.clone();
        let (map, _) = Labelmap::import(&session, PATH, layout, &volume, &mapping, &meter).await?;
        map.commit("import").await?;
        returned.add(clock);
        memory = idle.above();
    }
    let repo =
        chunkyard_engine::repo::Repository::open(&options.directory, Default::default()).await?;
    let session = repo.readonly_session(&Version::branch("main")).await?;
    let map = Labelmap::open(&session, PATH).await?;
    // One slab of planes after the other: all at once would take the memory twice.
    let mut equal = true;
    for z in (0..shape[0]).step_by(64) {
        let region = Region::new(vec![z, 0, 0], vec![64.min(shape[0] - z), shape[1], shape[2]])?;
        let read = widen(&map.array(0)?.read_region(&region).await?, 8);
        equal &= read == volume.read(&region).await?;
    }
    let disk = Disk::of(&options.directory)?;
    Ok(Answer::default()
        .measure("durable", &returned)
        .fact("memory", memory)
        .fact("files", disk.files())
        .fact("stored-bytes", disk.bytes())
        .equal(equal))
}
