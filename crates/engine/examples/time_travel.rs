//! Two commits, a tag, what changed between them, and the values of before.
//!
//! `cargo run -p chunkyard-engine --example time_travel`

use chunkyard_array::{ArraySpec, Region};
use chunkyard_engine::repo::{CommitOptions, CreateOptions, OpenOptions, Repository, Version};

#[tokio::main]
pub(crate) async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let directory = tempfile::tempdir()?;
    let place = directory.path().join("weather");
    let url = place.to_str().ok_or("the temporary directory has no name in UTF-8")?;
    let repo = Repository::create(url, OpenOptions::default(), CreateOptions::default()).await?;

    // Everything in a session is visible after its commit, or not at all.
    let session = repo.writable_session("main").await?;
    let spec = ArraySpec::builder(&[4, 6], &[2, 3], "uint8").build()?;
    let array = session.create_array("/temperature", spec).await?;
    array.write_region(&Region::whole(&[4, 6]), vec![20; 24].into()).await?;
    session.commit(CommitOptions::message("first day")).await?;
    repo.create_tag("v1", &Version::branch("main"), false).await?;

    let session = repo.writable_session("main").await?;
    let broken = Region::parse("0:2,0:3", &[4, 6])?;
    session.array("/temperature").await?.write_region(&broken, vec![255; 6].into()).await?;
    session.commit(CommitOptions::message("mask a broken sensor")).await?;

    let v1 = Version::Tag("v1".into());
    let diff = repo.diff(&v1, &Version::branch("main")).await?;
    for change in &diff.chunks {
        println!("{}: chunks {:?} are new since v1", change.path, change.replaced);
    }
    let first = Region::parse("0:1,0:6", &[4, 6])?;
    let mut rows = Vec::new();
    for version in [v1, Version::branch("main")] {
        let read = repo.readonly_session(&version).await?;
        let row = read.array("/temperature").await?.read_region(&first).await?;
        println!("{version}: {:?}", &row[..]);
        rows.push(row.to_vec());
    }
    assert_eq!(rows, [[20; 6], [255, 255, 255, 20, 20, 20]]);
    Ok(())
}
