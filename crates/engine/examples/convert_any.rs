//! Arrays from one format to another: a repository to a container, and that to sharded Zarr.
//!
//! `cargo run -p chunkyard-engine --example convert_any`

use chunkyard_array::{ArraySpec, Region};
use chunkyard_engine::format::{self, OpenOptions, Reader};
use chunkyard_engine::open::open;
use chunkyard_engine::pipeline::{Conversion, Request, RunOptions, Wishes};
use chunkyard_engine::repo::{self, CommitOptions, Repository};

#[tokio::main]
pub(crate) async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let directory = tempfile::tempdir()?;
    let root = directory.path().to_str().ok_or("the temporary directory has no name in UTF-8")?;
    let (first, second, third) =
        (format!("{root}/weather"), format!("{root}/weather.af"), format!("{root}/weather.zarr"));

    let created = repo::CreateOptions::default();
    let repo = Repository::create(&first, repo::OpenOptions::default(), created).await?;
    let session = repo.writable_session("main").await?;
    let spec = ArraySpec::builder(&[8, 8], &[4, 4], "uint8").build()?;
    let array = session.create_array("/temperature", spec).await?;
    array.write_region(&Region::whole(&[8, 8]), (0..64).collect::<Vec<u8>>().into()).await?;
    session.commit(CommitOptions::message("sixty-four values")).await?;

    // The ending of the target says its format. Nothing is visible there before all of it is.
    convert(&first, &second, Wishes::default()).await?;
    let wishes = Wishes {
        chunks: Some(vec![2, 2]),
        shards: Some(Some(vec![8, 8])),
        codec: Some("zstd:3".into()),
        ..Wishes::default()
    };
    convert(&second, &third, wishes).await?;

    // The format is found by its content.
    let opened = open(&third, &OpenOptions::default()).await?;
    let reader = Reader::new(&opened.source, "/temperature")?;
    let row = reader.read_region(&Region::parse("1:2,0:8", &[8, 8])?).await?;
    println!("{}, second row: {:?}", opened.format, &row[..]);
    assert_eq!(&row[..], [8, 9, 10, 11, 12, 13, 14, 15]);
    Ok(())
}

async fn convert(
    source: &str,
    target: &str,
    wishes: Wishes,
) -> Result<(), chunkyard_engine::Error> {
    let request = Request {
        source: source.to_owned(),
        target: target.to_owned(),
        wishes,
        ..Request::default()
    };
    let conversion = Conversion::prepare(request).await?;
    for array in &conversion.plan.arrays {
        println!(
            "{} → {}: {:?}, {}",
            array.source,
            conversion.to.name(),
            array.movement,
            array.why
        );
    }
    let options = RunOptions { verify: true, ..RunOptions::default() };
    let done = conversion.run(format::CreateOptions::default(), &options).await?;
    println!("{} chunks, {} bytes stored", done.chunks, done.bytes_stored);
    Ok(())
}
